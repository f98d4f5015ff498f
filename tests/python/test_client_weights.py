"""client.weights: pushes to one server and to many, and what goes wrong on the way."""
import signal
import threading
import time

import numpy as np
import pytest

import pure  # noqa: F401 (finds the modules below)
from hostile import Hostile, answer, say_nothing

from admin_server import FAKE, LARGE, LARGE_FEATURES, AdminServer
from certificates import authority, stranger  # noqa: F401
from serving import until, untaken
from weights_files import fake_weights

from sconce._errors import Busy
from sconce.client import Client, ConnectionFailed, PushFailed
from test_client import GOOD, X, admin, pytestmark, url  # noqa: F401 (the reason to skip)


@pytest.fixture()
def pair():
    with AdminServer(f"fake={FAKE}", f"large={LARGE}") as one, AdminServer(f"fake={FAKE}", f"large={LARGE}") as two:
        with Client(url(one), admin=[admin(one), admin(two)], timeout=20) as client:
            yield one, two, client


def state(server, model="fake"):
    return {s["state"] for s in server.sets(model).values()}


def test_push_to_two_servers_and_back(pair):
    one, two, client = pair
    told = client.weights.push("fake", GOOD, label="v2", check_finite=True)
    assert [d["weight_version"] for d in told.values()] == ["v2", "v2"] and list(told) == [admin(one), admin(two)]
    assert one.ones() == ([16] * 4, 2) and two.ones() == ([16] * 4, 2)
    assert len(set(client.weights.digests("fake").values())) == 1
    client.weights.rollback("fake")
    assert one.ones() == ([1, 12, 23, 34], 3) and two.ones() == ([1, 12, 23, 34], 3)
    client.weights.push("fake", {"scale.b": np.zeros(4, np.float32)}, partial=True, to=admin(two))
    assert one.ones()[0] == [1, 12, 23, 34] and two.ones()[0] == [1, 2, 3, 4]
    client.weights.release("fake", to=admin(two))
    assert state(two) == {"active"}
    assert {c["name"] for c in client.weights.constants("fake")} == {"scale.w", "scale.b"}


def test_push_of_a_named_set():
    flags = ["--set", "fake.sets=4"]
    with AdminServer(f"fake={FAKE}", flags=flags) as one, AdminServer(f"fake={FAKE}", flags=flags) as two, \
            AdminServer(f"fake={FAKE}") as without, \
            Client(url(one), admin=[admin(one), admin(two)], timeout=20) as client:
        def held(server):
            return {s["name"]: s["label"] for s in server.admin("GET", "fake/sets").json["sets"]}

        before = one.ones()
        client.weights.push("fake", GOOD, label="v2", set="tenant-a")
        assert held(one) == held(two) == {"tenant-a": "v2"} and one.ones() == two.ones() == before
        # A server that holds no named sets refuses it, so none takes it.
        with pytest.raises(PushFailed, match="no server has changed"):
            client.weights.push("fake", GOOD, label="v3", set="tenant-a", to=[admin(one), admin(without)])
        assert held(one) == {"tenant-a": "v2"}
        client.weights.push("fake", GOOD, label="v4", set="tenant-a", dry_run=True)
        assert held(one) == held(two) == {"tenant-a": "v2"}


@pytest.mark.parametrize("wrong, more, said", [
    ({"scale.w": np.zeros(4, np.float32)}, {}, "scale.b"),
    ({**GOOD, "scale.c": X}, {}, "scale.c"),
    ({**GOOD, "scale.b": np.zeros(5, np.float32)}, {}, "scale.b"),
    ({**GOOD, "scale.b": np.zeros(4, np.float64)}, {}, "scale.b"),
    ({**GOOD, "scale.b": np.full(4, np.nan, np.float32)}, {"check_finite": True}, "scale.b"),
])
def test_weights_that_are_wrong_change_nothing(pair, wrong, more, said):
    one, two, client = pair
    with pytest.raises(PushFailed, match="no server has changed") as caught:
        client.weights.push("fake", wrong, **more)
    assert said in str(caught.value) and set(caught.value.reasons) <= {admin(one), admin(two)}
    for server in (one, two):
        assert server.ones() == ([1, 12, 23, 34], 1) and state(server) == {"active"}


def test_one_server_that_refuses_stops_all(pair):
    """The second server has another update staged."""
    one, two, client = pair
    client.weights.push("fake", GOOD, to=admin(two), dry_run=True)
    assert two.ones()[1] == 1 and state(two) == {"active"}
    from weights_files import fake_weights
    assert two.push("fake", fake_weights(5)).status == 200
    with pytest.raises(PushFailed) as caught:
        client.weights.push("fake", GOOD)
    assert caught.value.code == "BUSY" and isinstance(caught.value.reasons[admin(two)], Busy)
    assert one.ones() == ([1, 12, 23, 34], 1) and state(one) == {"active"}
    assert state(two) == {"active", "staged"}  # somebody else's


