#!/usr/bin/env python3
"""A loop (docs/generate.md) on a GPU: makes a package of a transformer with its cache in buffers, checks the served tokens
against a Python loop over PyTorch's loader on the same package, and prints the tokens a second of both.

    tests/cuda/generate.py SCONCE [--layers 4] [--width 256] [--vocabulary 4096] [--length 256] [--package FILE]
    tests/cuda/generate.py SCONCE --layers 18 --width 2048 --vocabulary 32000    # of 1 B parameters
    tests/cuda/generate.py SCONCE --device cpu

Needs torch in the Python that runs it, with CUDA unless --device is cpu. The package is made where --package says, and used
again if it is there."""
import argparse
import importlib.util
import json
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

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
            self.mix = nn.Linear(width, 3 * width, bias=False)
            self.out = nn.Linear(width, width, bias=False)
            self.wide, self.narrow = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)
            self.register_buffer("cache", torch.zeros(2, 1, heads, length, width // heads))

        def forward(self, x, position, mask):
            query, key, value = (part.unflatten(-1, (heads, -1)).transpose(1, 2)
                                 for part in self.mix(self.before(x)).chunk(3, -1))
            self.cache[0].index_copy_(2, position, key)
            self.cache[1].index_copy_(2, position, value)
            seen = functional.scaled_dot_product_attention(query, self.cache[0], self.cache[1], attn_mask=mask)
            x = x + self.out(seen.transpose(1, 2).flatten(2))
            return x + self.narrow(functional.silu(self.wide(self.between(x))))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(arguments.vocabulary, width), nn.Embedding(length, width)
            self.layers = nn.ModuleList(Layer() for _ in range(arguments.layers))
            self.last, self.head = nn.RMSNorm(width), nn.Linear(width, arguments.vocabulary, bias=False)

        def forward(self, token, position):
            x = self.tokens(token) + self.places(position[None])
            mask = (torch.arange(length, device=token.device) <= position)[None, None, None]
            for layer in self.layers:
                x = layer(x, position, mask)
            return self.head(self.last(x)).float()

    torch.manual_seed(3)
    with torch.no_grad():
        model = Decoder().to(arguments.device, torch.bfloat16 if arguments.device == "cuda" else torch.float32).eval()
        # The largest logits differ by more than rounding.
        model.head.weight.mul_(20)
        parameters = sum(p.numel() for p in model.parameters())
        args = (torch.zeros(1, 1, dtype=torch.int64, device=arguments.device),
                torch.ones(1, dtype=torch.int64, device=arguments.device))
        program = torch.export.export(model, args)
        options = {"always_keep_tensor_constants": True}
        if parameters > 200_000_000:  # more than a library may hold
            options |= {"aot_inductor.package_constants_in_so": False, "aot_inductor.package_constants_on_disk_format": "binary_blob"}
        torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs=options)
    print(f"{parameters / 1e6:.1f} M parameters, {path.stat().st_size >> 20} MiB", flush=True)


def served(port, tokens, seconds):
    """The tokens of a request, and tokens a second of further ones."""
    body = json.dumps({"prompt": [1], "max_tokens": tokens, "temperature": 0})
    request = f"POST /v2/models/lm/generate_stream HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
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


def python_loop(package, device, tokens, seconds):
    import torch
    model = torch._inductor.aoti_load_package(str(package))

    def ask():
        token, out = torch.ones(1, 1, dtype=torch.int64, device=device), []
        for step in range(tokens):
            logits = model(token, torch.tensor([step], device=device))
            token = logits[:, -1].argmax(-1, keepdim=True)
            out.append(token.item())  # which a server has to know to send it
        return out

    with torch.inference_mode():
        got = ask()
        made, start = 0, time.monotonic()
        while time.monotonic() - start < seconds:
            made += len(ask())
        return got, made / (time.monotonic() - start)


def farthest(package, device, tokens):
    """How far below the largest logit PyTorch puts each of these tokens, after those before it; at most, of that logit."""
    import torch
    model = torch._inductor.aoti_load_package(str(package))
    worst, before = 0.0, 1
    with torch.inference_mode():
        for step, token in enumerate(tokens):
            logits = model(torch.full((1, 1), before, device=device), torch.tensor([step], device=device)).flatten()
            largest = logits.max().item()
            worst, before = max(worst, (largest - logits[token].item()) / abs(largest)), token
    return worst


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
    loop.write_text(json.dumps({"token": {"input": "INPUT__0", "output": "OUTPUT__0"},
                                "count": {"input": "INPUT__1", "below": arguments.length}, "stop": {"steps": 100000}}))
    server = subprocess.Popen([arguments.sconce, "serve", f"lm={package}", "--http", "127.0.0.1:0", "--metrics", "off", "--admin", "off",
                               "--drain-grace", "0", "--set", f"lm.loop={loop}", "--set", "lm.sequences=1",
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
    finally:
        server.terminate()
        server.wait()
    expected, theirs = python_loop(package, arguments.device, arguments.tokens, arguments.seconds)
    print(f"sconce {ours:.0f} tokens/s, Python loop {theirs:.0f}, ratio {ours / theirs:.2f}")
    if got != expected:
        at = next(i for i, pair in enumerate(zip(got, expected, strict=True)) if pair[0] != pair[1])
        # bfloat16 has 8 bits: of two logits that are nearly equal, rounding makes either the largest.
        worst = farthest(package, arguments.device, got)
        told = f"other tokens from {at} on: each is within {worst:.4f} of the largest logit that PyTorch has there"
        if worst > (2**-6 if arguments.device == "cuda" else 1e-5):
            sys.exit(told + ", which is more than rounding")
        return print(told)
    print(f"the same {len(got)} tokens")


if __name__ == "__main__":
    main()
