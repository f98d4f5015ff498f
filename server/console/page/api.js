// Requests to the server that the page came from.

const KEY = "sconce-token";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// The token of this browser tab; it is kept nowhere else.
export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (text) => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY)),
};

let refusedAccess = () => {};
// Calls `action` whenever the server asks for a token.
export const onRefusedAccess = (action) => (refusedAccess = action);

export const fields = (more) => (token.get() ? {Authorization: `Bearer ${token.get()}`, ...more} : {...more});

// JSON as the server writes it: NaN, Infinity and -Infinity are bare words, integers have up to 64 bits.
export function parse(text) {
  const exact = (key, value, context) => typeof value === "number" && Number.isInteger(value) &&
          !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source) ?
      BigInt(context.source) :
      value;
  try {
    return JSON.parse(text, exact);
  } catch {
    const words = {"\u0000NaN": NaN, "\u0000Infinity": Infinity, "\u0000-Infinity": -Infinity};
    const quoted =
        text.replace(/"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g, (part) => (part[0] === "\"" ? part : `"\\u0000${part}"`));
    return JSON.parse(quoted, (key, value, context) => (value in words ? words[value] : exact(key, value, context)));
  }
}

export function messageOf(status, text) {
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text || `HTTP status ${status}`;
  }
}

// Resolves to the response if it is a success; the path has no slash in front, so that a proxy may have a prefix.
export async function request(method, path, {body, headers, signal} = {}) {
  let response;
  try {
    response = await fetch(path, {method, body, headers: fields(headers), signal, cache: "no-store"});
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Refused(0, "The server does not answer.");
  }
  if (response.ok) return response;
  const message = messageOf(response.status, await response.text());
  if (response.status === 401) refusedAccess(message);
  throw new Refused(response.status, message);
}

export async function get(path, options) {
  return parse(await (await request("GET", path, options)).text());
}

// body: an object, which travels as JSON, or nothing.
export async function send(method, path, body, options = {}) {
  const json = body === undefined ? {} : {body: JSON.stringify(body), headers: {"Content-Type": "application/json"}};
  return parse(await (await request(method, path, {...options, ...json})).text() || "null");
}

// The events of a stream: {event, id, data}, with the data parsed.
export async function* events(path, signal) {
  const response = await request("GET", path, {signal, headers: {Accept: "text/event-stream"}});
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    text += value;
    const whole = text.split(/\r?\n\r?\n/);
    text = whole.pop();
    for (const event of whole) {
      const found = {event: "message", id: "", data: ""};
      for (const line of event.split(/\r?\n/)) {
        const [, name, rest] = /^(\w+): ?(.*)$/.exec(line) ?? [];
        if (name === "data") {
          found.data += rest;
        } else if (name) {
          found[name] = rest;
        }
      }
      if (found.data) yield {...found, data: parse(found.data)};
    }
  }
}

const part = encodeURIComponent;
// "v2/admin/models/NAME/versions/V" and what follows it.
export const adminPath = (model, rest = "") =>
    `v2/admin/models/${part(model.name)}/versions/${part(model.version)}${rest}`;
export const modelPath = (model, rest = "") => `v2/models/${part(model.name)}/versions/${part(model.version)}${rest}`;
export const callPath = (model) => `v1/models/${part(model.name)}/versions/${part(model.version)}:call`;
