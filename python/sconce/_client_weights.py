"""New weights for servers that answer meanwhile: Client.weights."""
import collections
import concurrent.futures
import contextlib
import json
import math
import secrets
import shutil
import sys
import threading
import time
import urllib.parse

from sconce import _http
from sconce._blocking import Deadline, Pool
from sconce._client_errors import BadAnswer, ConnectionFailed
from sconce._errors import Busy, DeadlineExceeded, Error, InvalidArgument
from sconce._safetensors import Weights as Encoded

ADMIN_PORT = 8003
# A query holds this much of the servers' URLs; they limit a request's head to 16 KiB.
MOST_MEMBERS = 8000
ASK_AGAIN_SECONDS, ASKS = 0.2, 5
OPEN = ("receiving", "staged", "prepared")


class PushFailed(Error):
    """Not every server took the weights, so none keeps them. `reasons` says why, by server; `changed` names servers that
    serve the new weights all the same, because they could not be rolled back; `unknown` those that could not be asked."""

    def __init__(self, text, reasons, changed=(), unknown=()):
        super().__init__(text)
        self.reasons, self.changed, self.unknown = dict(reasons), list(changed), list(unknown)
        first = next(iter(self.reasons.values()), None)
        self.code = getattr(first, "code", "INTERNAL")
        self.status = getattr(first, "status", None)


class _Stopped(Exception):
    """Another server failed: this one need not read the rest."""


class _Server:
    def __init__(self, pool):
        self.pool, self.name = pool, pool.address.text
        self.sent, self.staged = 0, False
        self.connection = None


