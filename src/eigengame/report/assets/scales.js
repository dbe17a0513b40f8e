// Scales that map numbers to positions, and their ticks.

/** The smallest of 1, 2, 5, 10, 20, ... that is not below `raw`. */
function niceStep(raw) {
  const base = 10 ** Math.floor(Math.log10(raw));
  return base * [1, 2, 5, 10].find((factor) => factor * base >= raw * 0.999999);
}

/** A linear scale from [low, high] to [from, to]. */
function linear(low, high, from, to) {
  const span = high - low || 1;
  const place = (x) => from + ((x - low) / span) * (to - from);
  place.back = (at) => low + ((at - from) / (to - from)) * span;
  place.ticks = (count) => {
    const step = niceStep(span / Math.max(count, 1));
    const first = Math.ceil(low / step - 1e-9);
    const last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  };
  return place;
}

/** A logarithmic scale; values below `low` are drawn at its lower end. */
function logarithmic(low, high, from, to) {
  const inner = linear(Math.log10(low), Math.log10(high), from, to);
  const place = (x) => inner(Math.log10(Math.max(x, low)));
  place.ticks = (count) => {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const every = Math.max(1, Math.ceil((last - first) / Math.max(count, 1)));
    const factors = last - first < 2 ? [1, 2, 5] : [1];
    const found = [];
    for (let power = first - 1; power <= last; power += 1) {
      if (factors.length === 1 && (power - last) % every !== 0) continue;
      for (const factor of factors) {
        const tick = factor * 10 ** power;
        if (tick >= low * 0.999 && tick <= high * 1.001) found.push(tick);
      }
    }
    return found;
  };
  return place;
}

/** Round numbers from 1 to count, with space for their labels. */
function countTicks(count, room) {
  const step = Math.max(1, niceStep(count / Math.max(room, 1)));
  const ticks = [1];
  // Steps of 1 and 2 start at 1; larger steps give 1, 5, 10, 15 and so on.
  for (let tick = step < 5 ? 1 + step : step; tick <= count; tick += step) ticks.push(tick);
  return ticks;
}

/** The minimum and maximum of the finite values. */
function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? [low, high] : [0, 1];
}

/** A range with a margin at both ends. */
function padded([low, high], share = 0.05) {
  const room = (high - low || Math.abs(high) || 1) * share;
  return [low - room, high + room];
}
