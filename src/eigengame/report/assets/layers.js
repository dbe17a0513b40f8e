// Where components lie in a network: a square for each layer and component, the darker the larger its share.

function drawLayers(section) {
  if (!report.layers) return;
  section.hidden = false;
  $('nav a[href="#layers"]').hidden = false;
  const { shown, names, features, explained } = report.layers;
  const plot = el("div", { class: "plot" });
  const most = explained.indexOf(Math.max(...explained));
  section.querySelector(".card").append(
    el("p", { class: "note" },
      `How much of each component lies in each of ${plural(names.length, "layer")}; a column adds up to 100 %. ` +
      `Of what all components explain, ${names[most]} has the most: ${percent(explained[most])} with ` +
      `${percent(features[most] / report.features)} of the features. ` +
      (shown < report.components.variance.length ? `The first ${shown} components are shown.` : "")),
    plot,
  );
  drawn(() => plot.replaceChildren(layerGrid(plot.clientWidth)));
}

function layerGrid(width) {
  const { shown, names, features, explained, shares } = report.layers;
  const letters = Math.max(...names.map((name) => name.length));
  const left = Math.min(letters * 7 + 14, width * 0.34);
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
      const said = (event) => showTip(event.clientX, event.clientY, `${name}, component ${i + 1}`, [
        ["of the component", percent(share)],
        ["of the features", percent(features[n] / report.features)],
        ["of all explained", percent(explained[n])],
      ]);
      root.append(svg("rect", {
        class: "cell", x: left + i * side, y, width: Math.max(1, side - 1), height: line - 1, rx: 1,
        "fill-opacity": Math.max(0.04, Math.sqrt(share)),
        onpointermove: said, onpointerdown: said, onpointerleave: hideTip, onclick: () => chooseComponent(i),
      }));
    }
  });
  const every = Math.max(1, Math.ceil(26 / side));
  for (let i = 0; i < shown; i += every) {
    root.append(svg("text", { class: "tick", x: left + (i + 0.5) * side, y: names.length * line + 18, "text-anchor": "middle" }, `${i + 1}`));
  }
  return root;
}
