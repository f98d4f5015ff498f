// A request to the model, made in a form, and its answer.
import {answerPlace} from "./answers.js";
import {adminPath, callPath, get, modelPath, parse, request, token} from "./api.js";
import {button, h, labelled, notice, section, segments, select, setText, takesFiles} from "./dom.js";
import {inputForm, isPictureFile} from "./inputs.js";
import {modelIn, watch} from "./live.js";
import {allNamed, callOf, isTree, signatureView} from "./signature.js";
import {callText, snippetPlace} from "./snippets.js";
import {download, readTensors, writeNpz} from "./tensor_files.js";
import {fromBytes, fromNested, toBytes, toNested, TYPES} from "./tensors.js";

// inputs: [{name, tensor}]. The binary form of the v2 protocol, both ways.
export async function infer(model, inputs, set) {
  const parts = inputs.map(({tensor}) => toBytes(tensor));
  const head = {
    inputs: inputs.map(
        ({name, tensor}, i) =>
            ({name, shape: tensor.shape, datatype: tensor.datatype, parameters: {binary_data_size: parts[i].length}})),
    parameters: {binary_data_output: true},
  };
  const text = new TextEncoder().encode(JSON.stringify(head));
  const headers = {
    "Content-Type": "application/octet-stream",
    "Inference-Header-Content-Length": String(text.length),
    ...(set ? {"Sconce-Weights": set} : {})
  };
  const begin = performance.now();
  const response = await request("POST", modelPath(model, "/infer"), {body: new Blob([text, ...parts]), headers});
  const bytes = new Uint8Array(await response.arrayBuffer());
  const seconds = (performance.now() - begin) / 1e3;
  const length = Number(response.headers.get("Inference-Header-Content-Length") ?? bytes.length);
  const answer = parse(new TextDecoder().decode(bytes.subarray(0, length)));
  const outputs = new Map();
  let at = length;
  for (const {name, shape, datatype, parameters, data} of answer.outputs) {
    const size = parameters?.binary_data_size ?? 0;
    outputs.set(name, data ? fromNested(datatype, data) : fromBytes(datatype, shape, bytes.subarray(at, at + size)));
    at += size;
  }
  return {
    outputs,
    seconds,
    weight_version: response.headers.get("Sconce-Weight-Version"),
    version: answer.parameters?.weight_version,
    weights: response.headers.get("Sconce-Weights")
  };
}

// A tensor as an argument; where the package records no dtype, a list would not say it.
function callValue(info, tensor) {
  if (TYPES[info.datatype]) return toNested(tensor);
  const base64 = btoa([...toBytes(tensor)].map((byte) => String.fromCharCode(byte)).join(""));
  return {dtype: TYPES[tensor.datatype].torch, shape: tensor.shape, base64};
}

// A request in the shape of the Python call, as JSON that the visitor writes.
function callForm(model, metadata, forms, options) {
  const spec = metadata.call_spec;
  const area = h("textarea", {rows: 12, spellcheck: "false", "aria-label": "The call as JSON"});
  const answer = h("pre", {class: "call-answer", tabindex: "0", "aria-live": "polite", "aria-label": "Answer"});
  const take = () => {
    const values = new Map(metadata.inputs.map((info, i) => [info.name, callValue(info, forms[i].tensor())]));
    const call = spec && allNamed(spec, metadata.inputs) ? callOf(spec, (name) => values.get(name) ?? null) :
                                                           {args: [...values.values()]};
    area.value = callText(call).replace(/, "kwargs"/, ",\n \"kwargs\"").replaceAll("], [", "],\n  [");
  };
  const run = async () => {
    setText(answer, "");
    try {
      const headers = {"Content-Type": "application/json", ...(options.set() ? {"Sconce-Weights": options.set()} : {})};
      const response = await request("POST", callPath(model), {body: area.value, headers});
      setText(answer, (await response.text()).replaceAll("],[", "],\n["));
    } catch (problem) {
      setText(answer, problem.message);
    }
  };
  return {
    node:
        h("div", {class: "columns-2"},
          section(
              "Call", h("p", {class: "dim"}, "The arguments of the Python call; tensors are nested lists."), area,
              h("div", {class: "row"}, button("Run", run, {class: "primary changes"}),
                button("Take the form's values", take))),
          section("Answer", answer)),
    take,
  };
}

