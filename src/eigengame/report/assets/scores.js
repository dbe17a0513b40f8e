// Scatter plot of scores on two components, coloured by labels.

function drawScores(card) {
  const { scores } = report;
  if (scores === null) {
    card.append(
      el("p", { class: "instead" },
        "This report was written without data. To see a scatter plot of scores, use ",
        el("code", {}, "write_report(model, path, data=X, labels=y)"), ".",
      ),
    );
    return;
  }
  const { columns } = scores;
  const rows = Float64Array.from(scores.rows);
  const axes = [
    { name: "row number", values: () => rows },
    ...columns.map((column, i) => ({
      name: `component ${i + 1} (${percent(report.components.share[i])})`, short: `component ${i + 1}`,
      values: () => (column.values ??= dequantize(column)),
    })),
  ];
  const two = columns.length > 1;
  const state = { x: two ? 1 : 0, y: two ? 2 : 1, hidden: new Set(), zoom: null };
  const plot = el("div", { class: "scatter", role: "img" });
  const paint = painter(scores.labels);
  const reset = el("button", { type: "button", class: "plain", onclick: () => { state.zoom = null; draw(); } }, "Reset zoom");
  const draw = () => {
    reset.hidden = state.zoom === null;
    scatter(plot, axes, state, paint, (zoom) => { state.zoom = zoom; draw(); });
  };
  const choice = (key, words) =>
    el("label", {}, `${words} `,
      el("select", { "data-axis": key, onchange: (event) => { state[key] = Number(event.target.value); state.zoom = null; draw(); } },
        ...axes.map((axis, i) => el("option", { value: i, selected: i === state[key] }, axis.name)),
      ),
    );
  const shown = scores.rows.length;
  const all = shown === scores.of ? `All ${plural(shown, "row")}` : `${plural(shown, "row")} of ${scores.of.toLocaleString("en")}, sampled evenly`;
  const few = columns.length < report.components.variance.length ? ` Only the first ${columns.length} components are available.` : "";
  card.append(
    el("div", { class: "controls" }, choice("x", "x axis"), choice("y", "y axis"), reset),
    el("div", { class: "scatter-row" }, plot, paint.legend(state, draw)),
    el("p", { class: "note" }, `${all}, numbered from 0.${few}`, el("span", { class: "mouse" }, " Drag with the mouse to zoom in.")),
  );
  drawn(draw);
}

