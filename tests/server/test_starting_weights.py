"""A model starts with weights of a file or of another server. Tests also the route that sends the active set."""
import json
import shutil
import socket
import struct
import threading

import numpy as np
import pytest
from admin_server import FAKE, LARGE, LARGE_FEATURES, STORED, AdminServer, expected, url
from ports import reserve_port
from serving import FAKE_MODELS, PACKAGES, ROOT, run_serve, until
from watched_calls import SHIM
from weights_files import fake_weights, repeated, safetensors

from certificates import authority, stranger  # noqa: F401  fixtures

ACTIVE = "fake/weights/active"


def start(*flags, model=FAKE, name="fake", wait=True):
    return AdminServer(f"{name}={model}", flags=list(flags), wait=wait)


def settings(**values):
    return [word for key, value in values.items() for word in ("--set", f"fake.{key}={value}")]


def read_safetensors(data):
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    return {name: (e["dtype"], e["shape"], data[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]])
            for name, e in header.items() if name != "__metadata__"}


def blob(value):
    with start() as server:
        constants = server.admin("GET", "fake/constants").json["constants"]
    return b"".join(struct.pack("<f", value) * (c["bytes"] // 4) for c in constants if not c["folded"])


def write_file(path, kind):
    if kind == "safetensors":
        path.write_bytes(fake_weights(5))
    elif kind == "npz":
        np.savez(path, **{"scale.w": np.full(4, 5, np.float32), "scale.b": np.full(4, 5, np.float32)})
    elif kind == "blob":
        path.write_bytes(blob(5))
    else:
        shutil.copy(FAKE_MODELS / "fake_batched.pt2", path)


@pytest.mark.parametrize("kind", ["safetensors", "npz", "blob", "pt2"])
def test_a_file_of_each_format(tmp_path, kind):
    path = tmp_path / f"weights.{kind}"
    write_file(path, kind)
    with start(*settings(weights=path, weights_label="from-file", require_label="from-file")) as server:
        assert server.served() == (STORED if kind == "pt2" else expected(5), 2, "from-file")
        assert list(server.sets()) == ["active"]


def test_a_file_with_entries_to_leave_out(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(safetensors({"scale.w": repeated(5, 4), "scale.b": repeated(5, 4), "other": repeated(1, 1)}))
    with start(*settings(weights=path, weights_ignore="other")) as server:
        assert server.ones()[0] == expected(5)


@pytest.mark.parametrize("content, said", [(None, "No such file"), (fake_weights(5)[:-1], "outside the file"),
                                           (fake_weights(5, features=3), "scale."), (b"x", "ends within")])
def test_a_file_that_cannot_be_used(tmp_path, content, said):
    path = tmp_path / "w.safetensors"
    if content is not None:
        path.write_bytes(content)
    status, log = run_serve(f"fake={FAKE}", *settings(weights=path))
    assert status != 0 and said in log and str(path) in log, log


def test_stored_weights_go_before_a_file(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(fake_weights(5))
    flags = ["--weights-store", str(tmp_path / "kept"), *settings(weights=path)]
    with start(*flags) as server:
        assert server.ones() == (expected(5), 2)
        assert server.push("fake", fake_weights(7), "commit=true&label=pushed").json["generation"] == 3
    with start(*flags) as server:
        assert server.served() == (expected(7), 3, "pushed")
    with start(*flags, *settings(weights_mismatch="package"), model=FAKE_MODELS / "fake_folded.so") as server:
        assert server.ones()[1] == 3  # the new package has the same constants, so they fit


def test_a_package_without_weights(tmp_path):
    """The model is not ready until weights are pushed."""
    with start(model=FAKE_MODELS / "fake_weightless.pt2", wait=False) as server:
        index = lambda: server.post("/v2/repository/index", b"").json[0]
        until(lambda: index()["state"] == "UNAVAILABLE")
        assert "brings no weights" in index()["reason"]
        assert server.get("/v2/health/ready").status == 503
        assert server.admin("GET", ACTIVE).status == 503
        assert server.push("fake", fake_weights(5), "commit=true").json["generation"] == 2
        assert server.get("/v2/health/ready").status == 200
        assert server.ones() == (expected(5), 2)
    path = tmp_path / "w.safetensors"
    path.write_bytes(fake_weights(6))
    with start(*settings(weights=path), model=FAKE_MODELS / "fake_weightless.pt2") as server:
        assert server.ones() == (expected(6), 2)


# The active set as a file.


def test_the_active_set_is_handed_out():
    with start() as server:
        first = server.admin("GET", ACTIVE)
        assert first.headers["Sconce-Weight-Version"] == "1" and first.headers["Sconce-Weights-Label"] == ""
        assert server.push("fake", fake_weights(5), "commit=true&label=five%20%C3%BC").status == 200
        answer = server.admin("GET", ACTIVE)
        assert answer.status == 200 and answer.headers["Content-Type"] == "application/octet-stream"
        tensors, pushed = read_safetensors(answer.body), read_safetensors(fake_weights(5))
        assert {name: tensors[name] for name in pushed} == pushed
        digest = server.sets(query="digest=true")["active"]["digest"]
        assert answer.headers["Sconce-Weights-Digest"] == digest and answer.headers["ETag"] == f'"{digest}"'
        assert answer.headers["Sconce-Weight-Version"] == "2" and answer.headers["Sconce-Weights-Label"] == "five%20%C3%BC"
        assert server.admin("GET", "fake/versions/1/weights/active").body == answer.body
        assert server.push("fake", first.body, "commit=true").status == 200  # and taken again
        assert server.ones()[0] == STORED
        head = server.admin("HEAD", ACTIVE)
        assert head.status == 200 and head.body == b"" and int(head.headers["Content-Length"]) == len(first.body)
        for path, status in (("nobody/weights/active", 404), ("fake/versions/2/weights/active", 404),
                             (ACTIVE + "?x=1", 400)):
            assert server.admin("GET", path).status == status, path
        assert server.get("/v2/admin/models/fake/weights/active").status == 404  # not on the public listener
        route = 'sconce_http_responses_total{code="200",route="/v2/admin/models/{model}/weights/active"}'
        until(lambda: server.metrics()[route] == 4)


def test_every_model_is_handed_out_and_taken_again():
    """Any dtypes and strides: what is handed out has the digest of the set after it was pushed."""
    with AdminServer(PACKAGES / "inlined.pt2", ROOT / "examples/digits/digits.pt2", FAKE_MODELS / "fake_batched.pt2",
                     f"state={FAKE_MODELS / 'fake_state.so'}") as server:
        models = [m["name"] for m in server.post("/v2/repository/index", b"").json]
        taken = 0
        for model in models:
            answer = server.admin("GET", f"{model}/weights/active")
            assert answer.status == 200, answer.body
            if not read_safetensors(answer.body):
                continue
            again = server.push(model, answer.body, "commit=true&mode=partial")
            assert again.status == 200, (model, again.body)
            assert server.sets(model, "digest=true")["active"]["digest"] == answer.headers["Sconce-Weights-Digest"]
            taken += 1
        assert taken >= 4


def test_a_client_that_takes_nothing_or_leaves(tmp_path):
    with start("--write-timeout", "1s", model=LARGE) as server:
        request = f"GET /v2/admin/models/{ACTIVE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        with server.connect_admin() as stalled, server.connect_admin() as gone:
            for connection in (stalled, gone):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.sendall(request)
                assert connection.recv(15) == b"HTTP/1.1 200 OK"
            gone.close()
            assert server.get("/v2/health/ready").status == 200
            until(lambda: sum("not sent to the end" in line for line in server.log) == 2)
        assert server.admin("GET", ACTIVE).status == 200
        assert server.stop() == 0


def test_updates_while_a_set_is_handed_out():
    with start(model=LARGE) as server:
        sizes = set()
        with server.connect_admin() as connection:
            connection.sendall(f"GET /v2/admin/models/{ACTIVE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            data = connection.recv(1000)
            for value in (2, 3):
                assert server.push("fake", fake_weights(value, LARGE_FEATURES), "commit=true").status == 200
            assert server.admin("POST", "fake/weights/release").status == 200
            while piece := connection.recv(1 << 20):
                data += piece
        head, body = data.split(b"\r\n\r\n", 1)
        assert b"Sconce-Weight-Version: 1" in head
        sizes.add(len(body))
        answer = server.admin("GET", ACTIVE)
        assert answer.headers["Sconce-Weight-Version"] == "3" and len(answer.body) in sizes
        assert read_safetensors(answer.body)["scale.w"][2] == struct.pack("<f", 3) * LARGE_FEATURES


# Weights of other servers.


def test_weights_of_a_peer(tmp_path):
    """Of several servers, one is gone, one is not ready, one has other constants, one is older: the newest counts."""
    with start() as old, start() as new, start(model=LARGE) as other, \
            start(*settings(require_label="never"), wait=False) as held:
        assert old.push("fake", fake_weights(3), "commit=true&label=old").status == 200
        for value in (4, 5, 6):
            assert new.push("fake", fake_weights(value), f"commit=true&label=new%20{value}").status == 200
        for _ in range(9):
            assert other.push("fake", fake_weights(1, LARGE_FEATURES), "commit=true").status == 200
            assert held.push("fake", fake_weights(1), "commit=true").status == 200
        peers = ",".join([f"http://127.0.0.1:{reserve_port()}", url(other), url(old), url(held), url(new), "http://nowhere.invalid"])
        kept = tmp_path / "kept"
        with start("--weights-store", str(kept), *settings(weights_from=peers)) as server:
            assert server.served() == (expected(6), 4, "new 6")
            for said in ("Connection refused", "is not ready", "do not fit the package", "cannot find nowhere.invalid"):
                until(lambda: said in "".join(server.log))
            assert server.sets(query="digest=true")["active"]["digest"] == new.sets(query="digest=true")["active"]["digest"]
            assert server.push("fake", fake_weights(8), "commit=true&label=own").json["generation"] == 5
        with start("--weights-store", str(kept), *settings(weights_from=peers)) as server:
            assert server.served() == (expected(8), 5, "own")  # the stored set is newer
            server.stop()
        for value in (7, 9):
            assert new.push("fake", fake_weights(value), f"commit=true&label=new%20{value}").status == 200
        with start("--weights-store", str(kept), *settings(weights_from=peers)) as server:
            assert server.served() == (expected(9), 6, "new 9")
    with start("--weights-store", str(kept), *settings(weights_from=peers)) as server:
        assert server.served() == (expected(9), 6, "new 9")  # what came from a peer was stored


def test_no_peer_has_weights(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(fake_weights(5))
    with start(*settings(weights_from=f"http://127.0.0.1:{reserve_port()}", weights=path)) as server:
        assert server.ones() == (expected(5), 2)


def test_a_server_does_not_ask_itself(tmp_path):
    port = reserve_port()
    with AdminServer(f"fake={FAKE}", flags=["--admin", f"127.0.0.1:{port}", *settings(weights_from=f"http://127.0.0.1:{port}")]) as server:
        assert server.push("fake", fake_weights(5), "commit=true").status == 200
        assert server.admin("POST", "/v2/repository/models/fake/load", b"").status == 200
        until(lambda: any("is this server" in line for line in server.log))
        assert server.ones() == (STORED, 1)


def answering(body_of):
    """A listener that answers every request with what body_of(path) returns; returns its URL."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                path = connection.recv(65536).split(b" ")[1].decode()
                connection.sendall(body_of(path))

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}", listener


DATA = fake_weights(5)
BAD_SETS = {
    "cut off": (DATA[:-7], len(DATA), "sha-256:0", "closed the connection"),
    "wrong digest": (DATA, len(DATA), "sha-256:0", "digest"),
    "no safetensors": (b"x" * 100, 100, "sha-256:0", "safetensors"),
    "longer": (DATA + b"1234", len(DATA) + 4, "sha-256:0", ""),
    "no length": (DATA, None, "sha-256:0", "no answer"),
}


@pytest.mark.parametrize("former", [False, True], ids=["names of today", "former names"])
@pytest.mark.parametrize("kind", BAD_SETS)
def test_a_peer_that_lies(kind, former):
    body, length, digest, said = BAD_SETS[kind]

    def answer(path):
        if not path.endswith("/active"):
            sets = [{"state": "active", "weight_version": 7}, {"state": "staged", "weight_version": None},
                    {"state": "previous", "weight_version": 9}]
            names = {"generation": 7} if former else {"weight_version": "x", "sets": sets}  # deprecated: the first
            text = json.dumps({**names, "ready": True, "instance": "other"}).encode()
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)
        head = f"HTTP/1.1 200 OK\r\nSconce-{'Generation' if former else 'Weight-Version'}: 7\r\n" + \
            "Sconce-Weights-Label: x\r\n" + \
            f"Sconce-Weights-Digest: {digest}\r\n" + (f"Content-Length: {length}\r\n" if length else "") + "\r\n"
        return head.encode() + body

    peer, listener = answering(answer)
    with listener, start(*settings(weights_from=peer)) as server:
        assert server.ones() == (STORED, 1)
        until(lambda: any("no weights from" in line and said in line for line in server.log), 10, lambda: server.log)


def test_a_peer_behind_a_token(tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-of-16-characters\n")
    headers = {"Authorization": "Bearer a-token-of-16-characters"}
    with start("--admin-token-file", str(token)) as peer:
        assert peer.push("fake", fake_weights(5), "commit=true", headers).status == 200
        assert peer.admin("GET", ACTIVE).status == 401
        with start(*settings(weights_from=url(peer))) as server:
            assert server.ones() == (STORED, 1)
            until(lambda: any("401" in line for line in server.log))
        with start(*settings(weights_from=url(peer), weights_from_token_file=token)) as server:
            assert server.ones() == (expected(5), 2)


@pytest.fixture(scope="module")
def mutual(tmp_path_factory, authority):
    """A peer that serves weight version 2 and whose admin port demands a certificate."""
    path = tmp_path_factory.mktemp("mutual") / "w.safetensors"
    path.write_bytes(fake_weights(5))
    certificate, key = authority.issue("server")
    with start("--admin-tls", "mutual", "--tls-certificate", str(certificate), "--tls-key", str(key), "--admin-tls-client-ca",
               str(authority.ca), *settings(weights=path, weights_label="five")) as peer:
        yield f"https://127.0.0.1:{peer.admin_port}"


def test_a_peer_that_demands_a_certificate(mutual, authority, stranger):
    certificate, key = authority.issue("client")
    with start(*settings(weights_from=mutual, weights_from_ca=authority.ca, weights_from_certificate=certificate,
                         weights_from_key=key)) as server:
        assert server.served() == (expected(5), 2, "five")
    foreign, foreign_key = stranger.issue("foreigner")
    for more in ({}, {"weights_from_certificate": foreign, "weights_from_key": foreign_key}):
        with start(*settings(weights_from=mutual, weights_from_ca=authority.ca, **more)) as server:
            assert server.ones() == (STORED, 1)
            until(lambda: any(f"no weights from {mutual.partition('//')[2]}: " in line for line in server.log), why=lambda: server.log)
    # Who does not trust the peer shows it nothing.
    with start(*settings(weights_from=mutual, weights_from_ca=stranger.ca, weights_from_certificate=certificate,
                         weights_from_key=key)) as server:
        assert server.ones() == (STORED, 1)


@pytest.mark.parametrize("given", ["weights_from_certificate", "weights_from_key"])
def test_a_certificate_and_its_key_go_together(authority, given):
    status, log = run_serve(f"fake={FAKE}", *settings(**{given: authority.ca}))
    assert status != 0 and "weights_from_certificate and weights_from_key of model 'fake' go together" in log


def test_a_certificate_that_cannot_be_read(mutual, authority, tmp_path):
    with start(*settings(weights_from=mutual, weights_from_ca=authority.ca, weights_from_certificate=tmp_path / "none",
                         weights_from_key=tmp_path / "none")) as server:
        assert server.ones() == (STORED, 1)
        until(lambda: any("no weights from" in line and str(tmp_path / "none") in line for line in server.log))


def test_each_address_of_a_name_is_asked():
    """One is dead, one has old weights, one has newer ones."""
    asked = []
    with start("--allowed-hosts", "pods.test") as peer:
        for value in (4, 5):
            assert peer.push("fake", fake_weights(value), f"commit=true&label=v{value}").status == 200
        port = peer.admin_port
        old = socket.create_server(("127.0.0.3", port))

        def answer():
            connection, _ = old.accept()
            with connection:
                asked.append(connection.recv(65536).split(b"\r\n")[0])
                text = json.dumps({"generation": 2, "ready": True, "instance": "other"}).encode()
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))

        thread = threading.Thread(target=answer)
        thread.start()
        names = {"LD_PRELOAD": str(SHIM.with_name("fake_names.so")), "FAKE_NAME": "pods.test",
                 "FAKE_ADDRESSES": "127.0.0.2 127.0.0.3 127.0.0.1"}
        with old, AdminServer(f"fake={FAKE}", flags=settings(weights_from=f"http://pods.test:{port}"),
                              environment=names) as server:
            assert server.served() == (expected(5), 3, "v5")
            thread.join(30)
            assert asked == [b"GET /v2/admin/models/fake/versions/1/weights HTTP/1.1"]
            until(lambda: any("no weights from" in line and "127.0.0.2" in line and "Connection refused" in line
                              for line in server.log), why=lambda: server.log)
    # All are dead: the package's own weights serve.
    with AdminServer(f"fake={FAKE}", flags=settings(weights_from=f"http://pods.test:{port}"),
                     environment={**names, "FAKE_ADDRESSES": "127.0.0.2"}) as server:
        assert server.ones() == (STORED, 1)
