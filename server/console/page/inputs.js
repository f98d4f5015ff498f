// The form of one input: its shape, and its values as a table, JSON, a file, a drawing, a picture or random numbers.
import {parse} from "./api.js";
import {button, h, labelled, segments, select, setText} from "./dom.js";
import {drawingPlace} from "./draw.js";
import {shapeText} from "./figures.js";
import {defaultScale, drawTensor, layoutOf, pictureShape, pixelsOfFile, SCALES, tensorOfPixels} from "./picture.js";
import {readTensors} from "./tensor_files.js";
import {cast, element, elements, fits, fromNested, isFloat, random, shown, textOf, toNested, TYPES, zeros} from "./tensors.js";

const TABLE_LIMIT = 512;
const JSON_LIMIT = 20000;
const OPEN_SIDE = 224;

export const isPictureFile = (file) =>
    file.type.startsWith("image/") || /\.(png|jpe?g|webp|gif|bmp|avif)$/i.test(file.name);

// info: a tensor of the metadata. onchange is called when the tensor is another one; onedit may run the model at once.
export function inputForm(info, onchange) {
  const unknown = !TYPES[info.datatype];
  const signature = info.shape;
  const layout = layoutOf(signature);
  let datatype = unknown ? "FP32" : info.datatype;
  // Sides of pictures that the signature leaves open begin with 28, other sizes with 1.
  const start = (size, i) => (size >= 0 ? size : layout && i >= signature.length - 2 ? 28 : 1);
  let tensor = zeros(datatype, signature.map(start));
  const picture = {
    scale: layout ? defaultScale(datatype, layout) : "0-1",
    invert: layout?.channels === 1,
    fit: "cover"
  };
  let view = "";

  const problem = h("p", {class: "bad-text", role: "alert"});
  const body = h("div", {class: "input-body"});
  const shapePlace = h("span", {class: "shape"});

  const take = (next, redraw = true) => {
    tensor = next;
    setText(problem, "");
    showShape();
    if (redraw) editors[view].update?.();
    onchange();
  };
  // What comes from outside has another dtype or shape at times; the first is cast, the second refused.
  const offer = (given, name = "It") => {
    const exact = fits(given.shape, signature) ? given :
        fits([1, ...given.shape], signature)   ? {...given, shape: [1, ...given.shape]} :
                                                 null;
    if (!exact && !unknown)
      throw new Error(`${name} has the shape ${shapeText(given.shape)}; the model takes ${shapeText(signature)}.`);
    take(cast(exact ?? given, datatype));
  };
  const attempt = async (action) => {
    try {
      await action();
    } catch (error) {
      setText(problem, error.message);
    }
  };

  const changeShape = (shape) => {
    if (elements(shape) > 1e8) return setText(problem, "This is too much for a form; drop a file.");
    const next = zeros(datatype, shape);
    next.values.set(tensor.values.subarray(0, Math.min(next.values.length, tensor.values.length)));
    take(next);
  };
  const size = (text) => Math.max(0, Math.min(65536, Math.trunc(text) || 0));

  // Only the sizes that the signature leaves open can be changed; without a signature, all of them.
  function showShape() {
    if (unknown) {
      const field = h("input", {
        value: tensor.shape.join(", "),
        "aria-label": "Shape",
        onchange: () => changeShape(field.value.split(",").filter((s) => s.trim()).map(size)),
      });
      shapePlace.replaceChildren("[", field, "]");
      return;
    }
    const sizes = tensor.shape.map((current, i) => {
      if (signature[i] >= 0) return h("span", {}, String(current));
      const change = (event) => changeShape(tensor.shape.map((s, j) => (j === i ? size(event.target.value) : s)));
      return h(
          "input", {type: "number", min: 0, value: current, "aria-label": `Size of dimension ${i}`, onchange: change});
    });
    shapePlace.replaceChildren("[", ...sizes.flatMap((node, i) => (i ? [", ", node] : [node])), "]");
  }

  const tableView = () => {
    const place = h("div", {class: "scroll grid-place"});
    const update = () => {
      const columns = tensor.shape.at(-1) ?? 1, rows = columns ? elements(tensor.shape) / columns : 0;
      if (elements(tensor.shape) > TABLE_LIMIT) {
        place.replaceChildren(
            h("p", {class: "dim"},
              `${elements(tensor.shape)} values are too many for a table. Take JSON, a file or random values.`));
        return;
      }
      const edit = (i) => (event) => attempt(() => {
        const next = {...tensor, values: tensor.values.slice()};
        next.values[i] = element(datatype, event.target.value);
        take(next, false);
      });
      place.replaceChildren(h(
          "table", {class: "grid"},
          h("tbody", {},
            Array.from(
                {length: rows}, (_, r) => h("tr", {}, Array.from({length: columns}, (_, c) => {
                                  const i = r * columns + c, value = tensor.values[i];
                                  const field = datatype === "BOOL" ?
                                      h("input", {type: "checkbox", checked: Boolean(value)}) :
                                      h("input",
                                        {type: "text", inputmode: "decimal", value: String(shown(tensor, value))});
                                  field.setAttribute("aria-label", `Row ${r}, column ${c}`);
                                  field.addEventListener(
                                      "change",
                                      datatype === "BOOL" ? () => edit(i)({target: {value: field.checked}}) : edit(i));
                                  return h("td", {}, field);
                                }))))));
    };
    return {node: place, update};
  };

  const jsonView = () => {
    const area = h("textarea", {rows: 8, spellcheck: "false", "aria-label": "Nested lists"});
    const update = () =>
        (area.value = elements(tensor.shape) > JSON_LIMIT ? "" : textOf(toNested(tensor)).replaceAll("], [", "],\n ["));
    area.addEventListener("change", () => attempt(() => {
                                      const given = fromNested(datatype, parse(area.value));
                                      if (!unknown && !fits(given.shape, signature))
                                        throw new Error(`The lists have the shape ${
                                            shapeText(given.shape)}; the model takes ${shapeText(signature)}.`);
                                      take(given, false);
                                    }));
    return {
      node: h(
          "div", {}, area, h("p", {class: "dim"}, "Nested lists of numbers; NaN, Infinity and -Infinity are allowed.")),
      update
    };
  };

  const randomView = () => {
    const limits = isFloat(datatype) ? {kind: "normal", low: 0, high: 1} : {kind: "integers", low: 0, high: 9};
    const options = {...limits, seed: 1};
    const number = (key, name) => labelled(name, h("input", {
                                             type: "number",
                                             step: "any",
                                             value: options[key],
                                             onchange: (e) => (options[key] = Number(e.target.value))
                                           }));
    const kinds = isFloat(datatype) ?
        [["normal", "normal: mean, deviation"], ["uniform", "uniform: from, to"], ["integers", "integers: from, to"]] :
        [["integers", "integers: from, to"]];
    const fill = () => {
      take(random(datatype, tensor.shape, options));
      seed.value = ++options.seed;
    };
    const seed =
        h("input", {type: "number", value: options.seed, onchange: (e) => (options.seed = Math.trunc(e.target.value))});
    return {
      node:
          h("div", {class: "row"}, labelled("Values", select(kinds, options.kind, (kind) => (options.kind = kind))),
            number("low", "First"), number("high", "Second"), labelled("Seed", seed), button("Fill", fill))
    };
  };

  const pictureOptions = (changed) => {
    const invert = h(
        "input", {type: "checkbox", checked: picture.invert, onchange: () => changed(picture.invert = invert.checked)});
    return h(
        "div", {class: "row"},
        labelled(
            "Values",
            select(
                Object.entries(SCALES).map(([key, s]) => [key, s.name]), picture.scale,
                (scale) => changed(picture.scale = scale))),
        labelled("Ink is high, paper low", invert, {class: "check"}),
        h("span", {class: "dim"}, `layout ${layout.batched ? "N" : ""}${layout.layout}`));
  };
  const openSize = () => {
    const [height, width] = layout.layout === "HWC" ? tensor.shape.slice(-3) : tensor.shape.slice(-2);
    return pictureShape(layout, {height: height || OPEN_SIDE, width: width || OPEN_SIDE});
  };
  // What the model gets to see, one picture of the batch.
  const preview = () => {
    const canvas = h("canvas", {class: "preview", role: "img", "aria-label": "What the model gets"});
    return {
      node: h("figure", {}, canvas, h("figcaption", {}, "what the model gets")),
      update: () => drawTensor(canvas, tensor, {...layout, ...openSize()}, 0)
    };
  };

  const drawView = () => {
    const seen = preview();
    const drawing = drawingPlace(openSize, seen.node, (pixels) => {
      take(tensorOfPixels(pixels, datatype, layout, picture.scale, picture.invert), false);
      seen.update();
    });
    return {node: h("div", {}, pictureOptions(drawing.refresh), drawing.node), update: seen.update};
  };

  let lastPicture = null;
  const readPicture = async (file) => {
    lastPicture = file;
    const {width, height} = openSize();
    take(tensorOfPixels(
        await pixelsOfFile(file, width, height, picture.fit), datatype, layout, picture.scale, picture.invert));
  };
  const pictureView = () => {
    const seen = preview();
    const again = () => lastPicture && attempt(() => readPicture(lastPicture));
    const chooser =
        h("input", {type: "file", accept: "image/*", onchange: () => attempt(() => readPicture(chooser.files[0]))});
    return {
      node: h(
          "div", {}, pictureOptions(again),
          h("div", {class: "row top"}, labelled("Picture", chooser),
            labelled(
                "Size",
                select(
                    [["cover", "fill, cut what sticks out"], ["contain", "fit, leave borders"], ["stretch", "stretch"]],
                    picture.fit, (fit) => again(picture.fit = fit))),
            seen.node)),
      update: seen.update,
    };
  };

  const fileView = () => {
    const chooser =
        h("input",
          {type: "file", accept: ".npy,.npz,.safetensors", onchange: () => attempt(() => readFile(chooser.files[0]))});
    const chosen = h("div", {});
    const readFile = async (file) => {
      const tensors = await readTensors(file), names = Object.keys(tensors);
      const named = names.find((n) => n === info.name) ?? (names.length === 1 ? names[0] : null);
      const use = (name) => attempt(() => offer(tensors[name], name || file.name));
      chosen.replaceChildren();
      if (named !== null) return use(named);
      chosen.append(labelled("Tensor of the file", select([["", "choose"], ...names], "", use)));
    };
    return {node: h("div", {class: "row"}, labelled(".npy, .npz or .safetensors", chooser), chosen)};
  };

  const makers =
      {table: ["Table", tableView], json: ["JSON", jsonView], random: ["Random", randomView], file: ["File", fileView]};
  if (layout && !unknown) {
    Object.assign(makers, {draw: ["Draw", drawView], picture: ["Picture", pictureView]});
  }
  const editors = {};
  const choose = (name) => {
    view = name;
    editors[name] ??= makers[name][1]();
    body.replaceChildren(editors[name].node);
    editors[name].update?.();
  };
  const order = layout ? ["draw", "picture", "table", "json", "random", "file"] : ["table", "json", "random", "file"];
  const first = order.find((name) => makers[name] && (name !== "table" || elements(tensor.shape) <= TABLE_LIMIT));
  const chooseType = (next) => {
    datatype = next;
    delete editors.random;
    take(cast(tensor, next));
  };
  const node =
      h("fieldset", {class: "input", "data-input": info.name}, h("legend", {}, h("code", {}, info.name)),
        h("div", {class: "row"},
          unknown ? select(Object.keys(TYPES), datatype, chooseType, {"aria-label": "Datatype"}) :
                    h("span", {class: "dim"}, info.parameters?.dtype ?? datatype),
          shapePlace, segments("Editor", order.filter((n) => makers[n]).map((n) => [n, makers[n][0]]), first, choose)),
        body, problem);
  showShape();
  choose(first);
  return {
    node,
    name: info.name,
    tensor: () => tensor,
    fits: (given) => fits(given.shape, signature) || fits([1, ...given.shape], signature),
    offer: (given, name) => attempt(() => offer(given, name)),
    picture: layout && !unknown ? (file) => attempt(() => readPicture(file)) : null,
    first: () => (tensor.values.length ? shown(tensor, tensor.values[0]) : null),
  };
}
