// What a model's requests spent their time on in the last minutes.
import {columns, sparkline, split} from "./chart.js";
import {h, notice, section, segments, setText} from "./dom.js";
import {count, digits, duration, percent, rate} from "./figures.js";
import {live, modelIn, quantile, series, spanOf, watch} from "./live.js";

const PHASES = {
  queue: "waiting in the queue",
  input: "input",
  compute: "compute",
  output: "output"
};

function timeSplit(span) {
  const parts = Object.entries(PHASES).map(([key, name]) => {
    const seconds = span.ns[key] / Math.max(span.success, 1) / 1e9;
    return {name, value: seconds, shown: duration(seconds)};
  });
  // What is left is the rest of the request: it was decoded and encoded, or waited for its thread.
  const rest =
      Math.max(0, span.ns.total / Math.max(span.success, 1) / 1e9 - parts.reduce((sum, p) => sum + p.value, 0));
  parts.push({name: "the rest", value: rest, shown: duration(rest)});
  return split(parts, `A request took ${parts.map((p) => `${p.shown} for ${p.name}`).join(", ")} in the mean`);
}

function latencyColumns(span, boundsUs) {
  const total = span.latency.reduce((a, b) => a + b, 0);
  const bars = span.latency.map((n, i) => {
    const name = i < boundsUs.length ? duration(boundsUs[i] * 1e-6) : "more";
    return {
      label: name.replace(" ", "\u2009"),
      value: n,
      shown: n ? digits(n) : "",
      words:
          `${i < boundsUs.length ? `up to ${name}` : "longer"}: ${count(n)} answers, ${percent(total ? n / total : 0)}`
    };
  });
  return columns(bars, `Answers by their latency: ${bars.filter((b) => b.value).map((b) => b.words).join("; ")}`);
}

function batchColumns(span) {
  const bars = span.batches.map(
      ([rows, runs]) =>
          ({label: String(rows), value: runs, shown: digits(runs), words: `${count(runs)} runs of ${rows} rows`}));
  return columns(bars, `Runs by their rows: ${bars.map((b) => b.words).join("; ")}`);
}

export function showPerformance(place, {model}) {
  let minutes = 5, drawn = "";
  const lines = {
    rate: sparkline({width: 600, height: 60}),
    p50: sparkline({width: 600, height: 60}),
    p99: sparkline({width: 600, height: 60, kind: "second"}),
    queue: sparkline({width: 600, height: 60})
  };
  const names = {rate: "Requests a second", p50: "p50", p99: "p99", queue: "Waiting requests"};
  const figures = {};
  const history =
      h("div", {class: "lines"},
        Object.entries(lines).map(
            ([key, line]) =>
                h("figure", {class: "line"}, h("figcaption", {}, names[key], " ", (figures[key] = h("b", {}))),
                  line.node)));
  const facts = h("dl", {class: "facts"});
  const splitPlace = h("div", {}), latency = h("div", {}), batches = h("div", {});
  const again = (value) => {
    minutes = value;
    drawn = "";
    update(live);
  };
  place.append(
      h("div", {class: "row"}, segments("Time", [[1, "last minute"], [5, "last five minutes"]], minutes, again)),
      section("Time of a request", splitPlace),
      h("div", {class: "columns-2"}, section("Latency", latency), section("Rows of a run", batches)),
      section("Last five minutes", history), section("Counts", facts));

  function update({data, history: said}) {
    const now = modelIn(data, model);
    if (!now) return;
    const span = spanOf(said, model, minutes * 60), bounds = data.latency_bounds_us;
    const all = series(said, model, bounds);
    const latest = {
      rate: rate(all.rate.at(-1) ?? null),
      p50: duration(all.p50.at(-1)),
      p99: duration(all.p99.at(-1)),
      queue: count(now.queue)
    };
    for (const [key, line] of Object.entries(lines)) {
      line.update(all[key], `${names[key]} in the last five minutes, now ${latest[key]}`);
      setText(figures[key], latest[key]);
    }
    // Charts are made anew only where they would differ, so that tips stay open.
    const state = JSON.stringify([span, minutes]);
    if (state === drawn) return;
    drawn = state;
    const quiet = notice("No request was answered in this time.");
    splitPlace.replaceChildren(span?.success ? timeSplit(span) : quiet);
    latency.replaceChildren(span?.latency.some(Boolean) ? latencyColumns(span, bounds) : quiet.cloneNode(true));
    batches.replaceChildren(span?.batches.length ? batchColumns(span) : quiet.cloneNode(true));
    const rows = {
      "Requests": span ? count(span.requests) : "–",
      "p50, p99": span ?
          `${duration(quantile(span.latency, bounds, 0.5))}, ${duration(quantile(span.latency, bounds, 0.99))}` :
          "–",
      "Failed": span ? count(span.failures) : "–",
      "Refused, the queue was full": span ? count(span.rejected) : "–",
      "Rows": span ? count(span.inferences) : "–",
      "Runs": span ? count(span.executions) : "–",
      "Since the start": `${count(now.success)} answered, ${count(now.failures)} failed`,
      ...(now.sequences ? {"Live sequences": count(now.sequences)} : {}),
      ...(now.tokens ? {"Tokens": `${count(now.tokens)}, ${span ? rate(span.tokens / span.seconds) : "–"} a second`} :
                       {}),
    };
    facts.replaceChildren(...Object.entries(rows).flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
  }
  return watch(update);
}
