"""Tokens a second of a loop (docs/generate.md) through HTTP, against a Python loop over PyTorch's loader on the same package.

    python tests/bench/generate/generate.py SCONCE FOLDER [--tokens 100] [--seconds 4]

FOLDER is what examples/language_model/train.py wrote. Both pick the largest logit, and their tokens must be the same.
"""
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


class Client:
    """Reads events from its socket with as little Python as possible: it shares the machine with the server."""

    def __init__(self, port, model, tokens):
        body = json.dumps({"prompt": [0], "max_tokens": tokens, "temperature": 0}).encode()
        head = f"POST /v2/models/{model}/generate_stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        self.request = head.encode() + body
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def answer(self):
        self.socket.sendall(self.request)
        parts, tail = [], b""
        while not tail.endswith(b"\r\n0\r\n\r\n"):
            part = self.socket.recv(1 << 16)
            if not part:
                raise SystemExit(f"the server closed the connection: {b''.join(parts)[-500:]}")
            parts.append(part)
            tail = (tail + part)[-8:]
        return b"".join(parts)


def tokens_of(answer):
    return [int(number) for number in re.findall(rb'"token":(\d+)', answer)]


def served(port, model, tokens, clients, seconds):
    made = [0] * clients
    begun = threading.Barrier(clients + 1)

    def work(i):
        client = Client(port, model, tokens)
        client.answer()
        begun.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            made[i] += client.answer().count(b'"token":')

    threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    begun.wait()
    start = time.monotonic()
    for thread in threads:
        thread.join()
    return sum(made) / (time.monotonic() - start)


def python_loop(model, state, tokens, rows=1):
    """state: of the first step; None: the package keeps it in a buffer."""
    import torch
    one = torch.zeros(rows, 1, dtype=torch.int64)
    out, token = [], one
    for step in range(tokens):
        if state is None:
            logits = model(token, torch.full((rows,), step))
        else:
            logits, state = model(token, torch.full((rows, 1), step), state)
        token = logits[:, -1].argmax(-1, keepdim=True)
        out.append(token[0].item())  # which a server has to know to send it
    return out


def rate(run, tokens, seconds):
    run()
    made, start = 0, time.monotonic()
    while time.monotonic() - start < seconds:
        run()
        made += tokens
    return made / (time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sconce", metavar="SCONCE")
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=4)
    arguments = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        sys.exit("generate.py: this Python has no torch: pip install torch==2.15.0")
    tokens, seconds = arguments.tokens, arguments.seconds
    package = arguments.folder / "lm.pt2"
    flags = ["--set", "*.sequences=16"]
    with tempfile.TemporaryDirectory() as folder:
        for model in ("explicit", "buffers", "batch"):
            loop = json.loads((arguments.folder / f"{model}.json").read_text())
            loop["stop"]["tokens"] = []  # so that every answer has as many tokens
            path = pathlib.Path(folder) / f"{model}.json"
            path.write_text(json.dumps(loop))
            flags += ["--set", f"lm.{model}.loop={path}"]
        server = subprocess.Popen([arguments.sconce, "serve", str(package), "--http", "127.0.0.1:0", "--metrics", "off",
                                   "--admin", "off", "--drain-grace", "0", *flags], stderr=subprocess.PIPE, text=True)
        port = None
        for line in server.stderr:
            if found := re.search(r"inference on \S+:(\d+)", line):
                port = int(found.group(1))
            if line.rstrip().endswith(" ready"):
                break
        threading.Thread(target=server.stderr.read, daemon=True).start()
        try:
            compare(port, package, tokens, seconds)
        finally:
            server.terminate()
            server.wait()


def compare(port, package, tokens, seconds):
    import torch
    from torch._inductor.package import load_package
    torch.set_num_threads(1)
    with torch.inference_mode():
        explicit = load_package(str(package), "explicit")
        buffers = load_package(str(package), "buffers")
        shape = (2, 2, 128, 48)  # of examples/language_model/train.py
        states = {"explicit": lambda rows: torch.zeros(rows, *shape), "buffers": lambda rows: None, "batch": lambda rows: None}
        batch = load_package(str(package), "batch")
        for name, model in (("explicit", explicit), ("buffers", buffers), ("batch", batch)):
            rows = 8 if name == "batch" else 1
            expected = python_loop(model, states[name](1), tokens, rows)
            got = tokens_of(Client(port, f"lm.{name}", tokens).answer())
            if got != expected:
                raise SystemExit(f"{name}: other tokens: {got[:20]} instead of {expected[:20]}")
            python = rate(lambda model=model, name=name, rows=rows: python_loop(model, states[name](1), tokens, rows),
                          tokens, seconds)
            for clients in (1, 8):
                together = min(clients, rows)  # loops that a Python loop could make at once
                ours = served(port, f"lm.{name}", tokens, clients, seconds)
                print(f"{name:9} {clients} client{'s' if clients > 1 else ' '}: {ours:8.0f} tokens/s, Python loop "
                      f"{python * together:8.0f}, ratio {ours / python / together:.2f}", flush=True)
        batched = rate(lambda: python_loop(explicit, states["explicit"](8), tokens, 8), tokens * 8, seconds)
        print(f"explicit  Python loop over 8 rows at once: {batched:8.0f} tokens/s")


if __name__ == "__main__":
    main()
