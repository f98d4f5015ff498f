// Models and GPUs of the server, with what they did in the last five minutes, and what somebody should look at.
import {sparkline} from "./chart.js";
import {h, notice, reconcile, setText} from "./dom.js";
import {bytes, count, digits, duration, percent, rate} from "./figures.js";
import {live, quantile, series, spanOf, watch} from "./live.js";

const RECENT_SECONDS = 10;

// The kind of a state's mark: ok, warn, bad or idle.
const MARKS = {
  READY: "ok",
  LOADING: "warn",
  HELD: "bad",
  UNAVAILABLE: "bad",
  UNLOADED: "idle"
};
export function stateTag(model) {
  return h(
      "span", {class: `tag ${MARKS[model.state] ?? "idle"}`, title: model.reason || null}, model.state.toLowerCase());
}

export const modelLink = (model, view = "") =>
    `#/models/${encodeURIComponent(model.name)}/${encodeURIComponent(model.version)}${view ? `/${view}` : ""}`;

export const weightsName = (model) => (
    model.label ? `${model.label} (weight version ${model.weight_version})` : `weight version ${model.weight_version}`);

function alertItem(alert) {
  const model = live.data.models.find((m) => m.name === alert.model);
  const node =
      h("li", {class: alert.severity === "critical" ? "alert bad" : "alert warn"},
        h("b", {}, alert.severity === "critical" ? "Critical" : "Warning"), h("span", {}, alert.text),
        model ? h("a", {href: modelLink(model)}, "look") : "");
  return {node};
}

// A figure with its name and, maybe, a line of the last minutes.
function tile(name, spark) {
  const figure = h("b", {class: "tile-figure"});
  const more = h("span", {class: "tile-more"});
  const line = spark ? sparkline({height: 32}) : null;
  const node = h("div", {class: "tile"}, h("span", {class: "tile-name"}, name), figure, more, line?.node);
  return {
    node,
    update(text, detail = "", values = []) {
      setText(figure, text);
      setText(more, detail);
      line?.update(values, `${name} in the last five minutes, now ${text}`);
    },
  };
}

function modelRow(first) {
  const cells = {};
  const cell = (key, name, ...content) => (cells[key] = h("td", {class: "number", "data-label": name}, content));
  const spark = {rate: sparkline(), p50: sparkline(), p99: sparkline({kind: "second"})};
  const text = {};
  const figure = (key) => (text[key] = h("span", {class: "figure"}));
  const state = h("td", {"data-label": "State"});
  const weights = h("td", {"data-label": "Weights"});
  const node =
      h("tr", {},
        h("th", {scope: "row"}, h("a", {href: modelLink(first)}, first.name),
          h("span", {class: "dim"}, ` ${first.version}`)),
        state, cell("rate", "Requests/s", spark.rate.node, figure("rate")),
        cell("p50", "p50", spark.p50.node, figure("p50")), cell("p99", "p99", spark.p99.node, figure("p99")),
        cell("queue", "Queue", figure("queue")), cell("batch", "Batch", figure("batch")),
        cell("errors", "Errors", figure("errors")), cell("memory", "Memory", figure("memory")), weights);
  const update = (model) => {
    const bounds = live.data.latency_bounds_us;
    const lines = series(live.history, model, bounds);
    const recent = spanOf(live.history, model, RECENT_SECONDS);
    const minutes = spanOf(live.history, model, 300);
    const now = {
      rate: rate(recent ? recent.requests / recent.seconds : null),
      p50: duration(recent && quantile(recent.latency, bounds, 0.5)),
      p99: duration(recent && quantile(recent.latency, bounds, 0.99)),
    };
    for (const key of ["rate", "p50", "p99"]) {
      setText(text[key], now[key]);
      spark[key].update(lines[key], `${{rate: "requests a second"}[key] ?? key} of ${model.name}, now ${now[key]}`);
    }
    setText(text.queue, count(model.queue));
    setText(text.batch, minutes?.executions ? digits(minutes.inferences / minutes.executions) : "–");
    setText(text.errors, minutes ? count(minutes.failures + minutes.rejected) : "–");
    text.errors.classList.toggle("bad-text", Boolean(minutes?.failures || minutes?.rejected));
    setText(text.memory, bytes(model.weight_bytes + model.set_bytes));
    setText(
        weights,
        `${model.weight_version ? weightsName(model) : "–"}${model.staged ? ", one staged" : ""}${
            model.sets ? `, ${model.sets} named` : ""}`);
    state.replaceChildren(
        stateTag(model),
        h("span", {class: "dim"}, ` ${model.replicas} × ${[...new Set(model.devices)].join(", ") || model.kind}`));
  };
  return {node, update};
}

