"""New weights for servers that answer meanwhile: Client.weights."""
import collections
import concurrent.futures
import json
import sys
import threading
import time
import urllib.parse

from sconce import _http
from sconce._blocking import Deadline, Pool
from sconce._client_errors import BadAnswer, ConnectionFailed
from sconce._errors import DeadlineExceeded, Error
from sconce._safetensors import Weights as Encoded

ADMIN_PORT = 8003
ABORT_SECONDS = 10


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
        self.before, self.sent, self.staged = 0, 0, False
        self.connection = None


class Weights:
    """The weights of served models; Client makes it. All methods name the model, and take `to`: the admin listeners'
    URLs (one, or a list). Without it they go to the client's `admin`, else to port 8003 of the client's host."""

    def __init__(self, client):
        self._client = client
        self._pools, self._lock = {}, threading.Lock()

    def push(self, model, state_dict, *, label="", to=None, partial=False, ignore=(), check_finite=False, dry_run=False,
             digest=True, progress=None, timeout=600.0):
        """Gives new weights to all of these servers, or to none.

        state_dict: names to arrays or tensors, as state_dict() has them. Tensors are sent from where they are, those on a
            GPU through two pinned buffers of 8 MiB; no file is written.
        label: answers carry it. partial: constants that are not named keep their values. ignore: names to leave out.
        check_finite: refuses NaN and infinities. dry_run: the servers check everything, and stage nothing.
        digest: sends a SHA-256, which the server compares before it stages. It costs one more reading of the tensors.
        progress: a bar on stderr; None: if stderr is a terminal.
        timeout: seconds in which all servers must have staged, and again for the commit.

        First asks every server whether it has the model. Then all stage at once; only when each has staged do they
        commit. If one fails to stage, what others staged is dropped; if one fails to commit, those that committed are
        rolled back. Ctrl-C before the commit leaves no server changed. Returns the servers' sets, as sets() does.
        Raises PushFailed, with every server's reason.
        """
        encoded = Encoded(state_dict)
        servers = [_Server(pool) for pool in self._servers(to)]
        target = self._target(model)
        ignored = [ignore] if isinstance(ignore, str) else list(ignore)
        query = {"mode": "partial" if partial else "full", **({"label": label} if label else {}),
                 **({"dry_run": "true"} if dry_run else {}), **({"check_finite": "true"} if check_finite else {}),
                 **({"ignore": ",".join(ignored)} if ignored else {})}
        with concurrent.futures.ThreadPoolExecutor(len(servers), "sconce-push") as threads:
            push = _Push(self, servers, target, threads, timeout)
            push.look()
            fields = {"Content-Type": "application/octet-stream", "Content-Length": str(encoded.bytes),
                      "Expect": "100-continue"}
            if digest:
                fields["Content-Digest"] = encoded.content_digest()
            try:
                push.stage(encoded, "?" + urllib.parse.urlencode(query), fields, dry_run,
                           sys.stderr.isatty() if progress is None else progress)
            except BaseException:
                push.abort()
                raise
            return push.look() if dry_run else push.commit()

    def sets(self, model, *, to=None, digest=False):
        """What each server serves: a dict from its URL to its generation, weight_version and sets (active, staged,
        previous), with a SHA-256 of each if digest=True."""
        query = "?digest=true" if digest else ""
        return self._all("GET", self._target(model) + query, to)

    def rollback(self, model, *, to=None):
        """Every server serves its previous set again, under a new generation. Returns what sets() does."""
        return self._all("POST", self._target(model) + "/rollback", to)

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
            raise ValueError(f"to: {'twice: ' + ', '.join(twice) if twice else 'no server'}")
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
    def __init__(self, weights, servers, target, threads, timeout):
        self.weights, self.servers, self.target, self.threads = weights, servers, target, threads
        self.timeout, self.stop = timeout, threading.Event()

    def each(self, work):
        """work(server) for all at once: server's name -> result or exception."""
        running = [(server, self.threads.submit(work, server)) for server in self.servers]
        concurrent.futures.wait([future for _, future in running])
        return {server.name: future.exception() or future.result() for server, future in running}

    def send(self, server, method, what=""):
        return self.weights._send(server.pool, method, self.target + what, self.weights._deadline())

    def look(self):
        """Before much is read or sent: does every server answer, have the model and admit us?"""
        def ask(server):
            document = self.send(server, "GET")
            server.before = generation_of(server.pool, document)
            return document
        found = self.each(ask)
        refuse({n: e for n, e in found.items() if isinstance(e, BaseException)}, "nothing was sent")
        return found

    def stage(self, encoded, query, fields, dry_run, progress):
        deadline = Deadline(self.timeout)

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

        def upload(server):
            try:
                answer = server.pool.upload("POST", self.target + query, self.weights._fields(**fields), pieces(server),
                                            deadline, opened(server))
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

        running = {server.name: self.threads.submit(upload, server) for server in self.servers}
        try:
            with _Bar(progress, encoded.bytes * len(self.servers), self.servers) as bar:
                while concurrent.futures.wait(running.values(), 0.1).not_done:
                    bar.show()
        except BaseException:
            stop_all()
            concurrent.futures.wait(running.values())
            raise
        errors = {name: future.exception() for name, future in running.items() if future.exception()}
        real = {name: error for name, error in errors.items() if not isinstance(error, _Stopped)}
        refuse(real or errors, "no server has changed")

    def abort(self):
        """Drops what is or may be staged."""
        def drop(server):
            end = time.monotonic() + ABORT_SECONDS
            while server.staged:
                try:
                    self.send(server, "POST", "/abort")
                except Error as error:
                    status = getattr(error, "status", None)
                    if status == 409 and time.monotonic() < end:  # it still deals with what arrived
                        time.sleep(0.05)
                        continue
                    if status != 400:  # 400: nothing is staged there
                        raise
                server.staged = False
        return {n: e for n, e in self.each(drop).items() if e is not None}

    def commit(self):
        def publish(server):
            try:
                document = self.send(server, "POST", "/commit")
            except (ConnectionFailed, DeadlineExceeded, BadAnswer):
                # Without an answer, ask the server what it did.
                document = self.send(server, "GET")
                if generation_of(server.pool, document) == server.before:
                    raise
            server.staged = False
            return document

        found = self.each(publish)
        failed = {n: e for n, e in found.items() if isinstance(e, BaseException)}
        if not failed:
            return found

        def back(server):
            if server.name not in failed:
                self.send(server, "POST", "/rollback")
        kept = {n: e for n, e in self.each(back).items() if e is not None}
        lost = self.abort()
        text = listed(failed)
        for name, error in kept.items():
            text += f"\n{name}: serves the new weights, and could not roll back: {error}"
        for name, error in lost.items():
            text += f"\n{name}: may have weights staged, or serve them: {error}"
        raise PushFailed(text + ("" if kept or lost else "\nno server has changed"), failed, kept, lost)


class _Bar:
    WIDTH = 30

    def __init__(self, wanted, total, servers):
        self.wanted, self.total, self.servers, self.start = wanted, total, servers, time.monotonic()

    def __enter__(self):
        return self

    def show(self):
        if self.wanted:
            sent = sum(server.sent for server in self.servers)
            share = min(sent / max(self.total, 1), 1)
            rate = sent / max(time.monotonic() - self.start, 1e-3) / 1e6
            full = int(share * self.WIDTH)
            sys.stderr.write(f"\r\x1b[K[{'=' * full}{' ' * (self.WIDTH - full)}] {100 * share:3.0f} %  {rate:.0f} MB/s")
            sys.stderr.flush()

    def __exit__(self, *_):
        if self.wanted:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


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


def generation_of(pool, document):
    if type(document.get("generation")) is not int:
        raise BadAnswer(f"{pool.address.text}: not the answer of an admin port")
    return document["generation"]


def refuse(errors, outcome):
    for error in errors.values():
        if not isinstance(error, Error):
            raise error
    if errors:
        raise PushFailed(f"{listed(errors)}\n{outcome}", errors)


def listed(errors):
    return "\n".join(str(error) for error in errors.values())
