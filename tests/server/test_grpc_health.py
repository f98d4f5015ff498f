"""grpc.health.v1 as calls that last: a status is told when it changes."""
import signal

import pytest
from grpc_serving import SERVICE, GrpcServer
from serving import FAKE_MODELS, PROGRAM

grpc = pytest.importorskip("grpc", reason="tritonclient[grpc] is not installed: ./dev test installs it into .venv")

pytestmark = pytest.mark.skipif(not list(PROGRAM.parent.parent.glob("src/libsconcegrpc.so*")),
                                reason="libsconce_grpc is not built: libgrpc++-dev is missing")
FAKE = FAKE_MODELS / "fake_model.so"


def test_health_is_watched():
    """A watcher is told the status at once and each change; it does not keep the server from ending."""
    health_pb2 = pytest.importorskip("grpc_health.v1.health_pb2")
    health_pb2_grpc = pytest.importorskip("grpc_health.v1.health_pb2_grpc")
    answer = health_pb2.HealthCheckResponse
    with GrpcServer(f"fake={FAKE}", flags=["--drain-grace", "1s", "--drain-timeout", "60s"]) as own, \
            grpc.insecure_channel(own.grpc) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        unknown = stub.Watch(health_pb2.HealthCheckRequest(service="x"), timeout=60)
        assert next(unknown).status == answer.SERVICE_UNKNOWN
        watched = stub.Watch(health_pb2.HealthCheckRequest(service=SERVICE), timeout=60)
        status = next(watched).status
        if status == answer.NOT_SERVING:  # the first look was still to come
            status = next(watched).status
        assert status == answer.SERVING
        unknown.cancel()
        own.process.send_signal(signal.SIGTERM)
        assert next(watched).status == answer.NOT_SERVING
        with pytest.raises(grpc.RpcError) as end:
            next(watched)
        assert end.value.code() == grpc.StatusCode.CANCELLED
        assert own.process.wait(50) == 0  # sooner than drain_timeout
