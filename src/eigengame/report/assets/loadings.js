// A component as bars: its largest loadings, with the names of their features.

function loadingView(host) {
  const { names, features, values, named } = report.loadings;
  const plot = el("div", { class: "plot" });
  const kept = values[0].length;
  const which = kept < report.features ? `The ${kept} largest of ${report.features.toLocaleString("en")} loadings` : "All loadings in descending order";
  host.append(plot, el("p", { class: "note" }, `${which}.${named ? "" : " Columns are numbered from 0."}`));
  return (i) => plot.replaceChildren(loadingBars(plot.clientWidth, i, features[i].map((f) => names[f]), values[i]));
}

function loadingBars(width, i, names, values) {
  const line = 24;
  const height = values.length * line + 34;
  const left = Math.min(widest(names, 12.5) + 16, width * 0.42);
  const area = { left, right: width - 26, top: 4, bottom: height - 28 };
  const most = Math.max(...values.map(Math.abs)) || 1;
  const [low, high] = [values.some((v) => v < 0) ? -most : 0, values.some((v) => v > 0) ? most : 0];
  const x = linear(low * 1.05, high * 1.05, area.left, area.right);
  const root = svg("svg", {
    width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Largest loadings of component ${i + 1}: ${names.slice(0, 3).map((name, n) => `${name} ${number(values[n], 2)}`).join(", ")}`,
  });
  const ticks = x.ticks(tickCount(x, area.right - area.left, (count) => tickFormat(x.ticks(count))));
  const tick = tickFormat(ticks);
  for (const value of ticks) {
    root.append(
      svg("line", { class: value === 0 ? "zero" : "rule", x1: x(value), x2: x(value), y1: area.top, y2: area.bottom }),
      svg("text", { class: "tick", x: x(value), y: area.bottom + 18, "text-anchor": "middle" }, tick(value)),
    );
  }
  values.forEach((value, n) => {
    const y = area.top + n * line;
    const from = Math.min(x(0), x(value));
    const show = (event) => showTip(event.clientX, event.clientY, names[n], [["loading", number(value)]]);
    root.append(
      svg("g", { class: "loading", onpointermove: show, onpointerdown: show, onpointerleave: hideTip },
        svg("rect", { class: "reach", x: 0, y, width, height: line }),
        svg("text", { class: "name", x: area.left - 8, y: y + 16, "text-anchor": "end" }, shortened(names[n], left - 14)),
        svg("rect", {
          class: value < 0 ? "minus" : "plus", x: from, y: y + 4, width: Math.max(1, Math.abs(x(value) - x(0))), height: line - 8, rx: 2,
        }),
      ),
    );
  });
  return root;
}

/** A name truncated to the available width. */
function shortened(name, room) {
  if (textWidth(name, 12.5) <= room) return name;
  let letters = name.length - 1;
  while (letters > 1 && textWidth(`${name.slice(0, letters)}…`, 12.5) > room) letters -= 1;
  return `${name.slice(0, letters)}…`;
}
