"""The server under test: a model that neighbours use all the time, one that is loaded, updated and unloaded, and the
invariants that hold whatever fails."""
import atexit
import collections
import contextlib
import ctypes
import functools
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from client import ask, request_bytes
from control import Control
from serving import FAKE_MODELS, PROGRAM, ROOT, Server, until

INTERPOSER = PROGRAM.parent.parent / "tests/faults/fault_interposer.so"
DIGITS = ROOT / "examples/digits"
CALL = (DIGITS / "request.json").read_bytes()
PACKAGE = (DIGITS / "digits.pt2").read_bytes()
SECOND = (DIGITS / "digits-v2.safetensors").read_bytes()
STREAM = ("Content-Type: application/octet-stream",)
JSON = ("Content-Type: application/json",)
# Threads for large requests are created one by one, when several are read at once.
SLACK = {"threads": 2}
# Service must be complete again this long after the fault is gone.
WHOLE_AGAIN = 1.0
START = 5.0


_authority = []


def certificates():
    """A certificate authority, or None without openssl."""
    if not _authority and shutil.which("openssl"):
        from certificates import Authority
        folder = pathlib.Path(tempfile.mkdtemp(prefix="sconce-faults-ca-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _authority.append(Authority(folder, "faults"))
    return _authority[0] if _authority else None


# No address randomisation, so that addresses of the last run still tell where it ended.
ctypes.CDLL(None).personality(0x0040000)


class Lost(Exception):
    """An invariant is broken; the message says which."""


def mapped_packages(maps):
    """Mappings of packages, deleted files included. The kernel may show one mapping in several parts."""
    places, before = [], None
    for line in maps.splitlines():
        if ".pt2" not in line:
            continue
        addresses, _, _, _, inode = line.split(maxsplit=5)[:5]
        first, last = addresses.split("-")
        if before != (first, inode):
            places.append(line)
        before = last, inode
    return places


def listening(process):
    """IPv4 ports that the process listens on, in creation order."""
    folder = pathlib.Path(f"/proc/{process}")
    mine = set()
    for link in (folder / "fd").iterdir():
        with contextlib.suppress(OSError):  # closed just now
            mine.add(os.readlink(link))
    sockets = (line.split() for line in (folder / "net/tcp").read_text().splitlines()[1:])
    return [port for _, port in sorted((int(s[9]), int(s[1].split(":")[1], 16)) for s in sockets
                                       if s[3] == "0A" and f"socket:[{s[9]}]" in mine)]


class Started(Server):
    """A server that must say in time where it listens."""

    def read_line(self):
        try:
            line = self.lines.get(timeout=START)
        except queue.Empty:
            self.process.kill()
            self.process.wait()
            raise Lost(f"hangs at its start: {''.join(self.log)}") from None
        # A server that cannot start may call abort() before its first words.
        if line is None and (status := self.process.wait(START)) in (-signal.SIGSEGV, -signal.SIGBUS):
            raise Lost(f"ended by signal {-status} at its start: {''.join(self.log)}")
        # The log lost lines for lack of memory; one of them may have named a port.
        if line and "lines were lost" in line:
            def found():
                ports = listening(self.process.pid)
                if len(ports) == 3:
                    self.ports = dict(zip(("inference", "metrics", "administration"), ports))
                return len(self.ports) == 3 or self.process.poll() is not None

            with contextlib.suppress(AssertionError):
                until(found, START)
        return line


def replace(path, data):
    """Replaces the file as a careful operator does: a new file takes the name."""
    other = path.with_name(path.name + ".new")
    other.write_bytes(data)
    os.rename(other, path)


@functools.cache
def changed_package():
    """The digits package as if made with the second weights, which lie in its library one after the other, at
    multiples of 64 bytes."""
    size = struct.unpack("<Q", SECOND[:8])[0]
    tensors = json.loads(SECOND[8:8 + size])
    tensors.pop("__metadata__", None)
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(DIGITS / "digits.pt2") as package:
            package.extractall(folder)
        library, = pathlib.Path(folder).rglob("*.wrapper.so")
        data = bytearray(library.read_bytes())
        sections = subprocess.run(["readelf", "-SW", library], capture_output=True, text=True, check=True).stdout
        at = int(re.search(r"\.lrodata\s+\S+\s+\S+\s+(\S+)", sections).group(1), 16)
        for layer in ("features.0", "features.2", "features.5", "classifier"):
            for name in (f"{layer}.weight", f"{layer}.bias"):
                begin, end = (8 + size + offset for offset in tensors[name]["data_offsets"])
                at = (at + 63) // 64 * 64
                data[at:at + end - begin] = SECOND[begin:end]
                at += end - begin
        library.write_bytes(data)
        root, = pathlib.Path(folder).iterdir()
        made = pathlib.Path(folder) / "made.pt2"
        subprocess.run([PROGRAM, "pack", root, made], check=True, capture_output=True)
        return made.read_bytes()


class Subject:
    """One server under the interposer. `digits` serves all the time; `other` is the same package under another name."""

    def __init__(self, flags=(), models=(), context=None, environment=None, serve=True, warm_up=lambda _: None, pairs=(),
                 watch=False, weights=None):
        self.warm_up = warm_up
        self.maps = ""
        # If a package's own code runs out of memory while it makes a model, it may lose the handle of a constant and
        # with it the constant's mapping. Counts how many could be lost.
        self.kept = 0
        self.may_blame = False  # the fault looks like a client's mistake (a missing file)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sconce-faults-"))
        self.weights = weights or self.folder / "weights"
        self.weights.mkdir(exist_ok=True)
        self.package = self.folder / "other.pt2"
        self.write_files()
        self.region = pathlib.Path("/dev/shm") / self.folder.name
        self.region.write_bytes(bytes(64))
        self.control = Control()
        self.context = context
        self.flags = ["--io-threads", "1", "--http-admin", "true", "--weights-dir", str(self.weights),
                      "--trace-file", str(self.folder / "traces"), "--allow-shared-memory", "true", *map(str, flags)]
        # (certificate, key) files' contents; the first pair is served.
        self.pairs = list(pairs)
        if pairs:
            for name, text in zip(("tls.pem", "tls.key"), pairs[0]):
                (self.folder / name).write_bytes(text)
            self.flags += ["--http-tls", "on", "--tls-certificate", str(self.folder / "tls.pem"), "--tls-key",
                           str(self.folder / "tls.key")]
        self.models = [f"digits={DIGITS / 'digits.pt2'}", f"fake={FAKE_MODELS / 'fake_model.so'}",
                       f"other={self.package}", *map(str, models)]
        self.watched = self.folder / "repository/watched.pt2"
        if watch:
            self.watched.parent.mkdir()
            shutil.copy(DIGITS / "digits.pt2", self.watched)
            self.models.append(str(self.watched.parent))
        self.environment = {"LD_PRELOAD": str(INTERPOSER), "SCONCE_FAULTS": str(self.control.path),
                            **(environment or {})}
        self.server = self.neighbour = None
        if serve:
            self.start()

    def begin(self):
        self.control.page.end_frames = self.control.page.process = 0
        self.server = Started(*self.models, flags=self.flags, environment=self.environment, wait=False)

    def start(self):
        self.begin()
        if not self.control.page.process:
            raise Lost("the interposer is not in the process")
        self.until(lambda: self.get("/v2/health/ready").status == 200, 30, "not ready after the start")
        first = self.call("digits")
        if first.status != 200:
            raise Lost(f"the first answer: {first}")
        self.first = first.body
        self.update("other")
        second = self.call("other")
        if second.status != 200 or second.body == first.body:
            raise Lost(f"the second weights' answer: {second}")
        self.second = second.body
        self.reload()
        self.neighbour = None
        self.baseline = None

    def write_files(self):
        replace(self.weights / "second.safetensors", SECOND)
        replace(self.package, PACKAGE)

    def restart(self):
        self.end()
        self.write_files()
        self.start()

    def end(self):
        if self.neighbour:
            self.neighbour.close()
            self.neighbour = None
        self.server.process.kill()
        self.server.process.wait()
        self.server.reader.join()
        self.server.process.stderr.close()

    def close(self):
        if self.server:
            self.end()
        self.control.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.region.unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # What clients do:
    @property
    def public(self):
        return self.server.ports["inference"]

    @property
    def admin(self):
        return self.server.ports["administration"]

    @property
    def metrics(self):
        return self.server.ports["metrics"]

    def ask(self, data, port=None):
        return ask(port or self.public, data, self.context if port in (None, self.public) else None)

    def get(self, path, port=None):
        return self.ask(request_bytes("GET", path), port)

    def post(self, path, body=b"{}", headers=JSON, port=None):
        return self.ask(request_bytes("POST", path, body, headers), port)

    def call(self, model):
        return self.post(f"/v1/models/{model}:call", CALL)

    def load(self, model="other"):
        return self.post(f"/v2/repository/models/{model}/load", port=self.admin)

    def unload(self, model="other"):
        return self.post(f"/v2/repository/models/{model}/unload", port=self.admin)

    def update(self, model="other", query="commit=true"):
        return self.post(f"/v2/admin/models/{model}/weights?{query}", SECOND, STREAM, self.admin)

    def change(self, what, model="other"):
        return self.post(f"/v2/admin/models/{model}/weights/{what}", port=self.admin)

    # What must hold:
    def until(self, condition, seconds, problem):
        start = time.monotonic()
        while not (said := condition()):
            if not self.lives():
                raise Lost(self.death())
            # A machine busy with other work gets longer: its load says how many want each core.
            if time.monotonic() - start > seconds * max(1, os.getloadavg()[0] / len(os.sched_getaffinity(0))):
                raise Lost(problem() if callable(problem) else problem)
            time.sleep(0.005)
        return said

    def lives(self):
        return self.server is not None and self.server.process.poll() is None

    def death(self):
        status = self.server.process.wait()
        self.server.reader.join(2)
        return f"the process ended with {status}: {''.join(self.server.log[-6:])[-1500:]}"

    def reload(self):
        """`other`, and the watched package, as they were at the start."""
        self.until(lambda: self.unload().status == 200, WHOLE_AGAIN,
                   lambda: f"other cannot be unloaded: {self.unload()}")
        self.until(lambda: self.load().status == 200, WHOLE_AGAIN, "other cannot be loaded again")
        if self.watched.parent.exists():
            self.serve_watched()

    def serve_watched(self):
        """The first package in the repository, served."""
        if not self.watched.exists() or self.watched.read_bytes() != PACKAGE:
            replace(self.watched, PACKAGE)
        self.until_watched(self.first)

    def until_watched(self, answer):
        outcome = None

        def answered():
            nonlocal outcome
            outcome = self.call("watched")
            return outcome.body == answer

        # After a failed look at the repository, the server waits twice as long, and so on.
        self.until(answered, 3, lambda: f"the repository's package is not served: {outcome}")

    def expected(self, outcome):
        """Whether an answer belongs to the weights that it names."""
        return outcome.status == 200 and outcome.body in (self.first, self.second)

    def check_refusal(self, outcome, what):
        """A request hit by a fault gets an error that says why, or its connection ends."""
        if outcome.stalled:
            raise Lost(f"{what}: neither answered nor closed")
        if outcome.status == 0:
            return
        if outcome.status < 500 and outcome.status != 429 and not self.may_blame:
            raise Lost(f"{what}: blamed on the client: {outcome}")
        try:
            if not outcome.json["error"]:
                raise Lost(f"{what}: an error without a reason")
        except (ValueError, KeyError, TypeError):
            raise Lost(f"{what}: no error document: {outcome}") from None

    def check_whole(self):
        """Neighbours get right answers within a second, on new connections and on one that was open all the time."""
        outcome = None

        def answered():
            nonlocal outcome
            outcome = self.call("digits")
            return outcome.status == 200

        self.until(answered, WHOLE_AGAIN, lambda: f"not whole again within a second: {outcome}")
        if outcome.body != self.first:
            raise Lost(f"a neighbour's answer changed: {outcome}")

    def resources(self):
        proc = pathlib.Path(f"/proc/{self.server.process.pid}")
        maps = (proc / "maps").read_text()
        self.maps = maps
        return {"fds": len(list((proc / "fd").iterdir())), "threads": len(list((proc / "task").iterdir())),
                "libraries": len(re.findall(r" r-xp .*memfd:", maps)), "packages": len(mapped_packages(maps))}

    def held(self):
        """Names of open files and mappings."""
        names = [line.split(maxsplit=5)[5] for line in self.maps.splitlines()
                 if len(line.split()) > 5 and (" r-xp " in line or ".pt2" in line)]
        for link in pathlib.Path(f"/proc/{self.server.process.pid}/fd").iterdir():
            try:
                names.append(re.sub(r":\[\d+\]", "", f"descriptor of {os.readlink(link)}"))
            except OSError:
                pass  # closed just now
        return names

    def memory_kb(self):
        return self.server.memory_kb()

    def settle(self):
        """Records what a quiet server holds after it has done everything once."""
        self.warm_up(self)
        self.reload()
        self.check_whole()
        time.sleep(0.3)
        self.baseline = self.resources()
        self.quiet = self.held()
        self.kept = 0

    def check_resources(self):
        """Checks for leaks: no descriptor, thread or mapping more than at the start."""
        self.reload()
        now = {}

        def back():
            now.update(self.resources())
            # A package that stays mapped keeps the descriptor that reports writers.
            kept = {"packages": self.kept, "fds": self.kept}
            return all(now[k] <= self.baseline[k] + SLACK.get(k, 0) + kept.get(k, 0) for k in now)

        def problem():
            new = collections.Counter(self.held()) - collections.Counter(self.quiet)
            packages = [line for line in self.maps.splitlines() if ".pt2" in line]
            return f"left behind: {now}, was {self.baseline}: {sorted(new.elements())}; packages {packages}"

        self.until(back, WHOLE_AGAIN + 0.5, problem)

    def places(self, addresses):
        """Where a fault hit or the process ended."""
        if self.lives():
            self.maps = pathlib.Path(f"/proc/{self.server.process.pid}/maps").read_text()
        return [s for s in symbols(addresses, self.maps) if "boost::asio" not in s and "fault_interposer" not in s]


def symbols(addresses, maps):
    """Functions and lines of return addresses, by addr2line."""
    places = []
    bases = {}
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/"):
            begin, end = (int(x, 16) for x in fields[0].split("-"))
            bases.setdefault(fields[5], begin - int(fields[2], 16))
            places.append((begin, end, fields[5]))
    lines = []
    for address in addresses:
        for begin, end, file in places:
            if begin <= address < end:
                done = subprocess.run(["addr2line", "-Cfpe", file, hex(address - 1 - bases[file])],
                                      capture_output=True, text=True)
                text = re.sub(r"/\S*/(\S+:\d+)", r"\1", done.stdout.strip())
                lines.append(f"{pathlib.Path(file).name}: {text[:200]}")
                break
    return lines
