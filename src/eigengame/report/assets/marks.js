// Marks of rows: eight shapes in twenty colours are 40 distinct pairs; a ring is the overlay.

const CLASS_COLOURS = Array.from({ length: 20 }, (_, i) => `--class-${i}`);

const plusCorners = [[-1, -3], [1, -3], [1, -1], [3, -1], [3, 1], [1, 1], [1, 3], [-1, 3], [-1, 1], [-3, 1], [-3, -1], [-1, -1]];

/** Corners of each shape for a radius of 1, with about the same area; a circle has none. */
const SHAPES = {
  circle: null,
  triangle: [[0, -1.4], [1.3, 0.95], [-1.3, 0.95]],
  square: [[-0.92, -0.92], [0.92, -0.92], [0.92, 0.92], [-0.92, 0.92]],
  diamond: [[0, -1.45], [1.2, 0], [0, 1.45], [-1.2, 0]],
  plus: plusCorners.map(([x, y]) => [0.48 * x, 0.48 * y]),
  wedge: [[0, 1.4], [1.3, -0.95], [-1.3, -0.95]],
  cross: plusCorners.map(([x, y]) => [0.34 * (x - y), 0.34 * (x + y)]),
  star: Array.from({ length: 10 }, (_, i) => {
    const [angle, far] = [(Math.PI * i) / 5, i % 2 ? 0.68 : 1.65];
    return [far * Math.sin(angle), -far * Math.cos(angle)];
  }),
  ring: null,
};

/** Shapes of classes; a ring is only used for the overlay. */
const CLASS_SHAPES = Object.keys(SHAPES).filter((name) => name !== "ring");

/** Colour and shape of class i: circles for up to ten classes, else every pair is different up to 40. */
function classMark(i, count) {
  return {
    variable: CLASS_COLOURS[i % CLASS_COLOURS.length],
    shape: count > 10 ? CLASS_SHAPES[i % CLASS_SHAPES.length] : "circle",
  };
}

/** The SVG path of a shape around (0, 0). */
function shapePath(shape, size) {
  if (SHAPES[shape]) return `M${SHAPES[shape].map(([x, y]) => `${x * size} ${y * size}`).join("L")}Z`;
  const far = shape === "ring" ? 1.35 * size : size;
  return `M${-far} 0a${far} ${far} 0 1 0 ${2 * far} 0a${far} ${far} 0 1 0 ${-2 * far} 0Z`;
}

/** The mark of a legend. */
function markKey({ variable, shape }) {
  const style = shape === "ring" ? `fill:none;stroke:var(${variable});stroke-width:2` : `fill:var(${variable})`;
  return svg("svg", { width: 18, height: 18, viewBox: "-9 -9 18 18", "aria-hidden": true },
    svg("path", { d: shapePath(shape, shape === "ring" ? 4 : 5), style }));
}
