// Components as images: blue for negative loadings, red for positive ones.

const NO_DATA = -128; // code of a cell of a map that is no feature

const DIVERGING = Array.from({ length: 7 }, (_, i) => `--diverging-${i}`);

/** The decoded images of the report, with access to codes and values. */
function decodePictures() {
  const { height, width, channels, images, mean } = report.pictures;
  const codes = new Int8Array(bytes(images.codes).buffer);
  const pixels = height * width;
  const planes = channels.length;
  return {
    ...report.pictures,
    size: (i) => images.sizes[i],
    code: (i, plane, pixel) => codes[(i * pixels + pixel) * planes + plane],
    value: (i, plane, pixel) => {
      const code = codes[(i * pixels + pixel) * planes + plane];
      return code === NO_DATA ? NaN : (code / 127) * images.sizes[i];
    },
    average: mean === null ? null : dequantize(mean),
  };
}

const TRANSPARENT = 0;

/** Fill a canvas pixel by pixel: tint(pixel) is a packed colour. */
function fill(canvas, height, width, tint) {
  canvas.height = height;
  canvas.width = width;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(width, height);
  const packed = new Uint32Array(image.data.buffer);
  for (let pixel = 0; pixel < packed.length; pixel += 1) packed[pixel] = tint(pixel);
  pen.putImageData(image, 0, 0);
}

/** Pack red, green and blue into one number, in the format of a canvas. */
function pack(r, g, b) {
  const byte = (x) => Math.max(0, Math.min(255, Math.round(x)));
  return ((255 << 24) | (byte(b) << 16) | (byte(g) << 8) | byte(r)) >>> 0;
}

/** 255 packed colours for codes -127 to 127. */
function divergingColours() {
  const stops = DIVERGING.map((variable) => rgb(colour(variable)));
  return Array.from({ length: 255 }, (_, i) => pack(...between(stops, i / 254)));
}

function pictureView(host) {
  const view = decodePictures();
  const { height, width, channels } = view;
  const large = channels.map((name) => el("canvas", { class: "picture", role: "img", "data-plane": name }));
  const panels = large.map((canvas, plane) =>
    el("figure", {}, canvas, channels.length > 1 ? el("figcaption", {}, channels[plane]) : null),
  );
  const ends = [el("span"), el("span", {}, "0"), el("span")];
  const bar = el("div", { class: "key" },
    el("div", { class: "scale", style: `background:linear-gradient(to right, ${DIVERGING.map((v) => `var(${v})`)})` }),
    el("div", { class: "scale-ends" }, ...ends),
  );
  const walk = view.average === null ? null : walkView(view);
  const gallery = galleryView(view);
  host.append(
    el("div", { class: "pictures" },
      el("div", { class: "large" }, el("div", { class: "panels", "data-planes": channels.length }, ...panels), bar, walk?.element),
      gallery.element),
  );
  if (view.map !== null) host.append(el("p", { class: "note" }, "Maps are drawn with north up and east on the right."));
  if (view.factor > 1) host.append(el("p", { class: "note" }, `Images are shown at 1/${view.factor} of their size.`));
  large.forEach((canvas, plane) => showPixels(canvas, view, plane));

  return (i) => {
    const colours = divergingColours();
    large.forEach((canvas, plane) => {
      fill(canvas, height, width, (pixel) => colours[view.code(i, plane, pixel) + 127] ?? TRANSPARENT);
      canvas.setAttribute("aria-label", `Image of component ${i + 1}, ${channels[plane]}`);
    });
    ends[0].textContent = `−${number(view.size(i), 2)}`;
    ends[2].textContent = `+${number(view.size(i), 2)}`;
    walk?.show(i);
    gallery.show(i);
  };
}

