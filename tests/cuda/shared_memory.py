#!/usr/bin/env python3
"""CUDA shared memory on a real device: shared_memory.py SCONCE PACKAGE...

For each package, requests whose data is in device memory of this process must get the same answers as ordinary ones: at
an offset, at an address that needs a copy, on a second device if there is one. Bad handles are refused and the server
lives on. Needs libcudart (torch's will do) and numpy; if tritonclient is installed, repeats this with its client.
"""
import argparse
import base64
import ctypes
import glob
import http.client
import json
import os
import pathlib
import subprocess
import sys

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("program", metavar="SCONCE")
PARSER.add_argument("packages", metavar="PACKAGE", nargs="+")
OPTIONS = PARSER.parse_args()

import numpy as np  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).parents[1] / "server"))
from listening import ports_of  # noqa: E402

TYPES = {"FP32": np.float32, "FP64": np.float64, "INT64": np.int64, "INT32": np.int32, "FP16": np.float16,
         "BOOL": np.bool_, "UINT8": np.uint8}


def load_cudart():
    places = ["libcudart.so.13", "libcudart.so.12"]
    try:
        import torch
        places = glob.glob(os.path.join(os.path.dirname(torch.__file__), "../nvidia/**/libcudart.so.*"),
                           recursive=True) + places
    except ImportError:
        pass
    for place in places:
        try:
            return ctypes.CDLL(place)
        except OSError:
            pass
    sys.exit("no libcudart")


cudart = load_cudart()


def check(status, what):
    if status != 0:
        raise RuntimeError(f"{what}: CUDA error {status}")


class DeviceMemory:
    def __init__(self, size, device=0):
        self.device, self.size, self.pointer = device, size, ctypes.c_void_p()
        check(cudart.cudaSetDevice(device), "cudaSetDevice")
        check(cudart.cudaMalloc(ctypes.byref(self.pointer), ctypes.c_size_t(size)), "cudaMalloc")
        raw = (ctypes.c_char * 64)()
        check(cudart.cudaIpcGetMemHandle(ctypes.byref(raw), self.pointer), "cudaIpcGetMemHandle")
        self.handle = base64.b64encode(raw.raw).decode()

    def address(self, at):
        return ctypes.c_void_p(self.pointer.value + at)

    def put(self, data, at=0):
        check(cudart.cudaMemcpy(self.address(at), data, ctypes.c_size_t(len(data)), 1), "cudaMemcpy")

    def get(self, count, at=0):
        data = (ctypes.c_char * count)()
        check(cudart.cudaMemcpy(ctypes.byref(data), self.address(at), ctypes.c_size_t(count), 2), "cudaMemcpy")
        return data.raw

    def fill(self, byte):
        check(cudart.cudaMemset(self.pointer, byte, ctypes.c_size_t(self.size)), "cudaMemset")
        check(cudart.cudaDeviceSynchronize(), "cudaDeviceSynchronize")


