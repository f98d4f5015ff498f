"""`sconce top` against feeds that serve GET /v2/admin/live: in a terminal, as lines and as JSON."""
import contextlib
import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading

import pytest
from serving import FAKE_MODELS, PROGRAM, Clients, Server, until

TICK = 0.15  # of the stand-in feed, whose times say that a second has passed


def overview(tick, **server):
    latency = [0] * 17
    latency[1] = latency[2] = 60 * tick
    return {"time": 1790000000.0 + tick,
            "server": {"version": "0.1.0", "instance": "a", "started": 1789999000.0, "ready": True, "draining": False,
                       "resident_bytes": 100 << 20, "cpu_seconds": 0.25 * tick, "connections": 3, "consoles": 1,
                       "requests": 120 * tick, "lost_lines": 0, **server},
            "gpus": [{"uuid": "GPU-1", "utilization": 0.5, "memory_used": 1 << 30, "memory_total": 80 << 30, "power_watts": 300.0}],
            "models": [{"name": "digits", "version": "1", "state": "READY", "reason": "", "kind": "package", "weight_version": 2,
                        "label": "v2\x1b[5m", "staged": False, "sets": 0, "weight_bytes": 61480, "set_bytes": 0, "replicas": 1,
                        "devices": ["cpu"], "queue": 4, "success": 118 * tick, "failures": 2 * tick,
                        "inferences": 120 * tick, "executions": 60 * tick, "total_ns": 1, "queue_ns": 1, "input_ns": 1,
                        "compute_ns": 1, "output_ns": 1, "latency": latency, "batches": [[2, 60 * tick]], "rejected": 0,
                        "sequences": 0, "loops": 0, "tokens": 0, "weights_problem": ""}],
            "latency_bounds_us": [50 << i for i in range(16)],
            "operations": [{"id": 3, "model": "digits", "version": "1", "state": "running", "phase": "receiving",
                            "bytes": 1 << 20, "total": 4 << 20, "seconds": 0.5, "label": "v3"}],
            "alerts": [{"severity": "warning", "model": "digits", "text": "digits refuses requests"}]}


class Feed(http.server.ThreadingHTTPServer):
    """Sends an event each tick, in chunks that do not end where events do."""
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port=0, token="", status=200, events=10**9):
        self.token, self.status, self.events, self.streams, self.over = token, status, events, 0, threading.Event()
        super().__init__(("127.0.0.1", port), Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        if not self.over.is_set():
            self.over.set()
            self.shutdown()
            self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        status = self.server.status
        if self.server.token and self.headers["Authorization"] != f"Bearer {self.server.token}":
            status = 401
        if self.path != "/v2/admin/live" or status != 200:
            body = json.dumps({"error": "no such route" if status == 200 else "a token is needed"}).encode()
            self.send_response(404 if status == 200 else status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.server.streams += 1
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):
            for tick in range(1, self.server.events + 1):
                event = f"event: overview\ndata: {json.dumps(overview(tick))}\n\n".encode()
                for part in (event[:100], event[100:]):
                    self.wfile.write(b"%08x\r\n%s\r\n" % (len(part), part))
                if self.server.over.wait(TICK):
                    break
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True


def run(*arguments, environment=None):
    done = subprocess.run([PROGRAM, "top", *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(environment or {})})
    return done.returncode, done.stdout, done.stderr


class Terminal:
    """The program in a terminal of that size, and all that it wrote."""

    def __init__(self, *arguments, columns=150, rows=24, environment=None):
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen([PROGRAM, "top", *arguments], stdin=slave, stdout=slave, stderr=slave,
                                        env={**os.environ, "TERM": "xterm", **(environment or {})}, start_new_session=True)
        self.slave, self.text = slave, ""

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds=0.05):
        while select.select([self.master], [], [], seconds)[0]:
            self.text += os.read(self.master, 65536).decode(errors="replace")
        return self.text

    def screen(self):
        """The lines of the last drawing, without colours."""
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.read().rsplit("\x1b[H", 1)[-1])
        return [line.rstrip("\r") for line in text.split("\n")]

    def wait_for(self, words):
        until(lambda: any(words in line for line in self.screen()), why=lambda: f"{words!r} is not in {self.screen()}")

    def ends(self):
        status = self.process.wait(20)
        self.read()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture()
def feed():
    with Feed() as running:
        yield running


