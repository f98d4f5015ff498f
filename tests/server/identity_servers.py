"""Servers that issue credentials for the tests: Amazon's STS, a container's agent, an instance's metadata service, the token
services of Google. Each speaks the documented exchange and refuses what does not."""
import base64
import datetime
import http.server
import json
import threading
import urllib.parse


def expiration(seconds):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Identity:
    """answer(request, body) -> (status, text). requests: (method, path, headers, body as text)."""

    def __init__(self, answer):
        self.answer, self.requests = answer, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def respond(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
                outer.requests.append((self.command, self.path, dict(self.headers.items()), body))
                status, text = outer.answer(self, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_POST = do_PUT = respond

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def sts(bucket, key, secret, check, seconds=3600):
    """A service that gives these credentials for requests whose form `check` takes."""
    def answer(request, body):
        form = dict(urllib.parse.parse_qsl(body))
        problem = check(request, form)
        if problem:
            return 403, f"<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>{problem}</Message></Error></ErrorResponse>"
        action = form["Action"]
        return 200, (f"<{action}Response xmlns='https://sts.amazonaws.com/doc/2011-06-15/'><{action}Result><Credentials>"
                     f"<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>"
                     f"<SessionToken>{bucket.session}</SessionToken><Expiration>{expiration(seconds)}</Expiration>"
                     f"</Credentials></{action}Result></{action}Response>")
    return Identity(answer)


def issued(bucket, key, secret, seconds=3600, token="Token"):
    return json.dumps({"Code": "Success", "Version": 1, "AccessKeyId": key, "SecretAccessKey": secret, token: bucket.session,
                       "Expiration": expiration(seconds)})


def part(text):
    """A part of a token in base64 for URLs."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
