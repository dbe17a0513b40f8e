// The four charts of variance and angle bounds, and their legend.

function drawTrustLegend(host) {
  const count = report.components.variance.length;
  const levels = Array.from({ length: count }, (_, i) => trustOf(i));
  TRUST.forEach((level, number) => {
    const many = levels.filter((one) => one === number).length;
    const key = svg("svg", { width: 16, height: 16, "aria-hidden": true }, trustMark(number, 8, 8, 5));
    host.append(el("li", { class: many ? null : "absent" }, key, level.words, el("b", {}, ` ${many}`)));
  });
}

/** The tooltip entries of component i. */
function aboutComponent(i) {
  const { variance, share } = report.components;
  return [["variance", number(variance[i])], ["share", percent(share[i])], anglePair(i)];
}

/** The bound of component i, or its estimate, with a name. */
function anglePair(i) {
  const { angle, estimate, span } = report.components;
  if (angle[i] !== null) return [span[i] ? "angle of the span at most" : "angle at most", angleText(angle[i])];
  return estimate[i] === null ? ["angle", "no bound"] : ["estimate, no bound", angleText(estimate[i])];
}

function drawScree(card) {
  card.querySelector(".note").textContent = "Colour: bound on the angle. Grey: no bound.";
  const { variance } = report.components;
  let log = false;
  const host = card.querySelector(".plot");
  const [low, high] = extent(variance);
  componentChart(host, () => ({
    values: variance, kind: "bars", log, tick: log ? powerText : undefined, tip: aboutComponent,
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
    label: `The first ${plural(totals.length, "component")} explain ${percent(sum)} of the total variance.`,
    tip: (i) => [
      [`first ${i + 1} components`, percent(totals[i])],
      ["this component", percent(report.components.share[i])],
      ["remaining", percent(Math.max(0, 1 - totals[i]))],
    ],
  }));
}

function drawAngle(card) {
  const { angle, estimate, paper, kind, reason } = report.components;
  const values = angle.map((bound, i) => bound ?? estimate[i]);
  const bounds = angle.filter((bound) => bound !== null).length;
  const guesses = values.filter((value, i) => value !== null && angle[i] === null).length;
  const title = !guesses ? "Angle bounds" : bounds ? "Angle bounds and estimates" : "Estimated angles (no bounds)";
  const sentences = [
    bounds ? `${guesses ? "Filled marks: upper" : "Upper"} bounds on the angle to the true component, in radians.` : "",
    guesses ? "Open diamonds: estimates in radians; there is no bound, and the angle can be larger (dotted)." : "",
  ];
  card.querySelector("h3").textContent = title;
  card.querySelector(".note").textContent = sentences.join(" ").trim();
  const positive = values.filter((value) => value > 0);
  if (!positive.length) return showSentence(card, "Not measured.");
  const lowest = Math.min(...positive, LIMIT);
  const lines = [{ at: LIMIT, text: report.certificate.requested ? "tol" : number(LIMIT) }];
  // Labels of lines that are too close would overlap.
  if (Math.PI / 8 > 2 * LIMIT) lines.push({ at: Math.PI / 8, text: "π/8" });
  componentChart(card.querySelector(".plot"), () => ({
    values, kind: "points", log: true, open: true, range: [lowest / 2, Math.PI / 2 * 1.15], tick: powerText, lines,
    label: `${title} of ${plural(values.length, "component")}, at most ${number(Math.max(...positive), 2)} radians.`,
    tip: (i) => [
      anglePair(i),
      ...(angle[i] !== null && estimate[i] !== null ? [["estimate", angleText(estimate[i])]] : []),
      ...(paper[i] === null ? [] : [["bound of the paper", angleText(paper[i])]]),
      ["kind", kind[i]],
      ...(reason[i] ? [["reason", reason[i]]] : []),
    ],
  }));
}

/** Only the algorithms of the paper have penalties. */
function drawPenalty(card) {
  card.hidden = !report.penalties;
  $("#angle").classList.toggle("alone", card.hidden);
  if (card.hidden) return;
  const { penalty } = report.components;
  if (penalty.every((value) => value === null)) {
    const why = "Not measured: this needs a second pass over the data. Fit with tol or passes, or call certify(data).";
    return showSentence(card, why);
  }
  const positive = penalty.filter((value) => value > 0);
  if (!positive.length) return showSentence(card, "Every penalty is zero: no component overlaps with an earlier one.");
  const [low, high] = extent(positive);
  componentChart(card.querySelector(".plot"), () => ({
    values: penalty, kind: "points", log: true, tick: powerText, range: [low / 3, Math.max(0.08, 2 * high)],
    lines: [{ at: 0.025, text: "0.025" }],
    label: `Penalty / variance of ${plural(penalty.length, "component")}, at most ${number(high, 2)}.`,
    tip: (i) => [["penalty / variance", number(penalty[i], 3)]],
  }));
}

/** Show a sentence instead of a chart. */
function showSentence(card, sentence) {
  card.classList.add("short");
  card.querySelector(".plot").replaceChildren(el("p", { class: "instead" }, sentence));
}