def test_a_server_that_is_not_there(pair):
    one, _, client = pair
    with pytest.raises(PushFailed, match="nothing was sent") as caught:
        client.weights.push("fake", GOOD, to=[admin(one), "http://127.0.0.1:1"])
    assert isinstance(caught.value.reasons["http://127.0.0.1:1"], ConnectionFailed)
    assert state(one) == {"active"}


SETS = (b'{"model":"fake","version":"1","generation":1,"weight_version":"1","sets":[]}')


def drain(connection, request):
    """Reads a body of the length that its head says."""
    head, _, body = request.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0)
    if b"100-continue" in head:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    while len(body) < length:
        body += connection.recv(65536)


def bad_admin(commit=None, stage=None):
    def script(connection, request):
        if b"?mode" in request.partition(b"\r\n")[0]:
            if stage:
                return stage(connection, request)
            drain(connection, request)
        if b"/commit" in request.partition(b"\r\n")[0] and commit:
            return commit(connection)
        connection.sendall(answer(SETS))
    return script


@pytest.mark.parametrize("commit", [lambda c: c.sendall(answer(b'{"error":"no room"}', b"507 No")), lambda c: "close"],
                         ids=["refused", "no answer"])
def test_a_commit_that_fails_rolls_the_others_back(pair, commit):
    one, _, client = pair
    with Hostile(bad_admin(commit)) as bad:
        with pytest.raises(PushFailed, match="no server has changed") as caught:
            client.weights.push("fake", GOOD, to=[admin(one), bad.url])
        assert list(caught.value.reasons) == [bad.url] and not caught.value.changed
    values, weight_version = one.ones()
    assert values == [1, 12, 23, 34] and weight_version == 3  # committed, and rolled back


def test_a_commit_whose_answer_is_lost_is_asked_for(pair):
    one, _, client = pair
    committed = []

    def script(connection, request):
        line = request.partition(b"\r\n")[0]
        if b"/commit" in line:
            committed.append(1)
            return "close"
        if b"/pushes?push=" in line:
            return connection.sendall(answer(b'{"pushes":[{"state":"committed"}]}'))
        if b"?mode" in line:
            drain(connection, request)
        connection.sendall(answer(SETS.replace(b'"generation":1', b'"generation":2') if committed else SETS))
    with Hostile(script) as lossy:
        told = client.weights.push("fake", GOOD, to=[admin(one), lossy.url])
        assert told[lossy.url]["generation"] == 2 and one.ones() == ([16] * 4, 2)
        assert committed == [1]


def test_a_push_whose_process_died_is_reconciled_by_the_next(pair):
    one, two, client = pair
    for server, member in ((one, 0), (two, 1)):
        members = f"{admin(one)},{admin(two)}"
        assert server.push("fake", fake_weights(3), f"push=dead&lease=300ms&members={members}&member={member}").status == 200
        assert server.admin("POST", "fake/weights/prepare?push=dead").status == 200
    client.weights.push("fake", GOOD)
    assert one.ones() == ([16] * 4, 2) and two.ones() == ([16] * 4, 2)
    told = {name: [(p["push"] == "dead", p["state"]) for p in pushes] for name, pushes in client.weights.pushes("fake").items()}
    assert told == {admin(one): [(True, "expired"), (False, "committed")], admin(two): [(True, "aborted"), (False, "committed")]}


def test_a_push_under_way_keeps_the_next_from_sending(pair):
    one, _, client = pair
    assert one.push("fake", fake_weights(3), "push=alive&lease=1s").status == 200
    over = threading.Event()

    def renew():
        while not over.wait(0.2):
            one.admin("POST", "fake/weights/renew?push=alive")
    thread = threading.Thread(target=renew)
    thread.start()
    with pytest.raises(PushFailed, match="push alive is not decided: it is under way") as caught:
        client.weights.push("fake", GOOD)
    over.set()
    thread.join()
    assert "nothing was sent" in str(caught.value) and one.sets()["staged"]


def test_push_by_relay():
    with AdminServer(f"fake={FAKE}", flags=["--weights-peers", "127.0.0.1"]) as one, AdminServer(f"fake={FAKE}") as two, \
            Client(url(one), admin=[admin(one), admin(two)], timeout=20) as client:
        told = client.weights.push("fake", GOOD, label="relayed", relay=True)
        assert [d["weight_version"] for d in told.values()] == ["relayed"] * 2
        assert one.ones() == two.ones() == ([16] * 4, 2)
        with pytest.raises(PushFailed, match="weights_peers does not allow"):
            client.weights.push("fake", GOOD, relay=True, to=[admin(two), admin(one)])
        assert one.ones() == two.ones() == ([16] * 4, 2)


