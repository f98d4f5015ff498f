// Files of tensors, read and written in the browser: .safetensors, .npy and .npz.
import {cast, elements, fromBytes, toBytes, TYPES} from "./tensors.js";

const NAMES = {
  F64: "FP64",
  F32: "FP32",
  F16: "FP16",
  BF16: "BF16",
  I64: "INT64",
  I32: "INT32",
  I16: "INT16",
  I8: "INT8",
  U64: "UINT64",
  U32: "UINT32",
  U16: "UINT16",
  U8: "UINT8",
  BOOL: "BOOL",
};
const SAFETENSORS = Object.fromEntries(Object.entries(NAMES).map(([file, datatype]) => [datatype, file]));
const HEADER_LIMIT = 100 * 1024 * 1024;

// The header of a safetensors file, without its data: {entries: {NAME: {dtype, shape, data_offsets}}, begin}.
export async function safetensorsHeader(blob) {
  const start = new DataView(await blob.slice(0, 8).arrayBuffer());
  if (start.byteLength < 8) throw new Error("The file is too short for a safetensors file.");
  const length = Number(start.getBigUint64(0, true));
  if (length > HEADER_LIMIT || length + 8 > blob.size)
    throw new Error("The file is no safetensors file: its header does not fit in it.");
  let entries;
  try {
    entries = JSON.parse(await blob.slice(8, 8 + length).text());
  } catch {
    throw new Error("The file is no safetensors file: its header is no JSON.");
  }
  delete entries.__metadata__;
  return {entries, begin: 8 + length};
}

export async function readSafetensors(blob) {
  const {entries, begin} = await safetensorsHeader(blob);
  const tensors = {};
  for (const [name, {dtype, shape, data_offsets: [from, to]}] of Object.entries(entries)) {
    const bytes = new Uint8Array(await blob.slice(begin + from, begin + to).arrayBuffer());
    // float8 and the like travel as bytes.
    tensors[name] = fromBytes(NAMES[dtype] ?? "UINT8", shape, bytes);
  }
  return tensors;
}

export function writeSafetensors(tensors) {
  const header = {}, parts = [];
  let at = 0;
  for (const [name, tensor] of Object.entries(tensors)) {
    const bytes = toBytes(tensor);
    header[name] = {dtype: SAFETENSORS[tensor.datatype], shape: tensor.shape, data_offsets: [at, at += bytes.length]};
    parts.push(bytes);
  }
  let text = new TextEncoder().encode(JSON.stringify(header));
  // Data begin at a multiple of 8.
  const padded = new Uint8Array(Math.ceil(text.length / 8) * 8).fill(32);
  padded.set(text);
  const size = new DataView(new ArrayBuffer(8));
  size.setBigUint64(0, BigInt(padded.length), true);
  return new Blob([size.buffer, padded, ...parts]);
}

const NUMPY = {
  f: {2: "FP16", 4: "FP32", 8: "FP64"},
  i: {1: "INT8", 2: "INT16", 4: "INT32", 8: "INT64"},
  u: {1: "UINT8", 2: "UINT16", 4: "UINT32", 8: "UINT64"},
  b: {1: "BOOL"}
};
const NPY = {
  FP64: "<f8",
  FP32: "<f4",
  FP16: "<f2",
  INT64: "<i8",
  INT32: "<i4",
  INT16: "<i2",
  INT8: "|i1",
  UINT64: "<u8",
  UINT32: "<u4",
  UINT16: "<u2",
  UINT8: "|u1",
  BOOL: "|b1"
};

// Values of column-major order in row-major order.
function rowMajor(tensor) {
  const {shape, values} = tensor;
  const ordered = new values.constructor(values.length);
  const strides = shape.map((_, d) => elements(shape.slice(0, d)));
  const index = shape.map(() => 0);
  for (let i = 0; i < ordered.length; ++i) {
    ordered[i] = values[index.reduce((at, n, d) => at + n * strides[d], 0)];
    for (let d = shape.length - 1; d >= 0 && ++index[d] === shape[d]; --d) index[d] = 0;
  }
  return {...tensor, values: ordered};
}

// A string, since clang-format 14 takes quotes in a regular expression for those of a string.
const DESCR = new RegExp("'descr':\\s*'([<>|=])(\\w)(\\d+)'");

