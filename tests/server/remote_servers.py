"""Servers of remote files for the tests: ranges, object storage that checks signatures by itself, a hub's routes, each
with faults."""
import contextlib
import hashlib
import hmac
import http.server
import json
import re
import ssl
import threading
import time
import urllib.parse
import xml.sax.saxutils

KEY, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "eu-test-1"


class Remote:
    """files: path -> bytes. Changes to them, and to the faults, count at once."""

    def __init__(self, files=None, tls=None):
        self.files = dict(files or {})
        self.etags = {}  # path -> ETag, where it is not the content's
        self.ranges = True
        self.validators = True
        self.fault = lambda request: None  # called with each handler; truthy: it has answered by itself
        self.over = threading.Event()  # set when it closes
        self.seen = []  # (path, headers)
        self.sent = 0  # bytes of bodies
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            remote = outer

            def do_GET(self):
                outer.seen.append((self.path, dict(self.headers.items())))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    outer.fault(self) or outer.answer(self)

            def log_message(self, *_):
                pass

            def reply(self, status, body=b"", fields=(), length=None):
                self.send_response(status)
                for name, value in dict(fields).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body) if length is None else length))
                self.end_headers()
                for at in range(0, len(body), 1 << 20):
                    self.wfile.write(body[at:at + (1 << 20)])
                    outer.sent += len(body[at:at + (1 << 20)])
                return True

        class Threads(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass

        self.server = Threads(("127.0.0.1", 0), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*map(str, tls))
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def stall(self, _request):
        """A fault: nothing comes, as long as the test lasts."""
        self.over.wait()
        return True

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def ranges_of(self, path):
        return [headers.get("Range") for seen, headers in self.seen if seen == path]

    def etag(self, path):
        return self.etags.get(path) or f'"{hashlib.md5(self.files[path]).hexdigest()}"'

    def answer(self, request):
        path = urllib.parse.unquote(request.path.partition("?")[0])
        if path not in self.files:
            return request.reply(404, b"no such file")
        return self.send_file(request, path)

    def send_file(self, request, path, more=()):
        data, fields = self.files[path], dict(more)
        if self.validators:
            fields["ETag"] = self.etag(path)
            if request.headers.get("If-None-Match") == fields["ETag"]:
                return request.reply(304, b"", fields)
            if request.headers.get("If-Match", fields["ETag"]) != fields["ETag"]:
                return request.reply(412, b"", fields)
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
        if not found or not self.ranges:
            return request.reply(200, data, fields)
        begin, end = int(found[1]), min(int(found[2]) + 1, len(data))
        if begin >= len(data):
            return request.reply(416, b"", {**fields, "Content-Range": f"bytes */{len(data)}"})
        return request.reply(206, data[begin:end], {**fields, "Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"})


class Bucket(Remote):
    """Object storage, path style: files are /BUCKET/KEY. Each request must be signed, which is computed anew here."""

    page = 2

    def __init__(self, files, region=REGION, **more):
        super().__init__(files, **more)
        self.region = region
        self.open = False  # whether it takes requests that are not signed
        self.session = None

    def environment(self):
        return {"AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": self.region, **({"AWS_SESSION_TOKEN": self.session} if self.session else {})}

    def signature_of(self, request):
        """The Authorization that the headers of the request should have, by the rules of AWS' documentation."""
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, ?"
                             r"SignedHeaders=([\w;-]+), ?Signature=([0-9a-f]{64})", request.headers.get("Authorization", ""))
        if not found or found[1] != KEY or found[3] != self.region:
            return None
        path, _, query = request.path.partition("?")
        pairs = sorted(pair.partition("=")[::2] for pair in query.split("&")) if query else []
        encode = lambda text: urllib.parse.quote(urllib.parse.unquote(text), safe="-_.~")
        names = found[4].split(";")
        assert "host" in names and "x-amz-date" in names and (not self.session or "x-amz-security-token" in names)
        canonical = "\n".join([
            request.command, urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~"),
            "&".join(f"{encode(name)}={encode(value)}" for name, value in pairs),
            *(f"{name}:{' '.join(request.headers[name].split())}" for name in names), "", ";".join(names),
            request.headers.get("x-amz-content-sha256", hashlib.sha256(b"").hexdigest())])
        scope = f"{found[2]}/{self.region}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope,
                          hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{SECRET}".encode()
        for part in (found[2], self.region, "s3", "aws4_request", text):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key.hex() == found[5]

    def answer(self, request):
        if not self.open and not self.signature_of(request):
            return request.reply(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
        if self.session and request.headers.get("x-amz-security-token") != self.session:
            return request.reply(403, b"<Error><Code>InvalidToken</Code></Error>")
        path, _, query = request.path.partition("?")
        query = urllib.parse.parse_qs(query)
        if query.get("list-type") != ["2"]:
            return super().answer(request)
        root = urllib.parse.unquote(path).rstrip("/") + "/"
        keys = sorted(name[len(root):] for name in self.files if name.startswith(root + query.get("prefix", [""])[0]))
        begin = int(query.get("continuation-token", ["token+/0"])[0].removeprefix("token+/"))
        # What XML has no form for is a reference that no reader takes, as Amazon's store has it.
        plain = lambda key: re.sub("[\x01-\x1f]", lambda c: f"&#{ord(c[0])};", xml.sax.saxutils.escape(key))
        encoded = query.get("encoding-type") == ["url"]
        shown = (lambda key: urllib.parse.quote_plus(key, safe="/")) if encoded else plain
        body = "<EncodingType>url</EncodingType>" if encoded else ""
        body += "".join(f"<Contents><Key>{shown(key)}</Key><ETag>{self.etag(root + key).replace(chr(34), '&quot;')}"
                       f"</ETag><Size>{len(self.files[root + key])}</Size></Contents>" for key in keys[begin:begin + self.page])
        if begin + self.page < len(keys):
            body += f"<IsTruncated>true</IsTruncated><NextContinuationToken>token+/{begin + self.page}</NextContinuationToken>"
        return request.reply(200, ('<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                                   f"{body}</ListBucketResult>").encode())


class Hub(Remote):
    """A hub with one repository, org/repo; files: path -> bytes. Packages are large files, which another server has."""

    def __init__(self, files, storage, token=None, **more):
        super().__init__({}, **more)
        self.tree, self.storage, self.token, self.revisions = files, storage, token, {"main", "v1"}
        self.wrong_digest = False
        self.redirects = 0

    def environment(self, token=None):
        return {"HF_ENDPOINT": self.url, **({"HF_TOKEN": token} if token else {})}

    def digest(self, path):
        return hashlib.sha256(self.tree[path] + (b"x" if self.wrong_digest else b"")).hexdigest()

    def answer(self, request):
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return request.reply(401, b"Invalid token")
        path = urllib.parse.unquote(request.path.partition("?")[0])
        # A slash in a revision is percent-encoded.
        raw = request.path.partition("?")[0]
        if found := re.fullmatch(r"/api/models/org/repo/tree/([^/]+)", raw):
            if urllib.parse.unquote(found[1]) not in self.revisions:
                return request.reply(404)
            entries = [{"type": "directory", "oid": "0", "size": 0, "path": "folder"}]
            for name, data in self.tree.items():
                entry = {"type": "file", "oid": hashlib.sha1(data).hexdigest(), "size": len(data), "path": name}
                if name.endswith(".pt2"):
                    entry["lfs"] = {"oid": self.digest(name), "size": len(data)}
                entries.append(entry)
            return request.reply(200, json.dumps(entries).encode())
        found = re.fullmatch(r"/org/repo/resolve/([^/]+)/(.+)", raw)
        name = urllib.parse.unquote(found[2]) if found else None
        if not found or urllib.parse.unquote(found[1]) not in self.revisions or name not in self.tree:
            return request.reply(404, b"Entry not found")
        self.files[path], self.etags[path] = self.tree[name], f'"{hashlib.sha1(self.tree[name]).hexdigest()}"'
        if not name.endswith(".pt2"):
            return self.send_file(request, path)
        self.storage.files["/lfs/" + name] = self.tree[name]
        self.redirects += 1
        return request.reply(302, b"", {"Location": f"{self.storage.url}/lfs/{name}?X-Signature={self.redirects}",
                                        "X-Linked-Etag": f'"{self.digest(name)}"', "X-Linked-Size": str(len(self.tree[name]))})


def slowly(seconds):
    """A fault: each request waits."""
    def fault(request):
        time.sleep(seconds)
    return fault