/** Draw the scatter plot; `zoom` is called with the ranges that the mouse selects. */
function scatter(host, axes, state, paint, zoom) {
  const width = host.clientWidth;
  const height = Math.round(Math.min(560, Math.max(300, width * (width < 560 ? 0.95 : 0.66))));
  const [across, up] = [axes[state.x], axes[state.y]];
  const [xs, ys] = [across.values(), up.values()];
  const [yLow, yHigh] = state.zoom?.y ?? padded(extent(ys));
  const labels = linear(yLow, yHigh, 0, 1).ticks(6).map((value) => number(value, 3));
  const left = 30 + 6.4 * Math.max(...labels.map((text) => text.length));
  const area = { left, right: width - 8, top: 8, bottom: height - 42 };
  const x = linear(...(state.zoom?.x ?? padded(extent(xs))), area.left, area.right);
  const y = linear(yLow, yHigh, area.bottom, area.top);
  const names = [across.short ?? across.name, up.short ?? up.name];
  const ring = el("div", { class: "ring" });
  const canvas = el("canvas", { "aria-hidden": true });
  const frame = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": true },
    ...rulers(y, area, (value) => number(value, 3)),
    ...x.ticks((area.right - area.left) / 90).flatMap((value) => [
      svg("line", { class: "rule", x1: x(value), x2: x(value), y1: area.top, y2: area.bottom }),
      svg("text", { class: "tick", x: x(value), y: area.bottom + 16, "text-anchor": "middle" }, number(value, 3)),
    ]),
    svg("text", { class: "axis", x: (area.left + area.right) / 2, y: height - 6, "text-anchor": "middle" }, names[0]),
    svg("text", {
      class: "axis", transform: `translate(13 ${(area.top + area.bottom) / 2}) rotate(-90)`, "text-anchor": "middle",
    }, names[1]),
  );
  const box = el("div", { class: "box" });
  host.replaceChildren(frame, canvas, ring, box);
  host.setAttribute("aria-label", `${plural(ys.length, "row")} by ${names[0]} and ${names[1]}.`);
  const places = Array.from(ys, (value, row) => [x(xs[row]), y(value)]);
  const inside = ([a, b]) => a >= area.left && a <= area.right && b >= area.top && b <= area.bottom;
  const shown = places.map((place, row) => inside(place) && paint.shows(row, state.hidden));
  dots(canvas, width, height, places, shown, paint);

  const nearest = (event) => {
    const corner = host.getBoundingClientRect();
    const [px, py] = [event.clientX - corner.left, event.clientY - corner.top];
    let [best, least] = [-1, 30 ** 2];
    places.forEach(([a, b], row) => {
      const far = (a - px) ** 2 + (b - py) ** 2;
      if (shown[row] && far < least) [best, least] = [row, far];
    });
    if (best < 0) return leave();
    const [a, b] = places[best];
    ring.style.transform = `translate(${a}px, ${b}px)`;
    ring.style.visibility = "visible";
    const score = (axis) => (axis === axes[0] ? [] : [[axis.short, number(axis.values()[best])]]);
    showTip(corner.left + a, corner.top + b, `Row ${report.scores.rows[best].toLocaleString("en")}`, [
      ...paint.details(best), ...score(across), ...(up === across ? [] : score(up)),
    ]);
  };
  const leave = () => {
    ring.style.visibility = "hidden";
    hideTip();
  };
  const drag = dragger(host, box, area, (from, to) => {
    leave();
    zoom({
      x: [x.back(Math.min(from[0], to[0])), x.back(Math.max(from[0], to[0]))],
      y: [y.back(Math.max(from[1], to[1])), y.back(Math.min(from[1], to[1]))],
    });
  });
  host.onpointermove = (event) => (drag.moves(event) ? leave() : nearest(event));
  host.onpointerdown = (event) => { drag.begins(event); nearest(event); };
  host.onpointerup = drag.ends;
  host.onpointerleave = leave;
}

/** A rectangle drawn with the mouse; touch scrolls the page instead. */
function dragger(host, box, area, done) {
  let from = null;
  const place = (event) => {
    const corner = host.getBoundingClientRect();
    return [
      Math.max(area.left, Math.min(area.right, event.clientX - corner.left)),
      Math.max(area.top, Math.min(area.bottom, event.clientY - corner.top)),
    ];
  };
  const large = (to) => Math.min(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1])) > 8;
  return {
    begins: (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      from = place(event);
      host.setPointerCapture(event.pointerId);
    },
    moves: (event) => {
      if (from === null || !large(place(event))) return false;
      const to = place(event);
      const [left, top] = [Math.min(from[0], to[0]), Math.min(from[1], to[1])];
      const [width, height] = [Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1])];
      box.style.cssText = `display:block;transform:translate(${left}px,${top}px);width:${width}px;height:${height}px`;
      return true;
    },
    ends: (event) => {
      const [start, to] = [from, place(event)];
      const selected = from !== null && large(to);
      from = null;
      if (selected) done(start, to);
    },
  };
}

/** Draw the points on a canvas. */
function dots(canvas, width, height, places, shown, paint) {
  const dense = window.devicePixelRatio || 1;
  canvas.width = width * dense;
  canvas.height = height * dense;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  const many = shown.filter(Boolean).length;
  const size = many > 2000 ? 2.2 : many > 400 ? 2.8 : 3.6;
  pen.globalAlpha = many > 2000 ? 0.62 : 0.8;
  const colours = paint.colours();
  places.forEach(([x, y], row) => {
    if (!shown[row]) return;
    const code = paint.code(row);
    pen.fillStyle = colours[code];
    pen.beginPath();
    if (paint.shape(code) === 0) pen.arc(x, y, size, 0, 2 * Math.PI);
    else {
      pen.moveTo(x, y - 1.35 * size);
      pen.lineTo(x + 1.35 * size, y + size);
      pen.lineTo(x - 1.35 * size, y + size);
    }
    pen.fill();
  });
}
