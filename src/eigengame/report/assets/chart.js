// A chart with components on the x axis: bars, points or a line.

/** The tolerance by which components are judged. */
const LIMIT = report.certificate.tol;
const LIMIT_TEXT = `${number(LIMIT)} rad`;

const TRUST = [
  { name: "near", within: LIMIT, words: `bound within ${report.certificate.requested ? "tol, " : ""}${LIMIT_TEXT}` },
  { name: "rough", within: Math.PI / 8, words: "bound within π/8 (22.5°)" },
  { name: "unsure", within: Infinity, words: "larger bound" },
  { name: "unmeasured", within: NaN, words: "no bound, only an estimate" },
];

/** The level of trust of component i: an index of TRUST. */
function trustOf(i) {
  const angle = report.components.angle[i];
  if (angle === null) return 3;
  return TRUST.findIndex((level) => angle <= level.within);
}

/** The mark of a level of trust: circle, square, triangle; an open diamond without a bound. */
function trustMark(level, x, y, size) {
  const attributes = { class: `mark ${TRUST[level].name}` };
  if (level === 1) {
    return svg("rect", { ...attributes, x: x - size, y: y - size, width: 2 * size, height: 2 * size });
  }
  if (level === 2) {
    const tall = 1.3 * size;
    return svg("path", { ...attributes, d: `M${x} ${y - tall}l${tall} ${2 * tall}h${-2 * tall}z` });
  }
  if (level === 3) {
    const far = 1.4 * size;
    return svg("path", { ...attributes, d: `M${x} ${y - far}l${far} ${far}l${-far} ${far}l${-far} ${-far}z` });
  }
  return svg("circle", { ...attributes, cx: x, cy: y, r: 1.1 * size });
}

/**
 * Draw a chart into `host`, now and on every redraw.
 *
 * describe() returns: values; kind "bars", "points" or "line"; log; range [low, high] (optional);
 * open (optional): whether points without a bound have a dotted line up to the top;
 * lines [{at, text}] (optional); label, for screen readers; tick(value) (optional); tip(i).
 */
function componentChart(host, describe) {
  drawn(() => host.replaceChildren(chart(host.clientWidth, describe())));
}

function chart(width, options) {
  const { values, log, label } = options;
  const count = values.length;
  const height = width < 480 ? 220 : 250;
  const [low, high] = options.range ?? valueRange(values, log);
  const ticks = (log ? logarithmic : linear)(low, high, 0, 1).ticks(5);
  const tick = options.tick ?? tickFormat(ticks);
  const left = 14 + widest(ticks.map(tick));
  const margin = Math.max(8 + widest((options.lines ?? []).map(({ text }) => text), 11), 4 + textWidth(`${count}`) / 2);
  const area = { left, right: width - margin, top: 12, bottom: height - 40 };
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

/** A range that contains all values; a linear one starts at zero. */
function valueRange(values, log) {
  if (!log) return [0, extent(values)[1] * 1.04 || 1];
  const positive = values.filter((value) => value > 0);
  if (!positive.length) return [1e-3, 1];
  const [low, high] = extent(positive);
  return [low / 2, Math.max(high * 1.5, low * 10)];
}

/** Horizontal grid lines with their numbers. */
function rulers(y, area, tick, count = 5) {
  return y.ticks(count).flatMap((value) => [
    svg("line", { class: "rule", x1: area.left, x2: area.right, y1: y(value), y2: y(value) }),
    svg("text", { class: "tick", x: area.left - 7, y: y(value) + 4, "text-anchor": "end" }, tick(value)),
  ]);
}

/** Dashed reference lines, labelled in the right margin. */
function references(lines, y, area) {
  return lines.flatMap(({ at, text }) => [
    svg("line", { class: "reference", x1: area.left, x2: area.right, y1: y(at), y2: y(at) }),
    svg("text", { class: "reference-text", x: area.right + 5, y: y(at) + 4 }, text),
  ]);
}

function marks({ values, kind, log, open }, x, y, slot, area) {
  // A logarithmic axis has no zero.
  const points = values.map((value, i) => [value, i]).filter(([value]) => value !== null && (!log || value > 0));
  if (kind === "line") {
    const path = points.map(([value, i], n) => `${n ? "L" : "M"}${x(i)} ${y(value)}`).join("");
    if (!points.length) return [];
    const [first, last] = [points[0][1], points[points.length - 1][1]];
    const dots = slot > 9 ? points.map(([value, i]) => svg("circle", { class: "dot", cx: x(i), cy: y(value), r: 3 })) : [];
    return [
      svg("path", { class: "under", d: `${path}L${x(last)} ${area.bottom}L${x(first)} ${area.bottom}Z` }),
      svg("path", { class: "line", d: path }),
      ...dots,
    ];
  }
  if (kind === "points") {
    const size = Math.max(1.5, Math.min(4, slot / 3));
    const stems = open ? points.filter(([, i]) => trustOf(i) === 3) : [];
    return [
      ...stems.map(([value, i]) => svg("line", { class: "stem", x1: x(i), x2: x(i), y1: y(value), y2: area.top })),
      ...points.map(([value, i]) => trustMark(trustOf(i), x(i), y(value), size)),
    ];
  }
  const wide = Math.max(1, Math.min(slot * 0.76, 44));
  return points.map(([value, i]) =>
    svg("rect", {
      class: `bar ${TRUST[trustOf(i)].name}`,
      x: x(i) - wide / 2, y: y(value), width: wide, height: Math.max(area.bottom - y(value), 1),
      rx: wide > 8 ? 2 : 0,
    }),
  );
}

/** Show the component under the pointer, or selected by arrow keys, in the tooltip; a click selects it. */
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
