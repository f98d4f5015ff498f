// A model: what it is, its views, and its settings.
import {adminPath, get, modelPath, send} from "./api.js";
import {button, confirmed, h, labelled, notice, section, setText, show, table} from "./dom.js";
import {bytes, duration} from "./figures.js";
import {modelIn, watch} from "./live.js";
import {modelLink, stateTag, weightsName} from "./overview.js";
import {showPerformance} from "./performance.js";
import {pipelineView, signatureView} from "./signature.js";
import {showTryout} from "./tryout.js";
import {showWeights} from "./weights.js";

const VIEWS = [
  ["", "Try it", tryIt], ["performance", "Performance", showPerformance], ["weights", "Weights", showWeights],
  ["settings", "Settings", showSettings]
];

function tryIt(place, context) {
  let leave = null;
  show(place, get(modelPath(context.model)), (metadata) => {
    const content = h("div", {});
    leave = showTryout(content, {...context, metadata});
    return content;
  });
  return () => leave?.();
}

// Rows of a document, with what is within others as "a.b".
function flattened(value, path = "") {
  if (value && typeof value === "object" && Object.keys(value).length) {
    return Object.entries(value).flatMap(([k, v]) => flattened(v, path ? `${path}.${k}` : k));
  }
  return [[path, value && typeof value === "object" ? "–" : String(value)]];
}

function replicaPanel({model, access}) {
  const place = h("div", {}), state = h("p", {class: "bad-text", role: "alert"});
  const read = () => show(place, get(adminPath(model, "/replicas")), ({replicas}) => {
    const cuda = replicas.some((r) => "graphs" in r);
    const head = [
      "Replica", "Device", "Cores", {text: "Requests now", number: true},
      ...(cuda ? [{text: "CUDA graphs", number: true}, {text: "Runs by graph", number: true}, "Remark"] : []), ""
    ];
    const rows = replicas.map(
        (r) =>
            [String(r.replica),
             r.device,
             (r.cpus ?? []).join(", ") || "any",
             String(r.load),
             ...(cuda ? [String(r.graphs ?? "–"), String(r.graph_runs ?? "–"), r.failure ?? r.no_graphs ?? ""] : []),
             button("Remove", () => act("DELETE", `/replicas/${r.replica}`), {
               class: "quiet",
               disabled: access.read_only || replicas.length === 1,
               "aria-label": `Remove replica ${r.replica}`
             }),
    ]);
    return table(head, rows, {label: "Replicas", class: "cards"});
  });
  const act = async (method, path, body) => {
    try {
      await send(method, adminPath(model, path), body);
      setText(state, "");
    } catch (problem) {
      setText(state, problem.message);
    }
    read();
  };
  const device = h("input", {placeholder: "as the others", size: 12}), cpus = h("input", {placeholder: "any", size: 8});
  const add = () =>
      act("POST", "/replicas",
          {count: 1, ...(device.value ? {device: device.value} : {}), ...(cpus.value ? {cpus: cpus.value} : {})});
  read();
  return section(
      "Replicas", place,
      h("div", {class: "row"}, labelled("Device", device), labelled("Cores", cpus),
        button("Add a replica", add, {disabled: access.read_only})),
      state);
}

function showSettings(place, context) {
  const {model, access} = context;
  const config = h("div", {}), signature = h("div", {}), state = h("p", {role: "alert"});
  show(config, get(modelPath(model, "/config")), (document) => {
    const steps = document.ensemble_scheduling?.step;
    const alone = document.parameters?.requests_run_alone?.string_value, shared = document.dynamic_batching;
    const sequences = document.sequence_batching, ms = (us) => duration(us / 1e6);
    const facts = {"Largest batch": document.max_batch_size || "none"};
    if (shared) {
      facts["Requests share runs"] =
          shared.preferred_batch_size.length ? `of ${shared.preferred_batch_size.join(", ")}` : "yes";
      facts["They wait for others"] =
          shared.max_queue_delay_microseconds ? ms(shared.max_queue_delay_microseconds) : "no";
      facts["Waiting requests at most"] = shared.default_queue_policy.max_queue_size;
    }
    if (sequences) {
      facts["Live sequences at most"] = sequences.oldest.max_candidate_sequences;
      facts["An idle sequence ends after"] = ms(sequences.max_sequence_idle_microseconds);
    }
    const rows = flattened(document).filter(
        ([name, text]) => text !== "–" && text !== "" && !name.startsWith("ensemble_scheduling"));
    return [
      steps ? pipelineView(steps) : null,
      h("dl", {class: "facts"},
        Object.entries(facts).map(([name, text]) => [h("dt", {}, name), h("dd", {}, String(text))])),
      alone ? notice(`Requests run one by one: ${alone}`) : null,
      h("details", {}, h("summary", {}, `All ${rows.length} settings that Triton's clients see`),
        table(["Setting", "Value"], rows, {label: "Settings"}))
    ];
  });
  show(signature, get(modelPath(model)), signatureView);
  const control = (what, question, detail) => async () => {
    if (!await confirmed(question, what === "load" ? "Load" : "Unload", detail)) return;
    setText(state, "");
    try {
      await send("POST", `v2/repository/models/${encodeURIComponent(model.name)}/${what}`, {});
      setText(state, what === "load" ? "Loaded." : "Unloaded.");
    } catch (problem) {
      setText(state, problem.message);
    }
  };
  place.append(
      replicaPanel(context), section("Configuration", config), section("Signature", signature),
      section(
          "Repository",
          h("div", {class: "row"},
            button(
                "Load again",
                control("load", `Load ${model.name} again?`, "Requests under way finish on the model that serves now."),
                {disabled: access.read_only}),
            button(
                "Unload", control("unload", `Unload ${model.name}?`, "New requests get 404 until it is loaded again."),
                {disabled: access.read_only, class: "danger"})),
          state));
}

export function showModel(place, {name, version, view, access}) {
  const model = {name, version};
  const facts = h("p", {class: "facts-line"}), tag = h("span", {}),
        reason = h("p", {class: "bad-text", role: "status"});
  const body = h("div", {});
  const found = VIEWS.find(([path]) => path === view) ?? VIEWS[0];
  place.append(
      h("div", {class: "row title"}, h("h1", {}, name), h("span", {class: "dim"}, `version ${version}`), tag), facts,
      reason,
      h("nav", {class: "views", "aria-label": "Views of the model"},
        VIEWS.map(
            ([path, text]) =>
                h("a", {href: modelLink(model, path), "aria-current": path === found[0] ? "page" : null}, text))),
      body);
  const leaveView = found[2](body, {model, access});
  const leave = watch(({data}) => {
    const now = modelIn(data, model);
    tag.replaceChildren(now ? stateTag(now) : h("span", {class: "tag idle"}, "not served"));
    setText(reason, now?.reason || now?.weights_problem || "");
    if (!now) return setText(facts, "");
    setText(facts, [
      now.kind, weightsName(now), bytes(now.weight_bytes),
      `${now.replicas} ${now.replicas === 1 ? "replica" : "replicas"} on ${
              [...new Set(now.devices)].join(", ") || "no device of its own"}`
    ].join(" · "));
  });
  return () => {
    leave();
    leaveView?.();
  };
}
