// Table of all components: a click on a heading sorts it, a button copies it.

const COLUMNS = [
  { name: "component", of: (i) => i + 1, text: (i) => `${i + 1}` },
  { name: "variance", of: (i) => report.components.variance[i] },
  { name: "share", of: (i) => report.components.share[i], text: (i) => percent(report.components.share[i]) },
  { name: "bound (rad)", of: (i) => report.components.angle[i], digits: 2 },
  { name: "estimate (rad)", of: (i) => report.components.estimate[i], digits: 2, optional: true },
  { name: "kind", of: (i) => report.components.kind[i], text: (i) => report.components.kind[i], words: true },
  { name: "residual", of: (i) => report.components.residual[i], digits: 3 },
  { name: "gap", of: (i) => report.components.gap[i], digits: 3 },
  { name: "reason", of: (i) => report.components.reason[i] || null, text: (i) => report.components.reason[i], words: true, optional: true },
];

function drawTable(card, copy) {
  const columns = COLUMNS.filter(({ of, optional }) => !optional || report.components.variance.some((_, i) => of(i) !== null));
  const names = columns.map(({ name }) => name);
  const rows = report.components.variance.map((_, i) =>
    el("tr", { "data-component": i, onclick: () => chooseComponent(i) },
      ...columns.map((column) => el("td", { class: column.words ? column.name : null }, ...(column.name === "component" ? [tableKey(i)] : []),
        column.text ? column.text(i) : number(column.of(i), column.digits))),
    ),
  );
  const body = el("tbody", {}, ...rows);
  const headings = names.map((name, c) =>
    el("th", { scope: "col", class: name.split(" ")[0], "aria-sort": c === 0 ? "ascending" : "none" },
      el("button", { type: "button", onclick: () => sortBy(c) }, name)),
  );
  let order = rows.map((_, i) => i);
  const sortBy = (c) => {
    const down = headings[c].getAttribute("aria-sort") === "ascending";
    headings.forEach((heading) => heading.setAttribute("aria-sort", "none"));
    headings[c].setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = columns[c].of;
    // Values that were not measured come last in both directions.
    order.sort((a, b) => {
      const [left, right] = [value(a), value(b)];
      if (left === null || right === null) return (left === null) - (right === null) || a - b;
      const apart = typeof left === "string" ? left.localeCompare(right) : left - right;
      return (down ? -apart : apart) || a - b;
    });
    body.append(...order.map((i) => rows[i]));
  };
  card.append(el("table", { class: names.includes("reason") ? "with-reasons" : null }, el("caption", { class: "hidden" }, "All components"), el("thead", {}, el("tr", {}, ...headings)), body));
  chosen.listeners.push((now) => rows.forEach((row, i) => row.classList.toggle("chosen", i === now)));
  copy.addEventListener("click", async () => {
    const lines = [names, ...order.map((i) => columns.map((column) => column.of(i) ?? ""))];
    const done = await copyText(lines.map((line) => line.join("\t")).join("\n"));
    copy.textContent = done ? "Copied" : "Copy failed: select the table";
    setTimeout(() => { copy.textContent = "Copy table"; }, 2000);
  });
}

function tableKey(i) {
  const level = trustOf(i);
  return svg("svg", { width: 14, height: 14, role: "img", "aria-label": TRUST[level].words }, trustMark(level, 7, 7, 4));
}

/** Copy text to the clipboard, with a fallback if the clipboard API is not allowed. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", { class: "hidden" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
