// Download of the loadings as CSV, made in the browser.

/** A cell of a CSV file. Texts that a spreadsheet would take for a formula begin with an apostrophe. */
function csvCell(value) {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvText(lines) {
  return lines.map((line) => line.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

/** The headings of the columns that describe a feature, and a function that returns their cells. */
function featureCells() {
  const { names, image, features } = report.table;
  const column = (n) => features?.[n] ?? n;
  if (image) {
    const { axes, sizes, coordinates, channels } = image;
    const headings = ["feature", ...axes, ...(channels.length > 1 ? ["channel"] : [])];
    return [headings, (n) => {
      const [pixel, channel] = [Math.floor(column(n) / channels.length), column(n) % channels.length];
      const at = [Math.floor(pixel / sizes[1]), pixel % sizes[1]];
      const cells = at.map((place, axis) => coordinates?.[axis][place] ?? place);
      return [column(n), ...cells, ...(channels.length > 1 ? [channels[channel]] : [])];
    }];
  }
  return names ? [["feature", "name"], (n) => [column(n), names[n]]] : [["feature"], (n) => [column(n)]];
}

/** One line per feature with all components, or one line per component and feature if the page has only the largest. */
function loadingLines() {
  const { shown, complete, count, columns, values } = report.table;
  const loadings = new Float32Array(bytes(values).buffer);
  const [headings, cells] = featureCells();
  // Seven digits are those of float32.
  const loading = (i, n) => Number(loadings[i * count + n].toPrecision(7));
  const components = Array.from({ length: shown }, (_, i) => i);
  if (complete) {
    const lines = Array.from({ length: count }, (_, n) => [...cells(n), ...components.map((i) => loading(i, n))]);
    return [[...headings, ...components.map((i) => `component ${i + 1}`)], ...lines];
  }
  const places = new Uint32Array(bytes(columns).buffer);
  const lines = components.flatMap((i) =>
    Array.from({ length: count }, (_, n) => [i + 1, n + 1, ...cells(places[i * count + n]), loading(i, n)]));
  return [["component", "rank", ...headings, "loading"], ...lines];
}

function drawDownload(button, note) {
  const { complete, count, shown } = report.table;
  const some = shown < report.components.variance.length ? ` of the first ${shown} components` : "";
  note.textContent = complete
    ? `All loadings${some}, as CSV.`
    : `The ${count.toLocaleString("en")} largest loadings of each component${some && `,${some}`}, as CSV; model.components_ has all of them.`;
  button.addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([csvText(loadingLines())], { type: "text/csv" }));
    el("a", { href: address, download: "loadings.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
}
