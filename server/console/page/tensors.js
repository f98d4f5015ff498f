// Tensors in the browser: {datatype, shape, values}, values row-major in a typed array.

// What the v2 protocol calls a datatype, as an array of JavaScript. Halves are kept as float32 of the same values.
export const TYPES = {
  BOOL: {array: Uint8Array, bytes: 1, numpy: "np.bool_", torch: "bool"},
  UINT8: {array: Uint8Array, bytes: 1, numpy: "np.uint8", torch: "uint8"},
  UINT16: {array: Uint16Array, bytes: 2, numpy: "np.uint16", torch: "uint16"},
  UINT32: {array: Uint32Array, bytes: 4, numpy: "np.uint32", torch: "uint32"},
  UINT64: {array: BigUint64Array, bytes: 8, numpy: "np.uint64", torch: "uint64"},
  INT8: {array: Int8Array, bytes: 1, numpy: "np.int8", torch: "int8"},
  INT16: {array: Int16Array, bytes: 2, numpy: "np.int16", torch: "int16"},
  INT32: {array: Int32Array, bytes: 4, numpy: "np.int32", torch: "int32"},
  INT64: {array: BigInt64Array, bytes: 8, numpy: "np.int64", torch: "int64"},
  FP16: {array: Float32Array, bytes: 2, numpy: "np.float16", torch: "float16"},
  BF16: {array: Float32Array, bytes: 2, numpy: "np.float32", torch: "bfloat16"},
  FP32: {array: Float32Array, bytes: 4, numpy: "np.float32", torch: "float32"},
  FP64: {array: Float64Array, bytes: 8, numpy: "np.float64", torch: "float64"},
};

export const isFloat = (datatype) => /^(FP|BF)/.test(datatype);
export const isInteger = (datatype) => /INT/.test(datatype);
const isWide = (datatype) => TYPES[datatype].array === BigInt64Array || TYPES[datatype].array === BigUint64Array;
export const elements = (shape) => shape.reduce((product, size) => product * size, 1);

export function zeros(datatype, shape) {
  return {datatype, shape, values: new TYPES[datatype].array(elements(shape))};
}

const scratch = new DataView(new ArrayBuffer(4));
const bitsOf = (value) => (scratch.setFloat32(0, value), scratch.getUint32(0));
const floatOf = (bits) => (scratch.setUint32(0, bits), scratch.getFloat32(0));

