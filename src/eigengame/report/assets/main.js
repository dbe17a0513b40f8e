// Draw all sections of the page.

function drawSummary() {
  const { rows, features, components, source, passes } = report;
  const from = source ? ` of ${source}` : "";
  $("#summary").textContent =
    `${plural(rows, "row")}${from} with ${plural(features, "feature")}, ${plural(passes, "pass", "passes")}, ` +
    `${plural(components.variance.length, "component")}.`;
}

function drawVerdict(card) {
  const { certificate, outcome, components } = report;
  const count = components.variance.length;
  const near = components.variance.filter((_, i) => trustOf(i) === 0).length;
  const bounded = components.angle.some((angle) => angle !== null);
  const level = !bounded ? 3 : near === count ? 0 : near > 0 ? 1 : 2;
  card.classList.add(TRUST[level].name);
  card.append(
    svg("svg", { width: 30, height: 30, "aria-hidden": true }, trustMark(level, 15, 15, 9)),
    el("div", {},
      el("p", { class: "verdict-words" }, certificate.words),
      el("p", {}, `${certificate.judged} ${certificate.explained}`),
      ...certificate.notes.map((note) => el("p", { class: "verdict-note" }, note)),
      el("p", {}, el("b", {}, "Outcome: "), `${outcome.happened}. `, el("b", {}, "Advice: "), certificate.advice || outcome.advice)),
  );
}

function drawTiles(host) {
  const { rows, features, components, passes, route, certificate } = report;
  const count = components.variance.length;
  const total = components.share.reduce((sum, share) => sum + (share ?? 0), 0);
  const near = components.variance.filter((_, i) => trustOf(i) === 0).length;
  const tiles = [
    [percent(total), "of the variance explained"],
    [count.toLocaleString("en"), count === 1 ? "component" : "components"],
    [certificate.measured ? `${near} of ${count}` : NONE, certificate.measured ? `with an angle bound within ${LIMIT_TEXT}` : "angle bounds: not measured"],
    [rows.toLocaleString("en"), "rows"],
    [features.toLocaleString("en"), "features"],
    [`${passes}`, `${passes === 1 ? "pass" : "passes"}: ${route}`],
  ];
  host.append(...tiles.map(([value, name]) => el("div", { class: "card tile" }, el("b", {}, value), el("span", {}, name))));
}

function drawFacts(list) {
  list.append(...report.run.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

drawSummary();
drawVerdict($("#verdict"));
drawTiles($("#tiles"));
drawTrustLegend($("#trust"));
drawScree($("#scree"));
drawTotal($("#total"));
drawPenalty($("#penalty"));
drawAngle($("#angle"));
drawScores($("#scores .card"));
drawTable($("#table .card"), $("#copy"));
drawComponents($("#components .card"));
drawDownload($("#download"), $("#download-note"));
drawLayers($("#layers"));
drawFacts($("#run dl"));
chooseComponent(0);

let width = document.documentElement.clientWidth;
let waiting = 0;
window.addEventListener("resize", () => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => {
    // The address bar of a phone changes the height only: no redraw.
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    for (const draw of drawings) draw();
  });
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const draw of drawings) draw();
});
document.documentElement.dataset.drawn = "yes";
