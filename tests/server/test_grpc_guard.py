"""How gRPC's connections and calls share the server: what one client holds, others get in its turn. Few calls show it, because
the limits are set low."""
import contextlib
import re
import signal
import struct
import threading

import pytest
from grpc_serving import GrpcServer, HeldGrpcServer
from serving import FAKE_MODELS, PROGRAM, until
from test_grpc_hostile import (CALL, DATA, END_HEADERS, HEADERS, RST, connected, frame, infer_request, literal, message,
                               refused, send)

grpc = pytest.importorskip("grpc", reason="tritonclient[grpc] is not installed: ./dev test installs it into .venv")
pytest.importorskip("tritonclient.grpc")
from tritonclient.grpc import service_pb2 as pb  # noqa: E402
from tritonclient.grpc import service_pb2_grpc  # noqa: E402

pytestmark = pytest.mark.skipif(not list(PROGRAM.parent.parent.glob("src/libsconcegrpc.so*")),
                                reason="libsconce_grpc is not built: libgrpc++-dev is missing")
FAKE = FAKE_MODELS / "fake_model.so"
WATCH = "/grpc.health.v1.Health/Watch"
OWN_CONNECTION = [("grpc.use_local_subchannel_pool", 1)]


@contextlib.contextmanager
def client(server):
    with grpc.insecure_channel(server.grpc, options=OWN_CONNECTION) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def closed(server, reason):
    return server.metrics()[f'sconce_grpc_connections_closed_total{{reason="{reason}"}}']


def infers(server):
    with client(server) as stub:
        return stub.ModelInfer(infer_request(), timeout=20).model_name == "fake"


@contextlib.contextmanager
def streaming(server):
    """An open ModelStreamInfer that sends what it is given, and has sent nothing yet."""
    given, more = [], threading.Condition()

    def requests():
        while True:
            with more:
                more.wait_for(lambda: given)
                request = given.pop(0)
            if request is None:
                return
            yield request

    def give(request):
        with more:
            given.append(request)
            more.notify()

    with grpc.insecure_channel(server.grpc, options=OWN_CONNECTION) as channel:
        answers = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(requests())
        try:
            yield give, answers
        finally:
            give(None)
            answers.cancel()


def test_a_connection_whose_calls_bring_no_message_is_closed():
    with GrpcServer(f"fake={FAKE}", flags=["--grpc-empty-streams", "10"]) as server:
        with client(server) as useful:
            for _ in range(40):
                useful.ModelInfer(infer_request(), timeout=20)
            with connected(server) as connection:
                for stream in range(1, 61, 2):
                    # A call that its client cancels before it sends a message.
                    cancelled = frame(HEADERS, END_HEADERS, stream, CALL) + frame(RST, 0, stream, struct.pack(">I", 8))
                    if not send(connection, cancelled):
                        break
                connection.settimeout(20)
                with contextlib.suppress(ConnectionError):
                    while connection.recv(65_536):
                        pass
            until(lambda: closed(server, "streams") == 1)
            assert useful.ModelInfer(infer_request(), timeout=20).model_name == "fake"
        assert re.search(r"gRPC connection of 127\.0\.0\.1:\d+ closed: too many of its calls ended without a message \(setting "
                         r"grpc_empty_streams\)", "".join(server.log))


@pytest.mark.parametrize("how", ["watch", "stream", "silent"])
def test_the_idlest_connection_gives_way(how):
    """Before, three connections that asked for nothing kept all others out."""
    with GrpcServer(f"fake={FAKE}", flags=["--max-connections", "3"]) as server, contextlib.ExitStack() as held:
        for _ in range(3):
            if how == "watch":
                channel = held.enter_context(grpc.insecure_channel(server.grpc, options=OWN_CONNECTION))
                next(channel.unary_stream(WATCH)(b"", timeout=60))
            elif how == "stream":
                held.enter_context(streaming(server))
            else:
                held.enter_context(connected(server))
        until(lambda: server.metrics()["sconce_grpc_connections"] == 3)
        assert infers(server)
        assert infers(server)
        assert closed(server, "room") >= 1


def test_a_connection_with_a_run_does_not_give_way():
    with HeldGrpcServer(f"fake={FAKE}", flags=["--max-connections", "2"]) as server, client(server) as busy, client(server) as idle:
        idle.ServerLive(pb.ServerLiveRequest(), timeout=20)
        assert busy.ModelInfer(infer_request(), timeout=20).model_name == "fake"
        server.hold()
        running = busy.ModelInfer.future(infer_request(), timeout=60)
        until(lambda: server.metrics()["sconce_grpc_connections"] == 2)
        with client(server) as third:
            assert third.ServerLive(pb.ServerLiveRequest(), timeout=20).live
            server.release()
            assert running.result(timeout=20).model_name == "fake"


