#!/usr/bin/env python3
"""A trainer hands its weights over by CUDA IPC: trainer_ipc.py SCONCE [--package PACKAGE] [--gib N] [--turns N]

This process is the trainer: it has the weights as PyTorch tensors on the GPU and pushes them to a server on the same GPU, in
SGLang's, vLLM's and Sconce's own form, with bodies built as these projects build them. After each push it compares the
server's answer with PyTorch's, checks that the memory is its own again, and compares the time with a plain copy of the same
bytes on the device. Needs PyTorch with CUDA; without --package, also a C++ compiler, to compile a model of N GiB.

Ends with a table, best of N turns: the client's request, the server's operation, and of it opening the handles (before the
operation, in SGLang's and vLLM's forms), copying (which takes the memory), making the new container, and the commit. "again":
the copy goes to the memory of the set that goes, as when a trainer pushes one set after the other; "new": that was released
before. "plain" is the speed of copying against a plain copy of the same bytes on the device, "fresh" against one into memory
that is allocated for it, "other" against PyTorch's copy of the same bytes in a process that is not the trainer, as the server
is none: the device has to change processes first.
"""
import argparse
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("program", metavar="SCONCE")
PARSER.add_argument("--package", help="compiled before by this script, with the same --gib")
PARSER.add_argument("--keep", help="where to keep the package that is compiled")
PARSER.add_argument("--gib", type=float, default=2)
PARSER.add_argument("--turns", type=int, default=5)
OPTIONS = PARSER.parse_args()

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "weights"))

import torch  # noqa: E402
import trainer_forms as forms  # noqa: E402
from listening import ports_of  # noqa: E402  (in tests/server, which trainer_forms adds)

WIDTH = 8192
LAYERS = max(1, round(OPTIONS.gib * 2**30 / (2 * WIDTH * WIDTH)))
PROBLEMS = []


def check(good, what):
    if not good:
        PROBLEMS.append(what)
        print("FAIL", what, flush=True)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def compile_package(net, path):
    program = torch.export.export(net, (torch.zeros(2, WIDTH, dtype=torch.bfloat16, device="cuda"),))
    return torch._inductor.aoti_compile_and_package(program, package_path=path,
                                                    inductor_configs={"always_keep_tensor_constants": True})


class Server:
    def __init__(self, program, package):
        self.process = subprocess.Popen(
            [program, "serve", f"m={package}", "--http", "127.0.0.1:0", "--metrics", "off", "--admin", "127.0.0.1:0",
             "--drain-grace", "0", "--set", "m.devices=cuda:0"], stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.ports = ports_of(self.process, self.lines)

    def call(self, path, body=None, headers=None, admin=True):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["administration" if admin else "inference"],
                                                timeout=600)
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        fields = {"Content-Type": "application/json"} if isinstance(body, dict) else {}
        connection.request("GET" if body is None else "POST", path, data, fields | (headers or {}))
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content, answer.headers

    def post(self, path, body):
        status, content, _ = self.call(path, body)
        check(status == 200, f"{path}: {status} {content[:500]}")
        return json.loads(content) if content else {}

    def infer(self, x):
        data = x.cpu().contiguous().view(torch.uint8).numpy().tobytes()
        head = json.dumps({"inputs": [{"name": "INPUT__0", "datatype": "BF16", "shape": list(x.shape),
                                       "parameters": {"binary_data_size": len(data)}}],
                           "parameters": {"binary_data_output": True}}).encode()
        status, content, headers = self.call("/v2/models/m/infer", head + data,
                                             {"Inference-Header-Content-Length": str(len(head))}, admin=False)
        if status != 200:
            raise RuntimeError(f"infer: {status} {content[:500]}")
        length = int(headers["Inference-Header-Content-Length"])
        values = torch.frombuffer(bytearray(content[length:]), dtype=torch.bfloat16).reshape(x.shape)
        return values, json.loads(content[:length])["parameters"]["weight_version"]

    def last_operation(self):
        _, content, _ = self.call("/v2/admin/operations")
        return json.loads(content)["operations"][-1]


def tensors_of(net):
    return [(name, p.detach()) for name, p in net.named_parameters()]


FORMS = {"sglang": forms.push_sglang, "sglang bucket": forms.push_sglang_bucket, "vllm, 4 parts": forms.push_vllm,
         "own": forms.push_own}


def plain_copy(net, fresh):
    """Seconds for a copy of the same bytes on the device; fresh: into memory that is allocated for it."""
    sources = [t for _, t in tensors_of(net)]
    if not fresh:
        targets = [torch.empty_like(t) for t in sources]
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    if fresh:
        whole = torch.empty(sum(t.numel() for t in sources), dtype=sources[0].dtype, device="cuda")
        targets = [p.view(t.shape) for p, t in zip(whole.split([t.numel() for t in sources]), sources)]
    for t, s in zip(targets, sources):
        t.copy_(s)
    torch.cuda.synchronize()
    return time.perf_counter() - begin


