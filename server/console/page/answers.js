// Outputs of a model: tables, bars for probabilities, pictures, and how far they are from the answer before.
import {bars} from "./chart.js";
import {button, h, segments} from "./dom.js";
import {count, digits, percent, shapeText, value} from "./figures.js";
import {drawTensor, pictureLayout} from "./picture.js";
import {download, writeNpy, writeNpz, writeSafetensors} from "./tensor_files.js";
import {difference, elements, isFloat, shown} from "./tensors.js";

const TABLE_ROWS = 32;
const TABLE_COLUMNS = 32;
const MOST_CLASSES = 10;
const MOST_PICTURES = 16;

const lastOf = (tensor) => tensor.shape.at(-1) ?? 1;
const rowsOf = (tensor) => (lastOf(tensor) ? elements(tensor.shape) / lastOf(tensor) : 0);

// Rows of 2 to 100,000 floats that are at least 0 and whose sum is 1.
export function isProbabilities(tensor) {
  const size = lastOf(tensor);
  if (!isFloat(tensor.datatype) || !tensor.shape.length || size < 2 || size > 100000 || !tensor.values.length)
    return false;
  for (let row = 0; row < Math.min(rowsOf(tensor), 8); ++row) {
    const part = tensor.values.subarray(row * size, (row + 1) * size);
    if (part.some((v) => !(v >= 0)) || Math.abs(part.reduce((a, b) => a + b, 0) - 1) > 0.01) return false;
  }
  return true;
}

function argmax(values) {
  let best = 0;
  for (let i = 1; i < values.length; ++i) {
    if (values[i] > values[best]) best = i;
  }
  return best;
}

function barsView(tensor) {
  const size = lastOf(tensor);
  return Array.from({length: Math.min(rowsOf(tensor), 8)}, (_, row) => {
    const values = tensor.values.subarray(row * size, (row + 1) * size), best = argmax(values);
    // Few classes stay in their places, so that bars do not jump; of many, the likeliest are shown.
    const order = Array.from(values.keys());
    const places = size <= MOST_CLASSES ? order : order.sort((a, b) => values[b] - values[a]).slice(0, MOST_CLASSES);
    const rows =
        places.map((i) => ({name: String(i), value: values[i], shown: percent(values[i]), marked: i === best}));
    return h(
        "div", {}, rowsOf(tensor) > 1 ? h("h4", {}, `Row ${row}`) : null,
        h("p", {class: "best", "aria-live": "polite"}, h("b", {}, String(best)),
          h("span", {class: "dim"}, ` ${percent(values[best])}`)),
        bars(rows, `Probabilities of row ${row}`));
  });
}

// The last two dimensions as a table; the others are chosen.
function tableView(tensor) {
  const {shape} = tensor;
  if (tensor.values.length === 1) return h("p", {class: "scalar"}, value(shown(tensor, tensor.values[0])));
  const columns = lastOf(tensor), rows = shape.length > 1 ? shape.at(-2) : 1;
  const outer = shape.slice(0, -2), index = outer.map(() => 0);
  const place = h("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": "Values"});
  const draw = () => {
    const begin = index.reduce((at, n, d) => at * outer[d] + n, 0) * rows * columns;
    const [r, c] = [Math.min(rows, TABLE_ROWS), Math.min(columns, TABLE_COLUMNS)];
    const row = (i) =>
        h("tr", {}, h("th", {scope: "row"}, String(i)),
          Array.from(
              {length: c},
              (_, j) => h("td", {class: "number"}, value(shown(tensor, tensor.values[begin + i * columns + j])))));
    place.replaceChildren(
        h("table", {class: "values"},
          h("thead", {},
            h("tr", {}, h("td", {}),
              Array.from({length: c}, (_, j) => h("th", {scope: "col", class: "number"}, String(j))))),
          h("tbody", {}, Array.from({length: r}, (_, i) => row(i)))),
        r < rows || c < columns ?
            h("p", {class: "dim"}, `${r} × ${c} of ${rows} × ${columns}; the files below have all.`) :
            "");
  };
  draw();
  const choosers = outer.map((size, d) => h("input", {
                               type: "number",
                               min: 0,
                               max: size - 1,
                               value: 0,
                               "aria-label": `Index of dimension ${d}`,
                               onchange: (event) => {
                                 index[d] = Math.max(0, Math.min(size - 1, Math.trunc(event.target.value) || 0));
                                 draw();
                               }
                             }));
  return [
    choosers.length ? h("p", {class: "row"}, "Shows [", choosers.flatMap((n) => [n, ", "]), ":, :]") : null, place
  ];
}

