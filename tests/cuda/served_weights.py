#!/usr/bin/env python3
"""Weights of a model that is served on a GPU: served_weights.py SCONCE PACKAGE_FOLDER

Exports a model for the GPU, serves it, and compares every answer with PyTorch's: twenty named sets that requests choose on
two replicas, one of them promoted and rolled back, a push that outlives kill -9, the active set as a file, a server that
takes it from the first one, and how far a staged set is. PACKAGE_FOLDER has the Python package of the build (sconce/). Needs a
GPU, PyTorch with CUDA, safetensors and a C++ compiler. Ends with "N problems" and exits with 1 if there are any.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("program", metavar="SCONCE")
PARSER.add_argument("python", metavar="PACKAGE_FOLDER")
OPTIONS = PARSER.parse_args()
sys.path.insert(0, OPTIONS.python)

import numpy as np  # noqa: E402
import safetensors.torch  # noqa: E402
import sconce  # noqa: E402
import torch  # noqa: E402

FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="sconce-served-weights-"))
STREAM = {"Content-Type": "application/octet-stream"}
X = np.random.default_rng(0).standard_normal((4, 64), dtype=np.float32)
SETS = range(2, 22)
problems = 0


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(64, 256)
        self.b = torch.nn.Linear(256, 32)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


torch.manual_seed(0)
NET = Net().cuda().eval()


def check(good, what):
    global problems
    problems += not good
    print("ok  " if good else "FAIL", what, flush=True)


def weights(scale):
    """The state_dict() whose b.weight is `scale` times the package's, as a safetensors file."""
    return {name: (value * scale if name == "b.weight" else value).cpu().contiguous() for name, value in NET.state_dict().items()}


def expected(scale):
    net = Net().cuda()
    net.load_state_dict(weights(scale))
    with torch.no_grad():
        return net(torch.as_tensor(X).cuda()).cpu().numpy()


def request(url, body=None, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, data=body, headers=headers)) as answer:
        return answer.read(), answer.headers


class Server:
    def __init__(self, package, *options):
        self.log = FOLDER / f"log-{time.monotonic_ns()}"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [OPTIONS.program, "serve", package, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--metrics", "127.0.0.1:0",
                 "--set", "net.devices=cuda:0", *options], stderr=log)
        for _ in range(600):
            found = [re.search(rf"{what} on (http://\S+)", self.log.read_text()) for what in ("inference", "administration")]
            if all(found):
                self.http, self.admin = found[0][1], found[1][1] + "/v2/admin/models/net"
                self.peer = found[1][1]
                try:
                    request(self.http + "/v2/health/ready")
                    return
                except urllib.error.HTTPError:
                    pass
            time.sleep(0.1)
        self.process.kill()
        sys.exit("not ready:\n" + self.log.read_text())

    def agrees(self, scale, what, model="net", **headers):
        name = json.loads(request(f"{self.http}/v2/models/{model}")[0])["inputs"][0]["name"]
        body = {"inputs": [{"name": name, "shape": list(X.shape), "datatype": "FP32", "data": X.ravel().tolist()}]}
        answer, fields = request(f"{self.http}/v2/models/{model}/infer", json.dumps(body).encode(), **headers)
        got = np.array(json.loads(answer)["outputs"][0]["data"], np.float32).reshape(4, 32)
        check(np.allclose(got, expected(scale), rtol=1e-4, atol=1e-4), what)
        return fields["Sconce-Generation"]

    def end(self):
        self.process.kill()
        self.process.wait()


def named_sets(package):
    server = Server(package, "--set", "net.sets=50", "--set", "net.replicas=2")
    for i in SETS:
        request(f"{server.admin}/sets/s{i}?mode=partial", safetensors.torch.save({"b.weight": weights(i)["b.weight"]}), **STREAM)
    for _ in range(2):
        for i in SETS:
            server.agrees(i, f"set s{i} by the model's name", model=f"net@s{i}")
            server.agrees(i, f"set s{i} by the header", **{"Sconce-Weights": f"s{i}"})
    server.agrees(1, "no set")
    request(server.admin + "/sets/s5/promote", b"")
    server.agrees(5, "the promoted set")
    request(server.admin + "/weights/rollback", b"")
    server.agrees(1, "after a rollback")
    server.end()


def kept(package):
    keep = ("--weights-keep", str(FOLDER / "kept"))
    server = Server(package, *keep)
    request(server.admin + "/weights?commit=true&label=v3", safetensors.torch.save(weights(3)), **STREAM)
    pushed = server.agrees(3, "pushed")
    server.end()
    server = Server(package, *keep)
    check(server.agrees(3, "after kill -9") == pushed, "its generation goes on")
    body, fields = request(server.admin + "/weights/active")
    check(torch.equal(safetensors.torch.load(body)["b.weight"], weights(3)["b.weight"]) and
          fields["Sconce-Weights-Label"] == "v3", "the active set as a file")
    other = Server(package, "--set", "net.weights_from=" + server.peer)
    check(other.agrees(3, "from a peer") == pushed, "with the peer's generation")
    other.end()
    request(server.admin + "/weights", safetensors.torch.save(weights(1)), **STREAM)
    told = json.loads(request(server.admin + "/weights/diff")[0])
    check(told["same"] == 3 and told["to"] == "staged" and abs(told["differences"][0]["relative"] - 2 / 3) < 1e-6,
          "how far the staged set is")
    server.end()


package = str(FOLDER / "net.pt2")
sconce.export(NET, torch.randn(3, 64), package, device="cuda", batch=(1, 16))
named_sets(package)
kept(package)
print(f"{problems} problems")
sys.exit(problems > 0)
