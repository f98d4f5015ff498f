// New weights from a file of the visitor: looked at in the browser, then sent with progress.
import {adminPath, fields, get, messageOf, parse} from "./api.js";
import {button, h, labelled, notice, section, select, setText, table, takesFiles} from "./dom.js";
import {bytes, duration, shapeText} from "./figures.js";
import {live} from "./live.js";
import {readTensors, safetensorsHeader, writeSafetensors} from "./tensor_files.js";

const DTYPES = {
  F64: "float64",
  F32: "float32",
  F16: "float16",
  BF16: "bfloat16",
  I64: "int64",
  I32: "int32",
  I16: "int16",
  I8: "int8",
  U64: "uint64",
  U32: "uint32",
  U16: "uint16",
  U8: "uint8",
  BOOL: "bool",
  F8_E4M3: "float8_e4m3fn",
  F8_E5M2: "float8_e5m2"
};

// What the server would refuse, found before a byte of the data moves: [tensor, what is wrong].
export function problemsOf(entries, constants, partial) {
  const known = new Map(constants.map((c) => [c.name, c]));
  const found = [];
  for (const [name, {dtype, shape}] of Object.entries(entries)) {
    const constant = known.get(name);
    if (!constant) {
      found.push([name, "the model has no constant of this name"]);
    } else if (constant.dtype && DTYPES[dtype] !== constant.dtype) {
      found.push([name, `is ${DTYPES[dtype] ?? dtype}, the model wants ${constant.dtype}`]);
    } else if (constant.shape.join() !== shape.join()) {
      found.push([name, `has the shape ${shapeText(shape)}, the model wants ${shapeText(constant.shape)}`]);
    }
  }
  for (const c of constants) {
    if (!partial && c.type === "parameter" && !c.folded && !(c.name in entries)) found.push([c.name, "is missing"]);
  }
  return found;
}

// A safetensors file of what was chosen.
async function asSafetensors(file) {
  return /\.safetensors$/i.test(file.name) ? file : writeSafetensors(await readTensors(file));
}

// XMLHttpRequest, because fetch does not tell how much of a body was sent.
function send(path, blob, onprogress) {
  const transfer = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    transfer.open("POST", path);
    for (const [name, value] of Object.entries(fields({"Content-Type": "application/octet-stream"})))
      transfer.setRequestHeader(name, value);
    transfer.upload.onprogress = (event) => onprogress(event.loaded, event.total);
    transfer.onload = () => transfer.status === 200 ?
        resolve(parse(transfer.responseText)) :
        reject(new Error(messageOf(transfer.status, transfer.responseText)));
    transfer.onerror = () => reject(new Error(
        "The connection ended before the answer came. If the server refused the weights early, its log says why."));
    transfer.onabort = () => reject(new Error("Cancelled. The served weights have not changed."));
    transfer.send(blob);
  });
  return {done, cancel: () => transfer.abort()};
}

// The bar and the words of an operation that goes on.
function progressPlace() {
  const bar = h("progress", {max: 1, value: 0, "aria-label": "Sent"}), words = h("span", {role: "status"});
  const node = h("div", {class: "row progress", hidden: true}, bar, words);
  return {
    node,
    show(loaded, total, seconds) {
      node.hidden = false;
      bar.value = total ? loaded / total : 0;
      const speed = seconds > 0 ? loaded / seconds : 0;
      const left = speed ? (total - loaded) / speed : 0;
      setText(
          words,
          loaded < total ? `${bytes(loaded)} of ${bytes(total)}, ${bytes(speed)}/s, ${duration(Math.ceil(left))} left` :
                           "Sent; the server is checking it.");
    },
    say(text) {
      setText(words, text);
    },
    hide() {
      node.hidden = true;
    },
  };
}

