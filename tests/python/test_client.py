"""sconce.Client against the real program, and against servers that misbehave."""
import asyncio
import collections
import json
import re
import socket
import sys
import time

import numpy as np
import pytest

import pure
from hostile import METADATA, Hostile, answer, hung_up, model, say_nothing, tensor

from admin_server import FAKE, AdminServer
from certificates import authority, stranger  # noqa: F401
from serving import FAKE_MODELS, PACKAGES, PROGRAM, HeldServer, Server, threads, until

from sconce._errors import DeadlineExceeded, InvalidArgument, ModelFailed, NotFound, Unavailable
from sconce.client import AsyncClient, BadAnswer, Client, ConnectionFailed, Forbidden, PushFailed, QueueFull

DIGITS = pure.ROOT / "examples/digits"
pytestmark = pytest.mark.skipif(not PROGRAM.exists() or not (FAKE_MODELS / "fake_model.so").exists(),
                                reason=f"the program is not built: {PROGRAM} (./dev build)")
IMAGE = np.array(json.loads((DIGITS / "request.json").read_text())["args"][0], np.float32)
X = np.ones(1, np.float32)
GOOD = {"scale.w": np.full(4, 8, np.float32), "scale.b": np.full(4, 8, np.float32)}


def url(server):
    return f"http://127.0.0.1:{server.port}"


def admin(server):
    return f"http://127.0.0.1:{server.admin_port}"


@pytest.fixture(scope="module")
def server():
    with AdminServer(DIGITS / "digits.pt2", PACKAGES / "several.pt2", f"fake={FAKE}") as running:
        yield running


@pytest.fixture()
def client(server):
    with Client(url(server), admin=admin(server), timeout=20) as made:
        yield made


# Calls

def test_digits(client):
    result = client.infer("digits", IMAGE)
    assert list(result) == ["class", "probabilities"] and result["class"].tolist() == [9]
    assert result["probabilities"].dtype == np.float32 and result["probabilities"].shape == (1, 10)
    result["class"][0] = 3  # an array of the caller's own


def test_keyword_arguments_and_the_models_own_structure(client):
    x, picks, shift = np.ones((2, 3), np.float32), np.array([0, 1]), np.array([1, 2, 3], np.float32)
    result = client.infer("several.calls", x, (picks, {"shift": shift}), mask=np.array([True, False, True]),
                          scale=np.float32(2))
    assert set(result) == {"y", "picked", "any", "n"} and isinstance(result["picked"], tuple)
    assert result["picked"][1] is None
    # Numbers and nested lists take the model's dtypes; the lists' order is the call's.
    assert str(client.infer("several.calls", x.tolist(), [[0, 1], {"shift": [1, 2, 3]}], scale=2,
                            mask=[True, False, True])) == str(result)


def turned(x):
    """What the model several.dtypes makes of an array."""
    if x.dtype == bool:
        return ~x
    if x.dtype.kind in "iu":
        return x + 1
    return x if x.dtype == np.complex64 or x.dtype.itemsize == 1 else x * 2


def test_every_dtype_travels(client):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kinds = [np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float32,
             np.float64, np.complex64, ml_dtypes.float8_e4m3fn]
    given = [np.array([0, 1, 1]).astype(kind) for kind in kinds]
    result = client.infer("several.dtypes", *given)
    for sent, got in zip(given, result):
        assert got.dtype == sent.dtype and got.shape == sent.shape, sent.dtype
        assert (got == turned(sent)).all(), sent.dtype
    assert result[10].dtype == np.complex64 and result[10].shape == (3,)


def test_bfloat16_without_ml_dtypes_is_float32_of_the_same_values(client, monkeypatch):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kinds = [np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float32,
             np.float64, np.complex64, ml_dtypes.float8_e4m3fn]
    given = [np.array([0, 1, 1.5]).astype(kind) for kind in kinds]
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    result = client.infer("several.dtypes", *given)
    assert result[7].dtype == np.float32 and result[7].tolist() == [0, 2, 3]


