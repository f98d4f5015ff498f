// The sets of a model's weights: which serve, which wait, what became of them, and new ones.
import {adminPath, get, request, send} from "./api.js";
import {timeline} from "./chart.js";
import {differencePanel, guardView, shadowPanel, verdictView} from "./compare.js";
import {button, confirmed, h, labelled, notice, section, setText, show} from "./dom.js";
import {bytes, moment, shortDigest} from "./figures.js";
import {live, modelIn, watch} from "./live.js";
import {namedSetsPanel} from "./sets.js";
import {download} from "./tensor_files.js";
import {uploadPanel} from "./upload.js";

// Digests of larger sets are read when somebody asks, since that reads the whole set.
const DIGEST_BYTES = 256 * 1024 * 1024;
const PUBLISHED = ["committed", "promoted", "rolled_back", "undone"];
const VERBS = {
  rolled_back: "rolled back",
  guard_passed: "watch passed",
  guard_failed: "watch failed",
  set_filled: "set filled",
  set_removed: "set removed",
  routes_changed: "routes changed"
};

// From when to when each weight version served, as far as the server remembers.
function servedSpans(entries, active, now) {
  const published = entries.filter((e) => PUBLISHED.includes(e.event));
  const seconds = (e) => new Date(e.time).getTime() / 1e3;
  const started = live.data?.server.started ?? now - 3600;
  const begin = published.length ? Math.min(started, seconds(published[0])) : started;
  const spans = [{
    from: begin,
    weight_version: published[0]?.before ?? active.weight_version,
    label: published.length ? "" : active.label
  }];
  for (const entry of published) {
    spans.at(-1).to = seconds(entry);
    spans.push({
      from: seconds(entry),
      weight_version: entry.weight_version,
      label: entry.label ?? "",
      how: VERBS[entry.event] ?? entry.event
    });
  }
  spans.at(-1).to = now;
  return {begin, spans};
}

function timelinePanel(entries, active) {
  const now = Date.now() / 1e3;
  const {begin, spans} = servedSpans(entries, active, now);
  const named = (s) => `weight version ${s.weight_version}${s.label ? ` (${s.label})` : ""}`;
  const drawn = spans.map((s, i) => ({
                            ...s,
                            kind: s.how === "rolled back" || s.how === "undone" ? "back" :
                                i + 1 === spans.length                          ? "active" :
                                                                                  "served",
                            words: `${named(s)}${s.how ? `, ${s.how}` : ""}, from ${moment(s.from)}`
                          }));
  const by = (e) => e.by?.server ? "the server" : [e.by?.user_agent, e.by?.client].filter(Boolean).join(", ");
  const items = [...entries].reverse().map(
      (e) =>
          h("li", {class: `event ${e.event}`}, h("time", {datetime: e.time}, moment(e.time)),
            h("b", {}, VERBS[e.event] ?? e.event),
            h("span", {},
              [
                e.weight_version ? `weight version ${e.weight_version}` : "", e.label ? `label ${e.label}` : "",
                e.set ? `set ${e.set}` : ""
              ].filter(Boolean)
                  .join(", ")),
            e.digest ? h("code", {title: e.digest}, shortDigest(e.digest)) : "", verdictView(e.golden),
            e.reason ? h("span", {class: "bad-text"}, e.reason) : "", h("span", {class: "dim"}, by(e))));
  return section(
      "Time line", timeline(drawn, begin, now, `Which set served when: ${drawn.map((s) => s.words).join("; ")}`),
      h("div", {class: "row spread dim"}, h("span", {}, moment(begin)), h("span", {}, "now")),
      items.length ? h("ol", {class: "events", tabindex: "0", "aria-label": "Events"}, items) :
                     notice("Nothing has changed since the server was started."));
}

function setCard(set, actions, verdict) {
  const digest = set.digest ? h("code", {title: set.digest}, shortDigest(set.digest)) : null;
  const own = set.own_bytes !== set.bytes ? `, ${bytes(set.own_bytes)} of its own` : "";
  return h(
      "article", {class: `set ${set.state}`, "aria-label": `${set.state} set`},
      h("h3", {}, set.state, " ", set.label ? h("b", {}, set.label) : ""),
      h("p", {}, set.weight_version ? `weight version ${set.weight_version}` : "no weight version yet",
        h("span", {class: "dim"}, ` since ${moment(set.since)}`)),
      h("p", {class: "dim"}, `${bytes(set.bytes)}${own} `, digest), verdict, h("div", {class: "row"}, actions));
}

