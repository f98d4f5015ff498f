"""An admin port under the test's control: it records requests, and can fail, hang up or be slow."""
import base64
import hashlib
import http.server
import json
import struct
import threading


def read_safetensors(body):
    length = struct.unpack("<Q", body[:8])[0]
    header = json.loads(body[8:8 + length])
    header.pop("__metadata__", None)
    data = body[8 + length:]
    return {name: (e["dtype"], e["shape"], data[slice(*e["data_offsets"])]) for name, e in header.items()}


class FakeAdmin:
    """`fail` maps "stage", "prepare", "commit", "abort", "rollback" or "look" to (status, message), or to "hang up"."""

    def __init__(self, model="digits", token=None, invites=True):
        self.model, self.token, self.invites = model, token, invites
        self.fail = {}
        self.refuse_after = None  # bytes of an upload
        self.calls = []           # (method, path)
        self.weight_version, self.staged, self.tensors = 1, None, None
        self.previous, self.label, self.version = None, "", {1: "1"}
        self.pushes = {}          # id -> [state, weight version]
        admin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def handle_expect_100(self):
                return super().handle_expect_100() if admin.invites and "early" not in admin.fail else True

            def do_GET(self):
                admin.handle(self)

            do_POST = do_GET

        class Http(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, address):
                pass

        self.http = Http(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.http.shutdown()
        self.http.server_close()

    def actions(self):
        """The requests that change something, without those that renew a lease, whose number depends on time."""
        done = [path.rsplit("/", 1)[1].split("?")[0] for method, path in self.calls if method == "POST"]
        return [action for action in done if action != "renew"]

    def document(self):
        sets = [{"state": "active", "generation": self.weight_version, "label": self.version[self.weight_version],
                 "bytes": 1000, "own_bytes": 1000, "since": "2026-01-01T00:00:00.000Z"}]
        if self.previous:
            sets.append({"state": "previous", "generation": self.previous, "label": self.version[self.previous],
                         "bytes": 1000, "own_bytes": 1000, "since": "2026-01-01T00:00:00.000Z"})
        return {"model": self.model, "version": "1", "generation": self.weight_version,
                "weight_version": self.version[self.weight_version], "sets": sets}

    def publish(self, version):
        self.previous, self.weight_version = self.weight_version, self.weight_version + 1
        self.version[self.weight_version] = version

    def handle(self, request):
        self.calls.append((request.command, request.path))
        path, _, query = request.path.partition("?")
        action = path.rsplit("/", 1)[1]
        if request.command == "GET":
            action = "look"
        elif action == "weights" or "/sets/" in path:
            action = "stage"
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return self.answer(request, 401, {"error": "a token is needed"})
        if path.split("/")[4] != self.model:
            return self.answer(request, 404, {"error": "no such model"})
        if "early" in self.fail and action == "stage":
            return self.answer(request, *self.fail["early"])
        if action == "stage":
            length = int(request.headers["Content-Length"])
            if self.refuse_after is not None:
                request.rfile.read(min(self.refuse_after, length))
                return self.answer(request, 400, {"error": "no constant of this name"})
            body = request.rfile.read(length)
            if len(body) < length:
                return None
            digest = "sha-256=:" + base64.b64encode(hashlib.sha256(body).digest()).decode() + ":"
            if request.headers["Content-Digest"] != digest:
                return self.answer(request, 400, {"error": "digest"})
            self.tensors, self.query = read_safetensors(body), query
        failure = self.fail.get(action)
        if failure == "hang up after":
            self.act(action, query)
        if failure in ("hang up", "hang up after"):
            request.close_connection = True
            request.connection.shutdown(2)
            return None
        if failure:
            return self.answer(request, failure[0], {"error": failure[1]})
        if path.endswith("/pushes"):
            return self.answer(request, 200, self.pushes_document())
        return self.answer(request, *self.act(action, query))

    def pushes_document(self):
        return {"model": self.model, "version": "1", "generation": self.weight_version, "pushes": [
            {"push": name, "state": state, "generation": weight_version, "active": weight_version == self.weight_version,
             "member": self.member} for name, (state, weight_version) in self.pushes.items()]}

    member = 0

    def act(self, action, query):
        values = {key: value for key, _, value in (pair.partition("=") for pair in query.split("&"))}
        push = values.get("push")
        state = self.pushes.get(push, [None])[0]
        if action == "look":
            pass
        elif action == "stage":
            if "dry_run" not in values:
                self.staged, self.pushes[push], self.member = values.get("label", ""), ["staged", 0], int(values["member"])
        elif action == "rollback" and push is None:
            if not self.previous:
                return 400, {"error": "there are no previous weights"}
            self.publish(self.version[self.previous])
        elif action == "abort":
            if state == "committed":
                return 409, {"error": "it was committed"}
            self.staged, self.pushes[push] = None, ["aborted", 0]
        elif state is None:
            return 404, {"error": "no such push"}
        elif action == "prepare":
            self.pushes[push][0] = "prepared"
        elif action == "commit" and state != "committed":
            if state not in ("staged", "prepared"):
                return 409, {"error": f"it was {state}"}
            self.publish(self.staged or str(self.weight_version + 1))
            self.staged, self.pushes[push] = None, ["committed", self.weight_version]
        elif action == "rollback" and state != "undone":
            self.publish(self.version[self.previous])
            self.pushes[push] = ["undone", self.weight_version]
        return 200, self.document()

    @staticmethod
    def answer(request, status, document):
        body = json.dumps(document).encode()
        request.close_connection = True
        try:
            request.send_response(status)
            request.send_header("Content-Length", str(len(body)))
            request.send_header("Content-Type", "application/json")
            request.end_headers()
            request.wfile.write(body)
        except OSError:
            pass
