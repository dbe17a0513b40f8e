// Colours of rows: one colour, by class, or by a number.

const CLASS_COLOURS = Array.from({ length: 10 }, (_, i) => `--class-${i}`);
const SCALE = ["--scale-0", "--scale-1", "--scale-2", "--scale-3", "--scale-4"];

/** Colour, shape, visibility, tooltip entries and legend of rows with these labels. */
function painter(labels) {
  if (labels === null) {
    return {
      colours: () => [colour("--accent")], code: () => 0, shape: () => 0, shows: () => true, details: () => [],
      legend: () => null,
    };
  }
  return labels.kind === "classes" ? classPainter(labels) : numberPainter(labels);
}

function classPainter({ name, classes, codes, grey }) {
  const counts = classes.map(() => 0);
  for (const code of codes) counts[code] += 1;
  const variable = (i) => (i >= grey ? "--unmeasured" : CLASS_COLOURS[i % CLASS_COLOURS.length]);
  const shape = (i) => (i >= grey ? 0 : Math.floor(i / CLASS_COLOURS.length));
  const legend = (state, draw) => {
    const buttons = classes.map((label, i) =>
      el("button", {
        type: "button", class: "class", "aria-pressed": true,
        onclick: () => {
          if (!state.hidden.delete(i)) state.hidden.add(i);
          refresh();
        },
      }, classKey(variable(i), shape(i)), el("span", {}, label), el("small", {}, counts[i].toLocaleString("en"))),
    );
    const refresh = () => {
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", !state.hidden.has(i)));
      draw();
    };
    const every = (hide) => () => {
      state.hidden = new Set(hide ? classes.keys() : []);
      refresh();
    };
    return el("div", { class: "classes", role: "group", "aria-label": `Show or hide each ${name}` },
      el("div", { class: "classes-head" }, el("strong", {}, name),
        el("button", { type: "button", class: "plain", onclick: every(false) }, "all"),
        el("button", { type: "button", class: "plain", onclick: every(true) }, "none")),
      el("div", { class: "classes-list" }, ...buttons),
    );
  };
  return {
    colours: () => classes.map((_, i) => colour(variable(i))),
    code: (row) => codes[row],
    shape,
    shows: (row, hidden) => !hidden.has(codes[row]),
    details: (row) => [[name, classes[codes[row]]]],
    legend,
  };
}

function classKey(variable, shape) {
  const path = [
    "M8 3a5 5 0 1 0 .01 0z", "M8 2.5l5.6 10h-11.2z",
  ][shape];
  return svg("svg", { width: 16, height: 16, "aria-hidden": true }, svg("path", { d: path, style: `fill:var(${variable})` }));
}

function numberPainter({ name, values }) {
  const STEPS = 64;
  const [low, high] = extent(values.filter((value) => value !== null));
  const code = (row) =>
    values[row] === null ? STEPS : Math.min(STEPS - 1, Math.floor(((values[row] - low) / (high - low || 1)) * STEPS));
  const legend = () =>
    el("div", { class: "classes", role: "img", "aria-label": `Colours of ${name}, from ${number(low)} to ${number(high)}` },
      el("strong", {}, name),
      el("div", { class: "scale", style: `background:linear-gradient(to right, ${SCALE.map((v) => `var(${v})`)})` }),
      el("div", { class: "scale-ends" }, el("span", {}, number(low)), el("span", {}, number(high))),
      values.includes(null) ? el("p", { class: "note" }, "Grey: no value.") : null,
    );
  return {
    colours: () => {
      const stops = SCALE.map((variable) => rgb(colour(variable)));
      const steps = Array.from({ length: STEPS }, (_, i) => `rgb(${between(stops, i / (STEPS - 1)).map(Math.round)})`);
      return [...steps, colour("--unmeasured")];
    },
    code, shape: () => 0, shows: () => true, details: (row) => [[name, number(values[row])]], legend,
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
