"""HTTP/1.1 as a client speaks it, without any input or output of its own.

A conversation is a generator. It yields what it needs of its connection and is sent the result:

    ("send", buffers)    all of these bytes are sent
    ("receive",)         at least one byte, as bytes; b"" if the server has ended the connection
    ("fill", view)       how many bytes were put at the start of the view; 0 at the end
    ("poll", seconds)    as "receive", or None if nothing comes for so long

So one parser serves blocking sockets (_blocking.py) and asyncio (_aio.py). It takes nothing on trust: heads, chunk sizes
and lengths are bounded, and an answer that ends early is an error, never a shorter answer.
"""
import re
import urllib.parse

import numpy as np

from sconce._client_errors import BadAnswer, ConnectionFailed, NotDelivered, of_status
from sconce._errors import InvalidArgument

MOST_HEAD = 64 << 10
MOST_INTERIM = 16  # answers of status 1xx
PIECE = 1 << 20
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: [^\r\n]*)?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Answer:
    """status, fields (names in lower case), body (a memoryview of its own, writable memory)."""

    def __init__(self, status, fields, body, keep):
        self.status, self.fields, self.body, self.keep = status, fields, body, keep

    def retry_after(self):
        """Seconds, or None."""
        text = self.fields.get("retry-after", "")
        return int(text) if re.fullmatch(r"\d{1,6}", text) else None


def head(method, target, host, fields):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in fields.items())]
    for line in lines:
        if "\r" in line or "\n" in line:
            raise InvalidArgument(f"a line break in a header: {line!r}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def conversation(method, head_bytes, buffers, reused, most):
    """Sends a request whose body is at hand and returns its Answer. reused: the connection has served before."""
    try:
        yield ("send", [head_bytes, *buffers])
        failed = None
    except (BrokenPipeError, ConnectionResetError) as error:
        failed = error  # the server may have said why before it closed
    received = yield from _first_bytes(failed, reused)
    return (yield from _answer(received, method, most))


def upload(method, head_bytes, pieces, most):
    """Sends a request with "Expect: 100-continue", then its body piece by piece. An answer that comes before the body's
    end ends the sending: the server will not read the rest."""
    yield ("send", [head_bytes])
    received = yield ("poll", 1.0)  # a server that knows no "Expect" says nothing, and gets its body all the same
    failed = early = None
    if received is not None:
        if re.match(rb"HTTP/1\.[01] 100 ?[^\r\n]*\r\n", received) and received.endswith(b"\r\n\r\n"):
            received = None
        else:
            early = True
    if not early:
        try:
            for piece in pieces:
                yield ("send", [piece])
                received = yield ("poll", 0)
                if received is not None:
                    early = True
                    break
        except (BrokenPipeError, ConnectionResetError) as error:
            failed = error
    if received is None:
        received = yield from _first_bytes(failed, False)
    elif not received:
        raise ConnectionFailed("the server closed the connection while the body was sent")
    answer = yield from _answer(received, method, most)
    answer.keep = answer.keep and not early and failed is None
    return answer


def _first_bytes(failed, reused):
    try:
        received = yield ("receive",)
    except (ConnectionResetError, BrokenPipeError) as error:
        received, failed = b"", failed or error
    if received:
        return received
    if reused:
        raise NotDelivered
    raise ConnectionFailed("the server closed the connection without an answer" + (f" ({failed})" if failed else ""))


def _answer(received, method, most):
    for _ in range(MOST_INTERIM):
        text, rest = yield from _head(received)
        version, status, fields = _parse_head(text)
        if status >= 200:
            break
        received = rest or (yield ("receive",))
    else:
        raise BadAnswer(f"more than {MOST_INTERIM} answers of status 1xx")
    keep = version == 1 and "close" not in fields.get("connection", "").lower()
    coding, length = fields.get("transfer-encoding"), fields.get("content-length")
    if fields.get("content-encoding", "identity").lower() != "identity":
        raise BadAnswer(f"an answer with Content-Encoding {fields['content-encoding']!r}, which was not asked for")
    if method == "HEAD" or status in (204, 304):
        body = np.empty(0, np.uint8)
    elif coding is not None:
        if coding.lower() != "chunked" or length is not None:
            raise BadAnswer(f"Transfer-Encoding {coding!r}" + (" beside a Content-Length" if length else ""))
        body, rest = yield from _chunks(rest, most)
    elif length is not None:
        if not re.fullmatch(r"\d{1,18}", length):
            raise BadAnswer(f"Content-Length {length!r}")
        if int(length) > most:
            raise BadAnswer(f"an answer of {int(length)} bytes, more than max_answer_bytes={most}")
        body, rest = yield from _exactly(int(length), rest)
    else:
        body = yield from _until_end(rest, most)
        keep, rest = False, b""
    if rest:
        raise BadAnswer(f"{len(rest)} bytes after the end of the answer")
    return Answer(status, fields, memoryview(body), keep)


def _head(received):
    parts = bytearray(received)
    while (end := parts.find(b"\r\n\r\n")) < 0:
        if len(parts) > MOST_HEAD:
            break
        more = yield ("receive",)
        if not more:
            raise ConnectionFailed(f"the connection ended within the head of an answer: {bytes(parts[:80])!r}")
        parts += more
    if end < 0 or end > MOST_HEAD:
        if not parts.startswith(b"HTTP/"):
            raise BadAnswer(f"not HTTP: {bytes(parts[:80])!r}")
        raise BadAnswer(f"the head of the answer is longer than {MOST_HEAD} bytes")
    return bytes(parts[:end]), bytes(parts[end + 4:])


def _parse_head(text):
    first, *lines = text.split(b"\r\n")
    status = _STATUS.fullmatch(first)
    if not status:
        raise BadAnswer(f"not HTTP: {first[:80]!r}")
    fields = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name):
            raise BadAnswer(f"a malformed header line: {line[:80]!r}")
        name, value = name.decode().lower(), value.strip(b" \t").decode("latin-1")
        if name in fields and name in ("content-length", "transfer-encoding") and fields[name] != value:
            raise BadAnswer(f"two different {name} fields")
        fields[name] = value
    return int(status[1]), int(status[2]), fields


