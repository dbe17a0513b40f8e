// The four charts of variance and trust, and what their colours mean.

function drawTrustLegend(host) {
  const count = report.components.variance.length;
  const levels = Array.from({ length: count }, (_, i) => trustOf(i));
  TRUST.forEach((level, number) => {
    const many = levels.filter((one) => one === number).length;
    const key = svg("svg", { width: 16, height: 16, "aria-hidden": true }, trustMark(number, 8, 8, 5));
    host.append(el("li", { class: many ? null : "absent" }, key, level.words, el("b", {}, ` ${many}`)));
  });
}

/** All that is known of component i, for the box under the pointer. */
function aboutComponent(i) {
  const { variance, share, angle } = report.components;
  const said = report.certificate.measured ? "angle at most" : "moved by";
  return [
    ["variance", number(variance[i])],
    ["share", percent(share[i])],
    [said, angleText(angle[i])],
  ];
}

function drawScree(card) {
  card.querySelector(".note").textContent = report.certificate.measured
    ? "Its colour says how far it can be from the true one."
    : "Grey: how far it can be from the true one was not measured.";
  const { variance } = report.components;
  let log = false;
  const host = card.querySelector(".plot");
  const [low, high] = extent(variance);
  componentChart(host, () => ({
    values: variance, kind: "bars", log, tick: log ? powerText : (value) => number(value, 3), tip: aboutComponent,
    label: `Variance of ${plural(variance.length, "component")}, from ${number(high)} down to ${number(low)}.`,
  }));
  const redraw = drawings[drawings.length - 1];
  const buttons = [...card.querySelectorAll("[data-scale]")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      log = button.dataset.scale === "log";
      for (const one of buttons) one.setAttribute("aria-pressed", one === button);
      redraw();
    });
  }
}

function drawTotal(card) {
  let sum = 0;
  const totals = report.components.share.map((share) => (sum += share ?? 0));
  const top = Math.min(1, niceStep(Math.max(sum, 0.01) / 5) * 5);
  componentChart(card.querySelector(".plot"), () => ({
    values: totals, kind: "line", log: false, range: [0, Math.max(top, sum)], tick: (value) => percent(value),
    label: `The first ${plural(totals.length, "component")} carry ${percent(sum)} of all variance.`,
    tip: (i) => [
      [`first ${i + 1} together`, percent(totals[i])],
      ["this one", percent(report.components.share[i])],
      ["left over", percent(Math.max(0, 1 - totals[i]))],
    ],
  }));
}

function drawAngle(card) {
  const { angle, paper } = report.components;
  const { measured } = report.certificate;
  const [title, note] = measured
    ? ["Angle bound", "Not further than this from the true component, in radians."]
    : ["Movement, not a bound", "How far each component turned since half of the rows, in radians: an estimate."];
  card.querySelector("h3").textContent = title;
  card.querySelector(".note").textContent = note;
  const positive = angle.filter((value) => value > 0);
  if (!positive.length) return say(card, "No angle is known: it was not measured.");
  const lowest = Math.min(...positive, Math.PI / 32);
  componentChart(card.querySelector(".plot"), () => ({
    values: angle, kind: "points", log: true, range: [lowest / 2, Math.PI / 2 * 1.15],
    tick: powerText,
    label: `${title} of ${plural(angle.length, "component")}, at most ${number(Math.max(...positive), 2)} radians.`,
    lines: [{ at: Math.PI / 8, text: "π/8" }, { at: Math.PI / 32, text: "π/32" }],
    tip: (i) => [
      [measured ? "angle at most" : "moved by", angleText(angle[i])],
      ...(paper[i] === null ? [] : [["the paper's bound", angleText(paper[i])]]),
      ["trust", TRUST[trustOf(i)].words],
    ],
  }));
}

function drawPenalty(card) {
  const { penalty } = report.components;
  if (penalty.every((value) => value === null)) {
    const why = "Not measured: that takes a second look at the data. Fit with tol or passes, or call certify(data).";
    return say(card, why);
  }
  const positive = penalty.filter((value) => value > 0);
  if (!positive.length) return say(card, "Every penalty is zero: no player overlaps with those before it.");
  const [low, high] = extent(positive);
  componentChart(card.querySelector(".plot"), () => ({
    values: penalty, kind: "points", log: true, tick: powerText, range: [low / 3, Math.max(0.08, 2 * high)],
    lines: [{ at: 0.025, text: "0.025" }],
    label: `Penalty over variance of ${plural(penalty.length, "component")}, at most ${number(high, 2)}.`,
    tip: (i) => [["penalty / variance", number(penalty[i], 3)]],
  }));
}

/** A sentence in place of a chart. */
function say(card, sentence) {
  card.classList.add("short");
  card.querySelector(".plot").replaceChildren(el("p", { class: "instead" }, sentence));
}