class Weights:
    """The weights of served models; Client makes it. All methods name the model, and take `to`: the admin listeners'
    URLs (one, or a list). Without it they go to the client's `admin`, else to port 8003 of the client's host."""

    def __init__(self, client):
        self._client = client
        self._pools, self._lock = {}, threading.Lock()

    def push(self, model, state_dict, *, label="", to=None, partial=False, ignore=(), check_finite=False, dry_run=False,
             digest=True, progress=None, timeout=600.0, lease=30.0, relay=False, set=None):
        """Gives new weights to all of these servers, or to none.

        state_dict: names to arrays or tensors, as state_dict() has them. Tensors are sent from where they are, those on a
            GPU through two pinned buffers of 8 MiB; no file is written.
        label: answers carry it. partial: constants that are not named keep their values. ignore: names to leave out.
        check_finite: refuses NaN and infinities. dry_run: the servers check everything, and stage nothing.
        digest: sends a SHA-256, which the server compares before it stages. It costs one more reading of the tensors.
        progress: a bar on stderr; None: if stderr is a terminal.
        timeout: seconds in which all servers must have staged, and again for the commit.
        lease: seconds after which servers drop what is staged if they hear nothing of this process.
        set: the named set that gets the weights, in place of the model's own; what it had is served until the commit.
        relay: the first server gets the weights and passes them on to the next one, and so on (weights_peers).

        First asks every server whether it has the model and has no other push under way. Then all stage at once; only
        when each has staged do they commit, the first one before the others. If one fails to stage, what others staged
        is dropped; if one fails to commit, those that committed are rolled back. Ctrl-C before the commit leaves no
        server changed; if this process dies, docs/pushes.md says what becomes of the push. Returns the servers' sets,
        as sets() does. Raises PushFailed, with every server's reason.
        """
        encoded = Encoded(state_dict)
        servers = [_Server(pool) for pool in self._servers(to)]
        target = self._target(model)
        ignored = [ignore] if isinstance(ignore, str) else list(ignore)
        query = {"mode": "partial" if partial else "full", **({"label": label} if label else {}),
                 **({"dry_run": "true"} if dry_run else {}), **({"check_finite": "true"} if check_finite else {}),
                 **({"ignore": ",".join(ignored)} if ignored else {})}
        if not 0.1 <= lease <= 3600:
            raise InvalidArgument(f"lease: expected 0.1 to 3600 seconds, got {lease!r}")
        with concurrent.futures.ThreadPoolExecutor(len(servers), "sconce-push") as threads:
            place = target if set is None else self._target(model, "/sets/" + urllib.parse.quote(set, safe=""))
            push = _Push(self, servers, target, place, threads, timeout, lease)
            found = push.look()
            if not dry_run:
                push.reconcile()
            fields = {"Content-Type": "application/octet-stream", "Content-Length": str(encoded.bytes),
                      "Expect": "100-continue"}
            if digest:
                fields["Content-Digest"] = encoded.content_digest()
            with push.alive(not dry_run):
                try:
                    push.stage(encoded, query, fields, dry_run, relay, sys.stderr.isatty() if progress is None else progress)
                    if dry_run:
                        return found
                    push.prepare()
                except BaseException:
                    push.abort()
                    raise
                return push.commit()

    def sets(self, model, *, to=None, digest=False):
        """What each server serves: a dict from its URL to its weight_version (the label, or else the number) and sets
        (active, staged, previous), with a SHA-256 of each if digest=True."""
        query = "?digest=true" if digest else ""
        return self._all("GET", self._target(model) + query, to)

    def rollback(self, model, *, to=None):
        """Every server serves its previous set again, under a new weight version. Returns what sets() does."""
        return self._all("POST", self._target(model) + "/rollback", to)

    def pushes(self, model, *, to=None):
        """The pushes that each server knows, and what became of them: a dict from its URL to a list of dicts."""
        return {server: document["pushes"] for server, document in
                self._all("GET", self._target(model) + "/pushes", to).items()}

    def abort(self, model, *, to=None):
        """Drops what is staged."""
        return self._all("POST", self._target(model) + "/abort", to)

    def release(self, model, *, to=None):
        """Frees the memory of the previous set; there is no rollback then."""
        return self._all("POST", self._target(model) + "/release", to)

    def constants(self, model, *, to=None):
        """Name, dtype, shape and so on of what the first of the servers takes: a list of dicts."""
        pool = self._servers(to)[0]
        return self._send(pool, "GET", self._target(model, "/constants"), self._deadline())["constants"]

    def digests(self, model, *, to=None):
        """The SHA-256 of the active set of each server: equal values, equal digests."""
        return {server: next(one["digest"] for one in document["sets"] if one["state"] == "active")
                for server, document in self.sets(model, to=to, digest=True).items()}

    def close(self):
        with self._lock:
            pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.close()

    def _deadline(self):
        return Deadline(self._client._options["timeout"])

    def _target(self, model, what="/weights"):
        return "/v2/admin" + self._client._target(model).removeprefix("/v2") + what

    def _servers(self, to):
        client = self._client
        urls = [to] if isinstance(to, str) else list(to) if to is not None else client._admin
        if urls is None:
            host = client._address.host
            urls = [f"{'https' if client._address.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{ADMIN_PORT}"]
        addresses = [_http.Address(url, ADMIN_PORT) for url in urls]
        twice = [text for text, count in collections.Counter(a.text for a in addresses).items() if count > 1]
        if not addresses or twice:
            raise InvalidArgument(f"to: {'twice: ' + ', '.join(twice) if twice else 'no server'}")
        with self._lock:
            for address in addresses:
                if address.text not in self._pools:
                    self._pools[address.text] = Pool(address, client._context_for(address), client._most)
            return [self._pools[address.text] for address in addresses]

    def _fields(self, **more):
        fields = self._client._fields(**more)
        if self._client._admin_token:
            fields["Authorization"] = f"Bearer {self._client._admin_token}"
        return fields

    def _send(self, pool, method, target, deadline):
        # On a connection of its own: what may have been done is not sent again.
        fields = self._fields(**({"Content-Length": "0"} if method == "POST" else {}))
        answer = pool.exchange(method, target, fields, [], deadline, fresh=method == "POST")
        return document_of(pool, answer)

    def _all(self, method, target, to):
        pools, deadline = self._servers(to), self._deadline()
        with concurrent.futures.ThreadPoolExecutor(len(pools)) as threads:
            running = {pool.address.text: threads.submit(self._send, pool, method, target, deadline) for pool in pools}
        reasons = {name: future.exception() for name, future in running.items() if future.exception()}
        if len(reasons) == len(running) == 1:
            raise next(iter(reasons.values()))
        if reasons:
            done = [name for name in running if name not in reasons]
            raise PushFailed(listed(reasons) + (f"\ndone on {', '.join(done)}" if method == "POST" and done else ""), reasons,
                             changed=done if method == "POST" else ())
        return {name: future.result() for name, future in running.items()}