def test_views_and_other_byte_orders(client):
    wide = np.zeros((1, 8, 16), np.float32)
    wide[:, :, ::2] = IMAGE
    for image in (wide[:, :, ::2], IMAGE.astype(">f4"), np.asfortranarray(IMAGE)):
        assert client.infer("digits", image)["class"].tolist() == [9]


@pytest.mark.parametrize("call, kind, said", [
    (lambda c: c.infer("digits"), InvalidArgument, "no tensor for ARGS[0]"),
    (lambda c: c.infer("digits", IMAGE.astype(np.float64)), InvalidArgument, "expected FP32[-1, 8, 8], got float64 [1, 8, 8]"),
    (lambda c: c.infer("digits", IMAGE, IMAGE), InvalidArgument, "it has no input ARGS[1]"),
    (lambda c: c.infer("digits", IMAGE[:, :7]), InvalidArgument, "expected size 8 at dimension 1"),
    (lambda c: c.infer("digits", "nine"), InvalidArgument, "ARGS[0]: expected FP32"),
    (lambda c: c.infer("digits", np.array(["nine"])), InvalidArgument, "dtype <U4 cannot be sent"),
    (lambda c: c.infer("nothing", IMAGE), NotFound, "unknown model: 'nothing'"),
    (lambda c: c.options(version=7).infer("digits", IMAGE), NotFound, "7"),
    (lambda c: c.infer("fake", np.full((1, 4), -1e30, np.float32)), ModelFailed, ""),
])
def test_errors_have_a_class_and_the_servers_words(client, call, kind, said):
    with pytest.raises(kind) as caught:
        call(client)
    assert said in str(caught.value)
    assert client.infer("digits", IMAGE)["class"].tolist() == [9]  # the client goes on


def test_metadata_models_ready(client):
    info = client.metadata("digits")
    assert info.inputs[0].name == "ARGS[0]" and info.inputs[0].shape == [-1, 8, 8]
    assert client.metadata()["name"] == "sconce"
    assert {m["name"] for m in client.models()} >= {"digits", "fake", "several.calls"}
    assert client.ready() and client.ready("digits") and not client.ready("nothing")
    assert not Client("http://127.0.0.1:1", timeout=5).ready()


def test_a_model_that_is_replaced():
    """The client has read what the old model takes. A refusal makes it read that again."""
    asked = []

    def script(connection, request):
        if request.startswith(b"GET"):
            asked.append(1)
            connection.sendall(answer(METADATA.replace(b"FP32", b"FP64", 1) if len(asked) > 1 else METADATA))
        elif len(asked) == 1:
            connection.sendall(answer(b'{"error":"expected float64"}', b"400 Bad Request"))
        else:
            connection.sendall(tensor())
    with Hostile(script) as server, Client(server.url) as client:
        with pytest.raises(InvalidArgument, match="expected float64"):
            client.infer("m", X)
        assert client.infer("m", X.astype(np.float64)).tolist() == [1] and len(asked) == 2


def test_torch_tensors(client):
    torch = pytest.importorskip("torch", reason="no torch in this Python")
    assert client.infer("digits", torch.from_numpy(IMAGE))["class"].tolist() == [9]
    result = client.infer("several.dtypes", *[torch.tensor([0, 1, 1]).to(kind) for kind in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
        torch.float32, torch.float64, torch.complex64, torch.float8_e4m3fn)])
    assert result[5].tolist() == [1, 2, 2] and result[7].astype(np.float32).tolist() == [0, 2, 2]


def test_threads_share_a_client(client):
    def call():
        for _ in range(50):
            assert client.infer("digits", IMAGE)["class"].tolist() == [9]
    with threads(*[call] * 8):
        pass
    assert 1 <= len(client._pool.idle) <= 8  # kept, and not one a call


