"""Many servers of the digits example on one machine, each with a client, for tests of pushes that are interrupted."""
import concurrent.futures
import http.client
import json
import secrets
import signal
import struct
import subprocess
import threading
import time
import urllib.parse

from admin_server import AdminServer
from ports import reserve_port
from serving import PROGRAM, ROOT, until

DIGITS = ROOT / "examples/digits"
REQUEST = (DIGITS / "request.json").read_bytes()
WEIGHTS = (DIGITS / "digits-v2.safetensors").read_bytes()
STREAM = {"Content-Type": "application/octet-stream"}


class Open:
    """Who may administer the fleet's servers: everybody."""

    scheme, flags, client_flags = "http", [], []

    def headers(self):
        return {}

    def connect(self, port, timeout):
        return http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def wrap(self, connection):
        return connection

    def rotate(self, members):
        """Gives everybody new secrets."""


class Tokens(Open):
    """Who has the token of a file, which servers know and show to each other."""

    def __init__(self, folder):
        self.known, self.own = folder / "known", folder / "own"
        self.token = secrets.token_hex(16)
        self.write(self.token)
        self.flags = ["--token-file", str(self.known), "--weights-peers-token-file", str(self.own)]
        self.client_flags = ["--token-file", str(self.own)]

    def write(self, *tokens):
        for path, text in ((self.known, "".join(f"admin {t}\n" for t in tokens)), (self.own, f"{tokens[0]}\n")):
            beside = path.with_suffix(".new")
            beside.write_text(text)
            beside.replace(path)

    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}

    def rotate(self, members):
        before, self.token = self.token, secrets.token_hex(16)
        self.write(self.token, before)
        until(lambda: all(m.admin("GET")[0] == 200 for m in members))
        self.write(self.token)
        until(lambda: all(m.admin("GET", token=before)[0] == 403 for m in members))


class Mutual(Open):
    """Who has a certificate of the authority. authority: of certificates.py."""

    scheme = "https"

    def __init__(self, authority):
        certificate, key = self.pair = authority.issue("member")
        self.context = authority.context(self.pair)
        self.flags = ["--admin-tls", "mutual", "--tls-certificate", str(certificate), "--tls-key", str(key),
                      "--tls-client-ca", str(authority.ca), "--weights-peers-ca", str(authority.ca)]
        self.client_flags = ["--ca", str(authority.ca), "--certificate", str(certificate), "--key", str(key)]

    def connect(self, port, timeout):
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout, context=self.context)

    def wrap(self, connection):
        return self.context.wrap_socket(connection, server_hostname="127.0.0.1")


class Member:
    """A server on ports that stay, its client, and what may be done to it. named: the named set that its client asks for.
    access: who may administer it."""

    def __init__(self, flags=(), named=None, access=None):
        self.named, self.access = named, access or Open()
        self.http, self.admin_port = reserve_port(), reserve_port()
        self.flags = ["--http", f"127.0.0.1:{self.http}", "--admin", f"127.0.0.1:{self.admin_port}", "--io-threads", "1",
                      *self.access.flags, *flags]
        self.url = f"{self.access.scheme}://127.0.0.1:{self.admin_port}"
        self.killed, self.down, self.problems, self.answers = 0, True, [], 0
        self.ended = threading.Event()
        self.server = None
        self.client = threading.Thread(target=self.ask, daemon=True)

    def start(self):
        self.server = AdminServer(DIGITS / "digits.pt2", flags=self.flags)
        self.down = False

    def kill(self):
        self.down = True  # before `killed`, which ask() reads first
        self.killed += 1
        self.server.stop(signal.SIGKILL)

    def stop(self):
        self.server.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.server.process.send_signal(signal.SIGCONT)

    def revive(self):
        if self.server.process.poll() is not None:
            self.server.__exit__(True)
            self.start()

    def ask(self):
        """Sends requests on one connection as long as the server lives. Counts failures, except those of a server that was killed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=60)
        weight_version, epoch, connected = 0, 0, 0
        while not self.ended.wait(0.02):
            killed, down = self.killed, self.down
            if killed != connected:  # the connection is one to a server that was killed, and another server may run now
                connection.close()
                connected = killed
            try:
                connection.request("POST", f"/v1/models/{'digits@' + self.named if self.named else 'digits'}:call", REQUEST)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as problem:
                connection.close()
                if not down and self.killed == killed:
                    self.problems.append(repr(problem))
                continue
            if killed != epoch:  # a named set's number outlives the server, since its file has it
                weight_version, epoch = weight_version if self.named else 0, killed
            now = int(answer.headers.get("Sconce-Weight-Version", 0))
            if answer.status != 200 and not down:  # a server that has just started may not be ready
                self.problems.append((answer.status, now))
            elif answer.status == 200:
                if now < weight_version:
                    self.problems.append(("back in time", weight_version, now))
                weight_version = now
                self.answers += 1
        connection.close()

    @property
    def place(self):
        """Where weights of this fleet are staged."""
        return f"/v2/admin/models/digits/{'sets/' + self.named if self.named else 'weights'}"

    def admin(self, method, action="", body=None, timeout=10, token=None):
        """action: an action on weights, or a query: bodies go to the fleet's set. token: in place of the right one."""
        connection = self.access.connect(self.admin_port, timeout)
        headers = {"Authorization": f"Bearer {token}"} if token else self.access.headers()
        place = self.place if body else "/v2/admin/models/digits/weights"
        try:
            connection.request(method, place + action, body, {**headers, **(STREAM if body else {})})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def state(self, push):
        """Of the push, or None."""
        _, told = self.admin("GET", f"/pushes?push={push}")
        return told["pushes"][0]["state"] if told["pushes"] else None

    def active(self):
        """Weight version, label and digest."""
        if self.named:
            connection = self.access.connect(self.admin_port, 10)
            connection.request("GET", self.place + "?digest=true", headers=self.access.headers())
            told = json.loads(connection.getresponse().read())
            connection.close()
            return told["generation"], told["label"], told["digest"]
        _, told = self.admin("GET", "?digest=true")
        one = next(s for s in told["sets"] if s["state"] == "active")
        return one["generation"], one["label"], one["digest"]