// How long a commit is watched, and by which bounds.
function commitOptions() {
  const guard = h("input", {type: "number", min: 0, step: "any", value: 0, size: 5}),
        errors = h("input", {type: "number", min: 0, max: 100, step: "any", value: 1, size: 5}),
        p99 = h("input", {type: "number", min: 0, step: "any", placeholder: "any", size: 5});
  const node = h(
      "details", {}, h("summary", {}, "watch it after the commit"),
      h("div", {class: "row"}, labelled("Seconds", guard), labelled("Failures, %", errors), labelled("p99, ms", p99)));
  const query = () => {
    if (!(Number(guard.value) > 0)) return "";
    return `?guard=${Number(guard.value)}s&guard_errors=${Number(errors.value) / 100}${
        Number(p99.value) > 0 ? `&guard_p99=${Number(p99.value)}ms` : ""}`;
  };
  return {node, query};
}

export function showWeights(place, context) {
  const {model, access} = context;
  const sets = h("div", {class: "sets"}), guard = h("div", {}), state = h("p", {role: "alert", class: "bad-text"}),
        compared = h("div", {}), events = h("div", {}), named = h("div", {});
  let leaveShadow = null, shown = "", comparedWith = "";
  const path = (rest) => adminPath(model, rest);

  const act = async (what, question, detail) => {
    if (question && !await confirmed(question, what[0].toUpperCase() + what.slice(1).replace(/\?.*/, ""), detail))
      return;
    setText(state, "");
    try {
      await send("POST", path(`/weights/${what}`));
    } catch (problem) {
      setText(state, problem.message);
    }
    read();
  };
  const save = async (set) => {
    try {
      const response = await request("GET", path("/weights/active"));
      download(`${model.name}-${set.label || set.weight_version}.safetensors`, await response.blob());
    } catch (problem) {
      setText(state, problem.message);
    }
  };

  const actionsOf = (set) => {
    const off = {disabled: access.read_only};
    if (set.state === "staged") {
      const options = commitOptions();
      return [
        button("Commit", () => act(`commit${options.query()}`), {class: "primary", ...off}),
        button("Abort", () => act("abort"), off), options.node
      ];
    }
    if (set.state === "previous") {
      return [
        button(
            "Roll back",
            () =>
                act("rollback", `Roll ${model.name} back to ${set.label || `weight version ${set.weight_version}`}?`,
                    "It serves at once, under a new weight version; the active set becomes the previous one."),
            off),
        button(
            "Release",
            () => act("release", "Free the memory of the previous set?", "There is then nothing to roll back to."),
            {class: "quiet", ...off})
      ];
    }
    return button("Save as safetensors", () => save(set), {class: "quiet", ...off});
  };

  const showComparison = (list) => {
    const other = list.find((s) => s.state !== "active")?.state ?? "";
    if (other === comparedWith) return;
    comparedWith = other;
    leaveShadow?.();
    leaveShadow = null;
    compared.replaceChildren();
    if (!other) return;
    compared.append(differencePanel(model, other));
    if (other !== "staged") return;
    const shadow = shadowPanel(context);
    leaveShadow = shadow.leave;
    compared.append(shadow.node);
  };

  const readAll = async () => {
    const small = (modelIn(live.data, model)?.weight_bytes ?? 0) <= DIGEST_BYTES;
    const [weights, audit] = await Promise.all([
      get(path(`/weights?digest=${small}`)), get(`v2/admin/audit?model=${encodeURIComponent(model.name)}&limit=100`)
    ]);
    return {weights, entries: audit.entries.filter((e) => e.version === model.version)};
  };
  const read = () => show(sets, readAll(), ({weights, entries}) => {
    const order = ["staged", "active", "previous"];
    const list = [...weights.sets].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
    guard.replaceChildren(
        guardView(weights.guard) ?? "",
        weights.stored === false ?
            notice(
                `Not stored on disk: ${weights.store_problem ?? "a restart serves the set that was stored before"}`,
                "warn") :
            "");
    showComparison(list);
    const active = list.find((s) => s.state === "active");
    if (active) events.replaceChildren(timelinePanel(entries, active));
    return list.map((set) => setCard(set, actionsOf(set), verdictView(set.golden)));
  });

  const upload = h("div", {});
  place.append(section("Sets", sets, guard, state), upload, compared, events, named);
  upload.append(uploadPanel(context, [], () => {
    read();
    namedSets.read();
  }));
  const namedSets = namedSetsPanel(context);
  named.append(namedSets.node);
  read();

  // Somebody else may stage, commit or roll back meanwhile.
  const leave = watch(({data}) => {
    const now = modelIn(data, model);
    const ended = data.operations.filter((o) => o.model === model.name && o.state !== "running").map((o) => o.id);
    const state =
        JSON.stringify([now?.weight_version, now?.label, now?.staged, now?.sets, data.server.instance, ended]);
    if (shown && state !== shown) read();
    shown = state;
  });
  const watched = setInterval(() => guard.textContent.includes("watching") && read(), 2000);
  return () => {
    leave();
    leaveShadow?.();
    clearInterval(watched);
  };
}
