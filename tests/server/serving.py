"""Runs the real program for the tests of the server."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import queue
import re
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("SCONCE_PROGRAM", ROOT / "build/release/server/sconce"))
FAKE_MODELS = PROGRAM.parent.parent / "tests/fake_model"
PACKAGES = pathlib.Path(__file__).parent / "packages"
SANITIZED = any(name in PROGRAM.read_bytes() for name in (b"libasan.so", b"libtsan.so")) if PROGRAM.exists() else False


ENDLESS = ("/v2/admin/live", "/v2/admin/log/live")  # GET: streams of events


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


class Server:
    """A `sconce serve` process with ports of its own."""

    def __init__(self, *serve, flags=(), environment=None, wait=True, prefix=(), program=PROGRAM):
        command = [*prefix, str(program), "serve", "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--admin",
                   "127.0.0.1:0", "--drain-grace", "0", *flags, *[str(s) for s in serve]]
        self.log = []
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})})
        # Always read, so that the pipe never fills up.
        self.lines = queue.SimpleQueue()
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        self.ports = {}
        while len(self.ports) < 3:
            line = self.read_line()
            if line is None:
                raise RuntimeError("ended at start:\n" + "".join(self.log))
            found = re.search(r"(inference|metrics|administration) on https?://\S+:(\d+)", line)
            if found:
                self.ports[found.group(1)] = int(found.group(2))
        self.port, self.admin_port = self.ports["inference"], self.ports["administration"]
        if wait:
            self.wait_ready()

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            self.lines.put(line)
        self.lines.put(None)

    def read_line(self):
        return self.lines.get()

    def wait_ready(self, seconds=30):
        until(lambda: self.get("/v2/health/ready").status == 200, seconds)

    def client(self, port, timeout):
        return http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, port=None, timeout=30, **more):
        connection = self.client(port or self.port, timeout, **more)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def index(self):
        """The repository index: each model's state and the reason for it."""
        return {m["name"]: (m["state"], m.get("reason", "")) for m in self.post("/v2/repository/index", b"").json}

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, headers=None, **more):
        data = body if isinstance(body, (bytes, str)) else json.dumps(body)
        return self.request("POST", path, data.encode() if isinstance(data, str) else data, headers, **more)

    def infer(self, model, tensors, outputs=None, **more):
        """tensors: name -> (datatype, shape, data)."""
        body = {"inputs": [{"name": n, "datatype": d, "shape": s, "data": v} for n, (d, s, v) in tensors.items()], **more}
        if outputs is not None:
            body["outputs"] = [{"name": n} for n in outputs]
        return self.post(f"/v2/models/{model}/infer", body)

    def connect(self, timeout=30):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def raw(self, data, timeout=30):
        """Sends bytes and returns everything until the server closes the connection."""
        with self.connect(timeout) as connection:
            connection.sendall(data)
            return read_all(connection)

    def metrics(self):
        text = self.get("/metrics", port=self.ports["metrics"]).body.decode()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[0] != "#"}

    def memory_kb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))

    def grown_kb(self, before):
        """0 under sanitizers, which keep freed memory and add shadow memory."""
        return 0 if SANITIZED else self.memory_kb() - before

    def assert_settles(self, turn, kb, rounds=8):
        """A leak grows in every round; a heap that has not reached its size yet does not."""
        grown = []
        while len(grown) < rounds:
            before = self.memory_kb()
            turn()
            try:  # the allocator returns freed memory after a while
                return until(lambda: self.grown_kb(before) < kb, 1)
            except AssertionError:
                grown.append(self.grown_kb(before))
        raise AssertionError(f"grew in each round, kB: {grown}")

    def stop(self, signal_number=signal.SIGTERM, timeout=30):
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        status = self.process.wait(timeout)
        self.reader.join()
        return status

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if SANITIZED and self.process.poll() is None:
            self.process.terminate()  # the sanitizer looks for leaks at the end
            self.process.wait(60)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()
        reports = [line for line in self.log if "Sanitizer" in line or "runtime error" in line]
        assert failure or not reports, "".join(self.log[self.log.index(reports[0]):][:60])


class Clients:
    """Threads that ask a model over and over on persistent connections, and the answers they got."""

    def __init__(self, server, model, count=4, row=(1, 2, 3, 4)):
        self.server, self.model, self.body = server, model, json.dumps(numbers(list(row)))
        self.counts, self.answers, self.errors, self.slowest = {}, set(), set(), 0.0
        self.stop, self.lock = threading.Event(), threading.Lock()
        self.running = threads(*[self.run] * count, stop=self.stop)

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        while not self.stop.is_set():
            begin = time.time()
            try:
                connection.request("POST", f"/v2/models/{self.model}/infer", self.body)
                response = connection.getresponse()
                text, status = response.read(), response.status
            except (OSError, http.client.HTTPException) as problem:
                connection.close()
                text, status = b"", repr(problem)
            with self.lock:
                self.slowest = max(self.slowest, time.time() - begin)
                self.counts[status] = self.counts.get(status, 0) + 1
                if status == 200:
                    self.answers.add(tuple(json.loads(text)["outputs"][0]["data"]))
                else:
                    self.errors.add((status, text.decode()))
        connection.close()

    def wait(self, more=20):
        """Waits until `more` requests were answered."""
        wanted = sum(self.counts.values()) + more
        until(lambda: sum(list(self.counts.values())) >= wanted)

    def __enter__(self):
        self.running.__enter__()
        try:
            self.wait()
        except BaseException:
            self.stop.set()
            raise
        return self

    def __exit__(self, *failure):
        return self.running.__exit__(*failure)