class AccessServer(AdminServer):
    """A server whose administration needs what `access` has."""

    def __init__(self, *serve, access, flags=(), **more):
        self.access = access
        super().__init__(*serve, flags=[*access.flags, "--weights-peers", "127.0.0.1", *flags], **more)

    @property
    def url(self):
        return f"{self.access.scheme}://127.0.0.1:{self.admin_port}"

    def client(self, port, timeout):
        return self.access.connect(port, timeout) if port == self.ports["administration"] else super().client(port, timeout)

    def admin(self, method, path, body=None, headers=None, **more):
        return super().admin(method, path, body, {**self.access.headers(), **(headers or {})}, **more)


def push_to(servers, data, push, commit=""):
    """The steps of a push to all of these, as docs/pushes.md has them."""
    members = urllib.parse.quote(",".join(server.url for server in servers), safe="")
    for i, server in enumerate(servers):
        assert server.push("fake", data, f"push={push}&members={members}&member={i}&label={push}").status == 200
    for action in ("prepare", "commit"):
        for server in servers:
            more = f"&{commit}" if action == "commit" else ""
            answer = server.admin("POST", f"fake/weights/{action}?push={push}{more}", b"")
            assert answer.status == 200, answer.body


def variant(number):
    """Weights that differ for each number."""
    begin = len(WEIGHTS) - 4 * 8  # the last eight floats
    numbers = struct.unpack("<8f", WEIGHTS[begin:])
    return WEIGHTS[:begin] + struct.pack("<8f", *[x + number for x in numbers])


def at_once(action, members):
    """Raises what the action raised for one of them."""
    with concurrent.futures.ThreadPoolExecutor(len(members) or 1) as threads:
        list(threads.map(action, members))


class Fleet:
    """folder: where the weights that are pushed are written, by their label. peers: whom its servers may ask. named: pushes
    fill this named set, which servers find again after a restart. access: who may administer its servers."""

    def __init__(self, count, folder, peers="127.0.0.1", named=None, access=None):
        self.folder, self.named, self.access = folder, named, access or Open()
        allowed = ["--weights-peers", peers] if peers else []
        self.members = [Member(allowed + self.sets_flags(i), named, self.access) for i in range(count)]

    def sets_flags(self, number):
        if not self.named:
            return []
        return ["--set", "digits.sets=4", "--set", f"digits.sets_folder={self.folder / f'server-{number}'}"]

    def file(self, number):
        """A label, and the file of its weights."""
        path = self.folder / f"r{number}.safetensors"
        path.write_bytes(variant(number))
        return path.stem, path

    def __enter__(self):
        at_once(Member.start, self.members)
        if self.named:
            label, path = self.file(0)
            result = self.run("push", path, "--label", label)
            assert result.returncode == 0, result.stdout
        for member in self.members:
            member.client.start()
        until(lambda: all(m.answers for m in self.members))
        return self

    def __exit__(self, *failure):
        for member in self.members:
            member.ended.set()
        for member in self.members:
            if member.server:
                if member.server.process.poll() is None:
                    member.go_on()
                member.client.join()
                member.server.__exit__(True)

    def to(self):
        return ",".join(member.url for member in self.members)

    def command(self, *arguments):
        named = ["--set", self.named] if self.named else []
        return [PROGRAM, "weights", *[str(a) for a in arguments], "--model", "digits", *named, "--to", self.to(),
                "--patience", "2", *self.access.client_flags]

    def run(self, *arguments, timeout=60):
        return subprocess.run(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=timeout)

    def begin(self, *arguments):
        return subprocess.Popen(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def rotate(self):
        self.access.rotate(self.members)

    def heal(self):
        """Continues stopped servers, restarts dead ones and reconciles the push. Returns the output of reconciling."""
        for member in self.members:
            if member.server.process.poll() is None:
                member.go_on()
        at_once(Member.revive, [m for m in self.members if m.server.process.poll() is not None])
        told = ""
        end = time.time() + 30
        while time.time() < end:
            result = self.run("reconcile")
            told += result.stdout
            if result.returncode and "name their file" in result.stdout:
                source = next(m for m in self.members if f"{m.url} serves" in result.stdout)
                label = source.active()[1]
                result = self.run("reconcile", self.folder / f"{label}.safetensors" if label else DIGITS / "digits.pt2")
                told += result.stdout
            if result.returncode == 0:
                assert len({member.active()[0] for member in self.members}) == 1, told
                return told
            time.sleep(0.1)
        raise AssertionError(f"not reconciled:\n{told}")

    def assert_whole(self):
        """Checks that all servers serve one set, nothing is staged, and no client saw a problem."""
        sets = [member.active() for member in self.members]
        assert len({digest for _, _, digest in sets}) == 1, sets
        for member in self.members:
            _, told = member.admin("GET")
            assert "staged" not in [s["state"] for s in told["sets"]], told
            _, told = member.admin("GET", "/pushes")
            assert not [p for p in told["pushes"] if p["state"] in ("receiving", "staged", "prepared")], told
            assert member.problems == [], (member.url, member.problems)
