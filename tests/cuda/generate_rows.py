#!/usr/bin/env python3
"""Loops in rows of a model's buffers (docs/generate.md#rows) on a GPU: clients of different lengths, slow ones among them, get
the tokens that the model's arithmetic gives each of them alone, while the runs are CUDA graphs.

    tests/cuda/generate_rows.py SCONCE [--clients 24] [--device cpu]

Needs torch in the Python that runs it, with CUDA unless --device is cpu."""
import argparse
import importlib.util
import json
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROWS, TOKENS, MODULUS = 8, 64, 1000003


def make_package(path, device):
    import torch

    class Running(torch.nn.Module):
        """Each row has a number, which its tokens change: a step too many, too few or of another row shows ever after."""

        def __init__(self):
            super().__init__()
            # Unequal elements: some versions of torch make constants of buffers that are all the same.
            self.register_buffer("number", torch.tensor([[5, 6]]).repeat(ROWS, 1))

        def forward(self, token):
            self.number.copy_((self.number * 31 + token) % MODULUS)
            return torch.nn.functional.one_hot(self.number[:, 0] % TOKENS, TOKENS) * 20.0

    with torch.no_grad():
        program = torch.export.export(Running().to(device), (torch.zeros(ROWS, 1, dtype=torch.int64, device=device),))
        torch._inductor.aoti_compile_and_package(program, package_path=str(path),
                                                 inductor_configs={"always_keep_tensor_constants": True})


def expected(prompt, count):
    number, tokens = 5, []
    for token in prompt:
        number = (number * 31 + token) % MODULUS
    while len(tokens) < count:
        tokens.append(number % TOKENS)
        number = (number * 31 + tokens[-1]) % MODULUS
    return tokens


def ask(port, prompt, count, pause):
    """The tokens of an answer, read slowly if there is a pause."""
    body = json.dumps({"prompt": prompt, "max_tokens": count})
    with socket.socket() as connection:
        if pause:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", port))
        connection.sendall(f"POST /v2/models/rows/generate_stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        answer = b""
        while not answer.endswith(b"\r\n0\r\n\r\n"):
            part = connection.recv(2048 if pause else 1 << 16)
            if not part:
                sys.exit(f"the server closed the connection after {answer[-300:]}")
            answer += part
            time.sleep(pause)
    return [int(number) for number in re.findall(rb'"token":(\d+)', answer)]


def client(port, number, wrong):
    rng = random.Random(number)
    for _ in range(12):
        prompt, count = [rng.randrange(TOKENS) for _ in range(rng.randrange(1, 9))], rng.choice([1, 40, 400, 2000])
        got = ask(port, prompt, count, 0.001 if number % 6 == 0 else 0)
        if got != expected(prompt, count):
            wrong.append((prompt, count, got[:20]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sconce", metavar="SCONCE")
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    arguments = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        sys.exit("generate_rows.py: this Python has no torch: pip install torch==2.11.0")
    with tempfile.TemporaryDirectory() as folder:
        package, loop = pathlib.Path(folder) / "rows.pt2", pathlib.Path(folder) / "loop.json"
        make_package(package, arguments.device)
        loop.write_text(json.dumps({"token": {"input": "INPUT__0", "output": "OUTPUT__0"}, "stop": {"steps": 100000},
                                    "pick": {"temperature": 0}}))
        server = subprocess.Popen([arguments.sconce, "serve", str(package), "--http", "127.0.0.1:0", "--metrics", "off", "--admin", "off",
                                   "--set", "rows.sequences=4", "--set", f"rows.loop={loop}"], stderr=subprocess.PIPE, text=True)
        port = None
        for line in server.stderr:
            if found := re.search(r"inference on \S+:(\d+)", line):
                port = int(found.group(1))
            if line.rstrip().endswith(" ready"):
                break
        threading.Thread(target=server.stderr.read, daemon=True).start()
        wrong, begun = [], time.monotonic()
        threads = [threading.Thread(target=client, args=(port, i, wrong)) for i in range(arguments.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.terminate()
        server.wait()
    print(f"{arguments.clients} clients, {12 * arguments.clients} answers in {time.monotonic() - begun:.1f} s, {len(wrong)} wrong")
    sys.exit(f"wrong: {wrong[:3]}" if wrong else 0)


if __name__ == "__main__":
    main()