class _Push:
    """One push, by its id: every request that changes something may be repeated."""

    def __init__(self, weights, servers, target, place, threads, timeout, lease):
        self.weights, self.servers, self.target, self.threads = weights, servers, target, threads
        self.place = place  # where the weights go
        self.timeout, self.lease, self.stop = timeout, lease, threading.Event()
        self.id = secrets.token_hex(8)
        members = ",".join(server.name for server in servers)
        # The first one decides, so a list that has only that one still tells whom to ask.
        self.members = members if len(members) <= MOST_MEMBERS else servers[0].name

    def each(self, work, servers=None):
        """work(server) for all at once: server's name -> result or exception."""
        running = [(server, self.threads.submit(work, server)) for server in (servers or self.servers)]
        concurrent.futures.wait([future for _, future in running])
        return {server.name: future.exception() or future.result() for server, future in running}

    def send(self, server, method, what="", deadline=None):
        return self.weights._send(server.pool, method, self.target + what, deadline or self.weights._deadline())

    def act(self, server, action):
        return self.send(server, "POST", f"/{action}?push={self.id}")

    def state(self, server):
        """What the server says of the push; None if it does not know it."""
        pushes = self.send(server, "GET", f"/pushes?push={self.id}").get("pushes") or [{}]
        return pushes[0].get("state")

    def look(self):
        """Before much is read or sent: does every server answer, have the model and admit us?"""
        def ask(server):
            document = self.send(server, "GET")
            check_weights(server.pool, document)
            return document
        found = self.each(ask)
        refuse({n: e for n, e in found.items() if isinstance(e, BaseException)}, "nothing was sent")
        return found

    def reconcile(self):
        """Decides what an earlier push that died left open, by the rule of docs/pushes.md; waits for its lease."""
        end = None
        while True:
            found = self.each(lambda server: self.send(server, "GET", "/pushes").get("pushes", []))
            refuse({n: e for n, e in found.items() if isinstance(e, BaseException)}, "nothing was sent")
            undecided = []
            for name in {p["push"] for pushes in found.values() for p in pushes if p["state"] in OPEN}:
                said = {server: p for server, pushes in found.items() for p in pushes if p["push"] == name}
                states = {p["state"] for p in said.values()}
                action = ("abort" if "undone" in states else "commit" if "committed" in states
                          else "abort" if states & {"aborted", "expired"} else None)
                if not action:
                    undecided += said.values()
                    continue
                told = self.each(lambda server: said.get(server.name, {}).get("state") in OPEN
                                 and self.send(server, "POST", f"/{action}?push={name}"))
                refuse({n: e for n, e in told.items() if isinstance(e, BaseException)}, "nothing was sent")
            if not undecided:
                return
            end = end or time.monotonic() + max(p["expires_in"] for p in undecided) + 1
            if time.monotonic() > end:
                raise PushFailed(f"push {undecided[0]['push']} is not decided: it is under way, or its first server is not "
                                 "among these (sconce weights reconcile)\nnothing was sent",
                                 {self.servers[0].name: Busy(f"push {undecided[0]['push']} is not decided")})
            time.sleep(ASK_AGAIN_SECONDS)

    @contextlib.contextmanager
    def alive(self, wanted):
        """Meanwhile the servers hear that this process lives."""
        over = threading.Event()

        def renew(server):
            while not over.wait(self.lease / 3):
                try:
                    self.send(server, "POST", f"/renew?push={self.id}", Deadline(max(self.lease / 3, 1)))
                except Error:
                    pass  # it has not begun yet, or says what happened when that matters

        threads = [threading.Thread(target=renew, args=(server,), daemon=True) for server in self.servers if wanted]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()

    def stage(self, encoded, query, fields, dry_run, relay, progress):
        deadline = Deadline(self.timeout)
        uploads = self.servers[:1] if relay else self.servers

        def pieces(server):
            for piece in encoded.pieces():
                if self.stop.is_set():
                    raise _Stopped
                yield piece
                server.sent += len(piece)

        def opened(server):
            def note(connection):
                server.connection = connection
            return note

        def of(server):
            more = {"push": self.id, "lease": f"{max(int(self.lease * 1000), 100)}ms", "members": self.members,
                    "member": self.servers.index(server), **({"relay": "true"} if relay else {})}
            return "?" + urllib.parse.urlencode({**query, **more})

        def upload(server):
            try:
                answer = server.pool.upload("POST", self.place + of(server), self.weights._fields(**fields),
                                            pieces(server), deadline, opened(server))
                server.staged = answer.status == 200 and not dry_run
                return document_of(server.pool, answer)
            except BaseException as error:
                # The last piece may have arrived, answer or not, and then the weights may be staged.
                server.staged = (server.staged or server.sent > 0) and not dry_run
                others_failed = self.stop.is_set()
                stop_all()
                if others_failed and isinstance(error, ConnectionFailed):
                    raise _Stopped from None
                raise

        def stop_all():
            self.stop.set()
            for server in self.servers:
                # The answer to a whole body says whether it is staged; one that is under way is of no use.
                if server.connection and server.sent < encoded.bytes:
                    server.connection.stop()

        if relay:
            for server in self.servers[1:]:
                server.staged = not dry_run
        running = {server.name: self.threads.submit(upload, server) for server in uploads}
        try:
            with _Bar(progress, encoded.bytes * len(uploads), self.servers) as bar:
                while concurrent.futures.wait(running.values(), 0.1).not_done:
                    bar.show()
        except BaseException:
            stop_all()
            concurrent.futures.wait(running.values())
            raise
        errors = {name: future.exception() for name, future in running.items() if future.exception()}
        real = {name: error for name, error in errors.items() if not isinstance(error, _Stopped)}
        refuse(real or errors, "no server has changed")

    def prepare(self):
        """From here on no server drops the set by itself, except the first one, which commits before the others."""
        found = self.each(lambda server: self.act(server, "prepare"))
        refuse({n: e for n, e in found.items() if isinstance(e, BaseException)}, "no server has changed")

    def abort(self):
        """Drops what is or may be staged."""
        def drop(server):
            if server.staged:
                self.act(server, "abort")
            server.staged = False
        return {n: e for n, e in self.each(drop).items() if e is not None}

    def publish(self, server):
        """Commits. Without an answer, asks the server what it did."""
        for left in reversed(range(ASKS)):
            try:
                return self.act(server, "commit")
            except Error as error:
                failed = error
            try:
                state = self.state(server)
                if state == "committed":
                    return self.send(server, "GET")
                may_go = state in ("staged", "prepared") and (getattr(failed, "status", None) or 409) == 409
            except Error as error:
                failed.silent = isinstance(error, (ConnectionFailed, DeadlineExceeded, BadAnswer))
                may_go = failed.silent
            else:
                failed.silent = False
            if not may_go or left == 0:
                raise failed
            time.sleep(ASK_AGAIN_SECONDS)

    def commit(self):
        first, others = self.servers[0], self.servers[1:]
        # The first server's commit decides for all: from here on, none is aborted unless it is known not to have committed.
        for server in self.servers:
            server.staged = False
        try:
            found = {first.name: self.publish(first)}
        except Error as error:
            if getattr(error, "silent", False):
                raise PushFailed(f"{error}\nit is not known whether it has committed: sconce weights reconcile",
                                 {first.name: error}, unknown=[server.name for server in self.servers]) from None
            for server in self.servers:
                server.staged = True
            lost = self.abort()
            raise PushFailed(listed({first.name: error}) + "\nno server has changed", {first.name: error},
                             unknown=lost) from None
        found |= self.each(self.publish, others) if others else {}
        failed = {n: e for n, e in found.items() if isinstance(e, BaseException)}
        if not failed:
            return {name: {k: v for k, v in document.items() if k != "push"} for name, document in found.items()}

        def back(server):
            if server.name in failed:
                server.staged = True
            else:
                self.act(server, "rollback")
        # The first server again before the others: that it has undone the push decides for all.
        kept = {n: e for n, e in (self.each(back, [first]) | self.each(back, others)).items() if e is not None}
        lost = self.abort()
        text = listed(failed)
        for name, error in kept.items():
            text += f"\n{name}: serves the new weights, and could not roll back: {error}"
        for name, error in lost.items():
            text += f"\n{name}: may have weights staged, or serve them: {error}"
        raise PushFailed(text + ("" if kept or lost else "\nno server has changed"), failed, kept, lost)


