// Formatting of numbers and words.

const NONE = "–";

/** A number with a few digits; a dash if it was not measured. */
function number(x, digits = 4) {
  if (x === null || x === undefined || !Number.isFinite(x)) return NONE;
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-3 || size >= 1e7) {
    const [mantissa, power] = x.toExponential(digits - 1).split("e");
    return `${Number(mantissa)}e${Number(power)}`.replaceAll("-", "−");
  }
  const whole = Number(x.toPrecision(digits));
  return whole.toLocaleString("en", { maximumSignificantDigits: digits }).replace("-", "−");
}

function percent(x, digits = 3) {
  return x === null ? NONE : `${number(100 * x, digits)}%`;
}

/** An angle in radians, and in degrees unless they round to zero. */
function angleText(x) {
  if (x === null) return NONE;
  const degrees = (x * 180) / Math.PI;
  return `${number(x, 2)} rad${degrees < 0.01 ? "" : ` (${number(degrees, 2)}°)`}`;
}

/** A number on a logarithmic axis: 10⁻⁶, or plain if that is short. */
function powerText(x) {
  const power = Math.log10(x);
  if (Math.abs(power - Math.round(power)) > 1e-9 || Math.abs(power) < 2.5) return number(x, 2);
  return `10${[...`${Math.round(power)}`].map((letter) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(letter)]).join("")}`;
}

function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
