"""The log blocks nobody, clients cannot fill it, and its lines name their request."""
import re
import threading

import pytest
from serving import FAKE_MODELS, Server, until

FAKE = FAKE_MODELS / "fake_model.so"
LOST = "sconce_log_lines_lost_total"
GET = b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n%s\r\n"


class UnreadServer(Server):
    """A server whose log is not read between stop_reading() and go_on()."""

    def __init__(self, *serve, **more):
        self.reading = threading.Event()
        self.reading.set()
        super().__init__(*serve, **more)

    def read_log(self):
        for line in self.process.stderr:
            self.reading.wait()
            self.log.append(line)
            self.lines.put(line)
        self.lines.put(None)

    def stop_reading(self):
        self.reading.clear()

    def go_on(self):
        self.reading.set()

    def __exit__(self, *failure):
        self.go_on()
        super().__exit__(*failure)


def ask(server, times, extra=b""):
    """Statuses of so many requests on one connection."""
    with server.connect(60) as connection:
        connection.sendall(GET % extra * (times - 1) + GET % b"Connection: close\r\n")
        data = b""
        while piece := connection.recv(1 << 20):
            data += piece
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]


def told(log):
    return sum(int(n) for line in log for n in re.findall(r"(\d+) lines were lost", line))


def test_a_log_that_nobody_reads_holds_nobody_up():
    with UnreadServer(f"fake={FAKE}", flags=["--access-log", "true"]) as server:
        server.stop_reading()
        asked = 0
        while server.metrics()[LOST] == 0:
            assert ask(server, 1000) == [200] * 1000
            asked += 1000
            assert asked < 100_000
        server.go_on()
        # Each line is written or counted as lost.
        until(lambda: sum("GET /v2 status=200" in line for line in server.log) +
              sum("GET /metrics status=200" in line for line in server.log) + told(server.log) >= asked)
        assert told(server.log) > 0
        assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [0] * 4)}).status == 200
        assert server.stop() == 0
        assert "ended" in server.log[-1]


def test_a_server_ends_though_nobody_reads_its_log():
    with UnreadServer(f"fake={FAKE}", flags=["--access-log", "true"]) as server:
        server.stop_reading()
        while server.metrics()[LOST] == 0:
            ask(server, 1000)
        server.process.terminate()
        assert server.process.wait(60) == 0


class ForsakenServer(Server):
    """The reading end of the log's pipe is closed once the server listens."""

    def read_log(self):
        for line in self.process.stderr:
            self.lines.put(line)
            if "administration on" in line:
                break
        self.process.stderr.close()


def test_a_server_lives_when_the_reader_of_its_log_goes():
    with ForsakenServer(f"fake={FAKE}", flags=["--access-log", "true"]) as server:
        assert ask(server, 2000) == [200] * 2000
        until(lambda: server.metrics()[LOST] >= 2000)
        assert server.stop() == 0


@pytest.fixture()
def guarded(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("infer 0123456789abcdef0123\n")
    with Server(f"fake={FAKE}", flags=["--token-file", str(tokens)]) as server:
        yield server


def test_refusals_do_not_fill_the_log(guarded):
    for _ in range(300):
        assert guarded.get("/v2").status == 401

    def refusals():
        lines = [line for line in guarded.log if "request refused with 401" in line]
        held = sum(int(n) for line in guarded.log for n in re.findall(r"(\d+) lines (?:like this|about refused)", line))
        return len(lines), held

    until(lambda: sum(refusals()) == 300, why=lambda: f"lines and those held back: {refusals()}")
    lines, held = refusals()
    assert held == guarded.metrics()["sconce_log_lines_held_total"] > 0
    assert 20 <= lines < 200


def test_lines_name_the_peer(guarded):
    with guarded.connect() as connection:
        connection.sendall(GET % b"")
        assert connection.recv(4096).startswith(b"HTTP/1.1 401 ")
        peer = "peer=127.0.0.1:%d " % connection.getsockname()[1]
        until(lambda: any("request refused" in line and peer in line for line in guarded.log))
    guarded.request("POST", "/v2/repository/models/fake/unload", b"", port=guarded.ports["administration"])
    until(lambda: any("is unloaded" in line and " peer=127.0.0.1:" in line for line in guarded.log))


def test_lines_name_the_peer_in_json():
    with Server(f"fake={FAKE}", flags=["--access-log", "true", "--log-format", "json"]) as server:
        with server.connect() as connection:
            connection.sendall(GET % b"")
            connection.recv(4096)
            peer = '"peer":"127.0.0.1:%d"' % connection.getsockname()[1]
            until(lambda: any(peer in line for line in server.log))


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize("form", ["text", "json"])
def test_lines_of_a_request_name_its_trace(form):
    with Server(f"fake={FAKE}", flags=["--access-log", "true", "--log-format", form]) as server:
        parent = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-00", "X-Request-Id": "mine"}
        assert server.get("/v2", headers=parent).status == 200
        assert server.get("/v2/models/nobody", headers={**parent, "traceparent": "nonsense"}).status == 404
        server.stop()
        # The threads that serve connections write them in any order.
        traced, other = sorted((line for line in server.log if "GET /v2" in line and "mine" in line), key=lambda line: "nobody" in line)
        expected = f'"trace_id":"{TRACE}"' if form == "json" else f"trace_id={TRACE}"
        assert expected in traced and "nobody" not in traced
        assert "trace_id" not in other and "nobody" in other