class HeldServer(Server):
    """Between hold() and release(), runs of its fake models wait, so that tests need no timing."""

    def __init__(self, *serve, flags=()):
        self.folder = tempfile.TemporaryDirectory()
        self.held = pathlib.Path(self.folder.name) / "held"
        # Runs must not happen on the threads that read requests.
        super().__init__(*serve, flags=["--inline-below", "0", *flags], environment={"FAKE_MODEL_HOLD": str(self.held)})

    def hold(self):
        self.held.touch()

    def release(self):
        self.held.unlink(missing_ok=True)

    def stop(self, *arguments, **others):
        self.release()
        return super().stop(*arguments, **others)


@contextlib.contextmanager
def no_descriptors(server):
    """The process cannot open files; those already open still work."""
    limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (1, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, limits)


@contextlib.contextmanager
def threads(*calls, stop=None):
    """Runs each call on a thread of its own. At the end, sets `stop`, waits for all, and raises what one of them raised."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        running = [pool.submit(call) for call in calls]
        try:
            yield
        finally:
            if stop:
                stop.set()
    for call in running:
        call.result()


def numbers(data, **more):
    """A request to a fake model, whose rows are four numbers each."""
    return {"inputs": [{"name": "INPUT__0", "shape": [len(data) // 4, 4], "datatype": "FP32", "data": data}], **more}


def binary(data, **more):
    """A request with binary data: returns the body, and the header field with the length of its JSON part."""
    text = json.dumps({"inputs": [{"name": "INPUT__0", "shape": [len(data) // 16, 4], "datatype": "FP32",
                                   "parameters": {"binary_data_size": len(data)}}], **more}).encode()
    return text + data, {"Inference-Header-Content-Length": str(len(text))}


def raw_post(path, body, fields=b""):
    """A POST as bytes."""
    return b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(body) + fields + b"\r\n" + body


def until(condition, seconds=30, why="it does not come true"):
    """Waits until the condition is true and returns its value. why: the message for a timeout, or a function that makes it."""
    end = time.time() + seconds
    while not (said := condition()):
        assert time.time() < end, why() if callable(why) else why
        time.sleep(0.01)
    return said


def socket_queues(connection):
    """The queues that the kernel has for both ends of a connection within this machine: (sent and not yet taken by the
    other end, come and not yet read), for this end and for the peer's. None for an end that is gone."""
    def name(address):
        return "%08X:%04X" % (struct.unpack("=I", socket.inet_aton(address[0]))[0], address[1])

    try:
        here, there = name(connection.getsockname()), name(connection.getpeername())
    except OSError:  # the peer has reset it
        return None, None
    ends = {}
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if (local, remote) in ((here, there), (there, here)):
            ends[local] = tuple(int(length, 16) for length in queues.split(":"))
    return ends.get(here), ends.get(there)


def unread(connection):
    """How many bytes sent on this connection its peer has not read; the end of the data counts as one. A test
    that wants bytes to be read in two pieces waits until this is 0."""
    here, there = socket_queues(connection)
    return (here or (0, 0))[0] + (there or (0, 0))[1]


def untaken(connection):
    """How many bytes the peer has sent on this connection and this end has not read."""
    here, there = socket_queues(connection)
    return (here or (0, 0))[1] + (there or (0, 0))[0]


def status(data):
    """The status of the first answer in these bytes; None if there are none."""
    return int(data.split()[1]) if data else None


def read_all(connection):
    data = b""
    while True:
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:
            return data
        if not piece:
            return data
        data += piece


def read_answer(connection, data=b""):
    """Reads one answer: status, head, body, and the bytes after it. The connection stays open."""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        assert piece, f"closed within a head: {data!r}"
        data += piece
    head, rest = data.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"Content-Length: (\d+)", head).group(1))
    while len(rest) < length:
        piece = connection.recv(65536)
        assert piece, "closed within a body"
        rest += piece
    return int(head.split()[1]), head, rest[:length], rest[length:]


def run_serve(*arguments, environment=None, timeout=30, program=PROGRAM):
    """Runs a server that ends by itself; returns its exit status and its log."""
    done = subprocess.run([str(program), "serve", "--http", "127.0.0.1:0", "--metrics", "off", "--admin", "off",
                           *[str(a) for a in arguments]], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(environment or {})})
    return done.returncode, done.stderr


# What the fake model computes with its stored weights, and inputs with a special effect (tests/fake_model/fake_knobs.h).
def fake_expected(row):
    return [x * (1 + i) + 10 * i for i, x in enumerate(row)]


FAIL_INPUT = -1e30
SLEEP_INPUT = -2e30
