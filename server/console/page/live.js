// What the server says of itself each second, and what the last five minutes of that tell.
import {events} from "./api.js";

const KEPT_SECONDS = 300;
const SILENCE_MS = 10000;
const RETRY_MS = [250, 500, 1000, 2000, 4000];

export const live = {
  status: "connecting",  // open, lost
  data: null,
  history: [],  // of `data`, oldest first
  lostSince: null,
};
const listeners = new Set();

// Calls `listener` now, if there are data, and at each change. Returns what ends that.
export function watch(listener) {
  listeners.add(listener);
  if (live.data) listener(live);
  return () => listeners.delete(listener);
}

function tell() {
  for (const listener of [...listeners]) listener(live);
}

function add(data) {
  // A server that was started anew counts from zero.
  if (live.data && live.data.server.instance !== data.server.instance) live.history = [];
  live.data = data;
  live.history.push(data);
  while (live.history[0].time < data.time - KEPT_SECONDS) live.history.shift();
}

function setStatus(status) {
  if (live.status === status) return;
  live.status = status;
  live.lostSince = status === "lost" ? new Date() : null;
}

async function readUntilSilent(signal, abort) {
  let timer = setTimeout(abort, SILENCE_MS);
  try {
    for await (const {event, data} of events("v2/admin/live", signal)) {
      clearTimeout(timer);
      timer = setTimeout(abort, SILENCE_MS);
      if (event !== "overview") continue;
      add(data);
      setStatus("open");
      tell();
    }
  } finally {
    clearTimeout(timer);
  }
}

let current = null;
// Reads for as long as the page is open. A call ends the reading before it, which had another token.
export async function connect() {
  current?.abort();
  const mine = (current = new AbortController());
  for (let failures = 0; current === mine;) {
    const reading = new AbortController();
    mine.signal.addEventListener("abort", () => reading.abort());
    const before = live.data;
    try {
      await readUntilSilent(reading.signal, () => reading.abort());
    } catch (problem) {
      if (problem.status === 401 || problem.status === 403) return;
    }
    if (current !== mine) return;
    failures = live.data === before ? failures + 1 : 0;
    setStatus("lost");
    tell();
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]));
  }
}

export const modelIn = (data, {name, version}) => data?.models.find((m) => m.name === name && m.version === version);

// Pairs [earlier, later] of what was said of a model, at most `seconds` back, with the seconds between them.
export function steps(history, model, seconds = KEPT_SECONDS) {
  const from = history.length ? history.at(-1).time - seconds : 0;
  const said = history.filter((d) => d.time >= from).map((d) => ({time: d.time, model: modelIn(d, model)}));
  const pairs = [];
  for (let i = 1; i < said.length; ++i) {
    const [a, b] = [said[i - 1], said[i]];
    // Counters begin anew when a model was unloaded and loaded again.
    if (!a.model || !b.model || b.model.success < a.model.success) continue;
    pairs.push({before: a.model, after: b.model, seconds: b.time - a.time, time: b.time});
  }
  return pairs;
}

export const requestsOf = (model) => model.success + model.failures;

// Of the last `seconds`: counters that went up, latencies by bucket, runs by their rows.
export function spanOf(history, model, seconds) {
  const pairs = steps(history, model, seconds);
  if (!pairs.length) return null;
  const sum = (f) => pairs.reduce((total, p) => total + f(p.after) - f(p.before), 0);
  const latency = pairs[0].after.latency.map((_, i) => sum((m) => m.latency[i] ?? 0));
  const batches = new Map();
  for (const {before, after} of pairs) {
    const earlier = new Map(before.batches);
    for (const [rows, runs] of after.batches) {
      const more = runs - (earlier.get(rows) ?? 0);
      if (more > 0) batches.set(rows, (batches.get(rows) ?? 0) + more);
    }
  }
  return {
    seconds: pairs.reduce((total, p) => total + p.seconds, 0),
    requests: sum(requestsOf),
    success: sum((m) => m.success),
    failures: sum((m) => m.failures),
    inferences: sum((m) => m.inferences),
    executions: sum((m) => m.executions),
    rejected: sum((m) => m.rejected),
    tokens: sum((m) => m.tokens),
    ns: Object.fromEntries(["total", "queue", "input", "compute", "output"].map((k) => [k, sum((m) => m[`${k}_ns`])])),
    latency,
    batches: [...batches].sort((a, b) => a[0] - b[0]),
  };
}

// Seconds within which `share` of the counted answers were given; null without any. Within a bucket answers are taken
// to lie evenly on a logarithmic scale.
export function quantile(counts, boundsUs, share) {
  const total = counts.reduce((a, b) => a + b, 0);
  if (!total) return null;
  let below = 0;
  for (let i = 0; i < counts.length; ++i) {
    if (counts[i] && below + counts[i] >= share * total) {
      const low = i === 0 ? boundsUs[0] / 2 : boundsUs[i - 1];
      const high = boundsUs[i] ?? low * 2;
      return low * (high / low) ** ((share * total - below) / counts[i]) * 1e-6;
    }
    below += counts[i];
  }
  return null;
}

// One value for each step of the last five minutes, for sparklines: requests a second, p50 and p99 in seconds.
export function series(history, model, boundsUs) {
  const result = {rate: [], p50: [], p99: [], queue: []};
  for (const {before, after, seconds} of steps(history, model)) {
    const latency = after.latency.map((n, i) => n - before.latency[i]);
    result.rate.push((requestsOf(after) - requestsOf(before)) / seconds);
    result.p50.push(quantile(latency, boundsUs, 0.5));
    result.p99.push(quantile(latency, boundsUs, 0.99));
    result.queue.push(after.queue);
  }
  return result;
}
