// Pictures as tensors, and tensors as pictures.
import {elements, isFloat, isInteger, zeros} from "./tensors.js";

export const SCALES = {
  "0-1": {name: "0 to 1", to: (v) => v},
  "0-255": {name: "0 to 255", to: (v) => v * 255},
  "-1-1": {name: "−1 to 1", to: (v) => v * 2 - 1},
  "0-16": {name: "0 to 16", to: (v) => v * 16},
  imagenet: {
    name: "ImageNet's mean and deviation",
    to: (v, channel) => (v - [0.485, 0.456, 0.406][channel % 3]) / [0.229, 0.224, 0.225][channel % 3]
  },
};

const CHANNELS = [1, 3, 4];
const isSide = (size) => size < 0 || size >= 4;

// Where a signature has room for pictures: {layout, channels, height, width, batched}, or null if it has none.
export function layoutOf(shape) {
  const rank = shape.length;
  const make = (layout, at, batched) => {
    const [channels, height, width] = layout === "HWC" ? [shape[at + 2], shape[at], shape[at + 1]] :
        layout === "CHW"                               ? shape.slice(at, at + 3) :
                                                         [1, shape[at], shape[at + 1]];
    return isSide(height) && isSide(width) && CHANNELS.includes(channels) ? {layout, channels, height, width, batched} :
                                                                            null;
  };
  if (rank === 4) return make("CHW", 1, true) ?? make("HWC", 1, true);
  if (rank === 3)
    return (shape[0] < 0 ? make("HW", 1, true) : null) ?? make("CHW", 0, false) ?? make("HWC", 0, false) ??
        make("HW", 1, true);
  if (rank === 2 && shape[0] >= 4 && shape[1] >= 4) return make("HW", 0, false);
  return null;
}

// A first guess; the visitor may choose another one.
export function defaultScale(datatype, layout) {
  if (!isFloat(datatype)) return "0-255";
  if (layout.channels === 3) return "imagenet";
  // scikit-learn's digits count the ink of 16 pixels.
  return layout.height === 8 && layout.width === 8 ? "0-16" : "0-1";
}

// The shape of one picture, with the sizes that the signature leaves open taken from `open`.
export function pictureShape(layout, open) {
  const height = layout.height < 0 ? open.height : layout.height, width = layout.width < 0 ? open.width : layout.width;
  const one = {HW: [height, width], CHW: [layout.channels, height, width], HWC: [
                 height, width, layout.channels
               ]}[layout.layout];
  return {height, width, shape: layout.batched ? [1, ...one] : one};
}

// RGBA pixels in the layout and the scale. invert: paper is 0 and ink is high.
export function tensorOfPixels(pixels, datatype, layout, scale, invert) {
  const {width, height, data} = pixels;
  const {shape} = pictureShape(layout, {width, height});
  const tensor = zeros(datatype, shape);
  const {channels} = layout, area = width * height;
  for (let i = 0; i < area; ++i) {
    const alpha = data[4 * i + 3] / 255;
    // What is transparent shows white paper.
    const rgb = [0, 1, 2].map((c) => (data[4 * i + c] / 255) * alpha + 1 - alpha);
    const gray = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
    for (let c = 0; c < channels; ++c) {
      const plain = channels === 1 ? gray : c === 3 ? alpha : rgb[c];
      // The sum of the weights is not quite 1: white paper shall be 0.
      const level = Math.round((invert && c < 3 ? 1 - plain : plain) * 1e6) / 1e6;
      const value = SCALES[scale].to(level, c);
      const at = layout.layout === "HWC" ? i * channels + c : c * area + i;
      const fitting = isInteger(datatype) ? Math.round(value) : value;
      tensor.values[at] = /INT64/.test(datatype) ? BigInt(fitting) :
          datatype === "BOOL"                    ? Number(value > 0.5) :
                                                   fitting;
    }
  }
  return tensor;
}

// The pixels of a picture file in this size. fit: stretch, cover (cuts what sticks out) or contain (leaves borders).
export async function pixelsOfFile(file, width, height, fit) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${file.name}: this is no picture that the browser reads.`);
  }
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  const factor = fit === "cover" ? Math.max(width / bitmap.width, height / bitmap.height) :
                                   Math.min(width / bitmap.width, height / bitmap.height);
  const [w, h] = fit === "stretch" ? [width, height] : [bitmap.width * factor, bitmap.height * factor];
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, (width - w) / 2, (height - h) / 2, w, h);
  return context.getImageData(0, 0, width, height);
}

// Whether an output may be a picture: sides of 8 to 4096, one, three or four channels, no row of probabilities.
export function pictureLayout({shape, datatype}) {
  if (datatype === "BOOL" && shape.length < 2) return null;
  const layout = layoutOf(shape);
  const fine = layout && [layout.height, layout.width].every((side) => side >= 8 && side <= 4096);
  return fine && elements(shape) > 0 ? layout : null;
}

// Draws picture `index` of the batch, from its smallest value (black) to its largest one (white).
export function drawTensor(canvas, tensor, layout, index) {
  const {height, width, channels} = layout, area = height * width;
  const begin = layout.batched ? index * area * channels : 0;
  let low = Infinity, high = -Infinity;
  for (let i = begin; i < begin + area * channels; ++i) {
    const v = Number(tensor.values[i]);
    if (v < low) low = v;
    if (v > high && Number.isFinite(v)) high = v;
  }
  const span = high > low ? high - low : 1;
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d"), pixels = context.createImageData(width, height);
  for (let i = 0; i < area; ++i) {
    for (let c = 0; c < 3; ++c) {
      const from = Math.min(c, channels - 1);
      const at = begin + (layout.layout === "HWC" ? i * channels + from : from * area + i);
      pixels.data[4 * i + c] = ((Number(tensor.values[at]) - low) / span) * 255;
    }
    pixels.data[4 * i + 3] = 255;
  }
  context.putImageData(pixels, 0, 0);
  return {low, high};
}
