// Colours and marks of rows: one colour, by class, or by a number; and the overlay.
//
// A painter has styles(): a colour and a shape for each code; code(row); shows(row, hidden); details(row), for the
// tooltip; and legend(state, draw), or null.

const SCALE = ["--scale-0", "--scale-1", "--scale-2", "--scale-3", "--scale-4"];

function painter(scores) {
  const { labels, overlay } = scores;
  const own = labels === null ? plainPainter(scores) : labels.kind === "classes" ? classPainter(labels) : numberPainter(labels);
  return overlay === null ? own : overlayPainter(scores, own);
}

function plainPainter({ overlay, name, rows }) {
  const mark = { variable: "--accent", shape: "circle" };
  return {
    styles: () => [{ colour: colour(mark.variable), shape: mark.shape }],
    code: () => 0,
    shows: (row, hidden) => !hidden.has("data"),
    details: () => [],
    // With one data set there is nothing to distinguish.
    legend: (state, draw) => (overlay === null ? null : el("div", { class: "classes-list" }, toggle(state, draw, "data", mark, name ?? "data", rows.length))),
  };
}

/** A button of a legend that shows or hides the rows with a key. */
function toggle(state, draw, key, mark, label, count) {
  const button = el("button", {
    type: "button", class: "class", "aria-pressed": true, "data-shape": mark.shape, "data-colour": mark.variable,
    onclick: () => {
      if (!state.hidden.delete(key)) state.hidden.add(key);
      refresh();
      draw();
    },
  }, markKey(mark), el("span", {}, label), el("small", {}, count.toLocaleString("en")));
  const refresh = () => button.setAttribute("aria-pressed", !state.hidden.has(key));
  button.addEventListener("refresh", refresh);
  return button;
}

function classPainter({ name, classes, codes, grey, grouped }) {
  const counts = classes.map(() => 0);
  for (const code of codes) counts[code] += 1;
  const mark = (i) => (i >= grey ? { variable: "--unmeasured", shape: "circle" } : classMark(i, grey));
  const legend = (state, draw) => {
    const buttons = classes.map((label, i) => toggle(state, draw, i, mark(i), label, counts[i]));
    const every = (hide) => () => {
      for (const i of classes.keys()) state.hidden[hide ? "add" : "delete"](i);
      for (const button of buttons) button.dispatchEvent(new Event("refresh"));
      draw();
    };
    return el("div", { class: "classes", role: "group", "aria-label": `Show or hide each ${name}` },
      el("div", { class: "classes-head" }, el("strong", {}, name),
        el("button", { type: "button", class: "plain", onclick: every(false) }, "all"),
        el("button", { type: "button", class: "plain", onclick: every(true) }, "none")),
      el("div", { class: "classes-list" }, ...buttons),
      grouped ? el("p", { class: "note" }, `The ${grouped} rarest labels are grouped as “other”.`) : null,
    );
  };
  return {
    styles: () => classes.map((_, i) => ({ colour: colour(mark(i).variable), shape: mark(i).shape })),
    code: (row) => codes[row],
    shows: (row, hidden) => !hidden.has(codes[row]),
    details: (row) => [[name, classes[codes[row]]]],
    legend,
  };
}

function numberPainter({ name, values }) {
  const STEPS = 64;
  const [low, high] = extent(values.filter((value) => value !== null));
  const code = (row) =>
    values[row] === null ? STEPS : Math.min(STEPS - 1, Math.floor(((values[row] - low) / (high - low || 1)) * STEPS));
  const legend = () =>
    el("div", { class: "classes", role: "img", "aria-label": `Colours of ${name}, from ${number(low, 6)} to ${number(high, 6)}` },
      el("strong", {}, name),
      el("div", { class: "scale", style: `background:linear-gradient(to right, ${SCALE.map((v) => `var(${v})`)})` }),
      el("div", { class: "scale-ends" }, el("span", {}, number(low, 6)), el("span", {}, number(high, 6))),
      values.includes(null) ? el("p", { class: "note" }, "Grey: no value.") : null,
    );
  return {
    styles: () => {
      const stops = SCALE.map((variable) => rgb(colour(variable)));
      const steps = Array.from({ length: STEPS }, (_, i) => `rgb(${between(stops, i / (STEPS - 1)).map(Math.round)})`);
      return [...steps, colour("--unmeasured")].map((one) => ({ colour: one, shape: "circle" }));
    },
    code, shows: () => true, details: (row) => [[name, number(values[row], 6)]], legend,
  };
}

/** A painter whose further rows are those of the overlay. */
function overlayPainter({ rows, overlay }, own) {
  const first = rows.length;
  const mark = { variable: "--ink", shape: "ring" };
  const name = overlay.name ?? "second data set";
  const codes = own.styles().length;
  return {
    styles: () => [...own.styles(), { colour: colour(mark.variable), shape: mark.shape }],
    code: (row) => (row < first ? own.code(row) : codes),
    shows: (row, hidden) => (row < first ? own.shows(row, hidden) : !hidden.has("overlay")),
    details: (row) => (row < first ? own.details(row) : [["data", name]]),
    legend: (state, draw) =>
      el("div", { class: "legends" }, own.legend(state, draw),
        el("div", { class: "classes-list", id: "overlay-legend" }, toggle(state, draw, "overlay", mark, name, overlay.rows.length))),
  };
}

/** [r, g, b] of "#rrggbb". */
function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

/** Interpolate a colour between evenly spaced stops; `at` is between 0 and 1. */
function between(stops, at) {
  const place = Math.max(0, Math.min(1, at)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(place));
  return stops[i].map((from, c) => from + (stops[i + 1][c] - from) * (place - i));
}
