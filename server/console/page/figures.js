// Figures as people read them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

// Three digits: 1.23, 12.3, 123.
export function digits(value) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.001 || size >= 1e15) return value.toExponential(2);
  if (size < 10) return String(Number(value.toPrecision(3)));
  if (size < 100) return String(Number(value.toFixed(1)));
  return Math.round(value).toLocaleString("en");
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${digits(value)} ${UNITS[unit]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds === 0) return "0";
  if (seconds < 1e-3) return `${digits(seconds * 1e6)} µs`;
  if (seconds < 1) return `${digits(seconds * 1e3)} ms`;
  if (seconds < 120) return `${digits(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (seconds < 172800) return `${digits(seconds / 3600)} h`;
  return `${digits(seconds / 86400)} days`;
}

export const rate = (value) => (value === null ? "–" : value > 0 && value < 0.1 ? "< 0.1" : digits(value));
export const count = (value) => (value === null || value === undefined ? "–" : Number(value).toLocaleString("en"));
export function percent(share) {
  if (share === null || share === undefined) return "–";
  return share > 0 && share < 1e-4 ? "< 0.01 %" : `${digits(share * 100)} %`;
}

// A number of a model's answer: as short as it is exact to six digits.
export function value(number) {
  if (typeof number === "bigint" || typeof number === "boolean" || typeof number === "string") return String(number);
  if (Number.isInteger(number) && Math.abs(number) < 1e15) return String(number);
  return String(Number(number.toPrecision(6)));
}

// Seconds since 1970, or a text that Date reads.
export function clock(time) {
  const date = new Date(typeof time === "number" ? time * 1000 : time);
  return date.toLocaleTimeString("en-GB");
}

export function moment(time) {
  const date = new Date(typeof time === "number" ? time * 1000 : time);
  const sameDay = date.toDateString() === new Date().toDateString();
  return sameDay ? clock(time) : `${date.toLocaleDateString("en-CA")} ${clock(time)}`;
}

export const shapeText = (shape) => `[${shape.map((size) => (size < 0 ? "?" : size)).join(", ")}]`;
// The start of a digest, such as sha-256:1f2e3d4c.
export const shortDigest = (digest) => digest.replace(/^(sha-256:)?([0-9a-zA-Z+/]{10}).*$/, "$2…");
