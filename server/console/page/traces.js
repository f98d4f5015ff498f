// Single requests that the server traced, as flame charts.
import {get, send} from "./api.js";
import {button, h, labelled, reconcile, select, setText, show, svg, table} from "./dom.js";
import {clock, duration} from "./figures.js";
import {live} from "./live.js";

const READ_MS = 2000;
const KINDS = ["request", "decode", "queue", "compute", "encode", "send"];

const kindOf = (span) => span.name === "step" ? "compute" : span.name;
const nameOf = (span) => span.model ? `${span.name} ${span.model}` : span.name;

// Spans within others are drawn below them.
function depths(spans) {
  const open = [];
  return [...spans].sort((a, b) => a.start_us - b.start_us || b.duration_us - a.duration_us).map((span) => {
    while (open.length && open.at(-1).start_us + open.at(-1).duration_us <= span.start_us + 1e-6) open.pop();
    open.push(span);
    return {...span, depth: open.length - 1};
  });
}

function flame(trace) {
  const placed = depths(trace.spans);
  const end = Math.max(...placed.map((s) => s.start_us + s.duration_us), 1e-3);
  const rows = Math.max(...placed.map((s) => s.depth), 0) + 1, width = 1000, height = 26;
  const x = (us) => (width * us) / end;
  const words = placed.map((s) => `${nameOf(s)} ${duration(s.duration_us * 1e-6)} from ${duration(s.start_us * 1e-6)}`);
  return svg(
      "svg", {
        class: "flame",
        viewBox: `0 0 ${width} ${rows * height + 18}`,
        role: "img",
        "aria-label": `Spans of the request: ${words.join("; ")}`
      },
      placed.map((span, i) => {
        const size = Math.max(x(span.duration_us), 1.5);
        return svg(
            "g", {}, svg("title", {}, words[i]), svg("rect", {
              class: `span-${Math.max(KINDS.indexOf(kindOf(span)), 0)}`,
              x: x(span.start_us),
              y: span.depth * height,
              width: size,
              height: height - 2
            }),
            size > 60 ? svg("text", {x: x(span.start_us) + 6, y: span.depth * height + 16},
                            `${nameOf(span)} ${duration(span.duration_us * 1e-6)}`.slice(0, Math.floor(size / 7))) :
                        null);
      }),
      [0, 0.25, 0.5, 0.75, 1].map(
          (part) =>
              svg("text", {
                class: "tick",
                x: part * width,
                y: rows * height + 13,
                "text-anchor": part === 0 ? "start" :
                    part === 1            ? "end" :
                                            "middle"
              },
                  duration(end * part * 1e-6))));
}

function detail(trace) {
  return [
    h("h2", {}, trace.name),
    h("p", {class: "dim"},
      `${trace.model} ${trace.version}, status ${trace.status}, ${clock(trace.start)}, trace ${trace.id}${
          trace.request_id ? `, request ${trace.request_id}` : ""}`),
    flame(trace),
    table(
        ["Span", {text: "From", number: true}, {text: "Time", number: true}],
        depths(trace.spans)
            .map(
                (s) =>
                    [`${"\u2003".repeat(s.depth)}${nameOf(s)}`, duration(s.start_us * 1e-6),
                     duration(s.duration_us * 1e-6)]),
        {label: "Spans"})
  ];
}

export function showTraces(place, {access}) {
  const list = h("div", {class: "trace-list"}),
        shown =
            h("section", {class: "panel trace", "aria-live": "polite"}, h("p", {class: "dim"}, "Choose a request."));
  const state = h("p", {role: "status"}), failure = h("p", {role: "alert", class: "bad-text"});
  const rate = h("input", {type: "number", min: 1, step: 1, value: 1, size: 7});
  let model = "", chosen = "", traces = [], held = false;

  const keyOf = (t) => t.id + t.span;
  const total = (t) => t.spans.reduce((end, s) => Math.max(end, s.start_us + s.duration_us), 0) * 1e-6;
  const choose = (trace) => {
    chosen = keyOf(trace);
    shown.replaceChildren(...detail(trace));
    draw();
  };
  const draw = () => {
    const longest = Math.max(...traces.map(total), 1e-9);
    reconcile(list, traces, keyOf, (t) => {
      const meter = h("meter", {min: 0, "aria-hidden": "true"});
      const node =
          h("button", {type: "button", class: "trace-item", onclick: () => choose(t)}, h("span", {}, clock(t.start)),
            h("span", {class: t.status >= 400 ? "bad-text" : ""}, String(t.status)),
            h("span", {class: "trace-name"}, t.model), meter, h("b", {}, duration(total(t))));
      const update = () => {
        meter.max = longest;
        meter.value = total(t);
        node.setAttribute("aria-pressed", chosen === keyOf(t));
      };
      return {node, update};
    });
  };
  const read = () =>
      show(state, get(`v2/admin/traces?limit=100${model ? `&model=${encodeURIComponent(model)}` : ""}`), (answer) => {
        traces = [...answer.traces].sort((a, b) => b.start - a.start);
        draw();
        turnOff.disabled = access.read_only || !answer.enabled;
        return answer.enabled ? `One request in ${answer.rate} is traced; ${answer.traces.length} are shown.` :
                                "No request is traced now.";
      });
  const set = async (levels) => {
    try {
      await send("POST", "v2/trace/setting", {
        trace_level: levels,
        ...(levels[0] === "OFF" ? {} : {trace_rate: String(Math.max(1, Math.trunc(Number(rate.value) || 1)))})
      });
      setText(failure, "");
    } catch (problem) {
      setText(failure, problem.message);
    }
    read();
  };
  const turnOff = button("Trace none", () => set(["OFF"]), {class: "quiet", disabled: true});
  const hold = h("input", {type: "checkbox", onchange: () => (held = hold.checked)});
  const names = [...new Set((live.data?.models ?? []).map((m) => m.name))];
  const pick = (name) => {
    model = name;
    read();
  };
  place.append(
      h("h1", {}, "Traces"),
      h("div", {class: "row"}, labelled("Model", select([["", "all"], ...names], "", pick)),
        labelled("One request in", rate),
        button("Trace", () => set(["TIMESTAMPS"]), {class: "primary", disabled: access.read_only}), turnOff,
        labelled("Keep the list still", hold, {class: "check"})),
      failure, state, h("div", {class: "traces"}, list, shown));
  read();
  const timer = setInterval(() => document.hidden || held || read(), READ_MS);
  return () => clearInterval(timer);
}
