// The tooltip.

const tip = document.getElementById("tip");

/** Show a heading and [name, value] pairs next to a position of the window. */
function showTip(x, y, heading, pairs) {
  tip.replaceChildren(
    el("strong", {}, heading),
    ...pairs.map(([name, value]) => el("span", { class: value.length > 40 ? "pair long" : "pair" }, el("span", {}, name), el("b", {}, value))),
  );
  tip.classList.add("shown");
  const box = tip.getBoundingClientRect();
  const right = x + 14 + box.width < document.documentElement.clientWidth - 8;
  const left = right ? x + 14 : Math.max(8, x - 14 - box.width);
  const above = Math.max(8, y - box.height - 12);
  tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(above)}px)`;
}

function hideTip() {
  tip.classList.remove("shown");
}

window.addEventListener("scroll", hideTip, { passive: true });