def test_async(server):
    async def calls():
        async with AsyncClient(url(server)) as client:
            assert await client.ready() and await client.ready("digits") and not await client.ready("nothing")
            assert (await client.metadata("digits")).name == "digits" and await client.models()
            results = await asyncio.gather(*[client.infer("digits", IMAGE) for _ in range(40)])
            assert [r["class"].tolist() for r in results] == [[9]] * 40
            with pytest.raises(NotFound):
                await client.infer("nothing", IMAGE)
            with pytest.raises(InvalidArgument):
                await client.infer("digits", IMAGE[:, :7])
    asyncio.run(calls())

    async def on_a_thread():
        with Client(url(server)) as client:
            return await client.ainfer("digits", IMAGE)
    assert asyncio.run(on_a_thread())["class"].tolist() == [9]


def test_an_async_client_outlives_its_loop(server):
    client = AsyncClient(url(server))
    for _ in range(2):
        assert asyncio.run(client.infer("digits", IMAGE))["class"].tolist() == [9]


# Retries and deadlines

def test_a_full_queue_is_asked_again():
    with HeldServer(f"fake={FAKE}", flags=["--set", "fake.queue=1"]) as server, Client(url(server), timeout=30) as client:
        client.infer("fake", np.ones((1, 4), np.float32))
        server.hold()
        ones = np.ones((1, 4), np.float32)
        with threads(*[lambda: client.infer("fake", ones)] * 6):
            until(lambda: server.metrics()['nv_inference_pending_request_count{model="fake",version="1"}'] == 1)
            with pytest.raises(QueueFull) as caught:
                until(lambda: client.options(retry=False).infer("fake", ones) is None)
            assert caught.value.status == 429
            server.release()


def test_retry_after_is_kept_to():
    times = []

    def script(connection):
        times.append(time.monotonic())
        connection.sendall(tensor() if len(times) > 2 else answer(b'{"error":"busy"}', b"503 Unavailable", b"Retry-After: 1\r\n"))
    with Hostile(model(script)) as server, Client(server.url, timeout=10) as client:
        assert client.infer("m", X).tolist() == [1]
        assert len(times) == 3 and times[1] - times[0] > 0.95 and times[2] - times[1] > 0.95


def test_no_retry_beyond_the_deadline():
    busy = answer(b'{"error":"busy"}', b"429 Too Many", b"Retry-After: 60\r\n")
    with Hostile(model(lambda c: c.sendall(busy))) as server, Client(server.url, timeout=30) as client:
        begin = time.monotonic()
        with pytest.raises(QueueFull, match="busy"):
            client.infer("m", X)
        assert time.monotonic() - begin < 15


