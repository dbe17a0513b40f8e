// Formatting of numbers and words.

const NONE = "–";

/** A number with a few digits; a dash if it was not measured. Four digits are not grouped: they may be a year. */
function number(x, digits = 4) {
  if (x === null || x === undefined || !Number.isFinite(x)) return NONE;
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-3 || size >= 1e7) {
    const [mantissa, power] = x.toExponential(digits - 1).split("e");
    return `${Number(mantissa)}e${Number(power)}`.replaceAll("-", "−");
  }
  const whole = Number(x.toPrecision(digits));
  return whole.toLocaleString("en", { maximumSignificantDigits: digits, useGrouping: size >= 1e4 }).replace("-", "−");
}

/** A function that formats ticks with the digits that their distance needs. */
function tickFormat(ticks) {
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : Math.abs(ticks[0]) || 1;
  const place = Math.floor(Math.log10(step) + 1e-9);
  return (value) => {
    if (Math.abs(value) < step / 1e6) return "0";
    const digits = Math.floor(Math.log10(Math.abs(value)) + 1e-9) - place + 1;
    return number(value, Math.max(ticks.length > 1 ? 1 : 3, Math.min(digits, 12)));
  };
}

/** A date in UTC: with its time unless all dates are at midnight. */
function dateText(milliseconds, midnight) {
  const date = new Date(milliseconds);
  if (Number.isNaN(date.getTime())) return NONE;
  const text = date.toISOString();
  return midnight ? text.split("T")[0] : text.replace("T", " ").slice(0, -5).replace(/:00$/, "");
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
