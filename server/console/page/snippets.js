// The request of the form as programs that send it: curl, Triton's client, Sconce's own.
import {button, h, segments, setText} from "./dom.js";
import {allNamed, callOf} from "./signature.js";
import {download, writeNpy} from "./tensor_files.js";
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

// In the shape of the call where JSON says all of it: not the bytes of a float8, nor a dtype that the package lacks.
function bodyOf({metadata, tensors}) {
  const infos = new Map(metadata.inputs.map((info) => [info.name, info]));
  const plain = ({name, tensor}) => {
    const info = infos.get(name);
    return TYPES[info.datatype] && !/^float[48]/.test(info.parameters?.dtype ?? "") && tensor.values.length > 0;
  };
  if (metadata.call_spec && allNamed(metadata.call_spec, metadata.inputs) && tensors.every(plain)) {
    const byName = new Map(tensors.map(({name, tensor}) => [name, tensor]));
    const {args, kwargs} = callOf(metadata.call_spec, (name) => (byName.has(name) ? toNested(byName.get(name)) : null));
    const call = Object.keys(kwargs).length ? {args, kwargs} : {args};
    return {path: "/v1/models/NAME/versions/VERSION:call", body: callText(call)};
  }
  const inputs = tensors.map(({name, tensor}) => {
    const data = textOf(toNested({...tensor, shape: [tensor.values.length]}));
    return `{"name": ${quoted(name)}, "shape": [${tensor.shape.join(", ")}], "datatype": "${
        tensor.datatype}", "data": ${data}}`;
  });
  return {path: "/v2/models/NAME/versions/VERSION/infer", body: `{"inputs": [${inputs.join(", ")}]}`};
}

function curl(request) {
  const {path, body} = bodyOf(request);
  const header = request.token ? " -H 'Authorization: Bearer TOKEN'" : "";
  return `curl -s ${urlOf(request, path)}${header} -d ${isLong(request.tensors) ? "@request.json" : shellQuoted(body)}`;
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

// An array with the dtype of the model, which the datatype of the protocol may only carry.
function ownArray(named, info) {
  const plain = array(named), dtype = info.parameters?.dtype ?? "";
  if (dtype.startsWith("complex")) return `${plain}.view(np.${dtype})[..., 0]`;
  if (/^float[48]/.test(dtype)) return `${plain}.view(ml_dtypes.${dtype})`;
  return named.tensor.datatype === "BF16" ? `${plain}.astype(ml_dtypes.bfloat16)` : plain;
}

function own(request) {
  const {model, metadata, tensors, http, token, set} = request;
  const written = new Map(tensors.map((t, i) => [t.name, ownArray(t, metadata.inputs[i])]));
  let words = [...written.values()];
  if (metadata.call_spec && allNamed(metadata.call_spec, metadata.inputs)) {
    const {args, kwargs} = callOf(metadata.call_spec, (name) => written.get(name) ?? null);
    words = [...args.map(pythonCall), ...Object.entries(kwargs).map(([k, v]) => `${k}=${pythonCall(v)}`)];
  }
  const modules = ["numpy as np", "sconce"];
  if (words.some((w) => w.includes("ml_dtypes."))) modules.unshift("ml_dtypes");
  return [
    ...modules.map((name) => `import ${name}`), "",
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
    note.replaceChildren(...isLong(what.tensors) ? ["It reads its values from ", ...filesOf(what)] : []);
    setText(copied, "");
  };
  const filesOf = (what) => {
    const save = (name, content) => button(name, () => download(name, new Blob([content()])), {class: "link"});
    if (kind === "curl") return [save("request.json", () => bodyOf(what).body)];
    return what.tensors.filter((t) => isLong([t])).map(({name, tensor}) => save(fileOf(name), () => writeNpy(tensor)));
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