class OtherProcess:
    """A process of PyTorch that has opened the net's memory by CUDA IPC, and memory of its own for the values."""

    def __init__(self, net):
        self.process = subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.copy(forms.dumps([t for _, t in tensors_of(net)]))  # the first copy is no figure: it opens everything

    def copy(self, line=""):
        """Seconds for a copy of all tensors."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        check(self.process.wait(60) == 0, "the other process's exit status")


def fill(net):
    """Gives the net other values. Returns the bytes that PyTorch counts as used."""
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn_like(p) / WIDTH**0.5)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.memory_allocated()


def own_again(before, what):
    """Checks that the server released its references, so that PyTorch can free what it shared."""
    torch.cuda.ipc_collect()
    torch.cuda.empty_cache()
    grown = torch.cuda.memory_allocated() - before
    check(grown <= 0, f"{what}: {grown} bytes are still counted as used by the server")


def main():
    torch.manual_seed(0)
    net = Net().to(torch.bfloat16).cuda()
    size = sum(p.numel() * p.element_size() for p in net.parameters())
    folder = tempfile.mkdtemp()
    package = OPTIONS.package or compile_package(net, OPTIONS.keep or os.path.join(folder, "net.pt2"))
    server = Server(OPTIONS.program, package)
    x = torch.randn(2, WIDTH, device="cuda").to(torch.bfloat16)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {size / 2**30:.2f} GiB in {2 * LAYERS} tensors")
    with torch.no_grad():
        net(x)  # cuBLAS takes its workspace now, so that it is not counted as memory that the server keeps
    rows = []
    try:
        for form, push in FORMS.items():
            for again in (False, True):
                times = []
                for turn in range(OPTIONS.turns + again):
                    before = fill(net)
                    with torch.no_grad():
                        expected = net(x).cpu()
                    version = f"{form.replace(',', '').replace(' ', '-')}-{again}-{turn}"
                    begin = time.perf_counter()
                    own_time = push(server.post, tensors_of(net), version)
                    request = own_time or time.perf_counter() - begin
                    with torch.no_grad():
                        for p in net.parameters():
                            p.fill_(float("nan"))  # the server's set must not depend on this memory any more
                    torch.cuda.synchronize()
                    values, seen = server.infer(x)
                    check(seen == version, f"{form}: version {seen}, not {version}")
                    check(torch.allclose(values.float(), expected.float(), atol=3e-2, rtol=3e-2),
                          f"{form}: the answer differs by {(values.float() - expected.float()).abs().max()}")
                    operation = server.last_operation()
                    check(operation["state"] == "done" and operation["bytes"] == size, f"{form}: {operation}")
                    own_again(before, form)
                    if not again:
                        server.post("/v2/admin/models/m/weights/release", b"")
                    if turn >= again:  # the first of those that take a set's memory again has none to take
                        phases, shared = operation["phase_seconds"], operation["shared_memory_seconds"]
                        times.append({"request": request, "operation": operation["seconds"], "opening": shared["opening"],
                                      "copying": shared["copying"], "folding": phases["folding"],
                                      "committing": phases["committing"]})
                rows.append((form, again, {key: min(one[key] for one in times) for key in times[0]}))
            server.post("/v2/admin/models/m/weights/release", b"")
        fill(net)
        copy = min(plain_copy(net, False) for _ in range(OPTIONS.turns))
        fresh = min(plain_copy(net, True) for _ in range(OPTIONS.turns))
        process, others = OtherProcess(net), []
        for _ in range(OPTIONS.turns):
            fill(net)  # as before each push
            others.append(process.copy())
        process.end()
        other = min(others)
        print(f"plain copy {copy * 1e3:.2f} ms ({size / copy / 1e9:.0f} GB/s), fresh {fresh * 1e3:.2f} ms, "
              f"in another process {other * 1e3:.2f} ms; all times in ms")
        columns = list(rows[0][2])
        print(f"{'form':15} {'memory':>7}" + "".join(f"{c:>11}" for c in columns) + f"{'plain':>8} {'fresh':>8} {'other':>8}")
        for form, again, times in rows:
            print(f"{form:15} {'again' if again else 'new':>7}" + "".join(f"{times[c] * 1e3:11.2f}" for c in columns) +
                  f"{copy / times['copying']:8.2f} {fresh / times['copying']:8.2f} {other / times['copying']:8.2f}")
        status, content, _ = server.call("/update_weights_from_tensor", {"serialized_named_tensors": [
            forms.dumps([("layers.0.bias", torch.zeros(3, device="cuda", dtype=torch.bfloat16))])]})
        check(status == 400 and b"expected shape" in content, f"a wrong shape: {status} {content[:300]}")
        dead = subprocess.run([sys.executable, "-c", DEAD], capture_output=True, text=True, timeout=300)
        status, content, _ = server.call("/v2/admin/models/m/weights", json.loads(dead.stdout.splitlines()[-1]))
        check(status == 400 and b"failed to open CUDA IPC handle" in content, f"a dead process: {status} {content[:300]}")
        values, _ = server.infer(x)  # the device still works
        check(server.call("/v2/health/ready")[0] == 200, "ready at the end")
    finally:
        server.process.terminate()
        check(server.process.wait(60) == 0, "the server's exit status")
    print(f"{len(PROBLEMS)} problems")
    return len(PROBLEMS) != 0


# Reads a list of tensors, as handles; then, for each line, copies all of them to its own memory and prints the seconds.
OTHER = """
import base64, pickle, sys, time, torch
sources = pickle.loads(base64.b64decode(sys.stdin.readline()))
targets = [torch.empty_like(t) for t in sources]
while True:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for t, s in zip(targets, sources):
        t.copy_(s)
    torch.cuda.synchronize()
    print(time.perf_counter() - begin, flush=True)
    if not sys.stdin.readline():
        break
"""

# Prints a body about memory of a process that has ended when it is read.
DEAD = """
import base64, json, torch
from torch.multiprocessing.reductions import reduce_tensor
t = torch.zeros(%d, device="cuda", dtype=torch.bfloat16)
handle = reduce_tensor(t)[1][7]
print(json.dumps({"tensors": [{"name": "layers.0.bias", "dtype": "bfloat16", "shape": [%d], "device": 0,
                               "handle": base64.b64encode(handle[-64:]).decode()}]}))
""" % (WIDTH, WIDTH)

if __name__ == "__main__":
    sys.exit(main())