def test_a_message_that_stalls_ends_its_connection():
    """Before, gRPC waited for the rest as long as the connection was there."""
    with GrpcServer(f"fake={FAKE}", flags=["--body-timeout", "500ms"]) as server, client(server) as other:
        whole = message(infer_request().SerializeToString())
        with connected(server) as connection:
            send(connection, frame(HEADERS, END_HEADERS, 1, CALL) + frame(DATA, 0, 1, whole[:-3]))
            connection.settimeout(30)
            with contextlib.suppress(ConnectionError):
                while connection.recv(65_536):
                    pass
        assert closed(server, "stalled") == 1
        assert other.ModelInfer(infer_request(), timeout=20).model_name == "fake"


def test_streams_and_runs_that_wait_do_not_stall():
    """What the server has, or a stream without a request, is no message half-way."""
    with HeldGrpcServer(f"fake={FAKE}", flags=["--body-timeout", "200ms"]) as server, \
            streaming(server) as (give, answers), client(server) as busy:
        give(infer_request())
        assert next(answers).infer_response.model_name == "fake"
        server.hold()
        running = busy.ModelInfer.future(infer_request(), timeout=60)
        with connected(server) as connection:
            send(connection, frame(HEADERS, END_HEADERS, 1, CALL) + frame(DATA, 0, 1, b"\0"))
            until(lambda: closed(server, "stalled") == 1)  # so the others had that long, too
        server.release()
        assert running.result(timeout=20).model_name == "fake"
        give(infer_request())
        assert next(answers).infer_response.model_name == "fake"
        assert closed(server, "stalled") == 1


def test_calls_have_a_limit_over_all_connections():
    with GrpcServer(f"fake={FAKE}", flags=["--grpc-calls", "3"]) as server, contextlib.ExitStack() as held:
        watches = []
        for _ in range(3):
            channel = held.enter_context(grpc.insecure_channel(server.grpc, options=OWN_CONNECTION))
            watches.append(channel.unary_stream(WATCH)(b"", timeout=60))
            next(watches[-1])
        with client(server) as stub:
            with pytest.raises(grpc.RpcError, match=r"too many calls are under way \(setting grpc_calls\)") as refusal:
                stub.ModelInfer(infer_request(), timeout=20)
            assert refusal.value.code() == grpc.StatusCode.UNAVAILABLE
            watches[0].cancel()
            watches[1].cancel()
            until(lambda: answered(stub))
            # A request of a stream counts beside its stream.
            watches[2].cancel()
            until(lambda: answered(stub))


def answered(stub):
    with contextlib.suppress(grpc.RpcError):
        return stub.ModelInfer(infer_request(), timeout=20).model_name == "fake"
    return False


def test_a_deadline_that_is_centuries_away_is_none():
    """Before, nanoseconds overflowed, and the call was over before it began."""
    for hours in (2_600_000, 3_000_000, 9_000_000, 99_999_999):
        with GrpcServer(f"fake={FAKE}") as server, connected(server) as connection:
            call = CALL + literal(b"grpc-timeout", b"%dH" % hours)
            whole = message(infer_request().SerializeToString())
            send(connection, frame(HEADERS, END_HEADERS, 1, call) + frame(DATA, 1, 1, whole))
            until(lambda: any("ModelInfer" in name for name in server.metrics() if name.startswith("sconce_grpc_calls_total")))
            assert server.metrics()['sconce_grpc_calls_total{code="0",method="ModelInfer"}'] == 1, hours


def test_connections_have_an_age():
    with GrpcServer(f"fake={FAKE}", flags=["--grpc-max-connection-age", "500ms", "--grpc-max-connection-age-grace", "500ms"]) as server:
        with connected(server) as connection:
            connection.settimeout(30)
            while connection.recv(65_536):
                pass
        # A stream that its client leaves open is cancelled once the grace is over.
        with streaming(server) as (give, answers):
            give(infer_request())
            assert next(answers).infer_response.model_name == "fake"
            assert refused(lambda: next(answers)) in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


def test_a_drain_takes_no_more_requests_of_a_stream():
    """Before, they were answered until drain_timeout was over."""
    with HeldGrpcServer(f"fake={FAKE}", flags=["--drain-timeout", "60s"]) as server, streaming(server) as (give, answers):
        give(infer_request())
        assert next(answers).infer_response.model_name == "fake"
        until(lambda: server.metrics()["sconce_request_memory_bytes"] == 0)
        server.hold()
        give(infer_request())
        until(lambda: server.metrics()["sconce_request_memory_bytes"] > 0)
        server.process.send_signal(signal.SIGTERM)
        server.release()
        assert next(answers).infer_response.model_name == "fake"  # it had come before
        with pytest.raises(grpc.RpcError, match="the server ends, and takes no more requests of this stream") as end:
            next(answers)
        assert end.value.code() == grpc.StatusCode.UNAVAILABLE
        assert server.process.wait(50) == 0  # sooner than drain_timeout
