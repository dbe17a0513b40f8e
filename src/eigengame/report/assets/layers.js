// Shares of the layers of a network: one cell per layer and component, darker for a larger share.

function drawLayers(section) {
  if (!report.layers) return;
  section.hidden = false;
  $('nav a[href="#layers"]').hidden = false;
  const { shown, names, features, explained } = report.layers;
  const plot = el("div", { class: "plot" });
  const most = explained.indexOf(Math.max(...explained));
  section.querySelector(".card").append(
    el("p", { class: "note" },
      `Share of each of ${plural(names.length, "layer")} in each component; a column adds up to 100 %. ` +
      `${names[most]} has the largest share of the explained variance: ${percent(explained[most])} with ` +
      `${percent(features[most] / report.features)} of the features. ` +
      (shown < report.components.variance.length ? `Only the first ${shown} components are shown.` : "")),
    plot,
  );
  drawn(() => plot.replaceChildren(layerGrid(plot.clientWidth)));
}

function layerGrid(width) {
  const { shown, names, features, explained, shares } = report.layers;
  const left = Math.min(widest(names, 12.5) + 16, width * 0.34);
  const side = Math.min(26, (width - left - 10) / shown);
  const line = Math.max(14, Math.min(side, 22));
  const height = names.length * line + 34;
  const root = svg("svg", {
    class: "layers", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Share of ${shown} components in ${names.length} layers, from ${names[0]} to ${names[names.length - 1]}`,
  });
  names.forEach((name, n) => {
    const y = n * line;
    root.append(svg("text", { class: "name", x: left - 8, y: y + line / 2 + 4, "text-anchor": "end" }, shortened(name, left - 14)));
    for (let i = 0; i < shown; i += 1) {
      const share = shares[i][n];
      const show = (event) => showTip(event.clientX, event.clientY, `${name}, component ${i + 1}`, [
        ["share of component", percent(share)],
        ["share of features", percent(features[n] / report.features)],
        ["share of explained", percent(explained[n])],
      ]);
      root.append(svg("rect", {
        class: "cell", x: left + i * side, y, width: Math.max(1, side - 1), height: line - 1, rx: 1,
        "fill-opacity": Math.max(0.04, Math.sqrt(share)),
        onpointermove: show, onpointerdown: show, onpointerleave: hideTip, onclick: () => chooseComponent(i),
      }));
    }
  });
  const every = Math.max(1, Math.ceil(26 / side));
  for (let i = 0; i < shown; i += every) {
    root.append(svg("text", { class: "tick", x: left + (i + 0.5) * side, y: names.length * line + 18, "text-anchor": "middle" }, `${i + 1}`));
  }
  return root;
}
