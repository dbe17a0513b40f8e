// Scores of the rows: on two components, or one component against the row number or time.

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
  const points = scorePoints(scores);
  const { axes } = points;
  const paint = painter(scores);
  const components = axes.findIndex((axis) => axis.component);
  const two = scores.columns.length > 1;
  const views = [
    ...(two ? [{ name: "Components", x: components, y: components + 1 }] : []),
    ...axes.slice(0, components).map((axis, i) => ({ name: axis.view, x: i, y: components })),
  ];
  const state = { ...views[0], hidden: new Set(), zoom: null };
  const plot = el("div", { class: "scatter", role: "img" });
  const reset = el("button", { type: "button", class: "plain", onclick: () => { state.zoom = null; draw(); } }, "Reset zoom");
  const chooser = (key, words) => el("select", {
    "data-axis": key, "aria-label": words,
    onchange: (event) => { state[key] = Number(event.target.value); state.zoom = null; draw(); },
  }, ...axes.map((axis, i) => el("option", { value: i }, axis.long ?? axis.name)));
  const choosers = { x: chooser("x", "x axis"), y: chooser("y", "y axis") };
  const buttons = views.map((view) =>
    el("button", { type: "button", onclick: () => { Object.assign(state, { x: view.x, y: view.y, zoom: null }); draw(); } }, view.name),
  );
  const missing = el("p", { class: "note", hidden: true }, "The overlay has no times: it is not drawn against them.");
  const draw = () => {
    reset.hidden = state.zoom === null;
    missing.hidden = ![axes[state.x], axes[state.y]].some((axis) => axis.withoutOverlay);
    for (const [key, select] of Object.entries(choosers)) select.value = state[key];
    const against = axes[state.x].component ? components : state.x;
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", views[i].x === against));
    scatter(plot, points, state, paint, (zoom) => { state.zoom = zoom; draw(); });
  };
  const legend = paint.legend(state, draw);
  const many = legend !== null && legend.querySelectorAll(".class").length > 16;
  card.append(
    el("div", { class: "controls" },
      views.length > 1 ? el("div", { class: "choice", role: "group", "aria-label": "View of the scores" }, ...buttons) : null,
      ...["x", "y"].map((key) => el("label", {}, `${key} axis `, choosers[key])), reset),
    el("div", { class: many ? "scatter-row many" : "scatter-row" }, plot, legend),
    missing,
    el("p", { class: "note" }, `${counted(scores)}, numbered from 0.${scores.overlay ? ` Overlay: ${counted(scores.overlay).replace(/^All/, "all")}.` : ""}`,
      scores.columns.length < report.components.variance.length ? ` Only the first ${scores.columns.length} components are available.` : "",
      el("span", { class: "mouse" }, " Drag with the mouse to zoom in.")),
  );
  drawn(draw);
}

/** How many rows of a data set are drawn. */
function counted({ rows, of }) {
  return rows.length === of ? `All ${plural(of, "row")}` : `${plural(rows.length, "row")} of ${of.toLocaleString("en")}, sampled evenly`;
}

/** The rows of the data and of its overlay: axes, ids and row numbers. */
function scorePoints(scores) {
  const sets = [scores, scores.overlay].filter(Boolean);
  const joined = (pick) => sets.flatMap((set) => Array.from(pick(set)));
  const rows = joined((set) => set.rows);
  const ids = sets.some((set) => set.ids) ? joined((set) => set.ids ?? set.rows.map(() => "")) : null;
  const axes = [{ name: "row number", view: "Over rows", values: () => rows, text: number }];
  if (scores.time) axes.push(timeAxis(scores.time, scores.overlay));
  scores.columns.forEach((_, i) => {
    let values = null;
    axes.push({
      name: `component ${i + 1}`, long: `component ${i + 1} (${percent(report.components.share[i])})`, component: true,
      values: () => (values ??= joined((set) => dequantize(set.columns[i]))), text: number,
    });
  });
  return { axes, rows, ids };
}

function timeAxis({ name, dates, values }, overlay) {
  const second = overlay?.time?.dates === dates ? overlay.time.values : overlay?.rows.map(() => null) ?? [];
  const all = [...values, ...second].map((value) => value ?? NaN);
  const midnight = all.every((value) => Number.isNaN(value) || value % DAY === 0);
  return {
    name, view: "Over time", values: () => all, dates, withoutOverlay: second.length > 0 && second.every((value) => value === null),
    text: dates ? (value) => dateText(value, midnight) : (value) => number(value, 6),
  };
}