@pytest.mark.parametrize("stage", [
    lambda c, r: "close", lambda c, r: c.sendall(answer(b'{"error":"too much"}', b"413 Large")) or "close",
    lambda c, r: c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n") or c.recv(1000) and "close",
    say_nothing, lambda c, r: c.sendall(b"nonsense\r\n\r\n") or "close"],
    ids=["closes", "refuses", "hangs up", "is silent", "talks nonsense"])
def test_a_server_that_fails_while_staging(pair, stage):
    one, _, client = pair
    large = {"scale.w": np.ones(LARGE_FEATURES, np.float32), "scale.b": np.ones(LARGE_FEATURES, np.float32)}
    with Hostile(bad_admin(stage=stage)) as bad:
        begin = time.monotonic()
        with pytest.raises(PushFailed, match="no server has changed") as caught:
            client.weights.push("large", large, to=[admin(one), bad.url], timeout=2)
        assert time.monotonic() - begin < 30 and list(caught.value.reasons) == [bad.url]
    until(lambda: not one.running())
    assert state(one, "large") == {"active"} and one.get("/v2/models/large/ready").status == 200


def test_ctrl_c_while_sending_changes_nothing(pair):
    one, _, client = pair
    large = {"scale.w": np.ones(LARGE_FEATURES, np.float32), "scale.b": np.ones(LARGE_FEATURES, np.float32)}
    reading = threading.Event()

    def stall(connection, request):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        until(lambda: untaken(connection) > 0)
        reading.set()
        say_nothing(connection)
    with Hostile(bad_admin(stage=stall)) as slow:
        main = threading.main_thread().ident
        threading.Thread(target=lambda: reading.wait(30) and signal.pthread_kill(main, signal.SIGINT), daemon=True).start()
        # A shell that started pytest in the background has the signal ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        begin = time.monotonic()
        try:
            with pytest.raises(KeyboardInterrupt):
                client.weights.push("large", large, to=[admin(one), slow.url])
        finally:
            signal.signal(signal.SIGINT, before)
        assert time.monotonic() - begin < 30
    until(lambda: not one.running())
    assert state(one, "large") == {"active"}


def test_a_digest_that_the_bytes_do_not_have(pair, monkeypatch):
    one, _, client = pair
    from sconce import _safetensors
    monkeypatch.setattr(_safetensors.Weights, "content_digest", lambda self: "sha-256=:" + "A" * 43 + "=:")
    with pytest.raises(PushFailed, match="no server has changed"):
        client.weights.push("fake", GOOD, to=admin(one))
    client.weights.push("fake", GOOD, to=admin(one), digest=False)


def test_the_bar(pair, capsys):
    one, _, client = pair
    large = {"scale.w": np.ones(LARGE_FEATURES, np.float32), "scale.b": np.ones(LARGE_FEATURES, np.float32)}
    client.weights.push("large", large, to=admin(one), progress=True)
    assert capsys.readouterr().err.endswith("\r\x1b[K")
    client.weights.push("large", large, to=admin(one))
    assert capsys.readouterr().err == ""  # no terminal


def test_the_bar_says_how_long_it_takes():
    from sconce._client_weights import progress_line
    assert progress_line(5e8, 2e9, 4, 100) == "push [=======                       ]  25 %  500 MB of 2 GB, 125 MB/s, 12 s left"
    assert progress_line(0, 2e9, 0, 100) == "push [                              ]   0 %  0 B of 2 GB"
    assert progress_line(1e6, 101e6, 1, 100).endswith(", 1:40 left") and progress_line(1, 3702, 1, 100).endswith(", 1:01:41 left")
    assert progress_line(7, 7, 0.5, 100).endswith("100 %  7 B of 7 B, 14 B/s")
    for columns in range(120):
        assert len(progress_line(123456789, 987654321, 7, columns)) < max(columns, 1)


def test_torch_weights_by_pieces(pair, monkeypatch):
    """Tensors of a device go through two buffers; here the host stands for the device."""
    torch = pytest.importorskip("torch", reason="no torch in this Python")
    from sconce import _safetensors
    one, _, client = pair
    values = torch.arange(2 * LARGE_FEATURES, dtype=torch.float32)
    views = {"scale.w": values[::2], "scale.b": values[:LARGE_FEATURES].clone().requires_grad_()}
    wanted = b"".join(bytes(p) for p in _safetensors.Weights(views).pieces())
    monkeypatch.setattr(_safetensors, "PIECE", 1000003)
    original = _safetensors._TorchTensor.__init__

    def away(self, name, tensor):
        original(self, name, tensor)
        self.host = False
    monkeypatch.setattr(_safetensors._TorchTensor, "__init__", away)
    assert b"".join(bytes(p) for p in _safetensors.Weights(views).pieces()) == wanted
    client.weights.push("large", views, to=admin(one))
    x = np.ones((1, LARGE_FEATURES), np.float32)
    got = client.options(timeout=60).infer("large", x)
    assert got[0, :3].tolist() == [0, 3, 6]
