// A place to draw a picture for a model, by pointer or keys. Strokes are kept as lines, so that they can be moved to
// the middle and scaled to the size that models are trained on, with a pen of the same width.
import {button, h, labelled} from "./dom.js";

const SIDE = 256;     // of the canvas that is shown
const FINE = 8;       // pixels of the hidden canvas for each pixel of the picture
const PEN = 1.2 / 8;  // the pen's width, of the picture's side
const STRETCH = 1.3;

// The box around all points, scaled to the whole picture and centred, with room for the pen. One direction may be
// scaled more than the other, as far as writing looks natural.
function fitting(strokes, height, width) {
  const points = strokes.flat(), pen = PEN * Math.min(height, width);
  // A dot stays a dot.
  const least = 0.15;
  const along = (axis, side) => {
    const values = points.map((p) => p[axis]);
    const low = Math.min(...values), high = Math.max(...values);
    return {middle: (low + high) / 2, side, room: (side - pen) / (Math.max(high - low, least) * side)};
  };
  const x = along(0, width), y = along(1, height);
  const scale = Math.min(x.room, y.room) * STRETCH;
  const place = (value, {middle, side, room}) => (value - middle) * side * Math.min(scale, room) + side / 2;
  return (point) => [place(point[0], x), place(point[1], y)];
}

function drawStrokes(context, strokes, place, pen) {
  context.lineCap = context.lineJoin = "round";
  context.lineWidth = pen;
  for (const stroke of strokes) {
    context.beginPath();
    stroke.map(place).forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    if (stroke.length === 1) context.lineTo(...place(stroke[0]).map((v) => v + 0.01));
    context.stroke();
  }
}

// The ink of each pixel, black on white, averaged over FINE * FINE dots.
function inked(strokes, height, width, centred) {
  const canvas = new OffscreenCanvas(width * FINE, height * FINE);
  const context = canvas.getContext("2d", {willReadFrequently: true});
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  const place = centred && strokes.length ? fitting(strokes, height, width) : ([x, y]) => [x * width, y * height];
  drawStrokes(context, strokes, (point) => place(point).map((v) => v * FINE), PEN * Math.min(height, width) * FINE);
  const fine = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const pixels = new ImageData(width, height);
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      let sum = 0;
      for (let dy = 0; dy < FINE; ++dy) {
        for (let dx = 0; dx < FINE; ++dx) sum += fine[4 * ((y * FINE + dy) * canvas.width + x * FINE + dx)];
      }
      pixels.data.set([0, 1, 2].map(() => sum / FINE ** 2).concat(255), 4 * (y * width + x));
    }
  }
  return pixels;
}

// size() gives {height, width} of the picture; onpixels gets it whenever a stroke grows. `beside` is a node to show,
// too.
export function drawingPlace(size, beside, onpixels) {
  const canvas = h("canvas", {
    class: "drawing",
    width: SIDE,
    height: SIDE,
    tabindex: "0",
    role: "application",
    "aria-label": "Drawing. Arrow keys move the pen, the space bar puts it down and lifts it, Delete clears.",
  });
  const context = canvas.getContext("2d");
  const centre = h("input", {type: "checkbox", checked: true, onchange: () => changed()});
  let strokes = [], pen = null, cursor = [0.5, 0.2], keyed = false;

  const show = () => {
    context.clearRect(0, 0, SIDE, SIDE);
    context.strokeStyle = getComputedStyle(canvas).color;
    drawStrokes(context, strokes, ([x, y]) => [x * SIDE, y * SIDE], PEN * SIDE);
    if (!keyed) return;
    context.lineWidth = 2;
    context.strokeStyle = "#e8590c";
    context.strokeRect(cursor[0] * SIDE - 6, cursor[1] * SIDE - 6, 12, 12);
  };
  // Strokes may come faster than the screen is drawn; the last state counts.
  let frame = 0;
  const changed = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      show();
      const {height, width} = size();
      onpixels(inked(strokes, height, width, centre.checked));
    });
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height].map(
        (v) => Math.min(1, Math.max(0, v)));
  };
  const clear = () => {
    strokes = [];
    pen = null;
    changed();
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    keyed = false;
    strokes.push((pen = [at(event)]));
    changed();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!pen || keyed) return;
    for (const part of event.getCoalescedEvents?.() ?? [event]) pen.push(at(part));
    changed();
  });
  const lift = () => (pen = keyed ? pen : null);
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);

  const STEPS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
  canvas.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (event.key === " ") {
      pen = pen ? null : [cursor];
      if (pen) strokes.push(pen);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      strokes = [];
      pen = null;
    } else if (step) {
      cursor = cursor.map((v, i) => Math.min(1, Math.max(0, v + step[i] / 16)));
      pen?.push(cursor);
    } else {
      return;
    }
    event.preventDefault();
    keyed = true;
    changed();
  });
  canvas.addEventListener("blur", () => {
    keyed = false;
    pen = null;
    show();
  });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", show);

  const node =
      h("div", {class: "drawing-place"}, canvas,
        h("div", {class: "column"}, beside, button("Clear", clear),
          labelled("Fill the picture", centre, {class: "check"}),
          h("p", {class: "dim drawing-hint"}, "Mouse, pen or finger. With keys: arrows move, space draws.")));
  return {node, refresh: changed};
}