function pictureView(tensor) {
  const layout = pictureLayout(tensor);
  return h(
      "div", {class: "row top"},
      Array.from({length: Math.min(layout.batched ? tensor.shape[0] : 1, MOST_PICTURES)}, (_, i) => {
        const canvas = h("canvas", {class: "answer-picture", role: "img", "aria-label": `Picture ${i}`});
        const {low, high} = drawTensor(canvas, tensor, layout, i);
        return h("figure", {}, canvas, h("figcaption", {}, `black ${value(low)}, white ${value(high)}`));
      }));
}

function differenceView(before, now) {
  if (!before) return null;
  if (before.shape.join() !== now.shape.join())
    return h("p", {class: "difference"}, `The answer before had the shape ${shapeText(before.shape)}.`);
  const apart = difference(before, now);
  if (!apart.changed) return h("p", {class: "difference"}, "The same as the answer before.");
  const size = lastOf(now), rows = isFloat(now.datatype) && now.shape.length && size > 1 ? rowsOf(now) : 0;
  let moved = 0;
  for (let row = 0; row < rows; ++row)
    moved += argmax(before.values.subarray(row * size, (row + 1) * size)) !==
        argmax(now.values.subarray(row * size, (row + 1) * size));
  return h(
      "p", {class: "difference"},
      `From the answer before: ${count(apart.changed)} of ${count(apart.elements)} changed, by ${
          digits(apart.largest)} at most and ${digits(apart.mean)} in the mean`,
      moved ? `; the largest element of ${count(moved)} of ${count(rows)} rows is another one` : "", ".");
}

const VIEWS = {
  bars: ["Bars", barsView],
  picture: ["Picture", pictureView],
  table: ["Table", tableView]
};

// Keeps, over answers, which view of an output was chosen, and what came before.
export function answerPlace() {
  const chosen = new Map();
  let before = new Map();
  const node = h("div", {class: "answers"});

  const outputView = (name, tensor) => {
    const possible = Object.keys(VIEWS).filter(
        (v) => v === "table" ||
            (v === "bars" ? isProbabilities(tensor) : pictureLayout(tensor) && tensor.shape.length > 1));
    const view = possible.includes(chosen.get(name)) ? chosen.get(name) : possible[0];
    const body = h("div", {}, VIEWS[view][1](tensor));
    const choose = (next) => {
      chosen.set(name, next);
      body.replaceChildren(...[VIEWS[next][1](tensor)].flat().filter(Boolean));
    };
    const fileName = name.replace(/[^\w.-]+/g, "_").replace(/_+$/, "");
    return h(
        "section", {class: "output", "data-output": name},
        h("div", {class: "row"}, h("h3", {}, h("code", {}, name)),
          h("span", {class: "dim"}, `${tensor.datatype} ${shapeText(tensor.shape)}`),
          possible.length > 1 ? segments("View", possible.map((v) => [v, VIEWS[v][0]]), view, choose) : null,
          button(
              ".npy", () => download(`${fileName}.npy`, new Blob([writeNpy(tensor)])),
              {class: "link", title: "Save this output"})),
        tensor.values.length ? body : h("p", {class: "dim"}, "no elements"), differenceView(before.get(name), tensor));
  };

  // answer: {outputs: Map of name to tensor, seconds, weight_version, version, weights}.
  const update = (answer) => {
    const {outputs} = answer;
    node.replaceChildren(
        h("p", {class: "answer-head"}, `Answered in ${digits(answer.seconds * 1e3)} ms by `,
          h("b", {}, answer.weights ? `the set ${answer.weights}` : `weight version ${answer.weight_version}`),
          answer.version && answer.version !== answer.weight_version ? ` (${answer.version})` : ""),
        ...[...outputs].map(([name, tensor]) => outputView(name, tensor)),
        h("p", {class: "row"}, h("span", {class: "dim"}, "All outputs as"),
          button(".npz", () => download("answer.npz", writeNpz(Object.fromEntries(outputs))), {class: "link"}),
          button(
              ".safetensors", () => download("answer.safetensors", writeSafetensors(Object.fromEntries(outputs))),
              {class: "link"})));
    before = outputs;
  };
  return {node, update};
}
