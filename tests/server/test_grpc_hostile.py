"""What a hostile client may send by gRPC: the server goes on for others, and its memory stays bounded."""
import contextlib
import gzip
import socket
import struct

import pytest
from grpc_serving import GrpcServer
from serving import FAKE_MODELS, PROGRAM, SANITIZED, no_descriptors, until

grpc = pytest.importorskip("grpc", reason="tritonclient[grpc] is not installed: ./dev test installs it into .venv")
pytest.importorskip("tritonclient.grpc")
from tritonclient.grpc import service_pb2 as pb  # noqa: E402
from tritonclient.grpc import service_pb2_grpc  # noqa: E402

pytestmark = pytest.mark.skipif(not list(PROGRAM.parent.parent.glob("src/libsconcegrpc.so*")),
                                reason="libsconce_grpc is not built: libgrpc++-dev is missing")
FAKE = FAKE_MODELS / "fake_model.so"
MOST, INFLATED, MEMORY = 1 << 20, 1 << 20, 64 << 20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9
END_STREAM, END_HEADERS = 1, 4


@pytest.fixture(scope="module")
def server():
    with GrpcServer(f"fake={FAKE}", flags=["--max-body-bytes", "1M", "--max-inflated-bytes", "1M", "--request-memory", "64M",
                                           "--max-connections", "50", "--write-timeout", "1s", "--header-timeout", "1s"]) as running:
        until(lambda: answers(running), 30)
        running.began_kb = running.memory_kb()
        yield running


@pytest.fixture
def stub(server):
    with grpc.insecure_channel(server.grpc) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


@pytest.fixture(autouse=True)
def goes_on(server):
    """After each attack the server answers, and its memory is what its settings allow."""
    yield
    until(lambda: answers(server), 30)
    assert server.process.poll() is None
    # Free memory is given back within ten seconds of the last call. One server bears all attacks here.
    until(lambda: SANITIZED or server.memory_kb() - server.began_kb < 150_000, 30, server.memory_kb)


def infer_request():
    request = pb.ModelInferRequest(model_name="fake")
    request.inputs.add(name="INPUT__0", datatype="FP32", shape=[1, 4]).contents.fp32_contents.extend([1, 1, 1, 1])
    return request


def answers(server):
    with grpc.insecure_channel(server.grpc) as channel:
        try:
            service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(infer_request(), timeout=30)
        except grpc.RpcError:
            return False
        return True


def refused(call):
    with pytest.raises(grpc.RpcError) as refusal:
        call()
    return refusal.value.code()


# HTTP/2 by hand.

def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header field in HPACK, without its tables and Huffman's code."""
    def text(part):
        length = len(part)
        if length < 127:
            return bytes([length]) + part
        digits, rest = [127], length - 127
        while rest >= 128:
            digits.append(rest % 128 + 128)
            rest //= 128
        return bytes([*digits, rest]) + part
    return b"\0" + text(name) + text(value)


CALL = (literal(b":method", b"POST") + literal(b":scheme", b"http") + literal(b":authority", b"x") + literal(b"te", b"trailers") +
        literal(b":path", b"/inference.GRPCInferenceService/ModelInfer") + literal(b"content-type", b"application/grpc"))


@contextlib.contextmanager
def connected(server, preface=PREFACE + frame(SETTINGS, 0, 0)):
    with socket.create_connection(("127.0.0.1", server.grpc_port), timeout=30) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(preface)
        yield connection


def send(connection, data):
    """False: the server has closed the connection."""
    try:
        connection.sendall(data)
    except OSError:
        return False
    return True


def message(payload, compressed=0):
    return struct.pack(">BI", compressed, len(payload)) + payload


@pytest.mark.parametrize("data", [
    b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", bytes(1000), b"\xff" * 1000, PREFACE[:10], PREFACE,
    PREFACE + frame(DATA, 0, 1, b"x" * 100), PREFACE + b"\xff" * 9, PREFACE + frame(SETTINGS, 0, 0, b"x" * 7),
    PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, b"\xff" * 50),
    PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 0, CALL),
    PREFACE + frame(SETTINGS, 0, 0) + frame(CONTINUATION, 0, 1, b"x"),
    PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, CALL) + frame(DATA, 0, 1, b"\0\xff\xff\xff\xff"),
    PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, CALL) + frame(DATA, END_STREAM, 1, message(b"abc")[:6]),
    PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, CALL) + frame(DATA, END_STREAM, 1, b"\x07\0\0\0\0"),
], ids=range(15))
def test_what_is_no_call(server, data):
    for _ in range(10):
        with connected(server, data):
            pass
    with connected(server, data):
        assert answers(server)


def test_messages_that_are_none(server):
    with grpc.insecure_channel(server.grpc) as channel:
        path = "/inference.GRPCInferenceService/"
        for payload in (b"\xff" * 20, b"\x3a\xff\xff\xff\xff\x0f", b"\x0a\x05ab", b"\x0a\x02\xff\xfe", b"\x2a\x03\x0a\x05a", b"\x00"):
            assert refused(lambda payload=payload: channel.unary_unary(path + "ModelInfer")(payload)) == grpc.StatusCode.INVALID_ARGUMENT
            refused(lambda payload=payload: channel.unary_unary(path + "ModelMetadata")(payload))
            streamed = channel.stream_stream(path + "ModelStreamInfer")(iter([payload]))
            assert b"not a ModelInferRequest" in next(streamed)
        assert refused(lambda: channel.unary_unary(path + "Nothing")(b"")) == grpc.StatusCode.UNIMPLEMENTED
        assert refused(lambda: channel.unary_unary(path + "ModelMetadata")(b"\x0a\x80\x80\x10" + b"a" * (1 << 18))) in (
            grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INVALID_ARGUMENT)


