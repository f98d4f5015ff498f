"""A client that records what becomes of its request and never waits longer than it must."""
import json
import re
import socket
import time

# A client that gets neither an answer nor a close for so long counts as stalled.
PATIENCE = 2.0


class Outcome:
    """status 0: the connection ended without an answer; stalled: it did not even end."""

    def __init__(self, status=0, head=b"", body=b"", stalled=False, reason=""):
        self.status, self.head, self.body, self.stalled, self.reason = status, head, body, stalled, reason

    def field(self, name):
        found = re.search(rb"\r\n" + name.encode() + rb": ([^\r]*)", self.head, re.IGNORECASE)
        return found.group(1).decode() if found else None

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "stalled" if self.stalled else f"{self.status or self.reason} {self.body[:300]!r}"


def request_bytes(method, path, body=b"", headers=(), close=True):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if close:
        lines.append("Connection: close")
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Connection:
    def __init__(self, port, context=None, patience=PATIENCE):
        self.end = time.monotonic() + patience
        self.data = b""
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def more(self):
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.socket.settimeout(left)
        piece = self.socket.recv(1 << 20)
        self.data += piece
        return bool(piece)

    def ask(self, data, patience=PATIENCE):
        self.end = time.monotonic() + patience
        try:
            self.socket.settimeout(patience)
            try:
                self.socket.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the answer may have come already
            while b"\r\n\r\n" not in self.data:
                if not self.more():
                    return Outcome(reason="closed" if not self.data else "cut off in the head")
            head, _, rest = self.data.partition(b"\r\n\r\n")
            length = int(re.search(rb"\r\nContent-Length: (\d+)", head, re.IGNORECASE).group(1))
            self.data = rest
            while len(self.data) < length:
                if not self.more():
                    return Outcome(reason="cut off in the body")
            body, self.data = self.data[:length], self.data[length:]
            return Outcome(int(head.split()[1]), head, body)
        except TimeoutError:
            return Outcome(stalled=True)
        except OSError as e:
            return Outcome(reason=repr(e))


def ask(port, data, context=None, patience=PATIENCE):
    try:
        connection = Connection(port, context, patience)
    except TimeoutError:
        return Outcome(stalled=True)
    except OSError as e:
        return Outcome(reason=repr(e))
    with connection:
        return connection.ask(data, patience)
