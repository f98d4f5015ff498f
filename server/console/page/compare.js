// The staged or previous set beside the active one: their tensors, and their answers to live requests.
import {adminPath, get, send} from "./api.js";
import {button, h, labelled, notice, section, setText, show, table} from "./dom.js";
import {count, digits, duration, percent} from "./figures.js";

const SHADOW_MS = 2000;
const number = (value) => (value === null ? "–" : digits(value));

export function differencePanel(model, other) {
  const place = h("div", {}, h("p", {class: "dim"}, "Comparing reads all of both sets."));
  const read = () => show(place, get(adminPath(model, `/weights/diff?with=${other}`)), (diff) => {
    const sorted = [...diff.differences].sort((a, b) => (b.relative ?? Infinity) - (a.relative ?? Infinity));
    const largest = Math.max(...sorted.map((d) => d.relative ?? 0), 0) || 1;
    const rows = sorted.map(
        (d) =>
            [h("code", {}, d.name),
             h("meter",
               {min: 0, max: largest, value: d.relative ?? largest, "aria-label": `Relative difference of ${d.name}`}),
             number(d.relative),
             number(d.largest),
             number(d.mean),
             number(d.cosine),
             `${count(d.changed)} of ${count(d.elements)}`,
             d.not_finite_to ? h("b", {class: "bad-text"}, count(d.not_finite_to)) : "0",
    ]);
    return [
      h("p", {}, `${diff.same} of ${diff.constants} constants are the same in both.`),
      rows.length ? table(
                        [
                          "Tensor", "", {text: "Relative", number: true}, {text: "Largest", number: true},
                          {text: "Mean", number: true}, {text: "Cosine", number: true}, {text: "Changed", number: true},
                          {text: "NaN, infinite", number: true}
                        ],
                        rows, {label: "Differences", class: "cards"}) :
                    null
    ];
  });
  return section(`From the active to the ${other} set`, h("div", {class: "row"}, button("Compare", read)), place);
}

function shadowView(shadow) {
  const rows = (shadow.outputs ?? [])
                   .map(
                       (o) =>
                           [h("code", {}, o.name), count(o.answers), `${count(o.changed)} of ${count(o.elements)}`,
                            number(o.largest), number(o.mean), number(o.cosine),
                            o.rows ? `${count(o.rows_changed_argmax)} of ${count(o.rows)}` : count(o.changed_argmax),
                            count(o.new_nonfinite)]);
  const times = shadow.seconds?.active && shadow.seconds?.staged ?
      `Runs took ${duration(shadow.seconds.active.p50)} with the active and ${
          duration(shadow.seconds.staged.p50)} with the staged set (medians of ${count(shadow.timed)}).` :
      "";
  return [
    h("p", {},
      `${shadow.state}: ${count(shadow.compared ?? 0)} requests compared, ${
          count(shadow.failed ?? 0)} failed on the staged set, ${count(shadow.skipped ?? 0)} skipped. ${times}`),
    shadow.reason ? notice(shadow.reason, "warn") : null,
    shadow.first_failure ? notice(shadow.first_failure, "bad") : null,
    rows.length ? table(
                      [
                        "Output", {text: "Answers", number: true}, {text: "Changed", number: true},
                        {text: "Largest", number: true}, {text: "Mean", number: true}, {text: "Cosine", number: true},
                        {text: "Other decision", number: true}, {text: "New NaN", number: true}
                      ],
                      rows, {label: "Answers of both sets", class: "cards"}) :
                  null
  ];
}

// Gives {node, leave}: it reads again and again while it is shown.
export function shadowPanel({model, access}) {
  const place = h("div", {}), state = h("p", {class: "bad-text", role: "alert"});
  const share = h("input", {type: "number", min: 0, max: 100, step: "any", value: 10, size: 6});
  const read = () => show(place, get(adminPath(model, "/weights/shadow")), shadowView);
  const set = async (value) => {
    try {
      await send("PUT", adminPath(model, "/weights/shadow"), {share: value});
      setText(state, "");
    } catch (problem) {
      setText(state, problem.message);
    }
    read();
  };
  const timer = setInterval(() => document.hidden || read(), SHADOW_MS);
  read();
  const node = section(
      "Shadow: live requests that also run on the staged set",
      h("div", {class: "row"}, labelled("Share of requests, %", share),
        button("Set", () => set(Number(share.value) / 100), {disabled: access.read_only}),
        button("Off", () => set(0), {disabled: access.read_only})),
      state, place);
  return {node, leave: () => clearInterval(timer)};
}

export function verdictView(golden) {
  if (!golden) return null;
  const good = golden.verdict === "passed";
  return h(
      "span", {class: good ? "good-text" : "bad-text"},
      `golden requests ${golden.verdict}: ${count(golden.passed)} of ${count(golden.passed + golden.failed)}`,
      golden.failures?.length ?
          h("details", {}, h("summary", {}, "why"),
            h("ul", {}, golden.failures.map((f) => h("li", {}, `${f.request}, ${f.output ?? ""}: ${f.problem}`)))) :
          null);
}

export function guardView(guard) {
  if (!guard || guard.state === "none") return null;
  const kind = {watching: "warn", passed: "good", rolled_back: "bad", failed: "bad"}[guard.state] ?? "";
  const left = guard.state === "watching" ? `, ${duration(Math.round(guard.seconds_left))} left` : "";
  return notice(
      `Watch over weight version ${guard.weight_version}: ${guard.state.replace("_", " ")}${left}. ${
          count(guard.answers)} answers, ${count(guard.failures)} failures, ${
          count(guard.answers_with_nan)} with NaN, p99 ${digits(guard.p99_ms)} ms (errors at most ${
          percent(guard.bounds.errors)}). ${guard.reason ?? ""}`,
      kind);
}
