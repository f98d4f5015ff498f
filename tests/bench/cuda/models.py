"""CUDA models compiled here, through Sconce, PyTorch's loader and torch.compile, in one run: models.py CALL UPDATE [NAME...]

CALL and UPDATE are bench_cuda_call and bench_cuda_update of build/release/tests. Needs torch with CUDA and a C++
compiler (CXX). Batch 1 is bound by launches, the others by arithmetic. Per model: microseconds of a call, inputs and
outputs on the device, done when the device has done it; milliseconds from nothing loaded to the first output (PyTorch's
without its import); resident memory of the process. Then GB/s of new weights.
"""
import json
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

torch.zeros(1, device="cuda")
what, name, path = sys.argv[1:]
result = {}
with torch.no_grad():
    if what == "package":
        model, inputs = make(name)
        torch._inductor.aoti_compile_and_package(torch.export.export(model, tuple(inputs)), package_path=path)
    elif what == "compile":
        model, inputs = make(name)
        compiled = torch.compile(model, mode="reduce-overhead")
        result["compile_us"] = median(lambda: compiled(*inputs))
    else:
        inputs = make(name)[1]
        torch.cuda.empty_cache()
        start = time.perf_counter()
        model = torch._inductor.aoti_load_package(path, run_single_threaded=True)
        run = lambda: model.loader.boxed_run(list(inputs))
        run(); torch.cuda.synchronize()
        result["first_ms"] = (time.perf_counter() - start) * 1e3
        result["call_us"] = median(run)
        result["resident_mb"] = next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmRSS")) / 1024
print("RESULT " + json.dumps(result))
"""
NAMES = ["mlp-1", "decoder-1", "conv-1", "dense-4096", "decoder-8x2048", "conv-64"]


def child(what, name, path):
    done = subprocess.run([sys.executable, "-c", CHILD, what, name, path], capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:150]}


def ours_of(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:150]}
    return json.loads(done.stdout.splitlines()[-1])


def column(value):
    return f"{value:9.1f}" if isinstance(value, (int, float)) else f"{'-':>9}"


def main(call, update, names):
    print(f"{'model':16s} {'graphs':>9s} {'plain':>9s} {'loader':>9s} {'compile':>9s}  {'graphs/l':>8s} {'plain/l':>8s} "
          f"{'graphs/c':>8s}  {'first ms':>9s} {'loader':>9s}  {'MB':>7s} {'loader':>7s}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names or NAMES:
            begin = time.time()
            path = f"{folder}/{name}.pt2"
            made = child("package", name, path)
            if "error" in made:
                print(f"{name}: {made['error']}", flush=True)
                continue
            graphs, plain = ours_of(call, path), ours_of(call, "--no-graphs", path)
            theirs, compiled = child("loader", name, path), child("compile", name, path)

            def ratio(a, b):
                return f"{a / b:8.2f}" if a and b else f"{'-':>8}"
            g, p, l, c = graphs.get("call_us_p50"), plain.get("call_us_p50"), theirs.get("call_us"), compiled.get("compile_us")
            print(f"{name:16s} {column(g)} {column(p)} {column(l)} {column(c)}  {ratio(g, l)} {ratio(p, l)} {ratio(g, c)}  "
                  f"{column(plain.get('first_output_ms'))} {column(theirs.get('first_ms'))}  {plain.get('resident_mb', 0):7.0f} "
                  f"{theirs.get('resident_mb', 0):7.0f}  {graphs.get('graphs', '')} "
                  + " ".join(r["error"] for r in (graphs, plain, theirs, compiled) if "error" in r)
                  + f" ({time.time() - begin:.0f} s)", flush=True)
            if name == "dense-4096":
                print(f"{name}: new weights: {ours_of(update, path)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