class Server:
    def __init__(self, program, package, devices):
        self.process = subprocess.Popen(
            [program, "serve", f"m={package}", "--http", "127.0.0.1:0", "--metrics", "off", "--admin", "off",
             "--allow-shared-memory", "true", "--drain-grace", "0", "--set", f"m.devices={devices}"],
            stderr=subprocess.PIPE, text=True)
        self.port = ports_of(self.process)["inference"]

    def call(self, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request("GET" if body is None else "POST", path, data, headers or {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content, answer.headers


class Results:
    passed = failed = 0

    def check(self, good, what):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print("FAIL", what, flush=True)


def shared(name, size, at):
    return {"shared_memory_region": name, "shared_memory_byte_size": size, "shared_memory_offset": at}


def one_package(program, package, devices, results):
    server = Server(program, package, devices)
    try:
        _, content, _ = server.call("/v2/models/m")
        metadata = json.loads(content)
        random = np.random.default_rng(1)
        tensors = []
        for t in metadata["inputs"]:
            shape = [4 if size == -1 else size for size in t["shape"]]
            kind = TYPES.get(t["datatype"])
            values = random.standard_normal(shape) if kind in (np.float32, np.float64, np.float16) else \
                random.integers(0, 2, shape)
            # BF16 is sent as its two bytes.
            data = np.asarray(values, np.float32).view(np.uint16)[..., 1::2].tobytes() if kind is None else \
                np.asarray(values, kind).tobytes()
            tensors.append((t["name"], t["datatype"], shape, data))
        inputs = [{"name": n, "datatype": d, "shape": s, "parameters": {"binary_data_size": len(b)}}
                  for n, d, s, b in tensors]
        head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
        status, content, headers = server.call("/v2/models/m/infer", head + b"".join(t[3] for t in tensors),
                                               {"Inference-Header-Content-Length": str(len(head))})
        results.check(status == 200, f"{package}: plain: {content[:200]}")
        if status != 200:
            return
        length = int(headers["Inference-Header-Content-Length"])
        expected, at = [], length
        for output in json.loads(content[:length])["outputs"]:
            size = output["parameters"]["binary_data_size"]
            expected.append((output["name"], content[at:at + size]))
            at += size
        total = sum(-(-len(t[3]) // 256) * 256 for t in tensors) + sum(-(-len(e[1]) // 256) * 256 for e in expected)
        for device in range(len(devices.split(","))):
            memory = DeviceMemory(2 * total + 4096, device)
            body = {"raw_handle": {"b64": memory.handle}, "device_id": device, "byte_size": memory.size}
            status, content, _ = server.call("/v2/cudasharedmemory/region/r/register", body)
            results.check(status == 200, f"{package}: register on {device}: {content}")
            twice = server.call("/v2/cudasharedmemory/region/r/register", body)
            results.check(twice[0] == 400 and b"already in manager" in twice[1], "registered twice")
            for shift in (0, 4, 1):  # in place, and at addresses that are copied first
                for turn in range(5):  # a CUDA graph from the third on
                    memory.fill(0)
                    at, places = shift, []
                    for _, _, _, data in tensors:
                        memory.put(data, at)
                        places.append(at)
                        at += -(-len(data) // 256) * 256
                    request = {"inputs": [{"name": n, "datatype": d, "shape": s, "parameters": shared("r", len(b), p)}
                                          for (n, d, s, b), p in zip(tensors, places)], "outputs": []}
                    ends = []
                    for name, data in expected:
                        request["outputs"].append({"name": name, "parameters": shared("r", len(data), at)})
                        ends.append(at)
                        at += -(-len(data) // 256) * 256
                    status, content, _ = server.call("/v2/models/m/infer", request)
                    same = status == 200 and all(memory.get(len(data), end) == data
                                                 for (_, data), end in zip(expected, ends))
                    results.check(same, f"{package}: device {device}, shift {shift}, turn {turn}: {status} "
                                        f"{content[:300]}")
            too_long = body | {"byte_size": 1 << 40}
            results.check(server.call("/v2/cudasharedmemory/region/x/register", too_long)[0] == 400, "too long")
            server.call("/v2/cudasharedmemory/unregister", b"")
        for handle in (bytes(64), b"\xff" * 64, os.urandom(64)):
            body = {"raw_handle": {"b64": base64.b64encode(handle).decode()}, "device_id": 0, "byte_size": 64}
            status, content, _ = server.call("/v2/cudasharedmemory/region/x/register", body)
            results.check(status == 400, f"bad handle: {status} {content}")
        body = {"raw_handle": {"b64": memory.handle}, "device_id": 99, "byte_size": 64}
        results.check(server.call("/v2/cudasharedmemory/region/x/register", body)[0] == 400, "device 99")
        results.check(server.call("/v2/health/ready")[0] == 200, "ready at the end")
        triton_client(server, tensors, expected, results)
    finally:
        server.process.terminate()
        results.check(server.process.wait(60) == 0, f"{package}: the server's exit status")


def triton_client(server, tensors, expected, results):
    try:
        import tritonclient.http as triton
    except ImportError:
        print("tritonclient: not here")
        return
    try:
        import tritonclient.utils.cuda_shared_memory as shm
    except Exception as why:  # cuda-python is missing
        print("tritonclient.utils.cuda_shared_memory: not here:", why)
        shm = None
    client = triton.InferenceServerClient(f"127.0.0.1:{server.port}")
    inputs, regions = [], []
    for i, (name, datatype, shape, data) in enumerate(tensors):
        if shm and datatype in TYPES:
            region = shm.create_shared_memory_region(f"in{i}", len(data), 0)
            shm.set_shared_memory_region(region, [np.frombuffer(data, TYPES[datatype]).reshape(shape)])
            client.register_cuda_shared_memory(f"in{i}", shm.get_raw_handle(region), 0, len(data))
        else:
            region = DeviceMemory(len(data))
            region.put(data)
            client.register_cuda_shared_memory(f"in{i}", region.handle.encode(), 0, len(data))
        regions.append(region)
        inputs.append(triton.InferInput(name, shape, datatype))
        inputs[-1].set_shared_memory(f"in{i}", len(data))
    target = DeviceMemory(max(1, sum(len(data) for _, data in expected)))
    client.register_cuda_shared_memory("out", target.handle.encode(), 0, target.size)
    outputs, at = [], 0
    for name, data in expected:
        outputs.append(triton.InferRequestedOutput(name))
        outputs[-1].set_shared_memory("out", len(data), at)
        at += len(data)
    client.infer("m", inputs, outputs=outputs)
    results.check(target.get(target.size) == b"".join(data for _, data in expected), "tritonclient's answer")
    client.unregister_cuda_shared_memory()
    results.check(client.get_cuda_shared_memory_status() == [], "unregistered")
    print("tritonclient: done", "with its cuda_shared_memory" if shm else "")


def main():
    count = ctypes.c_int()
    check(cudart.cudaGetDeviceCount(ctypes.byref(count)), "cudaGetDeviceCount")
    results = Results()
    for package in OPTIONS.packages:
        one_package(OPTIONS.program, package, "cuda:0,cuda:1" if count.value > 1 else "cuda:0", results)
    print(f"{results.passed} passed, {results.failed} failed")
    return results.failed != 0


if __name__ == "__main__":
    sys.exit(main())
