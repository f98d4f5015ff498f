"""A server with its admin port, and clients that check each answer while its weights change."""
import http.client
import json
import os
import socket
import threading

import pytest
from serving import FAKE_MODELS, PACKAGES, Server, until
from weights_files import fake_weights, repeated, safetensors

STREAM = {"Content-Type": "application/octet-stream"}
FAKE = FAKE_MODELS / "fake_model.so"
LARGE = FAKE_MODELS / "fake_large.so"
LARGE_FEATURES = 2097152
ONES = {"INPUT__0": ("FP32", [1, 4], [1, 1, 1, 1])}
STORED = [1, 12, 23, 34]  # what the fake model answers to ones with the weights it was built with
GOOD = fake_weights(8)
UNKNOWN_NAME = safetensors({"scale.w": repeated(8, 4), "scale.c": repeated(8, 4)})
WRONG_SHAPE = safetensors({"scale.w": repeated(8, 4), "scale.b": repeated(8, 5)})


class AdminServer(Server):
    def admin(self, method, path, body=None, headers=None, **more):
        if isinstance(body, dict):
            body, headers = json.dumps(body), {"Content-Type": "application/json", **(headers or {})}
        path = path if path.startswith("/") else "/v2/admin/models/" + path
        return self.request(method, path, body, headers or {}, port=self.ports["administration"], **more)

    def push(self, model, data, query="", headers=None):
        return self.admin("POST", f"{model}/weights?{query}", data, {**STREAM, **(headers or {})})

    def ones(self, model="fake"):
        """The model's answer and the weight version that gave it."""
        answer = self.infer(model, ONES)
        assert answer.status == 200, answer.body
        return answer.json["outputs"][0]["data"], int(answer.headers["Sconce-Weight-Version"])

    def sets(self, model="fake", query=""):
        answer = self.admin("GET", f"{model}/weights?{query}")
        assert answer.status == 200, answer.body
        return {s["state"]: s for s in answer.json["sets"]}

    def served(self, model="fake"):
        """What the model answers to ones, the weight version and the label."""
        values, weight_version = self.ones(model)
        return values, weight_version, self.sets(model)["active"]["label"]

    def operation(self, number):
        return self.admin("GET", f"/v2/admin/operations/{number}").json

    def wait_operation(self, number, seconds=20):
        until(lambda: self.operation(number)["state"] != "running", seconds, lambda: self.operation(number))
        return self.operation(number)

    def running(self):
        return [o for o in self.admin("GET", "/v2/admin/operations").json["operations"] if o["state"] == "running"]

    def connect_admin(self):
        return socket.create_connection(("127.0.0.1", self.ports["administration"]), timeout=20)

    def begin_push(self, model, data, sent, query="", headers=""):
        """Returns a connection after sending the head of a push and the first `sent` bytes of its body."""
        connection = self.connect_admin()
        connection.sendall(f"POST /v2/admin/models/{model}/weights?{query} HTTP/1.1\r\nHost: localhost\r\n{headers}"
                           f"Content-Type: application/octet-stream\r\nContent-Length: {len(data)}\r\n\r\n".encode()
                           + data[:sent])
        return connection


    def begin_chunks(self, model, sent, query="", headers=""):
        """Returns a connection after sending the head of a chunked push, then `sent`."""
        connection = self.connect_admin()
        connection.sendall(f"POST /v2/admin/models/{model}/weights?{query} HTTP/1.1\r\nHost: localhost\r\n{headers}"
                           "Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + sent)
        return connection


def url(server):
    """The URL of the server's admin port."""
    return f"http://127.0.0.1:{server.ports['administration']}"


def chunks(data, size, end=b"0\r\n\r\n"):
    """A body in chunks of so many bytes."""
    pieces = [data[i:i + size] for i in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + end


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    directory = tmp_path_factory.mktemp("weights")
    (directory / "sub").mkdir()
    (directory / "sub" / "seven.safetensors").write_bytes(fake_weights(7))
    os.symlink("sub/seven.safetensors", directory / "inside.safetensors")
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.safetensors").write_bytes(fake_weights(666))
    os.symlink(outside / "secret.safetensors", directory / "link.safetensors")
    os.symlink(outside, directory / "folder")
    os.mkfifo(directory / "fifo")
    with AdminServer(f"fake={FAKE}", f"large={LARGE}", f"folded={FAKE_MODELS / 'fake_folded.so'}",
                     f"state={FAKE_MODELS / 'fake_state.so'}", PACKAGES / "several.pt2",
                     flags=["--weights-dir", str(directory)]) as running:
        running.outside = outside
        running.directory = directory
        yield running


@pytest.fixture()
def server(shared):
    """The shared server. After each test, updates are over and staged sets dropped."""
    yield shared
    until(lambda: not shared.running())
    for model in ("fake", "large", "folded"):
        shared.admin("POST", f"{model}/weights/abort")
        shared.admin("POST", f"{model}/weights/release")


def expected(value):
    return [2 * value] * 4


def wait_until_idle(server):
    until(lambda: not server.running())


class Clients:
    """Threads that send requests without pause on persistent connections and check each answer."""

    def __init__(self, server, model="fake", count=8):
        self.server, self.model, self.stopped, self.problems, self.answers = server, model, False, [], 0
        self.weight_versions = {}  # weight version -> value that it answered
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run) for _ in range(count)]

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        body = json.dumps({"inputs": [{"name": "INPUT__0", "shape": [2, 4], "datatype": "FP32", "data": [1] * 8}]})
        seen = 0
        try:
            while not self.stopped:
                connection.request("POST", f"/v2/models/{self.model}/infer", body)
                response = connection.getresponse()
                text = response.read()
                if response.status != 200:
                    self.problems.append((response.status, text))
                    continue
                answer = json.loads(text)
                values = answer["outputs"][0]["data"]
                weight_version = int(response.headers["Sconce-Weight-Version"])
                version = answer["parameters"]["weight_version"]
                with self.lock:
                    self.answers += 1
                    if len(set(values)) != 1:
                        self.problems.append(("mixed", values))
                    if weight_version < seen:
                        self.problems.append(("back in time", weight_version, seen))
                    if self.weight_versions.setdefault(weight_version, (values[0], version)) != (values[0], version):
                        self.problems.append(("another answer", weight_version, values[0], self.weight_versions[weight_version]))
                seen = weight_version
        except Exception as e:  # a connection that was closed, for example
            self.problems.append(repr(e))
        connection.close()

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stopped = True
        for t in self.threads:
            t.join()