class _Bar:
    """How far all uploads are, at what rate, and how much time is left: a line on stderr."""
    WIDTH = 30

    def __init__(self, wanted, total, servers):
        self.wanted, self.total, self.servers, self.start = wanted, total, servers, time.monotonic()

    def __enter__(self):
        return self

    def show(self):
        if self.wanted:
            sent = sum(server.sent for server in self.servers)
            line = progress_line(sent, self.total, time.monotonic() - self.start, shutil.get_terminal_size().columns)
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    def __exit__(self, *_):
        if self.wanted:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def progress_line(done, total, seconds, columns):
    """"push [====    ]  50 %  1.20 GB of 2.40 GB, 800 MB/s, 2 s left", narrower than the terminal."""
    def size(count):
        for unit in ("B", "kB", "MB", "GB"):
            if count < 1000 or unit == "GB":
                return f"{count:.0f} B" if unit == "B" else f"{count:.3g} {unit}" if count < 1000 else f"{count:.0f} {unit}"
            count /= 1000
    share, rate = min(done / max(total, 1), 1), done / seconds if seconds > 0 else 0
    text = f"{int(100 * share):3d} %  {size(done)} of {size(total)}"
    if rate > 0:
        text += f", {size(rate)}/s"
        left = math.ceil((total - done) / rate)
        if left > 0:
            text += ", " + (f"{left} s" if left < 60 else f"{left // 60}:{left % 60:02d}" if left < 3600 else
                            f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}") + " left"
    full = int(share * _Bar.WIDTH)
    line = f"push [{'=' * full}{' ' * (_Bar.WIDTH - full)}] {text}"
    return (line if len(line) < columns else f"push {text}")[:max(columns - 1, 0)]


def document_of(pool, answer):
    if answer.status != 200:
        raise _http.problem(pool.address, answer)
    try:
        document = json.loads(bytes(answer.body))
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"{pool.address.text}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadAnswer(f"{pool.address.text}: not the answer of an admin port")
    return document


def check_weights(pool, document):
    if type(document.get("weight_version")) is not str or not isinstance(document.get("sets"), list):
        raise BadAnswer(f"{pool.address.text}: not the answer of an admin port")


def refuse(errors, outcome):
    for error in errors.values():
        if not isinstance(error, Error):
            raise error
    if errors:
        raise PushFailed(f"{listed(errors)}\n{outcome}", errors)


def listed(errors):
    return "\n".join(str(error) for error in errors.values())
