// What a model takes and gives: its tensors, and the structure of the Python call around them.
import {h, svg} from "./dom.js";
import {shapeText} from "./figures.js";

const KEYED = ["dict", "ordered_dict", "default_dict", "dataclass"];
const BRACKETS = {
  tuple: "( )",
  list: "[ ]",
  dict: "{ }",
  ordered_dict: "OrderedDict",
  default_dict: "defaultdict",
  deque: "deque",
  none: "None"
};

export const isKeyed = (node) => KEYED.includes(node.kind);

// Calls leaf(path, key) for each leaf, and gives what branch(node, children, key) makes of the rest.
export function walk(node, path, {leaf, branch}, key = null) {
  if (node.kind === "leaf") return leaf(path, key);
  const children = (node.children ?? []).map((child, i) => {
    const name = isKeyed(node) ? node.keys[i] : i;
    return walk(child, `${path}[${name}]`, {leaf, branch}, node.keys?.[i] ?? i);
  });
  return branch(node, children, key);
}

// Whether the call is more than a row of tensors: then its names alone do not tell how to write it in Python.
export function isTree(spec) {
  const nested = (node) => (node.children ?? []).some((child) => child.kind !== "leaf");
  return Boolean(spec) && (nested(spec.args) || Boolean(spec.kwargs.children?.length) || nested(spec.kwargs));
}

// {args, kwargs} with what leaf(name) gives at each place.
export function callOf(spec, leaf) {
  const visit = {
    leaf,
    branch: (node, children) => node.kind === "none" ? null :
        isKeyed(node)                                ? Object.fromEntries(children.map((c, i) => [node.keys[i], c])) :
                                                       children,
  };
  return {args: walk(spec.args, "ARGS", visit), kwargs: walk(spec.kwargs, "KWARGS", visit)};
}

// The places of a tree whose tensors the package does not know by these names, because the compiler dropped some.
export function allNamed(spec, tensors) {
  const names = new Set();
  const visit = {leaf: (path) => names.add(path), branch: () => null};
  walk(spec.args, "ARGS", visit);
  walk(spec.kwargs, "KWARGS", visit);
  return tensors.every((t) => names.has(t.name));
}

const typeText = (tensor) => `${tensor.parameters?.dtype ?? tensor.datatype} ${shapeText(tensor.shape)}`;

function treeOf(node, path, tensors) {
  const label = (key) => (key === null ? "" : h("span", {class: "tree-key"}, `${key}: `));
  return walk(node, path, {
    leaf: (name, key) => {
      const tensor = tensors.find((t) => t.name === name);
      return h(
          "li", {}, label(key),
          tensor ? [h("code", {}, name), h("span", {class: "dim"}, ` ${typeText(tensor)}`)] :
                   h("span", {class: "dim"}, "not used by the compiled model"));
    },
    branch: (inner, children, key) =>
        h("li", {}, label(key),
          h("span", {class: "tree-kind"},
            inner.type && !BRACKETS[inner.kind] ? inner.type.split(".").at(-1) : BRACKETS[inner.kind] ?? inner.kind),
          children.length ? h("ul", {}, children) : null),
  });
}

const flat = (tensors) =>
    tensors.map((t) => h("li", {}, h("code", {}, t.name), h("span", {class: "dim"}, ` ${typeText(t)}`)));

export function signatureView(metadata) {
  const {call_spec: spec, inputs, outputs} = metadata;
  const part = (title, content) => h("div", {}, h("h3", {}, title), h("ul", {class: "tree"}, content));
  if (!spec) return h("div", {class: "signature"}, part("Inputs", flat(inputs)), part("Outputs", flat(outputs)));
  const known = allNamed(spec, inputs);
  const hasKeywords = Boolean(spec.kwargs.children?.length);
  return h(
      "div", {class: "signature"}, part("Arguments", known ? treeOf(spec.args, "ARGS", inputs) : flat(inputs)),
      hasKeywords && known ? part("Keyword arguments", treeOf(spec.kwargs, "KWARGS", inputs)) : null,
      part(
          "Result",
          outputs.every((t) => t.name.startsWith("RESULT")) ? treeOf(spec.result, "RESULT", outputs) : flat(outputs)));
}

// A pipeline's models, and the tensors that pass from one to the next.
export function pipelineView(steps) {
  const width = 220, gap = 50, height = 74;
  return h(
      "div", {class: "scroll", tabindex: "0", role: "group", "aria-label": "Steps of the pipeline"},
      svg("svg", {
        class: "pipeline",
        width: steps.length * (width + gap),
        height,
        role: "img",
        "aria-label": steps.map((s) => s.model_name).join(", then ")
      },
          steps.map(
              (step, i) => svg(
                  "g", {transform: `translate(${i * (width + gap)} 0)`},
                  svg("rect", {x: 1, y: 1, width, height: height - 2, rx: 4}),
                  svg("text", {x: 12, y: 26, class: "strong"}, step.model_name),
                  svg("text", {x: 12, y: 46}, `takes ${Object.values(step.input_map).join(", ")}`.slice(0, 34)),
                  svg("text", {x: 12, y: 63}, `gives ${Object.values(step.output_map).join(", ")}`.slice(0, 34)),
                  i + 1 < steps.length ? svg("path", {d: `M${width + 6} ${height / 2}h${gap - 12}m-8 -5l8 5l-8 5`}) :
                                         null))));
}
