// The last lines of the server's log, and those that come.
import {events, get} from "./api.js";
import {button, h, labelled, segments, setText} from "./dom.js";
import {clock} from "./figures.js";

const KEPT = 2000;
const LEVELS = [["debug", "debug"], ["info", "info"], ["warn", "warnings"], ["error", "errors"]];
const RETRY_MS = 1000;

function lineItem(line) {
  const fields = Object.entries(line.fields ?? {}).map(([k, v]) => `${k}=${v}`).join(" ");
  const node =
      h("li", {class: `line ${line.level}`}, h("time", {datetime: line.time, title: line.time}, clock(line.time)),
        h("span", {class: "level"}, line.level), h("span", {class: "message"}, line.message),
        fields ? h("span", {class: "dim"}, fields) : "");
  return {node, text: `${line.level} ${line.message} ${fields}`.toLowerCase()};
}

export function showLog(place) {
  const list = h("ol", {class: "log", tabindex: "0", role: "log", "aria-label": "Lines of the log"});
  const filter = h("input", {type: "search", placeholder: "any text", oninput: () => sift()});
  const state = h("span", {class: "dim", role: "status"});
  let lines = [], held = [], paused = false, level = "info", last = 0, reading = null;

  const matches = (line) => filter.value.toLowerCase().split(/\s+/).every((word) => line.text.includes(word));
  const tell = () => {
    const seen = lines.filter((l) => !l.node.hidden).length;
    setText(state, `${seen} of ${lines.length} lines${paused ? `, ${held.length} held` : ""}`);
  };
  const sift = () => {
    for (const line of lines) line.node.hidden = !matches(line);
    tell();
  };
  const add = (given) => {
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    const made = given.map(lineItem);
    for (const line of made) line.node.hidden = !matches(line);
    lines.push(...made);
    list.append(...made.map((l) => l.node));
    for (const old of lines.splice(0, Math.max(0, lines.length - KEPT))) old.node.remove();
    // Who has scrolled up reads there.
    if (atEnd) list.scrollTop = list.scrollHeight;
    tell();
  };
  const take = (given) => {
    last = Math.max(last, ...given.map((l) => l.seq));
    if (!paused) return add(given);
    held.push(...given);
    held = held.slice(-KEPT);
    tell();
  };
  const pause = () => {
    paused = !paused;
    setText(pauseButton, paused ? "Go on" : "Pause");
    pauseButton.setAttribute("aria-pressed", paused);
    if (!paused) add(held.splice(0));
    tell();
  };
  const pauseButton = button("Pause", pause, {"aria-pressed": false});
  const clear = () => {
    lines = [];
    list.replaceChildren();
    tell();
  };

  // Begins with what there is, then follows; after a break it goes on behind the last line, or from the start of
  // another process's log.
  const follow = async (signal) => {
    let begun = false;
    while (!signal.aborted) {
      try {
        const document = await get(`v2/admin/log?lines=${KEPT}&level=${level}`, {signal});
        const fresh = document.lines.filter((l) => l.seq > last || document.last < last);
        if (!begun || document.last < last) clear();
        if (document.last < last) last = 0;
        begun = true;
        if (document.lost) setText(state, `${document.lost} lines were lost`);
        if (fresh.length) take(fresh);
        last = document.last;
        for await (const {event, data} of events(`v2/admin/log/live?after=${last}&level=${level}`, signal)) {
          if (event === "line") take([data]);
        }
      } catch (problem) {
        if (signal.aborted) return;
        if (problem.status === 401 || problem.status === 403) return setText(state, problem.message);
        setText(state, problem.message);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  };
  const start = () => {
    reading?.abort();
    reading = new AbortController();
    last = 0;
    follow(reading.signal);
  };
  const choose = (next) => {
    level = next;
    start();
  };
  place.append(
      h("h1", {}, "Log"),
      h("div", {class: "row"}, segments("Level", LEVELS, level, choose), labelled("Filter", filter), pauseButton,
        button("Clear", clear, {class: "quiet"}), state),
      list);
  start();
  return () => reading.abort();
}