/** The place of a pixel: its coordinates on a map, else its row and column. */
function pixelName({ map }, row, column) {
  if (map === null) return `Row ${row}, column ${column}`;
  const degrees = (value, [plus, minus]) => `${number(Math.abs(value), 5)}° ${value < 0 ? minus : plus}`;
  const east = ((((map.longitudes[column] + 180) % 360) + 360) % 360) - 180;
  return `${degrees(map.latitudes[row], "NS")}, ${degrees(east, "EW")}`;
}

/** Show the value under the pointer. */
function showPixels(canvas, view, plane) {
  const show = (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.min(view.width - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * view.width)));
    const row = Math.min(view.height - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * view.height)));
    const value = view.value(chosen.component, plane, row * view.width + column);
    showTip(event.clientX, event.clientY, pixelName(view, row, column), [[view.channels[plane], Number.isNaN(value) ? "no data" : number(value, 2)]]);
  };
  canvas.addEventListener("pointermove", show);
  canvas.addEventListener("pointerdown", show);
  canvas.addEventListener("pointerleave", hideTip);
}

/** The mean image, and the mean minus and plus two standard deviations of a component. */
function walkView(view) {
  const steps = [-2, 0, 2];
  const words = ["mean − 2 sd", "mean", "mean + 2 sd"];
  const canvases = steps.map((_, n) => el("canvas", { class: "picture", role: "img", "aria-label": words[n] }));
  const show = (i) => {
    const { height, width, channels } = view;
    const planes = channels.length;
    const spread = Math.sqrt(Math.max(0, report.components.variance[i] ?? 0));
    const value = (step, plane, pixel) => view.average[pixel * planes + plane] + step * spread * view.value(i, plane, pixel);
    const known = view.average.filter((x) => !Number.isNaN(x));
    const [low, high] = [known.reduce((a, b) => Math.min(a, b), Infinity), known.reduce((a, b) => Math.max(a, b), -Infinity)];
    const room = (high - low || 1) * 0.15;
    const grey = (x) => ((x - low + room) / (high - low + 2 * room || 1)) * 255;
    steps.forEach((step, n) =>
      fill(canvases[n], height, width, (pixel) => {
        const shade = (plane) => grey(value(step, planes > 1 ? plane : 0, pixel));
        return Number.isNaN(shade(0)) ? TRANSPARENT : pack(shade(0), shade(1), shade(2));
      }),
    );
  };
  const element = el("div", { class: "walk" },
    ...canvases.map((canvas, n) => el("figure", {}, canvas, el("figcaption", {}, words[n]))));
  return { element, show };
}

/** Thumbnails of all components; a click selects one. */
function galleryView(view) {
  const planes = view.channels.length;
  const buttons = Array.from({ length: view.shown }, (_, i) =>
    el("button", { type: "button", class: "thumb", "aria-label": `Show component ${i + 1}`, onclick: () => chooseComponent(i) },
      el("canvas", { "aria-hidden": true }), el("span", {}, `${i + 1}`)),
  );
  const paint = () => {
    const colours = divergingColours();
    buttons.forEach((button, i) => {
      const mean = (pixel) => {
        let sum = 0;
        for (let plane = 0; plane < planes; plane += 1) sum += view.code(i, plane, pixel);
        return Math.round(sum / planes);
      };
      fill(button.firstChild, view.height, view.width, (pixel) => colours[mean(pixel) + 127] ?? TRANSPARENT);
    });
  };
  drawn(paint);
  const element = el("div", { class: "gallery", role: "group", "aria-label": "All components" }, ...buttons);
  const show = (i) => {
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", n === i));
    const [box, own] = [element, buttons[i]];
    // Scroll the gallery, not the page.
    if (own.offsetTop < box.scrollTop || own.offsetTop + own.offsetHeight > box.scrollTop + box.clientHeight) {
      box.scrollTop = own.offsetTop - box.clientHeight / 2;
    }
    if (own.offsetLeft < box.scrollLeft || own.offsetLeft + own.offsetWidth > box.scrollLeft + box.clientWidth) {
      box.scrollLeft = own.offsetLeft - box.clientWidth / 2;
    }
  };
  return { element, show };
}