// names: of named sets, which the weights may fill instead. onstaged is called when the server has them.
export function uploadPanel({model, access}, names, onstaged) {
  let blob = null, entries = null, constants = [], running = null;
  const chooser =
      h("input", {type: "file", accept: ".safetensors,.npz,.npy", onchange: () => choose(chooser.files[0])});
  const label = h("input", {maxlength: 64, placeholder: "none"}), ignore = h("input", {placeholder: "none"});
  const finite = h("input", {type: "checkbox", checked: true});
  const mode = select([["full", "all parameters"], ["partial", "only some; the rest stays"]], "full", () => look());
  const target =
      h("input", {placeholder: "the model's own", list: "set-names", pattern: "[A-Za-z0-9_\\-][A-Za-z0-9._\\-]{0,63}"});
  const found = h("div", {}), state = h("p", {role: "alert"}), progress = progressPlace();
  const go = button("Upload", () => upload(), {class: "primary", disabled: true});
  const stop = button("Cancel", () => running?.cancel(), {hidden: true});

  const look = () => {
    if (!entries) return;
    const left = ignore.value.split(",").map((n) => n.trim()).filter(Boolean);
    const kept = Object.fromEntries(Object.entries(entries).filter(([name]) => !left.includes(name)));
    const problems = problemsOf(kept, constants.filter((c) => !left.includes(c.name)), mode.value === "partial");
    found.replaceChildren(
        problems.length ?
            notice(`${problems.length} of the tensors do not fit; the server would refuse the file.`, "bad") :
            notice(`${Object.keys(kept).length} tensors, ${bytes(blob.size)}: names, dtypes and shapes fit.`, "good"),
        problems.length ? table(["Tensor", "Problem"], problems.slice(0, 50), {label: "Problems"}) : "");
    go.disabled = access.read_only || problems.length > 0;
  };
  ignore.addEventListener("change", look);

  const choose = async (file) => {
    if (!file) return;
    go.disabled = true;
    setText(state, "");
    found.replaceChildren();
    progress.hide();
    try {
      blob = await asSafetensors(file);
      ({entries} = await safetensorsHeader(blob));
      ({constants} = await get(adminPath(model, "/constants")));
      if (!label.value) label.value = file.name.replace(/\.\w+$/, "").slice(0, 64);
      look();
    } catch (problem) {
      found.replaceChildren(notice(problem.message, "bad"));
    }
  };

  const upload = async () => {
    const query = new URLSearchParams({mode: mode.value, check_finite: finite.checked});
    if (label.value && !target.value) query.set("label", label.value);
    if (ignore.value) query.set("ignore", ignore.value);
    const path = target.value ? `/sets/${encodeURIComponent(target.value)}` : "/weights";
    const begin = performance.now();
    go.disabled = true;
    stop.hidden = false;
    state.className = "";
    setText(state, "");
    progress.show(0, blob.size, 0);
    running = send(
        adminPath(model, `${path}?${query}`), blob,
        (loaded, total) => progress.show(loaded, total, (performance.now() - begin) / 1e3));
    // What the server does after the last byte.
    const timer = setInterval(() => {
      const operation = live.data?.operations.find((o) => o.model === model.name && o.state === "running");
      if (operation && operation.phase !== "receiving") progress.say(`The server is ${operation.phase}.`);
    }, 500);
    try {
      const done = await running.done;
      setText(
          state,
          done.result === "held" ?
              `The set ${target.value} has them.` :
              `${done.result === "staged" ? "Staged" : done.result} in ${duration(done.seconds)}.`);
      state.className = "good-text";
    } catch (problem) {
      setText(state, problem.message);
      state.className = "bad-text";
    }
    clearInterval(timer);
    progress.hide();
    running = null;
    stop.hidden = true;
    go.disabled = access.read_only;
    onstaged();
  };

  const panel = section(
      "New weights",
      h("p", {class: "dim"},
        "Drop a .safetensors or .npz file here. It is compared with the model before it is sent; nothing is served before you commit."),
      h("div", {class: "row"}, labelled("File", chooser), labelled("Label", label), labelled("What it has", mode),
        labelled("Leave out", ignore), labelled("Named set", target), labelled("Refuse NaN", finite, {class: "check"})),
      h("datalist", {id: "set-names"}, names.map((n) => h("option", {value: n}))), found,
      h("div", {class: "row"}, go, stop), progress.node, state);
  takesFiles(panel, ([file]) => choose(file));
  return panel;
}