export function showTryout(place, {model, metadata, access}) {
  let running = false, again = false, set = "";
  const answer = answerPlace();
  const state = h("p", {class: "bad-text", role: "alert"});
  const atOnce = h("input", {type: "checkbox"});
  const go = button("Run", () => run(), {class: "primary changes"});

  const inputs = () => forms.map((f) => ({name: f.name, tensor: f.tensor()}));
  const run = async () => {
    // While a request is under way, only the newest state waits.
    if (running) return (again = true);
    running = true;
    do {
      again = false;
      try {
        answer.update(await infer(model, inputs(), set));
        setText(state, "");
      } catch (problem) {
        setText(state, problem.message);
      }
    } while (again);
    running = false;
  };
  const changed = () => {
    snippets.update();
    if (atOnce.checked) run();
  };
  let snippets = {update: () => {}};
  const forms = metadata.inputs.map((info) => inputForm(info, () => changed()));
  snippets = snippetPlace(() => ({
                            model,
                            metadata,
                            tensors: inputs(),
                            http: access.http ?? location.origin,
                            token: access.token_needed && token.get(),
                            set
                          }));
  snippets.update();
  atOnce.checked = forms.some((f) => f.picture) && !access.read_only;

  // Files go to the inputs that they name, or to the only one that takes them.
  const accept = async (files) => {
    try {
      for (const file of files) {
        if (isPictureFile(file)) {
          const form = forms.find((f) => f.picture);
          if (!form) throw new Error("No input of this model takes a picture.");
          await form.picture(file);
          continue;
        }
        const tensors = await readTensors(file);
        const names = Object.keys(tensors);
        let taken = 0;
        for (const [i, form] of forms.entries()) {
          const name = [form.name, `INPUT__${i}`].find((n) => n in tensors) ??
              (names.length === 1 && forms.filter((f) => f.fits(tensors[names[0]])).length <= 1 &&
                       (form.fits(tensors[names[0]]) || forms.length === 1) ?
                   names[0] :
                   null);
          if (name === null) continue;
          await form.offer(tensors[name], name || file.name);
          ++taken;
        }
        if (!taken)
          throw new Error(`${file.name} has ${names.join(", ") || "one array"}; the inputs are ${
              forms.map((f) => f.name).join(", ")}.`);
      }
      setText(state, "");
    } catch (problem) {
      setText(state, problem.message);
    }
  };
  const panel = section(
      "Request", forms.map((f) => f.node),
      h("div", {class: "row"}, go, labelled("Run at each change", atOnce, {class: "check"}),
        h("span", {class: "set-choice"}),
        button(
            "Save inputs (.npz)",
            () => download("inputs.npz", writeNpz(Object.fromEntries(inputs().map((i) => [i.name, i.tensor])))),
            {class: "link"})),
      state, h("p", {class: "dim"}, "Drop .npy, .npz, .safetensors or picture files here."));
  takesFiles(panel, accept);

  const choice = panel.querySelector(".set-choice");
  const showSets = async () => {
    const names = (await get(adminPath(model, "/sets"))).sets.map((s) => s.name);
    const choose = (name) => {
      set = name;
      changed();
    };
    if (!names.includes(set)) set = "";
    choice.replaceChildren(
        names.length ? labelled("Weights", select([["", "as others get"], ...names], set, choose)) : "");
  };
  let named = 0;
  const leave = watch(({data}) => {
    const now = modelIn(data, model)?.sets ?? 0;
    // Without its sets the form still asks for the model's own.
    if (now !== named) showSets().catch((problem) => setText(choice, problem.message));
    named = now;
  });

  const call = callForm(model, metadata, forms, {set: () => set});
  const form =
      h("div", {},
        h("div", {class: "columns-2"}, panel,
          section(
              "Answer",
              access.read_only ?
                  notice("A metrics token may look, not ask. Running the model needs a token of the scope admin.") :
                  "",
              answer.node)),
        section("The same as a program", snippets.node));
  const views = {form, call: call.node};
  const body = h("div", {}, form);
  const choose = (view) => {
    if (view === "call") call.take();
    body.replaceChildren(views[view]);
  };
  place.append(
      metadata.call_spec ?
          segments(
              "Request as",
              [["form", "Form"], ["call", isTree(metadata.call_spec) ? "Python call (tree)" : "Python call"]], "form",
              choose) :
          "",
      body, h("details", {class: "panel"}, h("summary", {}, "Signature"), signatureView(metadata)));
  for (const control of place.querySelectorAll(".changes")) control.disabled = access.read_only;
  return () => {
    leave();
    atOnce.checked = false;
  };
}