def trickle(connection):
    """A byte now and then, for ever: no single receive takes long."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while not hung_up(connection, 0.05):
        connection.sendall(b"x")


def trickle_body(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not hung_up(connection, 0.05):
        connection.sendall(b"x")


@pytest.mark.parametrize("script", [trickle, trickle_body, say_nothing], ids=["head", "body", "silence"])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_slow_server_ends_at_the_deadline(script, kind):
    with Hostile(model(script)) as server:
        begin = time.monotonic()
        with pytest.raises(DeadlineExceeded, match="within 0.5 s"):
            call(kind, server.url, timeout=0.5)
        assert time.monotonic() - begin < 20  # the server would go on for a minute


def test_a_server_that_does_not_read(server):
    """The request is larger than what the kernel keeps for it."""
    def stall(connection, request):
        if request.startswith(b"GET"):
            connection.sendall(answer(METADATA))
        else:
            say_nothing(connection)
    with Hostile(stall) as hostile, Client(hostile.url, timeout=0.7) as client:
        begin = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            client.infer("m", np.zeros(16 << 20, np.float32))
        assert time.monotonic() - begin < 20


def call(kind, at, **settings):
    if kind is Client:
        with Client(at, **settings) as client:
            return client.infer("m", X)

    async def once():
        async with AsyncClient(at, **settings) as client:
            return await client.infer("m", X)
    return asyncio.run(once())


# Answers that are wrong

HUGE = b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 1000) for i in range(200)) + b"\r\n"
WRONG = {
    "nothing": (b"", ConnectionFailed, "without an answer"),
    "not HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", BadAnswer, "not HTTP"),
    "a status of letters": (b"HTTP/1.1 2xx OK\r\n\r\n", BadAnswer, "not HTTP"),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Le", ConnectionFailed, "within the head"),
    "a huge head": (HUGE, BadAnswer, "the head of the answer is longer"),
    "a header without a colon": (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", BadAnswer, "malformed header"),
    "half a body": (tensor()[:-2], ConnectionFailed, "the answer ended after"),
    "a huge length": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n", BadAnswer, "more than max_answer_bytes"),
    "a negative length": (b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n", BadAnswer, "Content-Length '-4'"),
    "two lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n", BadAnswer, "two different"),
    "length and chunks": (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", BadAnswer, "beside"),
    "a strange coding": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: br\r\n\r\n", BadAnswer, "Transfer-Encoding 'br'"),
    "compressed unasked": (answer(b"x", fields=b"Content-Encoding: gzip\r\n"), BadAnswer, "not asked for"),
    "a wrong chunk size": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", BadAnswer, "malformed chunk size"),
    "a chunk of another size": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n", BadAnswer, "does not end"),
    "half a chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc", ConnectionFailed, "within its chunks"),
    "1xx for ever": (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20, BadAnswer, "status 1xx"),
    "bytes after the end": (tensor() + b"HTTP/1.1 200 OK\r\n\r\n", BadAnswer, "after the end"),
    "a redirection": (answer(b"", b"302 Found", b"Location: http://evil.example/\r\n"), BadAnswer, "not followed"),
    "no JSON": (answer(b"<html>"), BadAnswer, "none of the Open Inference Protocol"),
    "another JSON": (answer(b"[1, 2]"), BadAnswer, "none of the Open Inference Protocol"),
    "deep JSON": (answer(b"[" * 100000), BadAnswer, "none of the Open Inference Protocol"),
    "a negative shape": (tensor(shape="[-1]"), BadAnswer, "malformed name or shape"),
    "a shape of more": (tensor(shape="[2]", size="8"), BadAnswer, "takes 8 bytes"),
    "a shape of less": (tensor(data=b"\0" * 8), BadAnswer, "4 bytes after the last tensor"),
    "a size of its own": (tensor(size="3"), BadAnswer, "takes 4 bytes"),
    "a size that is text": (tensor(size='"4"'), BadAnswer, "takes 4 bytes"),
    "a vast shape": (tensor(shape="[9999999999999, 99999999999]"), BadAnswer, "takes"),
    "an unknown datatype": (tensor(datatype="FP128"), BadAnswer, "FP128"),
    "a 500 without JSON": (answer(b"<h1>Oops</h1>", b"500 Error"), ModelFailed, "<h1>Oops</h1> (HTTP 500)"),
    "a 502": (answer(b"bad gateway", b"502 Bad Gateway"), Exception, "bad gateway (HTTP 502)"),
}


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer(case, kind):
    content, error, said = WRONG[case]
    with Hostile(model(content)) as server:
        with pytest.raises(error) as caught:
            call(kind, server.url, timeout=5)
        assert said in str(caught.value) and server.url in str(caught.value) or isinstance(caught.value, BadAnswer), caught.value
        assert said in str(caught.value), caught.value


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_chunks_until_close_and_json_are_read(kind):
    text = b'{"outputs":[{"name":"RESULT","datatype":"FP32","shape":[2],"data":[1, 2.5]}]}'
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(
        b"%x;a=b\r\n%s\r\n" % (len(p), p) for p in (text[:7], text[7:])) + b"0\r\nX: y\r\n\r\n"
    for content in (chunked, b"HTTP/1.0 200 OK\r\n\r\n" + text, b"HTTP/1.1 103 Hints\r\n\r\n" + answer(text)):
        with Hostile(model(content)) as server:
            assert call(kind, server.url).tolist() == [1, 2.5]


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_kept_connection_that_was_closed(kind):
    """The server closes each connection after its answer without saying so."""
    def script(connection, request):
        connection.sendall(answer(METADATA) if request.startswith(b"GET") else tensor())
        return "close"
    with Hostile(script) as server:
        if kind is Client:
            with Client(server.url) as client:
                for _ in range(5):
                    assert client.infer("m", X).tolist() == [1]
        else:
            async def several():
                async with AsyncClient(server.url) as client:
                    for _ in range(5):
                        assert (await client.infer("m", X)).tolist() == [1]
            asyncio.run(several())


@pytest.mark.parametrize("spec", [
    '{}', '{"result": 1}', '{"result": {"kind": "dict", "keys": ["a"], "children": []}}', '{"result": {"kind": "tuple"}}',
    '{"result": ' + '{"kind": "tuple", "children": [' * 90 + '{"kind": "leaf"}' + "]}" * 90 + "}"])
def test_a_wrong_call_spec(spec):
    def script(connection, request):
        get = request.startswith(b"GET")
        connection.sendall(answer(METADATA[:-1] + b', "call_spec": ' + spec.encode() + b"}") if get else tensor())
    with Hostile(script) as server, Client(server.url) as client:
        try:
            assert client.infer("m", X).tolist() == [1]  # by the outputs' names
        except BadAnswer as error:
            assert "call_spec" in str(error)


def test_containers_of_a_call_spec():
    """A server names a class; nothing is imported for it, and it cannot choose what is made."""
    from sconce._tensors import ModelInfo, result_of
    leaf = {"kind": "leaf"}
    children = [leaf, {"kind": "none"}]
    found = {"RESULT[0]": 1}

    def built(node, arrays=found, types=()):
        document = {**json.loads(METADATA), "call_spec": {"result": node}}
        return result_of(ModelInfo(document), arrays, {f"{t.__module__}.{t.__qualname__}": t for t in types})
    assert built({"kind": "list", "children": children}) == [1, None]
    assert built({"kind": "tuple", "children": children}) == (1, None)
    assert built({"kind": "deque", "children": children}) == collections.deque([1, None])
    pair = built({"kind": "namedtuple", "type": "os.system", "keys": ["a", "def"], "children": children})
    assert pair.a == 1 and type(pair).__name__ == "system" and isinstance(pair, tuple)
    assert built({"kind": "dict", "keys": [0], "children": [leaf]}) == {0: 1}
    made = built({"kind": "dataclass", "type": "x.Out", "keys": ["y"], "children": [leaf]}, {"RESULT[y]": 5})
    assert made.y == 5 and type(made).__name__ == "Out"
    mine = collections.namedtuple("mine", "a b")
    mine.__module__ = "x"
    assert type(built({"kind": "namedtuple", "type": "x.mine", "keys": ["a", "b"], "children": children}, types=[mine])) is mine
    assert built({"kind": "ordered_dict", "keys": ["z"], "children": [leaf]}, {"RESULT[z]": 2}) == {"z": 2}


def test_settings_that_are_wrong():
    for wrong in ("ftp://host", "http://", "http://host:99999", "http://user:secret@host", "http://host/?x=1"):
        with pytest.raises(InvalidArgument):
            Client(wrong)
    with pytest.raises(InvalidArgument) as caught:
        Client(token="secret\r\nX: y")
    assert "secret" not in str(caught.value)
    for wrong in (0, -1, "5"):
        with pytest.raises(InvalidArgument):
            Client(timeout=wrong)
    with pytest.raises(TypeError):
        Client().options(speed=1)


# Tokens and TLS

def test_tokens(tmp_path):
    file = tmp_path / "tokens"
    file.write_text("infer secret-of-inference\nadmin secret-of-admins\n")
    file.chmod(0o600)
    with AdminServer(f"fake={FAKE}", flags=["--token-file", str(file)], wait=False) as server:
        ones = np.ones((1, 4), np.float32)
        with Client(url(server), token="secret-of-inference", admin=admin(server), admin_token="secret-of-admins") as client:
            until(client.ready)
            client.infer("fake", ones)
            client.weights.push("fake", GOOD)
        for token in (None, "secret-of-nobody-here"):
            with Client(url(server), token=token, admin=admin(server)) as client:
                with pytest.raises(Forbidden):
                    client.infer("fake", ones)
                with pytest.raises(PushFailed) as caught:
                    client.weights.push("fake", GOOD)
                assert caught.value.status == 401 or caught.value.code == "FORBIDDEN"


def test_tls(authority, stranger):  # noqa: F811
    certificate, key = authority.issue("server")
    flags = ["--http-tls", "on", "--admin-tls", "on", "--tls-certificate", str(certificate), "--tls-key", str(key)]
    with AdminServer(f"fake={FAKE}", flags=flags, wait=False) as server:
        at = f"https://127.0.0.1:{server.port}"
        ones = np.ones((3, 4), np.float32)
        with Client(at, ca=authority.ca, admin=f"https://127.0.0.1:{server.admin_port}") as client:
            until(client.ready)
            assert client.infer("fake", ones)[0].tolist() == [1, 12, 23, 34]
            client.infer("fake", np.ones((100000, 4), np.float32))
            client.weights.push("fake", GOOD)
            assert client.infer("fake", ones)[0].tolist() == [16] * 4

        async def once():
            async with AsyncClient(at, ca=authority.ca) as client:
                return await client.infer("fake", ones)
        assert asyncio.run(once())[0].tolist() == [16] * 4
        for wrong in (Client(at, ca=stranger.ca), Client(at.replace("https", "http"))):
            with pytest.raises((ConnectionFailed, BadAnswer)):
                wrong.infer("fake", ones)


def test_what_is_no_tensor():
    from sconce._safetensors import Weights
    for wrong in ({"a": 3}, {"a": [1.0]}, {3: X}, [X], {"a": np.array(["x"])}):
        with pytest.raises(InvalidArgument):
            Weights(wrong)


def test_a_closed_port_and_an_unknown_host():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for at in (f"http://127.0.0.1:{port}", "http://no-such-host.invalid"):
        with pytest.raises(ConnectionFailed) as caught:
            Client(at, timeout=10).infer("m", X)
        assert isinstance(caught.value, (Unavailable, ConnectionError)) and at in str(caught.value)


def test_a_server_that_ends(tmp_path):
    with Server(f"fake={FAKE}") as server, Client(url(server), timeout=5) as client:
        ones = np.ones((1, 4), np.float32)
        client.infer("fake", ones)
        server.stop()
        with pytest.raises(ConnectionFailed):
            client.infer("fake", ones)


def test_the_blocks_of_the_document(capsys):
    text = (pure.ROOT / "docs/client.md").read_text()
    blocks = re.findall(r"^```python.*\n((?:.*\n)*?)^```$", text, re.MULTILINE)
    assert len(blocks) == 4
    with AdminServer(DIGITS / "digits.pt2") as server:
        names = {}
        for block in blocks:
            block = block.replace("http://127.0.0.1:8000", url(server)).replace("http://127.0.0.1:8003", admin(server))
            exec(compile(block, "docs/client.md", "exec"), names)
        assert server.sets("digits")["previous"]["label"] == "step-1200"
    out = capsys.readouterr().out
    assert "(3, 10)" in out and "[1, 3]" in out and "sha-256:" in out


def test_lazy_names():
    """What `import sconce` offers without importing it."""
    import importlib

    from sconce._lazy import PLACES, find
    for name in PLACES:
        if PLACES[name] == "sconce.client":
            assert find(name) is getattr(importlib.import_module(PLACES[name]), name)
    with pytest.raises(AttributeError, match="nothing"):
        find("nothing")
