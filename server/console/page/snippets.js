// The request of the form as programs that send it: curl, Triton's client, Sconce's own.
import {button, h, segments, setText} from "./dom.js";
import {allNamed, callOf} from "./signature.js";
import {elements, textOf, toNested, TYPES} from "./tensors.js";

// Beyond so many elements a program reads the values from a file.
const WRITTEN_OUT = 1024;

const quoted = (text) => JSON.stringify(text);
const shellQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const isLong = (tensors) => tensors.some(({tensor}) => elements(tensor.shape) > WRITTEN_OUT);
const python = (nested) =>
    textOf(nested)
        .replace(/\btrue\b/g, "True")
        .replace(/\bfalse\b/g, "False")
        .replace(/-?\b(NaN|Infinity)\b/g, (w) => `${w[0] === "-" ? "-" : ""}np.${w.endsWith("NaN") ? "nan" : "inf"}`);
const fileOf = (name) => `${name.replace(/[^\w.-]+/g, "_").replace(/_+$/, "")}.npy`;
const array = ({name, tensor}) => elements(tensor.shape) > WRITTEN_OUT ?
    `np.load(${quoted(fileOf(name))})` :
    emptyOr(tensor, `np.array(${python(toNested(tensor))}, ${TYPES[tensor.datatype].numpy})`);
// Nested lists cannot say the shape of a tensor without elements.
const emptyOr = (tensor, text) =>
    (tensor.values.length ? text : `np.zeros(${`(${tensor.shape.join(", ")},)`}, ${TYPES[tensor.datatype].numpy})`);

const urlOf = ({model, http, set}, path) =>
    `${http}${path.replace("NAME", `${model.name}${set ? `@${set}` : ""}`).replace("VERSION", model.version)}`;

function curl(request) {
  const {metadata, tensors, token} = request;
  const header = token ? " -H 'Authorization: Bearer TOKEN'" : "";
  const byName = new Map(tensors.map(({name, tensor}) => [name, tensor]));
  const spec = metadata.call_spec;
  let path = "/v2/models/NAME/versions/VERSION/infer";
  let body = `{"inputs": [${
      tensors
          .map(
              ({name, tensor}) => `{"name": ${quoted(name)}, "shape": [${tensor.shape.join(", ")}], "datatype": "${
                  tensor.datatype}", "data": ${textOf(toNested({...tensor, shape: [tensor.values.length]}))}}`)
          .join(", ")}]}`;
  if (spec && allNamed(spec, metadata.inputs) && !tensors.some(({tensor}) => tensor.values.length === 0)) {
    path = "/v1/models/NAME/versions/VERSION:call";
    const call = callOf(spec, (name) => (byName.has(name) ? toNested(byName.get(name)) : null));
    body = callText(call);
  }
  if (isLong(tensors))
    return `# The body has too many numbers for a command line; save it as request.json.\ncurl -s ${
        urlOf(request, path)}${header} -d @request.json`;
  return `curl -s ${urlOf(request, path)}${header} -d ${shellQuoted(body)}`;
}

// JSON of a call: as JSON.stringify, but for numbers that JSON lacks.
export function callText(part) {
  if (Array.isArray(part)) return `[${part.map(callText).join(", ")}]`;
  if (part && typeof part === "object")
    return `{${Object.entries(part).map(([k, v]) => `${quoted(k)}: ${callText(v)}`).join(", ")}}`;
  return part === null ? "null" : typeof part === "string" ? quoted(part) : textOf(part);
}

function triton(request) {
  const {model, tensors, http, token, set} = request;
  const url = http.replace(/^https?:\/\//, ""), secure = http.startsWith("https:");
  const lines = [
    "import numpy as np", "import tritonclient.http as triton", "",
    `client = triton.InferenceServerClient(${quoted(url)}${secure ? ", ssl=True" : ""})`, "inputs = []"
  ];
  for (const {name, tensor} of tensors) {
    lines.push(
        `values = ${array({name, tensor})}`,
        `inputs.append(triton.InferInput(${quoted(name)}, list(values.shape), "${tensor.datatype}"))`,
        "inputs[-1].set_data_from_numpy(values)");
  }
  const headers = [
    token ? `"Authorization": "Bearer TOKEN"` : null, set ? `"Sconce-Weights": ${quoted(set)}` : null
  ].filter(Boolean).join(", ");
  lines.push(
      `answer = client.infer(${quoted(model.name)}, inputs, model_version=${quoted(model.version)}${
          headers ? `, headers={${headers}}` : ""})`,
      "for output in answer.get_response()[\"outputs\"]:",
      "    print(output[\"name\"], answer.as_numpy(output[\"name\"]))");
  return lines.join("\n");
}

// The arguments as they are written in Python.
function pythonCall(part) {
  if (part instanceof Array) return `[${part.map(pythonCall).join(", ")}]`;
  if (part && typeof part === "object")
    return `{${Object.entries(part).map(([k, v]) => `${quoted(k)}: ${pythonCall(v)}`).join(", ")}}`;
  return part === null ? "None" : part;
}

function own(request) {
  const {model, metadata, tensors, http, token, set} = request;
  const spec = metadata.call_spec, byName = new Map(tensors.map((t) => [t.name, t]));
  let words = tensors.map(array);
  if (spec && allNamed(spec, metadata.inputs)) {
    const call = callOf(spec, (name) => (byName.has(name) ? array(byName.get(name)) : null));
    words =
        [...call.args.map(pythonCall), ...Object.entries(call.kwargs ?? {}).map(([k, v]) => `${k}=${pythonCall(v)}`)];
  }
  return [
    "import numpy as np", "import sconce", "",
    `client = sconce.Client(${quoted(http)}${token ? ", token=\"TOKEN\"" : ""})`,
    `print(client.infer(${[quoted(model.name + (set ? `@${set}` : "")), ...words].join(", ")}))`
  ].join("\n");
}

const KINDS = {
  curl: ["curl", curl],
  triton: ["tritonclient", triton],
  sconce: ["sconce.Client", own]
};

// request() gives {model, metadata, tensors: [{name, tensor}], http, token, set}.
export function snippetPlace(request) {
  let kind = "curl";
  const code = h("code", {});
  const note = h("p", {class: "dim"});
  const copied = h("span", {role: "status", class: "dim"});
  const update = () => {
    const what = request();
    setText(code, KINDS[kind][1](what));
    setText(
        note,
        isLong(what.tensors) && kind !== "curl" ?
            "Inputs with many numbers are read from .npy files, which the buttons above save." :
            "");
    setText(copied, "");
  };
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      setText(copied, "copied");
    } catch {
      getSelection().selectAllChildren(code);
      setText(copied, "selected: copy it with the keyboard");
    }
  };
  const choose = (next) => {
    kind = next;
    update();
  };
  const node = h(
      "div", {class: "snippet"},
      h("div", {class: "row"}, segments("Program", Object.entries(KINDS).map(([k, [name]]) => [k, name]), kind, choose),
        button("Copy", copy), copied),
      h("pre", {tabindex: "0", "aria-label": "The same request as a program"}, code), note);
  return {node, update};
}
