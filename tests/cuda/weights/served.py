"""Servers, requests to them, and clients that ask all the time."""
import http.client
import json
import re
import subprocess
import threading
import time
import urllib.parse

import numpy as np
from net import X, same

STREAM = {"Content-Type": "application/octet-stream"}


class Server:
    """`sconce serve` with these arguments. Its log is in the folder."""

    program, folder, device = None, None, None

    def __init__(self, *arguments, devices=None):
        self.log = self.folder / f"log-{time.monotonic_ns()}"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [self.program, "serve", *map(str, arguments), "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--metrics",
                 "off", "--drain-grace", "0", "--weights-peers", "127.0.0.1", "--set",
                 f"*.devices={devices or self.device}"], stderr=log)
        end = time.monotonic() + 120
        while time.monotonic() < end and self.process.poll() is None:
            found = [re.search(rf"{what} on http://\S+:(\d+)", self.log.read_text()) for what in ("inference", "administration")]
            if all(found):
                self.port, self.admin_port = (int(f[1]) for f in found)
                self.url = f"http://127.0.0.1:{self.admin_port}"
                if self.call("GET", "/v2/health/ready")[0] == 200:
                    return
            time.sleep(0.05)
        self.kill()
        raise RuntimeError("not ready:\n" + self.log.read_text())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def call(self, method, path, body=None, headers=None, admin=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port if admin else self.port, timeout=300)
        if isinstance(body, (dict, list)):
            body, headers = json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})}
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content, answer.headers

    def admin(self, method, path, body=None, status=200, model="net"):
        """The document of the answer, which must have this status. Bytes are a safetensors file."""
        path = path if path.startswith("/") else f"/v2/admin/models/{model}/{path}"
        got, content, _ = self.call(method, path, body, STREAM if isinstance(body, bytes) and body else None, admin=True)
        if got != status:
            raise RuntimeError(f"{method} {path}: {got} {content[:500]}")
        return json.loads(content) if content else {}

    def infer(self, x=X, model="net", headers=None):
        with Connection(self) as connection:
            return connection.infer(x, model, headers)

    def state(self, which, model="net"):
        """The active, staged or previous set; None."""
        return next((s for s in self.admin("GET", "weights?digest=true", model=model)["sets"] if s["state"] == which), None)


class Refused(Exception):
    pass


class Connection:
    """One connection to the inference port."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def infer(self, x=X, model="net", headers=None, name="INPUT__0"):
        """The output, and the weight version that gave it."""
        head = json.dumps({"inputs": [{"name": name, "datatype": "FP32", "shape": list(x.shape),
                                       "parameters": {"binary_data_size": x.nbytes}}],
                           "parameters": {"binary_data_output": True}}).encode()
        self.connection.request("POST", f"/v2/models/{model}/infer", head + x.tobytes(),
                                {"Inference-Header-Content-Length": str(len(head)), **(headers or {})})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise Refused(f"{answer.status} {content[:300]}")
        length = int(answer.headers["Inference-Header-Content-Length"])
        self.version = json.loads(content[:length])["parameters"]["weight_version"]
        shape = json.loads(content[:length])["outputs"][0]["shape"]
        return np.frombuffer(content[length:], np.float32).reshape(shape), int(answer.headers["Sconce-Weight-Version"])


class Clients:
    """Threads that ask without pause while the block runs. choose(i): model or headers of a thread's next request."""

    def __init__(self, server, count=6, choose=lambda numbers: {}, keep=True):
        self.server, self.choose, self.keep = server, choose, keep
        self.answers, self.failures, self.stopped, self.count = [], [], False, 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(count)]

    def run(self, seed):
        numbers = np.random.default_rng(seed)
        seen = 0
        with Connection(self.server) as connection:
            while not self.stopped:
                chosen = self.choose(numbers)
                try:
                    values, weight_version = connection.infer(**chosen)
                except (OSError, http.client.HTTPException, Refused) as problem:
                    self.failures.append(repr(problem))
                    return
                with self.lock:
                    self.count += 1
                    if self.keep:
                        self.answers.append((chosen, weight_version, values))
                    if not chosen and weight_version < seen:
                        self.failures.append(f"weight version {weight_version} after {seen}")
                seen = weight_version

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped = True
        for thread in self.threads:
            thread.join()

    def wrong(self, expected):
        """How many answers are not what expected(chosen, weight version) says."""
        return sum(not same(values, expected(chosen, weight_version)) for chosen, weight_version, values in self.answers)


def until(good, seconds=60):
    """Whether it became so in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if good():
            return True
        time.sleep(0.02)
    return False


def weights_command(*arguments, servers, model="net"):
    """`sconce weights ...` for these servers: its exit status, and what it printed."""
    done = subprocess.run([Server.program, "weights", *map(str, arguments), "--model", model, "--to",
                           ",".join(s.url for s in servers), "--patience", "60"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode, done.stdout


def quoted(text):
    return urllib.parse.quote(text, safe="")