export function readNpy(bytes) {
  if (bytes.length < 10 || bytes[0] !== 0x93 || String.fromCharCode(...bytes.slice(1, 6)) !== "NUMPY")
    throw new Error("The file is no .npy file.");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const wide = bytes[6] >= 2;
  const begin = (wide ? 12 : 10) + (wide ? view.getUint32(8, true) : view.getUint16(8, true));
  const header = new TextDecoder("latin1").decode(bytes.subarray(wide ? 12 : 10, begin));
  const [, order, kind, size] = DESCR.exec(header) ?? [];
  const datatype = NUMPY[kind]?.[size];
  if (!datatype) throw new Error(`The console does not read arrays of ${header.split(",")[0]}.`);
  const shape =
      (/shape..\s*\(([^)]*)\)/.exec(header)?.[1] ?? "").split(",").map((s) => s.trim()).filter(Boolean).map(Number);
  let data = bytes.slice(begin, begin + elements(shape) * TYPES[datatype].bytes);
  if (order === ">") {
    for (let i = 0; i < data.length; i += Number(size)) data.subarray(i, i + Number(size)).reverse();
  }
  const tensor = fromBytes(datatype, shape, data);
  return /fortran_order..\s*True/.test(header) ? rowMajor(tensor) : tensor;
}

export function writeNpy(tensor) {
  // NumPy has no bfloat16.
  const kept = tensor.datatype === "BF16" ? cast(tensor, "FP32") : tensor;
  const shape = kept.shape.length === 1 ? `(${kept.shape[0]},)` : `(${kept.shape.join(", ")})`;
  let header = `{'descr': '${NPY[kept.datatype]}', 'fortran_order': False, 'shape': ${shape}, }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + "\n";
  const data = toBytes(kept);
  const bytes = new Uint8Array(10 + header.length + data.length);
  bytes.set([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, header.length & 255, header.length >> 8]);
  bytes.set(new TextEncoder().encode(header), 10);
  bytes.set(data, 10 + header.length);
  return bytes;
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function readNpz(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = bytes.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) --end;
  if (end < 0) throw new Error("The file is no .npz file.");
  const tensors = {};
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; --left) {
    if (at + 46 > bytes.length || view.getUint32(at, true) !== 0x02014b50) throw new Error("The .npz file is damaged.");
    const method = view.getUint16(at + 10, true), size = view.getUint32(at + 20, true);
    const name = view.getUint16(at + 28, true), local = view.getUint32(at + 42, true);
    if (size === 0xffffffff || local === 0xffffffff) throw new Error("The .npz file has more than 4 GiB.");
    const key = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + name)).replace(/\.npy$/, "");
    const begin = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const data = bytes.slice(begin, begin + size);
    if (method !== 0 && method !== 8) throw new Error(`${key}: the console does not read this compression.`);
    tensors[key] = readNpy(method === 8 ? await inflated(data) : data);
    at += 46 + name + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  return tensors;
}

const CRC = Uint32Array.from({length: 256}, (_, n) => {
  for (let k = 0; k < 8; ++k) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});
const crc32 = (bytes) => ~bytes.reduce((crc, byte) => CRC[(crc ^ byte) & 255] ^ (crc >>> 8), -1) >>> 0;

export function writeNpz(tensors) {
  const parts = [], directory = [];
  let at = 0;
  const record = (signature, fields, tail) => {
    const bytes = new Uint8Array(4 + fields.reduce((sum, [size]) => sum + size, 0) + tail.length);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, signature, true);
    let place = 4;
    for (const [size, value] of fields) {
      size === 4 ? view.setUint32(place, value, true) : view.setUint16(place, value, true);
      place += size;
    }
    bytes.set(tail, place);
    return bytes;
  };
  for (const [key, tensor] of Object.entries(tensors)) {
    const data = writeNpy(tensor), name = new TextEncoder().encode(`${key}.npy`);
    // Version 2.0, names in UTF-8, stored, 1 January 1980.
    const shared = [
      [2, 20], [2, 0x800], [2, 0], [2, 0], [2, 33], [4, crc32(data)], [4, data.length], [4, data.length],
      [2, name.length], [2, 0]
    ];
    const local = record(0x04034b50, shared, name);
    directory.push(record(0x02014b50, [[2, 20], ...shared, [2, 0], [2, 0], [2, 0], [4, 0], [4, at]], name));
    parts.push(local, data);
    at += local.length + data.length;
  }
  const size = directory.reduce((sum, entry) => sum + entry.length, 0);
  const end = record(
      0x06054b50, [[2, 0], [2, 0], [2, directory.length], [2, directory.length], [4, size], [4, at], [2, 0]], []);
  return new Blob([...parts, ...directory, end]);
}

// The tensors of a file by name; a .npy file has one, without a name.
export async function readTensors(file) {
  if (/\.npy$/i.test(file.name)) return {"": readNpy(new Uint8Array(await file.arrayBuffer()))};
  if (/\.npz$/i.test(file.name)) return readNpz(new Uint8Array(await file.arrayBuffer()));
  if (/\.safetensors$/i.test(file.name)) return readSafetensors(file);
  throw new Error(`${file.name}: the console reads .npy, .npz, .safetensors and pictures.`);
}

export function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
