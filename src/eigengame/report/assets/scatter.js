// The scatter plot: axes, points, tooltip and zoom.

/** Draw the scatter plot; `zoom` is called with the ranges that the mouse selects. */
function scatter(host, { axes, rows, ids }, state, paint, zoom) {
  const width = host.clientWidth;
  const height = Math.round(Math.min(560, Math.max(300, width * (width < 560 ? 0.95 : 0.66))));
  const [across, up] = [axes[state.x], axes[state.y]];
  const [xs, ys] = [across.values(), up.values()];
  const scaleOf = (axis) => (axis.dates ? dateScale : linear);
  const formatOf = (axis, scale, count) => (axis.dates ? scale.format(count) : tickFormat(scale.ticks(count)));
  const [xRange, yRange] = [state.zoom?.x ?? padded(extent(xs)), state.zoom?.y ?? padded(extent(ys))];
  const upright = scaleOf(up)(...yRange, 0, 1);
  const yText = formatOf(up, upright, 8);
  const left = 30 + widest(upright.ticks(8).map(yText));
  const flat = scaleOf(across)(...xRange, 0, width - left);
  const room = tickCount(flat, width - left, (count) => formatOf(across, flat, count));
  const xText = formatOf(across, flat, room);
  // The last label is centred below its tick, which can be at the right end.
  const area = { left, right: width - Math.max(8, 2 + widest(flat.ticks(room).map(xText)) / 2), top: 8, bottom: height - 42 };
  const x = scaleOf(across)(...xRange, area.left, area.right);
  const y = scaleOf(up)(...yRange, area.bottom, area.top);
  const names = [across.name, up.name];
  const ring = el("div", { class: "ring" });
  const canvas = el("canvas", { "aria-hidden": true });
  const frame = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": true },
    ...rulers(y, area, yText, 8),
    ...x.ticks(room).flatMap((value) => [
      svg("line", { class: "rule", x1: x(value), x2: x(value), y1: area.top, y2: area.bottom }),
      svg("text", { class: "tick", x: x(value), y: area.bottom + 16, "text-anchor": "middle" }, xText(value)),
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
    const score = (axis) => (axis === axes[0] ? [] : [[axis.name, axis.text(axis.values()[best])]]);
    const id = ids?.[best];
    showTip(corner.left + a, corner.top + b, id || `Row ${rows[best].toLocaleString("en")}`, [
      ...(id ? [["row", rows[best].toLocaleString("en")]] : []),
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

/** The largest number of ticks whose labels do not touch each other. */
function tickCount(scale, width, format) {
  for (let count = Math.min(12, Math.floor(width / 45)); count > 1; count -= 1) {
    const ticks = scale.ticks(count);
    if (ticks.length < 2 || scale(ticks[1]) - scale(ticks[0]) >= widest(ticks.map(format(count))) + 16) return count;
  }
  return 1;
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
  const styles = paint.styles();
  const shapes = new Set(styles.map(({ shape }) => shape)).size > 2;
  const many = shown.filter(Boolean).length;
  // Shapes must be larger than circles to be distinguished.
  const size = (many > 2000 ? 2.2 : many > 400 ? 2.8 : 3.6) + (shapes ? 0.9 : 0);
  pen.globalAlpha = many > 2000 && !shapes ? 0.62 : 0.8;
  const paths = styles.map(({ shape }) => new Path2D(shapePath(shape, size)));
  pen.lineWidth = Math.max(1.3, size / 2);
  places.forEach(([x, y], row) => {
    if (!shown[row]) return;
    const code = paint.code(row);
    pen.setTransform(dense, 0, 0, dense, dense * x, dense * y);
    if (styles[code].shape === "ring") {
      pen.strokeStyle = styles[code].colour;
      pen.stroke(paths[code]);
    } else {
      pen.fillStyle = styles[code].colour;
      pen.fill(paths[code]);
    }
  });
}
