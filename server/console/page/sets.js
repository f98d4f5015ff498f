// Named sets beside the model's own, and the share of requests that each gets.
import {adminPath, get, send} from "./api.js";
import {button, confirmed, h, labelled, notice, section, setText, show, table} from "./dom.js";
import {bytes, count, duration, moment} from "./figures.js";

// Shares in percent by name; the active set is among them.
function sharesForm(names, routes, apply, readOnly) {
  const total = Object.values(routes).reduce((a, b) => a + b, 0);
  const fields =
      ["active", ...names].map((name) => [name, h("input", {
                                            type: "number",
                                            min: 0,
                                            step: "any",
                                            size: 6,
                                            value: total ? Math.round((1e4 * (routes[name] ?? 0)) / total) / 100 :
                                                name === "active" ? 100 :
                                                                    0
                                          })]);
  const take = () => {
    const parts = fields.map(([name, field]) => [name, Number(field.value)]).filter(([, share]) => share > 0);
    // Shares are whole numbers.
    const scale = parts.every(([, share]) => Number.isInteger(share)) ? 1 : 100;
    apply(
        parts.length === 1 && parts[0][0] === "active" ?
            {} :
            Object.fromEntries(parts.map(([name, share]) => [name, Math.round(share * scale)])));
  };
  return h(
      "div", {class: "row"}, fields.map(([name, field]) => labelled(`${name}, %`, field)),
      button("Share out", take, {disabled: readOnly}), h("span", {class: "dim"}, "of the requests that name no set"));
}

export function namedSetsPanel({model, access}) {
  const place = h("div", {}), state = h("p", {class: "bad-text", role: "alert"});
  const path = (rest) => adminPath(model, rest);
  const act = async (method, rest, body, question) => {
    if (question && !await confirmed(question, "Yes")) return;
    setText(state, "");
    try {
      await send(method, path(rest), body);
    } catch (problem) {
      setText(state, problem.message);
    }
    read();
  };
  const read = () => show(place, get(path("/sets")), (document) => {
    if (!document.limit) return notice("This model has no room for named sets: the setting sets is 0.");
    const at = (set) => `/sets/${encodeURIComponent(set.name)}`;
    const rows = document.sets.map(
        (set) =>
            [h("b", {}, set.name),
             set.state,
             String(set.weight_version),
             moment(set.since),
             bytes(set.own_bytes),
             count(set.requests),
             count(set.failures),
             set.requests ? duration(set.seconds / set.requests) : "–",
             h("div", {class: "row"},
               button(
                   "Promote",
                   () =>
                       act("POST", `${at(set)}/promote`, undefined,
                           `Publish the weights of ${set.name} as the model's own?`),
                   {disabled: access.read_only, "aria-label": `Promote ${set.name}`}),
               button(
                   "Remove", () => act("DELETE", at(set), undefined, `Remove the set ${set.name}?`),
                   {disabled: access.read_only, class: "quiet", "aria-label": `Remove ${set.name}`})),
    ]);
    return [
      h("p", {class: "dim"},
        `${document.sets.length} of ${document.limit}, ${bytes(document.bytes)} of ${
            bytes(document.limit_bytes)}. A request names one by ${model.name}@NAME or the field Sconce-Weights.`),
      rows.length ?
          table(
              [
                "Name", "Where", {text: "Weight version", number: true}, "Since", {text: "Own memory", number: true},
                {text: "Requests", number: true}, {text: "Failed", number: true}, {text: "Mean time", number: true}, ""
              ],
              rows, {label: "Named sets", class: "cards"}) :
          null,
      rows.length ? sharesForm(
                        document.sets.map((s) => s.name), document.routes, (routes) => act("PUT", "/routes", routes),
                        access.read_only) :
                    null
    ];
  });
  read();
  return {node: section("Named sets", place, state), read};
}