export function fromHalf(half) {
  const sign = half & 0x8000 ? -1 : 1, exponent = (half >> 10) & 31, fraction = half & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

// Rounds to the nearest half, ties to even.
export function toHalf(value) {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0, size = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  const exponent = Math.max(Math.floor(Math.log2(size || 2 ** -24)), -14);
  // Floor may be one too low where log2 rounds; the fraction then reaches 1024, which carries into the exponent.
  const scaled = size / 2 ** (exponent - 10);
  let rounded = Math.floor(scaled);
  const rest = scaled - rounded;
  if (rest > 0.5 || (rest === 0.5 && rounded % 2)) ++rounded;
  return sign | (rounded < 1024 ? rounded : ((exponent + 14) << 10) + rounded);
}

export const fromBfloat = (bits) => floatOf(bits << 16);
export function toBfloat(value) {
  if (Number.isNaN(value)) return 0x7fc0;
  const bits = bitsOf(value);
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

// Little-endian bytes, as they travel.
export function toBytes({datatype, values}) {
  if (datatype === "FP16") return new Uint8Array(Uint16Array.from(values, toHalf).buffer);
  if (datatype === "BF16") return new Uint8Array(Uint16Array.from(values, toBfloat).buffer);
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

export function fromBytes(datatype, shape, bytes) {
  const type = TYPES[datatype];
  if (!type) throw new Error(`The console does not show the datatype ${datatype}.`);
  if (bytes.length !== elements(shape) * type.bytes) {
    throw new Error(`${bytes.length} bytes are no ${datatype} of the shape [${shape.join(", ")}].`);
  }
  const aligned = bytes.slice().buffer;
  if (datatype === "FP16") return {datatype, shape, values: Float32Array.from(new Uint16Array(aligned), fromHalf)};
  if (datatype === "BF16") return {datatype, shape, values: Float32Array.from(new Uint16Array(aligned), fromBfloat)};
  return {datatype, shape, values: new type.array(aligned)};
}

// A number, or a text of one, as an element; an error names what it cannot be.
export function element(datatype, given) {
  if (datatype === "BOOL") {
    if ([true, "true", 1, "1"].includes(given)) return 1;
    if ([false, "false", 0, "0", ""].includes(given)) return 0;
    throw new Error(`"${given}" is neither true nor false.`);
  }
  if (typeof given === "boolean" || given === null || typeof given === "object")
    throw new Error(`${JSON.stringify(given)} is no number.`);
  if (isWide(datatype)) {
    try {
      return BigInt(given === "" ? 0 : given);
    } catch {
      throw new Error(`"${given}" is no integer.`);
    }
  }
  const number = typeof given === "string" ? Number(given.trim().replace(/^(-?)inf$/i, "$1Infinity")) : Number(given);
  if (Number.isNaN(number) && !/^\s*nan\s*$/i.test(String(given))) throw new Error(`"${given}" is no number.`);
  if (isInteger(datatype) && !Number.isInteger(number))
    throw new Error(`${given} is no integer, which ${datatype} wants.`);
  return number;
}

// Nested lists, as of JSON, all rows of one length.
export function fromNested(datatype, nested) {
  const shape = [];
  for (let level = nested; Array.isArray(level); level = level[0]) shape.push(level.length);
  const values = [];
  const walk = (part, depth) => {
    if (depth === shape.length) return values.push(element(datatype, part));
    if (!Array.isArray(part) || part.length !== shape[depth]) throw new Error("The rows have different lengths.");
    for (const child of part) walk(child, depth + 1);
  };
  walk(nested, 0);
  return {datatype, shape, values: TYPES[datatype].array.from(values)};
}

// The shortest double that is the same float32: 0.1 instead of 0.10000000149.
function shortest(value) {
  for (let digits = 1; digits < 9; ++digits) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

// An element as a value of JSON.
export function shown({datatype, values}, value) {
  if (datatype === "BOOL") return Boolean(value);
  return values instanceof Float32Array ? shortest(value) : value;
}

export function toNested(tensor) {
  let at = 0;
  const build = (depth) => depth === tensor.shape.length ?
      shown(tensor, tensor.values[at++]) :
      Array.from({length: tensor.shape[depth]}, () => build(depth + 1));
  return build(0);
}

// JSON of nested lists, with the bare words that the server reads for NaN and infinities.
export function textOf(nested) {
  if (Array.isArray(nested)) return `[${nested.map(textOf).join(", ")}]`;
  if (typeof nested === "number" && Number.isFinite(nested)) return Object.is(nested, -0) ? "-0.0" : String(nested);
  return String(nested);
}

// Values of another datatype; floats are cut to integers, and what does not fit wraps as in JavaScript's arrays.
export function cast(tensor, datatype) {
  if (tensor.datatype === datatype) return tensor;
  const wide = isWide(datatype), boolean = datatype === "BOOL";
  const values = TYPES[datatype].array.from(
      tensor.values,
      (v) => boolean ? Number(Boolean(v)) :
          wide       ? BigInt(typeof v === "bigint" ? v : Math.trunc(v)) :
                       Number(v));
  return {datatype, shape: tensor.shape, values};
}

// Whether a shape is one that the signature allows; a negative size allows any.
export function fits(shape, signature) {
  return shape.length === signature.length && shape.every((size, i) => signature[i] < 0 || signature[i] === size);
}

// A generator of numbers in [0, 1) that gives the same again for the same seed (mulberry32).
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// kind: normal (low is the mean, high the deviation), uniform or integers (from low to high).
export function random(datatype, shape, {kind, low, high, seed}) {
  const next = randomFrom(seed);
  const tensor = zeros(datatype, shape);
  const draw = {
    normal: () => low + high * Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
    uniform: () => low + (high - low) * next(),
    integers: () => Math.floor(low + (high - low + 1) * next()),
  }[datatype === "BOOL" ? "integers" : kind];
  const wide = isWide(datatype);
  for (let i = 0; i < tensor.values.length; ++i) {
    const drawn = isFloat(datatype) ? draw() : Math.round(draw());
    tensor.values[i] = datatype === "BOOL" ? Number(next() < 0.5) : wide ? BigInt(drawn) : drawn;
  }
  return tensor;
}

// How far b is from a: of tensors of one shape.
export function difference(a, b) {
  let largest = 0, sum = 0, changed = 0;
  for (let i = 0; i < a.values.length; ++i) {
    const apart = Math.abs(Number(b.values[i]) - Number(a.values[i]));
    if (!(apart === 0) && !(Number.isNaN(Number(a.values[i])) && Number.isNaN(Number(b.values[i])))) ++changed;
    if (apart > largest) largest = apart;
    if (Number.isFinite(apart)) sum += apart;
  }
  return {largest, mean: a.values.length ? sum / a.values.length : 0, changed, elements: a.values.length};
}