@pytest.mark.parametrize("piece,what", [(b"\x2a\0", "inputs"), (b"\x32\0", "outputs"), (b"\x3a\0", "raw_input_contents"), (b"\x22\0", "parameters")])
def test_more_parts_than_any_model_has_are_refused_unread(server, piece, what):
    """A part of two bytes takes up to 500 when it is read."""
    with grpc.insecure_channel(server.grpc) as channel:
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        with pytest.raises(grpc.RpcError) as refusal:
            infer(piece * 4097)
        assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert refusal.value.details() == f"the request has more than 4096 {what}"


def test_too_large(server, stub):
    request = infer_request()
    request.raw_input_contents.append(bytes(2 * MOST))
    assert refused(lambda: stub.ModelInfer(request)) == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_bomb(server):
    """A gigabyte of zeros in a megabyte: gRPC would decompress it whole."""
    bomb = gzip.compress(b"\x3a" + bytes(64 << 20), 9)
    call = CALL + literal(b"grpc-encoding", b"gzip")
    before = server.memory_kb()
    for _ in range(5):
        with connected(server) as connection:
            send(connection, frame(HEADERS, END_HEADERS, 1, call))
            data = message(bomb, 1)
            for at in range(0, len(data), 16_384):
                send(connection, frame(DATA, 0, 1, data[at:at + 16_384]))
            send(connection, frame(DATA, END_STREAM, 1))
            connection.settimeout(5)
            with contextlib.suppress(OSError):
                connection.recv(1000)
    assert server.memory_kb() - before < 100_000


@pytest.mark.parametrize("how", ["reset at once", "reset with a request", "left open"])
def test_thousands_of_streams(server, how):
    """CVE-2023-44487 and the like."""
    payload = message(infer_request().SerializeToString())
    for _ in range(4):
        with connected(server) as connection:
            for stream in range(1, 10_001, 2):
                data = frame(HEADERS, END_HEADERS, stream, CALL)
                if how == "reset with a request":
                    data += frame(DATA, END_STREAM, stream, payload)
                if how != "left open":
                    data += frame(RST, 0, stream, struct.pack(">I", 8))
                if not send(connection, data):
                    break
            assert answers(server)


def test_floods_of_headers(server):
    large = b"".join(literal(b"x-%d" % i, b"v" * 100) for i in range(100))
    for count in (1, 1000):
        with connected(server) as connection:
            send(connection, frame(HEADERS, 0, 1, CALL))
            for _ in range(count):
                if not send(connection, frame(CONTINUATION, 0, 1, large)):
                    break
            send(connection, frame(CONTINUATION, END_HEADERS, 1))
            assert answers(server)
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert refused(lambda: stub.ServerLive(pb.ServerLiveRequest(), metadata=[("x-long", "v" * 40_000)])) in (
            grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL)


@pytest.mark.parametrize("kind,payload", [(PING, bytes(8)), (SETTINGS, b"")])
def test_floods_of_frames(server, kind, payload):
    with connected(server) as connection:
        for _ in range(200):
            if not send(connection, frame(kind, 0, 0, payload) * 500):
                break
        assert answers(server)


def test_slow_readers(server):
    """Windows of no bytes: answers are not taken, and after write_timeout their calls end."""
    rows = 20_000
    request = pb.ModelInferRequest(model_name="fake")
    request.inputs.add(name="INPUT__0", datatype="FP32", shape=[rows, 4])
    request.raw_input_contents.append(bytes(rows * 16))
    payload = message(request.SerializeToString())
    no_window = PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0))
    before = server.metrics().get('sconce_grpc_calls_total{code="0",method="ModelInfer"}', 0)
    with contextlib.ExitStack() as all_open:
        for _ in range(10):
            connection = all_open.enter_context(connected(server, no_window))
            connection.settimeout(5)
            send(connection, frame(HEADERS, END_HEADERS, 1, CALL))
            for at in range(0, min(len(payload), 60_000), 16_000):
                send(connection, frame(DATA, 0, 1, payload[at:at + 16_000]))
        small = message(infer_request().SerializeToString())
        slow = all_open.enter_context(connected(server, no_window))
        send(slow, frame(HEADERS, END_HEADERS, 1, CALL) + frame(DATA, END_STREAM, 1, small))
        assert answers(server)
        # The call that had its answer ended although nobody took it.
        until(lambda: server.metrics()['sconce_grpc_calls_total{code="0",method="ModelInfer"}'] >= before + 2, 20)


def test_connections_have_a_limit_and_idle_handshakes_end(server):
    until(lambda: server.metrics()["sconce_grpc_connections"] < 5, 30)
    with contextlib.ExitStack() as all_open:
        for _ in range(80):
            all_open.enter_context(connected(server, b""))
        until(lambda: server.metrics()["sconce_grpc_connections"] >= 40)
        assert server.metrics()["sconce_grpc_connections"] <= 50
        # After header_timeout those that said nothing are closed, and others get in.
        until(lambda: answers(server), 20)


def test_without_descriptors_the_listener_goes_on(server):
    with no_descriptors(server):
        with connected(server, b""):
            until(lambda: any("gRPC connections wait to be accepted" in line for line in server.log))
    until(lambda: answers(server), 20)