def _exactly(length, rest):
    try:
        body = np.empty(length, np.uint8)
    except MemoryError:
        raise BadAnswer(f"an answer of {length} bytes, for which there is no memory") from None
    got = min(len(rest), length)
    body[:got] = np.frombuffer(rest[:got], np.uint8)
    view = memoryview(body)
    while got < length:
        count = yield ("fill", view[got:])
        if not count:
            raise ConnectionFailed(f"the answer ended after {got} of {length} bytes")
        got += count
    return body, rest[length:]


def _until_end(rest, most):
    parts, size = [rest], len(rest)
    while True:
        if size > most:
            raise BadAnswer(f"an answer of more than max_answer_bytes={most}")
        more = yield ("receive",)
        if not more:
            return np.frombuffer(bytearray(b"".join(parts)), np.uint8)
        parts.append(more)
        size += len(more)


def _chunks(rest, most):
    waiting, body = bytearray(rest), bytearray()

    def fill(wanted):
        while not wanted():
            more = yield ("receive",)
            if not more:
                raise ConnectionFailed(f"the answer ended within its chunks, after {len(body)} bytes")
            waiting.extend(more)

    def line():
        def found():
            if waiting.find(b"\r\n") < 0 and len(waiting) > MOST_HEAD:
                raise BadAnswer("a chunk line or trailer without an end")
            return waiting.find(b"\r\n") >= 0
        yield from fill(found)
        end = waiting.find(b"\r\n")
        text = bytes(waiting[:end])
        del waiting[:end + 2]
        return text

    while True:
        text = yield from line()
        size = text.partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,15}", size):
            raise BadAnswer(f"a malformed chunk size: {text[:40]!r}")
        size = int(size, 16)
        if size == 0:
            break
        if len(body) + size > most:
            raise BadAnswer(f"an answer of more than max_answer_bytes={most}")
        yield from fill(lambda: len(waiting) >= size + 2)
        if waiting[size:size + 2] != b"\r\n":
            raise BadAnswer("a chunk that does not end where its size says")
        body += waiting[:size]
        del waiting[:size + 2]
    trailers = 0
    while (text := (yield from line())):
        trailers += len(text)
        if trailers > MOST_HEAD:
            raise BadAnswer(f"trailers of more than {MOST_HEAD} bytes")
    return np.frombuffer(body, np.uint8), bytes(waiting)


class Address:
    """A server's URL, taken apart: http(s)://host[:port][/prefix]."""

    def __init__(self, url, default_port):
        if "://" not in url:
            url = "http://" + url
        parts = urllib.parse.urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = 0
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or port == 0:
            raise InvalidArgument(f"url: expected http(s)://host[:port], got {url!r}")
        if parts.username or parts.password:
            raise InvalidArgument("url: expected no user name or password; pass token=")
        self.tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = port or (443 if self.tls else default_port)
        self.prefix = parts.path.rstrip("/")
        name = f"[{self.host}]" if ":" in self.host else self.host
        self.field = f"{name}:{self.port}"  # of the Host header
        self.text = f"{parts.scheme}://{self.field}{self.prefix}"


def problem(address, answer):
    """The exception for an answer that is no success."""
    if 300 <= answer.status < 400:
        place = answer.fields.get("location", "")[:200]
        error = BadAnswer(f"{address.text}: answered {answer.status}, a redirection to {place!r}, which is not followed: "
                          "use that server's own address")
        error.status = answer.status
        return error
    return of_status(answer.status, f"{address.text}: {reason(answer)}")


def reason(answer):
    import json
    try:
        text = json.loads(bytes(answer.body[:1 << 16]))["error"]
    except (ValueError, TypeError, KeyError):
        text = None
    if not isinstance(text, str) or not text:
        text = bytes(answer.body[:200]).decode("utf-8", "backslashreplace").strip()
    return f"{text or 'no reason given'} (HTTP {answer.status})"
