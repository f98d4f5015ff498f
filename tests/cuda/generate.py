#!/usr/bin/env python3
"""A loop (docs/generate.md) on a GPU: makes a package of a transformer, checks the served tokens against a Python loop over
PyTorch's loader on the same package, and prints the tokens a second of both.

    tests/cuda/generate.py SCONCE [--layers 4] [--width 256] [--vocabulary 4096] [--length 256] [--package FILE]
    tests/cuda/generate.py SCONCE --layers 18 --width 2048 --vocabulary 32000    # of 1 B parameters
    tests/cuda/generate.py SCONCE --state feed                                   # caches are inputs and outputs
    tests/cuda/generate.py SCONCE --device cpu

Then tokens that are the largest logits and tokens that are drawn in every way are compared with those that this script picks
from the logits of single steps (`infer`): they are the same. Needs numpy, and torch in the Python that runs it, with CUDA
unless --device is cpu. The package is made where --package says, and used again if it is there."""
import argparse
import http.client
import importlib.util
import json
import math
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time


def make_package(path, arguments):
    import torch
    from torch import nn
    from torch.nn import functional

    width, length, heads = arguments.width, arguments.length, max(arguments.width // 64, 1)

    feeds = arguments.state == "feed"

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
            self.mix = nn.Linear(width, 3 * width, bias=False)
            self.out = nn.Linear(width, width, bias=False)
            self.wide, self.narrow = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)
            if not feeds:
                self.register_buffer("cache", torch.zeros(2, 1, heads, length, width // heads))

        def remember(self, key, value, position, cache):
            if feeds:  # each row has its own position
                here = (torch.arange(length, device=key.device) == position)[:, None, None, :, None]
                cache = torch.where(here, torch.stack((key, value), 1), cache)
                return cache[:, 0], cache[:, 1], cache
            self.cache[0].index_copy_(2, position, key)
            self.cache[1].index_copy_(2, position, value)
            return self.cache[0], self.cache[1], None

        def forward(self, x, position, mask, cache):
            query, key, value = (part.unflatten(-1, (heads, -1)).transpose(1, 2)
                                 for part in self.mix(self.before(x)).chunk(3, -1))
            keys, values, cache = self.remember(key, value, position, cache)
            seen = functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
            x = x + self.out(seen.transpose(1, 2).flatten(2))
            return x + self.narrow(functional.silu(self.wide(self.between(x)))), cache

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(arguments.vocabulary, width), nn.Embedding(length, width)
            self.layers = nn.ModuleList(Layer() for _ in range(arguments.layers))
            self.last, self.head = nn.RMSNorm(width), nn.Linear(width, arguments.vocabulary, bias=False)

        def forward(self, token, position, caches=()):
            x = self.tokens(token) + self.places(position if feeds else position[None])
            mask = torch.arange(length, device=token.device)[None] <= (position if feeds else position[None])
            made = []
            for i, layer in enumerate(self.layers):
                x, cache = layer(x, position, mask[:, None, None], caches[i] if feeds else None)
                made.append(cache)
            logits = self.head(self.last(x)).float()
            return (logits, *made) if feeds else logits

    torch.manual_seed(3)
    with torch.no_grad():
        model = Decoder().to(arguments.device, torch.bfloat16 if arguments.device == "cuda" else torch.float32).eval()
        # The largest logits differ by more than rounding.
        model.head.weight.mul_(20)
        parameters = sum(p.numel() for p in model.parameters())
        rows = 2 if feeds else 1
        args = (torch.zeros(rows, 1, dtype=torch.int64, device=arguments.device),
                torch.ones((rows, 1) if feeds else 1, dtype=torch.int64, device=arguments.device))
        dynamic = None
        if feeds:
            args += ([first_cache(arguments, rows) for _ in range(arguments.layers)],)
            batch = {0: torch.export.Dim("batch", min=1, max=64)}
            dynamic = (batch, batch, [batch] * arguments.layers)
        program = torch.export.export(model, args, dynamic_shapes=dynamic)
        options = {"always_keep_tensor_constants": True}
        if parameters > 200_000_000:  # more than a library may hold
            options |= {"aot_inductor.package_constants_in_so": False, "aot_inductor.package_constants_on_disk_format": "binary_blob"}
        torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs=options)
    print(f"{parameters / 1e6:.1f} M parameters, {path.stat().st_size >> 20} MiB", flush=True)


def first_cache(arguments, rows=1):
    import torch
    heads = max(arguments.width // 64, 1)
    return torch.zeros(rows, 2, heads, arguments.length, arguments.width // heads, device=arguments.device,
                       dtype=torch.bfloat16 if arguments.device == "cuda" else torch.float32)


def served_to(clients, port, tokens, seconds):
    """Tokens a second of so many clients at the same time."""
    made = []
    readers = [threading.Thread(target=lambda: made.append(served(port, tokens, seconds)[1])) for _ in range(clients)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    if len(made) != clients:
        sys.exit(f"{clients - len(made)} of {clients} clients failed")
    return sum(made)


def served(port, tokens, seconds):
    """The tokens of a request, and tokens a second of further ones."""
    body = json.dumps({"prompt": [1], "max_tokens": tokens, "temperature": 0})
    request = f"POST /v2/models/lm/generate_stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        def ask():
            connection.sendall(request)
            answer = b""
            while not answer.endswith(b"\r\n0\r\n\r\n"):
                part = connection.recv(1 << 16)
                if not part:
                    sys.exit(f"the server closed the connection after {answer[-300:]}")
                answer += part
            return answer

        for _ in range(5):  # graphs are recorded after a few runs
            answer = ask()
        got = [int(number) for number in re.findall(rb'"token":(\d+)', answer)]
        if len(got) != tokens:
            sys.exit(f"not an answer with {tokens} tokens: {answer[-500:]}")
        made, start = 0, time.monotonic()
        while time.monotonic() - start < seconds:
            made += ask().count(b'"token":')
        return got, made / (time.monotonic() - start)


class Steps:
    """PyTorch's loader on the package, one token at a time."""

    def __init__(self, package, arguments):
        import torch
        self.torch, self.arguments = torch, arguments
        self.model = torch._inductor.aoti_load_package(str(package))
        self.begin()

    def begin(self):
        self.step = 0
        self.caches = [first_cache(self.arguments) for _ in range(self.arguments.layers)] if self.arguments.state == "feed" else []

    def logits(self, token):
        position = self.torch.tensor([self.step], device=self.arguments.device)
        self.step += 1
        if self.arguments.state != "feed":
            return self.model(token, position)
        logits, *self.caches = self.model(token, position[None], self.caches)
        return logits


def python_loop(package, arguments):
    import torch
    steps = Steps(package, arguments)

    def ask():
        token, out = torch.ones(1, 1, dtype=torch.int64, device=arguments.device), []
        steps.begin()
        for _ in range(arguments.tokens):
            token = steps.logits(token)[:, -1].argmax(-1, keepdim=True)
            out.append(token.item())  # which a server has to know to send it
        return out

    with torch.inference_mode():
        got = ask()
        made, start = 0, time.monotonic()
        while time.monotonic() - start < arguments.seconds:
            made += len(ask())
        return got, made / (time.monotonic() - start)


def farthest(package, arguments, tokens):
    """How far below the largest logit PyTorch puts each of these tokens, after those before it; at most, of that logit."""
    import torch
    steps = Steps(package, arguments)
    worst, before = 0.0, 1
    with torch.inference_mode():
        for token in tokens:
            logits = steps.logits(torch.full((1, 1), before, device=arguments.device)).flatten()
            largest = logits.max().item()
            worst, before = max(worst, (largest - logits[token].item()) / abs(largest)), token
    return worst


def exp_of(x):
    """The exponential of server/scheduling/decoding/pick.cpp, operation by operation."""
    import numpy as np
    some = x > -700
    x = np.where(some, x, 0.0)
    n = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10
    total = np.full_like(x, 1 / math.factorial(13))
    for term in range(12, -1, -1):
        total = total * r + 1 / math.factorial(term)
    return np.where(some, np.ldexp(total, n.astype(np.int64)), 0.0)


def uniform(seed, draw):
    word, golden = (1 << 64) - 1, 0x9e3779b97f4a7c15

    def mixed(x):
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & word
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb & word
        return x ^ (x >> 31)

    return (mixed((mixed((seed + golden) & word) + (draw + 1) * golden) & word) >> 11) * 2.0**-53


def pick(logits, options, draw):
    """The token that the server picks on the host."""
    import numpy as np
    temperature, top_k, top_p = options["temperature"], options.get("top_k", 0), options.get("top_p", 1.0)
    if temperature == 0 or top_k == 1:
        return int(logits.argmax())
    row, number = logits.astype(np.float64), uniform(options["seed"], draw)
    if not 0 < top_k < len(row) and top_p >= 1:
        order = np.arange(len(row))
    else:
        order = np.lexsort((np.arange(len(row)), -row))[:top_k if 0 < top_k < len(row) else len(row)]
    weights = exp_of((row[order] - row.max()) / temperature)
    sums = np.cumsum(weights)
    if top_p < 1:
        count = min(len(sums), int(np.searchsorted(sums, top_p * sums[-1])) + 1)
        weights, sums = weights[:count], sums[:count]
    reached = np.flatnonzero((sums > number * sums[-1]) & (weights > 0))
    return int(order[reached[0] if len(reached) else np.flatnonzero(weights)[-1]])


class SingleSteps:
    """Steps of the served model by `infer`, whose logits come whole, with binary tensors."""

    def __init__(self, port, arguments):
        self.arguments, self.number = arguments, 0
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def tokens(self, options, count):
        import numpy as np
        feeds = self.arguments.state == "feed"
        self.number += 1
        token, made = 1, []
        caches = [bytes(first_cache(self.arguments).nbytes)] * self.arguments.layers if feeds else []
        shape = list(first_cache(self.arguments).shape)
        for step in range(count):
            shapes = [("INT64", [1, 1]), ("INT64", [1, 1] if feeds else [1])]
            parts = [np.int64(token).tobytes(), np.int64(step).tobytes(), *caches]
            shapes += [("BF16" if self.arguments.device == "cuda" else "FP32", shape)] * len(caches)
            head = {"inputs": [{"name": f"INPUT__{i}", "datatype": kind, "shape": sizes,
                                "parameters": {"binary_data_size": len(part)}}
                               for i, ((kind, sizes), part) in enumerate(zip(shapes, parts, strict=True))],
                    "outputs": [{"name": f"OUTPUT__{i}", "parameters": {"binary_data": True}} for i in range(1 + len(caches))],
                    "parameters": {}}
            if not feeds:
                head["parameters"] |= {"sequence_id": self.number, "sequence_start": step == 0, "sequence_end": step == count - 1}
            text = json.dumps(head).encode()
            self.connection.request("POST", "/v2/models/lm/infer", text + b"".join(parts),
                                    {"Inference-Header-Content-Length": str(len(text))})
            answer = self.connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                sys.exit(f"infer: {answer.status} {body[:500]}")
            at = int(answer.headers["Inference-Header-Content-Length"])
            outputs = {}
            for output in json.loads(body[:at])["outputs"]:
                size = output["parameters"]["binary_data_size"]
                outputs[output["name"]] = body[at:at + size]
                at += size
            token = pick(np.frombuffer(outputs["OUTPUT__0"], np.float32)[-self.arguments.vocabulary:], options, step)
            caches = [outputs[f"OUTPUT__{i + 1}"] for i in range(len(caches))]
            made.append(token)
        return made


# Both sides of the number of largest logits that a device sorts (kMostLargest), and what needs them all.
PICKS = [{"temperature": 0}, {"temperature": 0.9, "top_k": 1}, {"temperature": 0.9, "top_k": 2}, {"temperature": 3, "top_k": 40},
         {"temperature": 20, "top_k": 128}, {"temperature": 20, "top_k": 128, "top_p": 0.9}, {"temperature": 20, "top_k": 129},
         {"temperature": 20, "top_p": 0.95}, {"temperature": 20}, {"temperature": 20, "top_k": 1000000}]


def check_picks(port, arguments, tokens=24):
    steps = SingleSteps(port, arguments)
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for seed, options in enumerate(PICKS):
        asked = {**options, "seed": seed}
        connection.request("POST", "/v2/models/lm/generate", json.dumps({"prompt": [1], "max_tokens": tokens, **asked}))
        answer = connection.getresponse().read()
        got, expected = json.loads(answer).get("tokens", answer), steps.tokens(asked, tokens)
        if got != expected:
            sys.exit(f"{asked}: the loop made {got}, single steps {expected}")
    print(f"the same {tokens} tokens in {len(PICKS)} ways to pick as from the logits of single steps")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sconce", metavar="SCONCE")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=200, help="of an answer")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--package", type=pathlib.Path)
    parser.add_argument("--state", default="buffers", choices=["buffers", "feed"], help="where the caches are")
    parser.add_argument("--clients", type=int, default=8, help="that share runs, with --state feed")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    arguments = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        sys.exit("generate.py: this Python has no torch: pip install torch==2.15.0")
    with tempfile.TemporaryDirectory() as folder:
        compare(arguments, pathlib.Path(folder))


def compare(arguments, folder):
    package = arguments.package or folder / "lm.pt2"
    if not package.exists():
        make_package(package, arguments)
    loop = folder / "loop.json"
    feeds = arguments.state == "feed"
    loop.write_text(json.dumps({"token": {"input": "INPUT__0", "output": "OUTPUT__0"},
                                "feed": {f"OUTPUT__{i + 1}": {"input": f"INPUT__{i + 2}", "shape": list(first_cache(arguments).shape)}
                                         for i in range(arguments.layers)} if feeds else {},
                                "count": {"input": "INPUT__1", "below": arguments.length}, "stop": {"steps": 100000}}))
    server = subprocess.Popen([arguments.sconce, "serve", f"lm={package}", "--http", "127.0.0.1:0", "--metrics", "off", "--admin", "off",
                               "--drain-grace", "0", "--set", f"lm.loop={loop}", "--set", f"lm.sequences={0 if feeds else 2}",
                               "--set", f"lm.devices={arguments.device}"], stderr=subprocess.PIPE, text=True)
    port, log = None, []
    for line in server.stderr:
        log.append(line)
        if found := re.search(r"inference on \S+:(\d+)", line):
            port = int(found.group(1))
        if line.rstrip().endswith(" ready"):
            break
    else:
        sys.exit("".join(log))
    threading.Thread(target=server.stderr.read, daemon=True).start()
    try:
        got, ours = served(port, arguments.tokens, arguments.seconds)
        together = served_to(arguments.clients, port, arguments.tokens, arguments.seconds) if feeds else None
        check_picks(port, arguments)
    finally:
        server.terminate()
        server.wait()
    expected, theirs = python_loop(package, arguments)
    print(f"sconce {ours:.0f} tokens/s, Python loop {theirs:.0f}, ratio {ours / theirs:.2f}")
    if feeds:
        print(f"{arguments.clients} clients: sconce {together:.0f} tokens/s")
    if got != expected:
        at = next(i for i, pair in enumerate(zip(got, expected, strict=True)) if pair[0] != pair[1])
        # bfloat16 has 8 bits: of two logits that are nearly equal, rounding makes either the largest.
        worst = farthest(package, arguments, got)
        told = f"other tokens from {at} on: each is within {worst:.4f} of the largest logit that PyTorch has there"
        if worst > (2**-6 if arguments.device == "cuda" else 1e-5):
            sys.exit(told + ", which is more than rounding")
        return print(told)
    print(f"the same {len(got)} tokens")


if __name__ == "__main__":
    main()
