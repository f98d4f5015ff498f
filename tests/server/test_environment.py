"""Variables that a platform sets for all pods never keep the server from starting (docs/observability.md, docs/http.md)."""
import pytest
from serving import FAKE_MODELS, Server, until

FAKE = FAKE_MODELS / "fake_model.so"
GRPC = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.invalid:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}


def warnings(server, part):
    return [line for line in server.log if " warning " in line and part in line]


@pytest.mark.parametrize(("environment", "flags", "named"), [
    (GRPC, [], ["OTEL_EXPORTER_OTLP_PROTOCOL"]),
    (GRPC, ["--otlp", "off"], []),
    ({**GRPC, "SCONCE_OTLP": "off"}, [], []),
    ({**GRPC, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, [], []),
    ({**GRPC, "OTEL_SDK_DISABLED": "true"}, [], []),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}, [], ["OTEL_EXPORTER_OTLP_ENDPOINT"]),
    ({"OTEL_BSP_SCHEDULE_DELAY": "5s"}, [], ["OTEL_BSP_SCHEDULE_DELAY"]),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.invalid:4318", "OTEL_RESOURCE_ATTRIBUTES": "broken,k=v",
      "OTEL_METRIC_EXPORT_INTERVAL": "0"}, [], ["OTEL_RESOURCE_ATTRIBUTES", "OTEL_METRIC_EXPORT_INTERVAL"]),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector.invalid", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}, [],
     ["OTEL_EXPORTER_OTLP_CERTIFICATE"]),
    ({"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "not a url", "http_proxy": "::", "https_proxy": "socks9://x", "AWS_REGION": "?"},
     [], []),
])
def test_the_environment_never_keeps_the_server_from_starting(environment, flags, named):
    with Server(f"fake={FAKE}", flags=flags, environment=environment) as server:
        server.stop()
        found = warnings(server, "not followed")
        assert len(found) == bool(named), found
        for name in named:
            assert name in found[0]


def test_a_mistyped_variable_is_named_once():
    with Server(f"fake={FAKE}", environment={"SCONCE_DRAIN_GRACEE": "1s", "SCONCE_NONSENSE": "1",
                                             "SCONCE_SERVICE_HOST": "10.0.0.1"}) as server:
        server.stop()
        (line,) = warnings(server, "no setting has the name")
        assert "SCONCE_DRAIN_GRACEE (SCONCE_DRAIN_GRACE?)" in line and "SCONCE_NONSENSE" in line
        assert "SERVICE_HOST" not in line


@pytest.mark.skipif(not list(FAKE_MODELS.parent.parent.glob("src/libsconcegrpc.so*")), reason="no gRPC in this build")
def test_a_port_for_grpc_is_named_as_such():
    with Server(f"fake={FAKE}", flags=["--grpc", "127.0.0.1:0"]) as collector:
        (port,) = [line.rsplit(":", 1)[1].strip() for line in collector.log if "inference by gRPC on" in line]
        with Server(f"fake={FAKE}", flags=["--otlp", f"http://127.0.0.1:{port}", "--otlp-interval", "10ms"]) as server:
            (line,) = until(lambda: [line for line in server.log if "cannot be pushed" in line])
            assert "4317 is for gRPC" in line
