// A chart with components along the bottom: bars, points or a line.

const TRUST = [
  { name: "near", within: Math.PI / 32, words: "within π/32 (5.6°) of the true one" },
  { name: "rough", within: Math.PI / 8, words: "within π/8 (22.5°)" },
  { name: "unsure", within: Infinity, words: "further, or nothing can be said" },
  { name: "unmeasured", within: NaN, words: "not measured" },
];

/** How far component i can be trusted: a place in TRUST. */
function trustOf(i) {
  const angle = report.components.angle[i];
  if (!report.certificate.measured || angle === null) return 3;
  return TRUST.findIndex((level) => angle <= level.within);
}

/** The shape that stands for a level of trust: circle, square, triangle, ring. */
function trustMark(level, x, y, size) {
  const attributes = { class: `mark ${TRUST[level].name}` };
  if (level === 1) {
    return svg("rect", { ...attributes, x: x - size, y: y - size, width: 2 * size, height: 2 * size });
  }
  if (level === 2) {
    const tall = 1.3 * size;
    return svg("path", { ...attributes, d: `M${x} ${y - tall}l${tall} ${2 * tall}h${-2 * tall}z` });
  }
  return svg("circle", { ...attributes, cx: x, cy: y, r: 1.1 * size });
}

/**
 * Draw a chart into `host` whenever that is needed.
 *
 * describe() returns: values; kind "bars", "points" or "line"; log; range [low, high] (optional);
 * lines [{at, text}] (optional); label, for those who cannot see it; tick(value); tip(i).
 */
function componentChart(host, describe) {
  drawn(() => host.replaceChildren(chart(host.clientWidth, describe())));
}

function chart(width, options) {
  const { values, log, label, tick } = options;
  const count = values.length;
  const height = width < 480 ? 220 : 250;
  const [low, high] = options.range ?? valueRange(values, log);
  const labels = (log ? logarithmic : linear)(low, high, 0, 1).ticks(5).map(tick);
  const left = 14 + 6.4 * Math.max(...labels.map((text) => text.length), 2);
  const area = { left, right: width - (options.lines ? 38 : 10), top: 12, bottom: height - 40 };
  const y = (log ? logarithmic : linear)(low, high, area.bottom, area.top);
  const slot = (area.right - area.left) / count;
  const x = (i) => area.left + (i + 0.5) * slot;

  const root = svg("svg", {
    width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, tabindex: 0,
  });
  root.append(...rulers(y, area, tick));
  for (const i of countTicks(count, (area.right - area.left) / 34)) {
    root.append(svg("text", { class: "tick", x: x(i - 1), y: area.bottom + 16, "text-anchor": "middle" }, `${i}`));
  }
  root.append(
    svg("text", { class: "axis", x: (area.left + area.right) / 2, y: height - 6, "text-anchor": "middle" }, "component"),
  );
  const band = svg("rect", { class: "band", y: area.top, height: area.bottom - area.top, width: Math.max(slot, 3), visibility: "hidden" });
  root.append(band, ...marks(options, x, y, slot, area), ...references(options.lines ?? [], y, area));
  followPointer(root, band, { count, area, slot, x, y, options });
  return root;
}

/** A range that holds all values; bars and logarithms need a floor to stand on. */
function valueRange(values, log) {
  if (!log) return [0, extent(values)[1] * 1.04 || 1];
  const positive = values.filter((value) => value > 0);
  if (!positive.length) return [1e-3, 1];
  const [low, high] = extent(positive);
  return [low / 2, Math.max(high * 1.5, low * 10)];
}

/** Horizontal rules with their numbers. */
function rulers(y, area, tick) {
  return y.ticks(5).flatMap((value) => [
    svg("line", { class: "rule", x1: area.left, x2: area.right, y1: y(value), y2: y(value) }),
    svg("text", { class: "tick", x: area.left - 7, y: y(value) + 4, "text-anchor": "end" }, tick(value)),
  ]);
}

/** Dashed lines to compare with, named in the right margin. */
function references(lines, y, area) {
  return lines.flatMap(({ at, text }) => [
    svg("line", { class: "reference", x1: area.left, x2: area.right, y1: y(at), y2: y(at) }),
    svg("text", { class: "reference-text", x: area.right + 5, y: y(at) + 4 }, text),
  ]);
}

function marks({ values, kind, log }, x, y, slot, area) {
  // Nothing that is zero has a place among powers.
  const there = values.map((value, i) => [value, i]).filter(([value]) => value !== null && (!log || value > 0));
  if (kind === "line") {
    const path = there.map(([value, i], n) => `${n ? "L" : "M"}${x(i)} ${y(value)}`).join("");
    if (!there.length) return [];
    const [first, last] = [there[0][1], there[there.length - 1][1]];
    const dots = slot > 9 ? there.map(([value, i]) => svg("circle", { class: "dot", cx: x(i), cy: y(value), r: 3 })) : [];
    return [
      svg("path", { class: "under", d: `${path}L${x(last)} ${area.bottom}L${x(first)} ${area.bottom}Z` }),
      svg("path", { class: "line", d: path }),
      ...dots,
    ];
  }
  if (kind === "points") {
    const size = Math.max(1.5, Math.min(4, slot / 3));
    return there.map(([value, i]) => trustMark(trustOf(i), x(i), y(value), size));
  }
  const wide = Math.max(1, Math.min(slot * 0.76, 44));
  return there.map(([value, i]) =>
    svg("rect", {
      class: `bar ${TRUST[trustOf(i)].name}`,
      x: x(i) - wide / 2, y: y(value), width: wide, height: Math.max(area.bottom - y(value), 1),
      rx: wide > 8 ? 2 : 0,
    }),
  );
}

/** Say what is under the pointer, or where the arrow keys are; a click shows that component below. */
function followPointer(root, band, { count, area, slot, x, y, options }) {
  let at = -1;
  const point = (i) => {
    at = Math.max(0, Math.min(count - 1, i));
    band.setAttribute("x", x(at) - Math.max(slot, 3) / 2);
    band.setAttribute("visibility", "visible");
    const box = root.getBoundingClientRect();
    const value = options.values[at];
    const top = value === null ? area.bottom : y(value);
    showTip(box.left + x(at), box.top + top, `Component ${at + 1}`, options.tip(at));
  };
  const leave = () => {
    band.setAttribute("visibility", "hidden");
    hideTip();
  };
  const under = (event) => Math.floor((event.clientX - root.getBoundingClientRect().left - area.left) / slot);
  root.addEventListener("pointermove", (event) => point(under(event)));
  root.addEventListener("pointerdown", (event) => point(under(event)));
  root.addEventListener("pointerleave", leave);
  root.addEventListener("blur", leave);
  root.addEventListener("click", (event) => chooseComponent(Math.max(0, Math.min(count - 1, under(event)))));
  root.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) point(at + step);
    else if (event.key === "Enter" && at >= 0) chooseComponent(at);
    else if (event.key === "Escape") leave();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
