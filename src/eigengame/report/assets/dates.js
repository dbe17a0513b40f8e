// A scale of dates: ticks at whole years, months, days, hours, minutes or seconds (UTC).

const SECOND = 1000;
const DAY = 86400 * SECOND;
const DATE_STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => ({ unit: "second", n, length: n * SECOND })),
  ...[1, 2, 5, 10, 15, 30].map((n) => ({ unit: "minute", n, length: n * 60 * SECOND })),
  ...[1, 2, 3, 6, 12].map((n) => ({ unit: "hour", n, length: n * 3600 * SECOND })),
  ...[1, 2, 7, 14].map((n) => ({ unit: "day", n, length: n * DAY })),
  ...[1, 2, 3, 6].map((n) => ({ unit: "month", n, length: n * 30.4 * DAY })),
];

/** The step of ticks for a span: the smallest that gives at most `count` ticks. */
function dateStep(span, count) {
  const found = DATE_STEPS.find(({ length }) => length * count >= span);
  if (found) return found;
  const n = niceStep(Math.max(1, span / count / (365.25 * DAY)));
  return { unit: "year", n, length: n * 365.25 * DAY };
}

function dateTicks(low, high, { unit, n, length }) {
  const ticks = [];
  if (unit === "year" || unit === "month") {
    const start = new Date(low);
    const months = unit === "year" ? 12 * n : n;
    let month = Math.floor((start.getUTCFullYear() * 12 + start.getUTCMonth()) / months) * months;
    for (; ; month += months) {
      // Date.UTC would take years below 100 as 1900 and later.
      const at = new Date(0).setUTCFullYear(Math.floor(month / 12), ((month % 12) + 12) % 12, 1);
      // Also true for a year that is beyond the range of dates.
      if (!(at <= high)) return ticks;
      if (at >= low) ticks.push(at);
    }
  }
  // Weeks begin on Monday; the first one after the start of 1970 is the fifth of January.
  const first = n === 7 || n === 14 ? 4 * DAY : 0;
  for (let at = Math.ceil((low - first) / length) * length + first; at <= high; at += length) ticks.push(at);
  return ticks;
}

function dateTickText(at, unit) {
  const text = new Date(at).toISOString();
  const [date, time] = text.split("T");
  if (unit === "year") return date.slice(0, -6).replace(/^\+?0*(?=\d)/, "");
  if (unit === "month") return date.slice(0, -3);
  if (unit === "day") return date;
  if (unit === "second") return time.slice(0, 8);
  return at % DAY === 0 ? date : time.slice(0, 5);
}

/** A linear scale whose ticks are dates. */
function dateScale(low, high, from, to) {
  const place = linear(low, high, from, to);
  const label = (count) => dateStep(high - low || 1, Math.max(count, 1));
  place.ticks = (count) => dateTicks(low, high, label(count));
  place.format = (count) => (at) => dateTickText(at, label(count).unit);
  return place;
}
