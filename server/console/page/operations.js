// Updates under way and those that ended, and who changed which weights.
import {get, send} from "./api.js";
import {button, h, section, setText, show, table} from "./dom.js";
import {bytes, duration, moment, shortDigest} from "./figures.js";
import {watch} from "./live.js";
import {modelLink} from "./overview.js";

const KINDS = {
  done: "ok",
  failed: "bad",
  cancelled: "idle",
  running: "warn"
};

function phases(operation) {
  return Object.entries(operation.phase_seconds ?? {})
      .filter(([, seconds]) => seconds > 0)
      .map(([name, seconds]) => `${name} ${duration(seconds)}`)
      .join(", ");
}

export function showOperations(place, {access}) {
  const running = h("div", {}), audit = h("div", {}), state = h("p", {class: "bad-text", role: "alert"});
  const cancel = async (id) => {
    try {
      await send("DELETE", `v2/admin/operations/${id}`);
      setText(state, "");
    } catch (problem) {
      setText(state, problem.message);
    }
    read();
  };
  const row = (o) =>
      [o.operation,
       h("a", {href: modelLink({name: o.model, version: o.version}, "weights")}, o.model),
       o.label || "–",
       h("span", {class: `tag ${KINDS[o.state]}`}, o.state),
       o.state === "running" ?
           [
             `${o.phase} `,
             h("progress",
               {max: o.total_bytes || 1, value: o.bytes, "aria-label": `Progress of operation ${o.operation}`})
           ] :
           o.error ?? (o.weight_version ? `${o.result}, weight version ${o.weight_version}` : o.result ?? ""),
       `${bytes(o.bytes)}${o.total_bytes > o.bytes ? ` of ${bytes(o.total_bytes)}` : ""}`,
       h("span", {title: phases(o)}, duration(o.seconds)),
       o.state === "running" ? button(
                                   "Cancel", () => cancel(o.operation),
                                   {disabled: access.read_only, "aria-label": `Cancel operation ${o.operation}`}) :
                               "",
  ];
  const read = () => {
    show(
        running, get("v2/admin/operations"),
        ({operations}) => operations.length ?
            table(
                [
                  "", "Model", "Label", "State", "What", {text: "Bytes", number: true}, {text: "Time", number: true}, ""
                ],
                [...operations].sort((a, b) => b.operation - a.operation).map(row),
                {label: "Operations", class: "cards"}) :
            h("p", {class: "dim"}, "No weights were sent since the server was started."));
    show(
        audit, get("v2/admin/audit?limit=200"),
        ({entries}) => entries.length ?
            table(
                ["Time", "Event", "Model", "Weight version", "Label", "Digest", "By"],
                [...entries].reverse().map(
                    (e) =>
                        [moment(e.time),
                         [e.event.replaceAll("_", " "), e.reason ? h("div", {class: "bad-text"}, e.reason) : ""],
                         e.model,
                         e.weight_version ? String(e.weight_version) : "–",
                         e.label || e.set || "–",
                         e.digest ? h("code", {title: e.digest}, shortDigest(e.digest)) : "–",
                         e.by?.server ? "the server" : [e.by?.client, e.by?.user_agent].filter(Boolean).join(" "),
    ]),
                {label: "Changes", class: "cards"}) :
            h("p", {class: "dim"}, "Nothing has changed."));
  };
  place.append(h("h1", {}, "Operations"), state, section("Updates", running), section("Who changed what", audit));
  read();
  let shown = "";
  return watch(({data}) => {
    const now = JSON.stringify([
      data.operations.map((o) => [o.id, o.state, o.phase, o.bytes]),
      data.models.map((m) => [m.weight_version, m.staged]), data.server.instance
    ]);
    if (shown && now !== shown) read();
    shown = now;
  });
}
