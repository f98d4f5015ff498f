"""Clients that reset, half-close or stall at every byte of a request and its answer, over TCP and TLS; and that send a
wrong byte at each place of a TLS handshake."""
import socket
import ssl
import struct

from campaign import Clock, finish, survive
from client import Outcome, request_bytes
from operations import REQUESTS, everything, right_answer, serves
from subject import CALL, JSON, SECOND, STREAM, WHOLE_AGAIN, Lost, Subject, certificates

WAYS = ("reset", "half-close", "stall")
REQUEST = request_bytes("POST", "/v1/models/digits:call", CALL, JSON)
PUSH = request_bytes("POST", "/v2/admin/models/other/weights?commit=true", SECOND, STREAM)
MOST_STALLED = 24


class Peer:
    """A client with one connection that stops after some bytes, and what becomes of it."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WHOLE_AGAIN)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        self.data = b""

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # refused before all was sent

    def read(self, most):
        """Returns what came so far, once there are `most` bytes or the connection ends."""
        try:
            while len(self.data) < most and (piece := self.socket.recv(min(most - len(self.data), 65536))):
                self.data += piece
        except ConnectionResetError:
            pass
        except TimeoutError:
            raise Lost(f"neither answered nor closed, after {self.data[:200]!r}") from None
        return self.data

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def half_close(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def check_answer(subject, data):
    """What arrived must be the beginning of the right answer or of an error."""
    if b"\r\n\r\n" not in data:
        return
    head, body = data.split(b"\r\n\r\n", 1)
    status = int(head.split()[1])
    if status == 200 and not subject.first.startswith(body):
        raise Lost(f"a wrong answer: {data!r}")
    if status == 200:
        return
    right_answer(subject, Outcome(status, head, body))


class Encryption:
    """The client side of TLS without a socket, so that its bytes can be truncated or changed."""

    def __init__(self, context):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def talk(self, peer, most, wrong=None):
        """Sends handshake and request, up to `most` bytes, with byte number `wrong` changed."""
        sent, asked = 0, False
        while sent < most:
            try:
                if not asked:
                    self.tls.do_handshake()
                    self.tls.write(REQUEST)
                    asked = True
                else:
                    self.tls.read(1)
                    return sent
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return sent
            data = self.outgoing.read()
            if data:
                if wrong is not None and sent <= wrong < sent + len(data):
                    at = wrong - sent
                    data = data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:]
                data = data[:most - sent]
                peer.send(data)
                sent += len(data)
                continue
            try:
                piece = peer.socket.recv(65536)
            except TimeoutError:
                if wrong is not None:
                    return sent  # a length that became larger: the server waits for more
                raise Lost("a handshake that the server does not go on with") from None
            except OSError:
                return sent
            if not piece:
                return sent
            self.incoming.write(piece)
        return sent


def end(subject, peer, way, stalled):
    if way == "reset":
        return peer.reset()
    if way == "half-close":
        peer.half_close()
        check_answer(subject, peer.read(1 << 20))
        return peer.socket.close()
    stalled.append(peer)
    while len(stalled) > MOST_STALLED:
        stalled.pop(0).reset()


def cut_request(subject, way, at, stalled):
    peer = Peer(subject.public)
    peer.send(REQUEST[:at])
    end(subject, peer, way, stalled)


def cut_answer(subject, way, at, stalled):
    peer = Peer(subject.public)
    peer.send(REQUEST)
    check_answer(subject, peer.read(at))
    end(subject, peer, way, stalled)


def cut_push(subject, way, at, stalled):
    peer = Peer(subject.admin)
    peer.send(PUSH[:at])
    if way == "half-close":
        peer.half_close()
        peer.read(1 << 20)
    peer.reset()
    if at < len(PUSH):
        serves(subject, subject.first)
    # It blocks no other update.
    subject.until(lambda: (o := subject.update()).status == 200 or o.status not in (400, 409, 503), WHOLE_AGAIN,
                  lambda: f"no update after one that was cut off: {subject.update()}")
    serves(subject, subject.second)
    subject.reload()


def cut_encrypted(subject, way, at, stalled):
    peer = Peer(subject.public)
    Encryption(subject.context).talk(peer, at)
    if way == "half-close":
        peer.half_close()
        peer.read(1 << 20)
        return peer.socket.close()
    end(subject, peer, way, stalled)


def wrong_byte(subject, way, at, stalled):
    peer = Peer(subject.public)
    Encryption(subject.context).talk(peer, 1 << 20, wrong=at)
    peer.reset()


def run_kind(campaign, row, subject, places, seconds):
    subject.settle()
    stalled, clock = [], Clock(seconds)
    places = campaign.shuffled(places)
    row.places += len(places)
    kilobytes = subject.memory_kb()
    for act, way, at, what in places:
        if clock.over():
            break

        def stop():
            act(subject, way, at, stalled)
            subject.check_whole()
            if row.injected % campaign.every == 0:  # leftovers are about to be counted
                while stalled:
                    stalled.pop().reset()

        survive(campaign, row, subject, f"{way} after {at} bytes of {what}", stop)
    while stalled:
        stalled.pop().reset()
    finish(campaign, row, subject, kilobytes)


def run(campaign, seconds):
    row = campaign.row("peers, at each byte")
    with Subject(flags=["--header-timeout", "60s"], warm_up=everything) as subject:
        answer = len(subject.ask(REQUEST).head) + 4 + len(subject.first)
        places = [(cut_request, way, at, "a request") for way in WAYS for at in range(len(REQUEST) + 1)]
        places += [(cut_answer, way, at, "an answer") for way in WAYS for at in range(answer + 1)]
        step = max(1, len(PUSH) // 200)
        places += [(cut_push, way, at, "an update") for way in WAYS[:2]
                   for at in {*range(300), *range(0, len(PUSH), step), len(PUSH) - 1}]
        run_kind(campaign, row, subject, places, seconds / 2)
    row = campaign.row("peers, at each byte of TLS")
    authority = certificates()
    if not authority:
        row.skipped = "the openssl program is not installed"
        return
    pem, key = authority.issue("localhost")
    with Subject(flags=["--http-tls", "on", "--tls-certificate", pem, "--tls-key", key], context=authority.context(),
                 warm_up=lambda s: everything(s, REQUESTS)) as subject:
        whole = Peer(subject.public)
        length = Encryption(subject.context).talk(whole, 1 << 20)
        whole.reset()
        places = [(cut_encrypted, way, at, "a handshake and a request") for way in WAYS for at in range(length)]
        places += [(wrong_byte, "another one", at, "a handshake and a request") for at in range(length)]
        run_kind(campaign, row, subject, places, seconds / 2)