function gpuRow(first) {
  const cells = ["Busy", "Memory", "Power"].map((name) => h("td", {class: "number", "data-label": name}));
  const node = h("tr", {}, h("th", {scope: "row"}, first.uuid), cells);
  const update = (gpu) => {
    setText(cells[0], percent(gpu.utilization));
    setText(cells[1], `${bytes(gpu.memory_used)} of ${bytes(gpu.memory_total)}`);
    setText(cells[2], gpu.power_watts === null ? "–" : `${digits(gpu.power_watts)} W`);
  };
  return {node, update};
}

const heads = (names) =>
    h("thead", {}, h("tr", {}, names.map((n, i) => h("th", {scope: "col", class: i > 1 ? "number" : null}, n))));

// Of the server: requests a second, CPU as cores, by step.
function serverSeries() {
  const result = {rate: [], cpu: []};
  for (let i = 1; i < live.history.length; ++i) {
    const [a, b] = [live.history[i - 1], live.history[i]];
    const seconds = b.time - a.time;
    result.rate.push((b.server.requests - a.server.requests) / seconds);
    result.cpu.push((b.server.cpu_seconds - a.server.cpu_seconds) / seconds);
  }
  return result;
}

export function showOverview(place) {
  const alerts = h("ul", {class: "alerts", "aria-live": "polite", "aria-label": "What needs a look"});
  const tiles = {
    models: tile("Models ready"),
    rate: tile("Requests/s", true),
    cpu: tile("Cores busy", true),
    memory: tile("Memory"),
    connections: tile("Connections"),
    up: tile("Up"),
  };
  const rows = h("tbody", {});
  const gpuRows = h("tbody", {});
  const gpus =
      h("section", {class: "panel", hidden: true}, h("h2", {}, "GPUs"),
        h("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": "GPUs"},
          h("table", {}, heads(["GPU", "Busy", "Memory", "Power"]), gpuRows)));
  const none = notice("No model is served. Load one with POST /v2/repository/models/NAME/load.");
  none.hidden = true;
  place.append(
      h("h1", {class: "hidden"}, "Overview"), alerts,
      h("div", {class: "tiles"}, Object.values(tiles).map((t) => t.node)),
      h("section", {class: "panel"}, h("h2", {}, "Models"),
        h("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": "Models"},
          h("table", {class: "models cards"},
            heads(["Model", "State", "Requests/s", "p50", "p99", "Queue", "Batch", "Errors", "Memory", "Weights"]),
            rows)),
        none),
      gpus);

  return watch(({data}) => {
    if (!data) return;
    const {server} = data;
    reconcile(alerts, data.alerts, (a) => `${a.severity} ${a.text}`, alertItem);
    const lines = serverSeries();
    const latest = (values) => (values.length ? values.at(-1) : null);
    tiles.models.update(
        `${data.models.filter((m) => m.state === "READY").length} of ${data.models.length}`,
        server.draining  ? "draining" :
            server.ready ? "server ready" :
                           "server not ready");
    tiles.rate.update(rate(latest(lines.rate)), `${count(server.requests)} since the start`, lines.rate);
    tiles.cpu.update(
        latest(lines.cpu) === null ? "–" : Math.max(0, latest(lines.cpu)).toFixed(2),
        `${duration(server.cpu_seconds)} in all`, lines.cpu.map((v) => Math.max(0, v)));
    tiles.memory.update(bytes(server.resident_bytes), "resident");
    tiles.connections.update(
        count(server.connections), `${count(server.consoles)} ${server.consoles === 1 ? "console" : "consoles"}`);
    tiles.up.update(
        duration(Math.max(0, Math.round(data.time - server.started))),
        server.lost_lines ? `${count(server.lost_lines)} lines of the log lost` : "");
    reconcile(rows, data.models, (m) => `${m.name}/${m.version}`, modelRow);
    none.hidden = data.models.length > 0;
    gpus.hidden = data.gpus.length === 0;
    reconcile(gpuRows, data.gpus, (g) => g.uuid, gpuRow);
  });
}