def test_once_as_json(feed):
    status, out, err = run(feed.url, "--once", "--json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    model, = document["models"]
    assert (model["name"], model["state"], model["requests_per_s"], model["errors_per_s"]) == ("digits", "READY", 120, 2)
    assert (model["mean_batch"], model["queue"], model["weight_version"]) == (2, 4, 2)
    assert model["generation"] == 2  # deprecated
    assert model["p50_s"] == pytest.approx(100e-6) and model["p99_s"] == pytest.approx(198e-6)
    assert document["answers_per_s"] == 120 and document["cpu_share"] == 0.25 and document["alerts"][0]["model"] == "digits"


def test_once_as_lines(feed):
    status, out, err = run(feed.url.removeprefix("http://"), "--once")
    assert (status, err) == (0, "") and "\x1b" not in out
    lines = out.splitlines()
    assert len(lines) == 4 and all(line.startswith("2026-09-21T") for line in lines)
    assert "digits 1 READY 120/s p50 100.00 us p99 198.00 us queue 4 batch 2.0 errors 2.0/s" in lines[0]
    assert "GPU GPU-1  50 %" in lines[1] and "25 % of 4.00 MiB" in lines[2] and "warning: digits refuses requests" in lines[3]


def test_lines_go_on_until_the_reader_leaves(feed):
    process = subprocess.Popen([PROGRAM, "top", feed.url, "--json", "--interval", "2"], stdout=subprocess.PIPE, text=True)
    with process:
        times = [json.loads(process.stdout.readline())["time"] for _ in range(3)]
        process.send_signal(signal.SIGINT)
    assert [b - a for a, b in zip(times, times[1:])] == [2, 2]


def test_the_screen(feed):
    with Terminal(feed.url) as terminal:
        terminal.wait_for("digits")
        terminal.wait_for("120")
        lines = terminal.screen()
        assert lines[0].startswith(f"sconce 0.1.0  {feed.url}  ready")
        assert any("MODEL" in line and "P99" in line for line in lines)
        assert any("digits" in line and "READY" in line and "198.00 us" in line for line in lines)
        assert any(set(line) & set("▁▂▃▄▅▆▇█") for line in lines)
        assert any("operation 3" in line for line in lines) and any("refuses requests" in line for line in lines)
        assert "\x1b[5m" not in terminal.text, "a label's control characters reached the terminal"
        assert "\x1b[?1049h" in terminal.text and not termios.tcgetattr(terminal.slave)[3] & termios.ECHO
        os.write(terminal.master, b"xq")
        assert terminal.ends() == 0
        assert terminal.text.endswith("\x1b[?25h\x1b[?1049l")
        assert termios.tcgetattr(terminal.slave) == terminal.before


def test_a_signal_restores_the_terminal(feed):
    with Terminal(feed.url) as terminal:
        terminal.wait_for("digits")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.ends() == 0
        assert terminal.text.endswith("\x1b[?25h\x1b[?1049l")
        assert termios.tcgetattr(terminal.slave) == terminal.before


def test_it_follows_the_size_of_the_terminal(feed):
    with Terminal(feed.url) as terminal:
        terminal.wait_for("198.00 us")
        terminal.resize(40, 6)
        terminal.process.send_signal(signal.SIGWINCH)
        until(lambda: len(terminal.screen()) <= 6 and all(len(line) <= 40 for line in terminal.screen()))
        assert any("digits" in line for line in terminal.screen())


def test_no_color(feed):
    with Terminal(feed.url, environment={"NO_COLOR": "1"}) as terminal:
        terminal.wait_for("digits")
        assert not re.search(r"\x1b\[[0-9;]*m", terminal.text)


def test_a_server_that_goes_and_comes_back():
    with Feed(events=3) as feed:
        port = feed.server_port
        with Terminal(feed.url) as terminal:
            terminal.wait_for("trying again")
            assert any("digits" in line for line in terminal.screen()), "what was known last stays"
            until(lambda: feed.streams >= 2)
            terminal.wait_for("120")
            feed.__exit__()
            terminal.wait_for("cannot connect")
            with Feed(port=port) as again:
                until(lambda: again.streams >= 1)
                until(lambda: not any("trying again" in line for line in terminal.screen()))
                os.write(terminal.master, b"q")
                assert terminal.ends() == 0


def test_what_cannot_be_shown(tmp_path):
    with Feed(status=404) as feed:
        status, out, err = run(feed.url, "--once")
        assert status == 1 and out == "" and "no live overview" in err and "older than this program" in err
    with Feed(events=1) as feed:
        status, _, err = run(feed.url, "--once")
        assert status == 1 and "the stream ended" in err
    status, _, err = run(feed.url, "--once")
    assert status == 1 and "cannot connect" in err
    assert run("ftp://host", "--once")[0] == 2
    (tmp_path / "token").write_text("metrics-metrics-1\n")
    with Feed(token="metrics-metrics-1") as feed:
        status, _, err = run(feed.url, "--once")
        assert status == 1 and "401: a token is needed" in err
        assert run(feed.url, "--once", "--token-file", str(tmp_path / "token"))[0] == 0


def test_a_server(tmp_path):
    """The program's own feed, with a token of scope metrics."""
    tokens = tmp_path / "tokens"
    tokens.write_text("metrics metrics-metrics-1\nadmin admin-admin-admin-1\n")
    (tmp_path / "token").write_text("metrics-metrics-1\n")
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}", flags=["--token-file", str(tokens)]) as server:
        url = f"http://127.0.0.1:{server.admin_port}"
        status, _, err = run(url, "--once")
        assert status == 1 and "401" in err
        with Clients(server, "fake", count=2):
            status, out, err = run(url, "--once", "--json", "--token-file", str(tmp_path / "token"))
        assert (status, err) == (0, "")
        document = json.loads(out)
        model, = document["models"]
        assert (model["name"], model["version"], model["state"], model["weight_version"]) == ("fake", "1", "READY", 1)
        assert model["requests_per_s"] > 0 and model["errors_per_s"] == 0 and model["mean_batch"] >= 1
        assert 0 < model["p50_s"] <= model["p99_s"] and document["answers_per_s"] > 0
        with Terminal(url, "--token-file", str(tmp_path / "token")) as terminal:
            terminal.wait_for("READY")
            server.stop()
            terminal.wait_for("trying again")
            os.write(terminal.master, b"q")
            assert terminal.ends() == 0
