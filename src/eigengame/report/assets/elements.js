// The data of the page, and elements: text is inserted as text, never as HTML.

const report = JSON.parse(document.getElementById("data").textContent);
const $ = (selector) => document.querySelector(selector);

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes, listeners (`onclick` and so on) and children (elements or texts). */
function el(name, attributes = {}, ...children) {
  return assemble(document.createElement(name), attributes, children);
}

/** An SVG element, with the same arguments. */
function svg(name, attributes = {}, ...children) {
  return assemble(document.createElementNS(SVG, name), attributes, children);
}

function assemble(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) element.setAttribute(name, value);
    else if (value === false) continue;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** The current colour of a CSS variable. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const ruler = document.createElement("canvas").getContext("2d");

/** The width in pixels of a text in a chart. */
function textWidth(text, size = 12) {
  ruler.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  // Digits of equal width (tabular-nums) can be wider than those that are measured.
  return ruler.measureText(text.replace(/[0-9]/g, "0")).width;
}

function widest(texts, size = 12) {
  return Math.max(0, ...texts.map((text) => textWidth(text, size)));
}

/** Functions to call when the width or the colours of the page change. */
const drawings = [];

function drawn(draw) {
  drawings.push(draw);
  draw();
}

/** Decode base64 to bytes. */
function bytes(text) {
  const letters = atob(text);
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}

/** Decode numbers that were quantised between their minimum and maximum. */
function dequantize({ low, high, codes }) {
  const raw = bytes(codes);
  const span = high > low ? high - low : 1;
  const found = new Float64Array(raw.length / 2);
  for (let i = 0; i < found.length; i += 1) {
    const code = raw[2 * i] + 256 * raw[2 * i + 1];
    found[i] = code === 65535 ? NaN : low + (code / 65534) * span;
  }
  return found;
}
