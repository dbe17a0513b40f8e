// One selected component: by slider, buttons, arrow keys, or a click in a chart or the table.

const chosen = { component: 0, listeners: [] };

function chooseComponent(i) {
  chosen.component = i;
  for (const listener of chosen.listeners) listener(i);
}

function drawComponents(card) {
  const count = report.components.variance.length;
  const shown = (report.pictures ?? report.loadings).shown;
  const heading = el("h3", { "aria-live": "polite" });
  const about = el("p", { class: "note" });
  const slider = el("input", {
    type: "range", min: 1, max: shown, value: 1, step: 1, "aria-label": "Component",
    oninput: (event) => chooseComponent(Number(event.target.value) - 1),
  });
  const step = (by) => chooseComponent(Math.max(0, Math.min(shown - 1, chosen.component + by)));
  const button = (by, words, sign) => el("button", { type: "button", "aria-label": words, onclick: () => step(by) }, sign);
  const [back, on] = [button(-1, "Previous component", "←"), button(1, "Next component", "→")];
  const host = el("div");
  card.append(
    el("div", { class: "switch" },
      el("div", {}, heading, about),
      el("div", { class: "steps" }, back, slider, on)),
    host,
  );
  if (shown < count) card.append(el("p", { class: "note" }, `Only the first ${shown} of ${count} components are available.`));
  const view = report.pictures ? pictureView(host) : loadingView(host);
  const show = (i) => {
    const at = Math.min(i, shown - 1);
    heading.textContent = `Component ${at + 1} of ${count}`;
    const { share } = report.components;
    const bound = `, ${anglePair(at).join(" ")}`;
    about.textContent = `${percent(share[at])} of the total variance${bound}`;
    slider.value = at + 1;
    slider.setAttribute("aria-valuetext", heading.textContent);
    back.disabled = at === 0;
    on.disabled = at === shown - 1;
    chosen.component = at;
    view(at);
  };
  chosen.listeners.push(show);
  drawings.push(() => show(chosen.component));
  document.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const outside = event.target !== document.body && !card.contains(event.target);
    if (!by || outside || event.target === slider || event.altKey || event.ctrlKey || event.metaKey) return;
    step(by);
    event.preventDefault();
  });
}
