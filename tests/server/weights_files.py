"""Writes safetensors files for tests, correct ones and wrong ones."""
import base64
import hashlib
import json
import struct


def safetensors(tensors):
    """tensors: name -> (dtype, shape, bytes)."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def floats(*values):
    return ("F32", [len(values)], struct.pack(f"<{len(values)}f", *values))


def repeated(value, count):
    return ("F32", [count], struct.pack("<f", value) * count)


def fake_weights(value, features=4):
    """For the fake models: y = value * x + value."""
    return safetensors({"scale.w": repeated(value, features), "scale.b": repeated(value, features)})


def content_digest(data):
    return "sha-256=:" + base64.b64encode(hashlib.sha256(data).digest()).decode() + ":"
