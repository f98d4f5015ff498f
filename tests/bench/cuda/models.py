#!/usr/bin/env python3
"""CUDA models compiled here, through Sconce, PyTorch's loader and torch.compile, in one run: models.py CALL UPDATE [NAME...]

CALL and UPDATE are bench_cuda_call and bench_cuda_update of build/release/tests. Needs torch with CUDA and a C++
compiler (CXX). Batch 1 is bound by launches, the others by arithmetic. Prints for each model the microseconds per call
(inputs and outputs on the device, until the device has finished), the milliseconds from nothing loaded to the first
output (ours in a new process, PyTorch's without import and one-time start-up), our resident memory, and GB/s of new
weights.
"""
import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import time

CHILD = r"""
import json, sys, time
import torch
from torch import nn

class Mlp(nn.Module):
    def __init__(self, layers=24, width=256):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(layers))
    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x

class Decoder(nn.Module):
    def __init__(self, layers=6, width=512, heads=8):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.up = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(layers))
    def forward(self, x):
        b, t, d = x.shape
        for i in range(len(self.qkv)):
            q, k, v = self.qkv[i](self.norms[2 * i](x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out[i](a.transpose(1, 2).reshape(b, t, d))
            x = x + self.down[i](nn.functional.gelu(self.up[i](self.norms[2 * i + 1](x))))
        return x

class Conv(nn.Module):
    def __init__(self, layers, channels):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(layers))
    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
        return x

class Dense(nn.Module):
    def __init__(self, layers=8, width=8192):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x

def make(name):
    torch.manual_seed(0)
    if name == "llama-decode-1b":
        sys.path.append(sys.argv[1])
        from definitions import Llama
        torch.set_default_device("cuda"); torch.set_default_dtype(torch.bfloat16)
        try: model = Llama(cache=512, depth=22, width=2048, count=32, kv=4, inner=5632)
        finally: torch.set_default_device(None); torch.set_default_dtype(torch.float32)
        return model, [torch.zeros(1, 1, dtype=torch.int64, device="cuda"), torch.tensor([500], device="cuda")]
    bf16 = dict(dtype=torch.bfloat16, device="cuda")
    if name == "mlp-1": return Mlp().to(**bf16), [torch.randn(1, 256, **bf16)]
    if name == "decoder-1": return Decoder().to(**bf16), [torch.randn(1, 16, 512, **bf16)]
    if name == "conv-1": return Conv(8, 64).to(**bf16), [torch.randn(1, 64, 28, 28, **bf16)]
    if name == "dense-4096": return Dense().to(**bf16), [torch.randn(4096, 8192, **bf16)]
    if name == "decoder-8x2048": return Decoder(6, 2048, 16).to(**bf16), [torch.randn(8, 2048, 2048, **bf16)]
    if name == "conv-64":
        return (Conv(8, 256).to(**bf16).to(memory_format=torch.channels_last),
                [torch.randn(64, 256, 56, 56, **bf16).to(memory_format=torch.channels_last)])
    raise KeyError(name)

def median(run, seconds=0.7):
    for _ in range(20): run(); torch.cuda.synchronize()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        before = time.perf_counter(); run(); torch.cuda.synchronize(); times.append(time.perf_counter() - before)
    return sorted(times)[len(times) // 2] * 1e6

def resident():
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmRSS")) / 1024

def measure(what, name, path):
    if what == "package":
        model, inputs = make(name)
        torch._inductor.aoti_compile_and_package(torch.export.export(model, tuple(inputs)), package_path=path)
        return {}
    if what == "compile":
        model, inputs = make(name)
        compiled = torch.compile(model, mode="reduce-overhead")
        return {"compile_us": median(lambda: compiled(*inputs))}
    inputs, result = make(name)[1], {}
    for _ in range(2):  # the second load has nothing of Python left to import
        torch.cuda.empty_cache()
        start = time.perf_counter()
        model = torch._inductor.aoti_load_package(path, run_single_threaded=True)
        run = lambda: model.loader.boxed_run(list(inputs))
        run(); torch.cuda.synchronize()
        result["first_ms"] = (time.perf_counter() - start) * 1e3
    result["call_us"] = median(run)
    return result

torch.zeros(1, device="cuda")
for line in sys.stdin:
    what, name, path = json.loads(line)
    try:
        with torch.no_grad():
            result = measure(what, name, path)
    except Exception as error:
        result = {"error": str(error).split("\n")[0][:150]}
    torch._dynamo.reset()
    torch.cuda.synchronize(); torch.cuda.empty_cache()
    print("RESULT " + json.dumps(result), flush=True)
"""
DEFINITIONS = pathlib.Path(__file__).resolve().parents[1] / "models"
NAMES = ["conv-1", "dense-4096", "decoder-8x2048", "conv-64", "mlp-1", "decoder-1", "llama-decode-1b"]


class Torch:
    """All of PyTorch in one process, because its imports can take longer than everything measured."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", CHILD, str(DEFINITIONS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)

    def ask(self, *what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("RESULT "):
                return json.loads(line[7:])
        return {"error": "PyTorch's process ended"}


def ours_of(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:150]}
    return json.loads(done.stdout.splitlines()[-1])


def column(value):
    return f"{value:9.1f}" if isinstance(value, (int, float)) else f"{'-':>9}"


def main(call, update, names):
    print(f"{'model':16s} {'graphs':>9s} {'plain':>9s} {'loader':>9s} {'compile':>9s}  {'graphs/l':>8s} {'plain/l':>8s} "
          f"{'graphs/c':>8s}  {'first ms':>9s} {'loader':>9s}  {'MB':>7s}", flush=True)
    torch = Torch()
    with tempfile.TemporaryDirectory() as folder:
        for name in names or NAMES:
            begin = time.time()
            path = f"{folder}/{name}.pt2"
            made = torch.ask("package", name, path)
            if "error" in made:
                print(f"{name}: {made['error']}", flush=True)
                continue
            graphs, plain = ours_of(call, path), ours_of(call, "--no-graphs", path)
            theirs, compiled = torch.ask("loader", name, path), torch.ask("compile", name, path)

            def ratio(a, b):
                return f"{a / b:8.2f}" if a and b else f"{'-':>8}"
            g, p, l, c = graphs.get("call_us_p50"), plain.get("call_us_p50"), theirs.get("call_us"), compiled.get("compile_us")
            print(f"{name:16s} {column(g)} {column(p)} {column(l)} {column(c)}  {ratio(g, l)} {ratio(p, l)} {ratio(g, c)}  "
                  f"{column(plain.get('first_output_ms'))} {column(theirs.get('first_ms'))}  {plain.get('resident_mb', 0):7.0f}  "
                  f"{graphs.get('graphs', '')} "
                  + " ".join(r["error"] for r in (graphs, plain, theirs, compiled) if "error" in r)
                  + f" ({time.time() - begin:.0f} s)", flush=True)
            if name == "dense-4096":
                listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.splitlines()
                for devices in sorted({1, len(listed)}):
                    result = ours_of(update, path, ",".join(map(str, range(devices))))
                    print(f"{name}: new weights: {result}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("call", metavar="CALL")
    parser.add_argument("update", metavar="UPDATE")
    parser.add_argument("names", metavar="NAME", nargs="*")
    options = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("models.py: this Python has no torch: pip install torch==2.15.0")
    main(options.call, options.update, options.names)
