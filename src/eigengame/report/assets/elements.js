// Making elements: text goes in as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes, children (elements or texts) and, by `onclick` and so on, listeners. */
function el(name, attributes = {}, ...children) {
  return dressed(document.createElement(name), attributes, children);
}

/** The same for SVG. */
function svg(name, attributes = {}, ...children) {
  return dressed(document.createElementNS(SVG, name), attributes, children);
}

function dressed(element, attributes, children) {
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

/** The colour of a CSS variable, as the page shows it now. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** What must be drawn again when the page gets another width or other colours. */
const drawings = [];

function drawn(draw) {
  drawings.push(draw);
  draw();
}

/** Bytes from base64. */
function bytes(text) {
  const letters = atob(text);
  const found = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) found[i] = letters.charCodeAt(i);
  return found;
}

/** Numbers from steps between the least and the largest; NaN for what is none. */
function unramped({ low, high, codes }) {
  const raw = bytes(codes);
  const span = high > low ? high - low : 1;
  const found = new Float64Array(raw.length / 2);
  for (let i = 0; i < found.length; i += 1) {
    const code = raw[2 * i] + 256 * raw[2 * i + 1];
    found[i] = code === 65535 ? NaN : low + (code / 65534) * span;
  }
  return found;
}
