"""Spans and metrics pushed to a collector: every field, when pushes are tried again, and what a collector cannot do to requests."""
import json
import os
import socket
import time

import pytest
from admin_server import FAKE, AdminServer
from certificates import authority, stranger  # noqa: F401
from grpc_serving import Grpc
from ports import reserve_port
from prometheus_text import parse as parse_metrics
from sequence_serving import needs_grpc
from serving import FAIL_INPUT, FAKE_MODELS, Server, until
from weights_files import fake_weights

pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1 import trace_pb2
from otlp_collector import Collector, attributes

INPUT = {"INPUT__0": ("FP32", [1, 4], [1, 2, 3, 4])}
BODY = json.dumps({"inputs": [{"name": "INPUT__0", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]})
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"
REMOTE, LOCAL = 0x301, 0x101  # flags: sampled; it is known whether the parent is remote, and it is


def flags(collector, *more):
    url = collector if isinstance(collector, str) else collector.url
    return ["--otlp", url, "--otlp-delay", "50ms", "--otlp-metrics", "false", *more]


def counts(server, name="sconce_otlp_spans_total"):
    found = parse_metrics(server.get("/metrics", port=server.ports["metrics"]).body.decode())[name]
    return {tuple(value for _, value in sorted(labels)): int(value) for labels, value in found.items()}


def spans_counted(server):
    return {labels[0]: value for labels, value in counts(server).items() if value}


def pushes(server, signal="traces"):
    return {result: value for (result, name), value in counts(server, "sconce_otlp_pushes_total").items() if value and name == signal}


def roots(collector):
    return [span for span in collector.spans() if span.kind == trace_pb2.Span.SPAN_KIND_SERVER]


def test_every_field_of_a_request_s_spans():
    with Collector() as collector, Server(f"fake={FAKE}", flags=flags(
            collector, "--trace-rate", "1", "--otlp-service", "digits", "--otlp-resource",
            "k8s.pod.name=a-1,note=x%2Cy,service.version=9")) as server:
        before = time.time_ns()
        assert server.post("/v2/models/fake/infer", BODY, {"traceparent": SAMPLED, "X-Request-Id": "r1"}).status == 200
        assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [FAIL_INPUT, 0, 0, 0])}).status == 500
        assert server.post("/v2/models/fake/infer", b"{").status == 400
        until(lambda: len(roots(collector)) == 3)
        message = collector.messages("/v1/traces")[0]
        (resource,) = message.resource_spans
        (scope,) = resource.scope_spans
        found = attributes(resource.resource)
        instance = found.pop("service.instance.id")
        assert len(instance) >= 16 and found == {
            "service.name": "digits", "service.version": "9", "telemetry.sdk.name": "sconce", "telemetry.sdk.language": "cpp",
            "telemetry.sdk.version": scope.scope.version, "host.name": socket.gethostname(), "process.pid": server.process.pid,
            "k8s.pod.name": "a-1", "note": "x,y"}
        assert scope.scope.name == "sconce" and scope.schema_url.startswith("https://opentelemetry.io/schemas/")
        first, failed, bad = sorted(roots(collector), key=lambda span: span.start_time_unix_nano)
        assert first.trace_id.hex() == TRACE and first.parent_span_id.hex() == PARENT and first.flags == REMOTE
        assert first.name == "POST /v2/models/{model}/infer" and not first.trace_state
        assert attributes(first) == {
            "http.request.method": "POST", "http.route": "/v2/models/{model}/infer", "url.path": "/v2/models/fake/infer",
            "url.scheme": "http", "http.response.status_code": 200, "sconce.model.name": "fake", "sconce.model.version": "1",
            "sconce.request_id": "r1"}
        assert first.status.code == trace_pb2.Status.STATUS_CODE_UNSET and not first.events and not first.links
        assert before <= first.start_time_unix_nano <= first.end_time_unix_nano <= time.time_ns()
        assert failed.status.code == trace_pb2.Status.STATUS_CODE_ERROR and failed.flags == LOCAL
        assert attributes(failed)["error.type"] == "500" and attributes(failed)["http.response.status_code"] == 500
        assert not failed.parent_span_id and failed.trace_id not in (first.trace_id, bytes(16))
        # A client's mistake is no error of the server's.
        assert bad.status.code == trace_pb2.Status.STATUS_CODE_UNSET and "error.type" not in attributes(bad)
        assert attributes(bad)["http.response.status_code"] == 400
        inner = [span for span in collector.spans() if span.parent_span_id == first.span_id]
        assert [span.name for span in inner] == ["decode", "queue", "compute", "encode", "send"]
        assert len({span.span_id for span in collector.spans()}) == len(collector.spans())
        for span in inner:
            assert span.trace_id == first.trace_id and span.kind == trace_pb2.Span.SPAN_KIND_INTERNAL and span.flags == LOCAL
            assert first.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <= first.end_time_unix_nano
        until(lambda: spans_counted(server) == {"sent": len(collector.spans())})


def test_a_shared_run_has_a_span_for_its_batch():
    by_two = ["--set", "fake.batch_delay=10s", "--set", "fake.preferred_batch_sizes=2"]
    with Collector() as collector, Server(f"fake={FAKE_MODELS / 'fake_batched.pt2'}",
                                          flags=flags(collector, "--trace-rate", "1", *by_two)) as server:
        connections = [server.connect() for _ in range(2)]
        for connection in connections:
            connection.sendall(f"POST /v2/models/fake/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}".encode())
        for connection in connections:
            assert b" 200 " in connection.recv(4096)
            connection.close()
        until(lambda: len(roots(collector)) == 2)
        batches = [span for span in collector.spans() if span.name == "batch"]
        assert {span.parent_span_id for span in batches} == {span.span_id for span in roots(collector)}
        for root in roots(collector):
            inner = {span.name: span for span in collector.spans() if span.parent_span_id == root.span_id}
            assert inner["batch"].end_time_unix_nano == inner["compute"].start_time_unix_nano


def test_who_made_the_trace_decides_whether_it_is_sampled():
    with Collector() as collector, Server(f"fake={FAKE}", flags=flags(collector, "--trace-rate", "3")) as server:
        for header in ({"traceparent": UNSAMPLED}, {}, {}, {}, {"traceparent": SAMPLED}, {"traceparent": SAMPLED}, {}, {}):
            assert server.post("/v2/models/fake/infer", BODY, header).status == 200
        assert server.stop() == 0  # what waits is pushed at the end
        # Turns are requests 0, 3 and 6; that of 0 is not collected, since its caller did not sample it.
        assert [(span.trace_id.hex() == TRACE) for span in sorted(roots(collector), key=lambda s: s.start_time_unix_nano)] == [
            False, True, True, False]


def test_tensors_are_events():
    with Collector() as collector, Server(f"fake={FAKE}", flags=flags(collector, "--trace-rate", "1", "--trace-level", "tensors",
                                                                       "--trace-tensor-elements", "2")) as server:
        assert server.infer("fake", INPUT).status == 200
        until(lambda: roots(collector))
        (root,) = roots(collector)
        assert [event.name for event in root.events] == ["TENSOR_QUEUE_INPUT", "TENSOR_BACKEND_OUTPUT"]
        assert attributes(root.events[0]) == {"tensor.name": "ARGS[0]", "tensor.dtype": "FP32", "tensor.shape": "1,4",
                                              "tensor.data": "1.0,2.0", "tensor.truncated": True}
        assert root.start_time_unix_nano <= root.events[0].time_unix_nano <= root.end_time_unix_nano


@needs_grpc
def test_spans_of_grpc():
    import tritonclient.grpc as triton
    with Collector() as collector, type("GrpcAdmin", (Grpc, AdminServer), {})(
            f"fake={FAKE}", flags=flags(collector, "--trace-rate", "1")) as server:
        with triton.InferenceServerClient(server.grpc) as client:
            import numpy as np
            tensor = triton.InferInput("INPUT__0", [1, 4], "FP32")
            tensor.set_data_from_numpy(np.ones((1, 4), np.float32))
            client.infer("fake", [tensor], headers={"traceparent": SAMPLED})
        until(lambda: roots(collector))
        (root,) = roots(collector)
        assert root.name == "inference.GRPCInferenceService/ModelInfer" and root.parent_span_id.hex() == PARENT
        found = attributes(root)
        found.pop("sconce.request_id")
        assert found == {"rpc.system.name": "grpc", "rpc.method": "inference.GRPCInferenceService/ModelInfer",
                         "rpc.response.status_code": "OK", "sconce.model.name": "fake", "sconce.model.version": "1"}


@needs_grpc
def test_calls_of_grpc_have_the_conventions_histogram():
    """rpc.server.call.duration, by version 1.44 of OpenTelemetry's conventions."""
    import grpc
    from tritonclient.grpc import service_pb2, service_pb2_grpc
    with Collector() as collector, type("GrpcAdmin", (Grpc, AdminServer), {})(f"fake={FAKE}", flags=[
            "--otlp", collector.url, "--otlp-interval", "500ms", "--otlp-traces", "false"]) as server:
        with grpc.insecure_channel(server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            for _ in range(3):
                stub.ServerLive(service_pb2.ServerLiveRequest(), timeout=20)
            with pytest.raises(grpc.RpcError):
                stub.ModelMetadata(service_pb2.ModelMetadataRequest(name="none"), timeout=20)
            failing = service_pb2.ModelInferRequest(model_name="fake")
            failing.inputs.add(name="INPUT__0", datatype="FP32", shape=[1, 4]).contents.fp32_contents.extend([FAIL_INPUT, 0, 0, 0])
            with pytest.raises(grpc.RpcError):
                stub.ModelInfer(failing, timeout=20)
        until(lambda: "rpc.server.call.duration" in collector.metrics() and
              len(collector.metrics()["rpc.server.call.duration"].histogram.data_points) == 3)
        metric = collector.metrics()["rpc.server.call.duration"]
        assert metric.unit == "s"
        found = {attributes(point)["rpc.method"].split("/")[1]: (attributes(point), point.count) for point in metric.histogram.data_points}

        def expected(method, code, **more):
            return {"rpc.system.name": "grpc", "rpc.method": f"inference.GRPCInferenceService/{method}",
                    "rpc.response.status_code": code, **more}
        assert found == {"ServerLive": (expected("ServerLive", "OK"), 3),
                         "ModelMetadata": (expected("ModelMetadata", "NOT_FOUND"), 1),
                         "ModelInfer": (expected("ModelInfer", "INTERNAL", **{"error.type": "INTERNAL"}), 1)}
        text = server.get("/metrics", port=server.ports["metrics"]).body.decode()
        assert 'rpc_server_call_duration_seconds_count{rpc_method="inference.GRPCInferenceService/ServerLive",' in text


def test_weight_updates_are_spans():
    with Collector() as collector, AdminServer(f"fake={FAKE}", flags=flags(collector)) as server:
        answer = server.push("fake", fake_weights(5), "commit=true&label=v2", {"traceparent": SAMPLED})
        assert answer.status == 200
        assert server.push("fake", b"no weights").status == 400
        assert server.push("fake", fake_weights(7), "commit=true", {"traceparent": UNSAMPLED}).status == 200
        assert server.push("fake", fake_weights(6)).status == 200
        spans = until(lambda: [s for s in collector.spans() if s.name == "weights update"][2:] and collector.spans())
        first, failed, staged = sorted((s for s in spans if s.name == "weights update"), key=lambda s: s.start_time_unix_nano)
        found = attributes(first)
        assert found.pop("sconce.weights.bytes") > 0 and found == {
            "sconce.model.name": "fake", "sconce.model.version": "1", "sconce.operation.id": int(answer.json["operation"]),
            "sconce.weights.state": "done", "sconce.weights.label": "v2", "sconce.weights.version": 2,
            "sconce.weights.generation": 2}  # deprecated
        assert first.trace_id.hex() == TRACE and first.parent_span_id.hex() == PARENT and first.flags == REMOTE
        assert first.kind == trace_pb2.Span.SPAN_KIND_INTERNAL and first.status.code == trace_pb2.Status.STATUS_CODE_UNSET
        phases = [span for span in spans if span.parent_span_id == first.span_id]
        assert [span.name for span in phases] == ["starting", "receiving", "folding", "committing"]
        for before, after in zip(phases, phases[1:], strict=False):
            assert before.end_time_unix_nano == after.start_time_unix_nano and before.trace_id == first.trace_id
        assert first.start_time_unix_nano == phases[0].start_time_unix_nano
        assert attributes(failed)["sconce.weights.state"] == "failed" and failed.status.message
        assert failed.status.code == trace_pb2.Status.STATUS_CODE_ERROR and failed.flags == LOCAL
        assert "sconce.weights.version" not in attributes(staged) and attributes(staged)["sconce.weights.state"] == "done"


def points(metric):
    data = getattr(metric, metric.WhichOneof("data"))
    return {tuple(sorted(attributes(point).items())): point for point in data.data_points}


def test_metrics_are_those_of_prometheus():
    with Collector() as collector, AdminServer(f"fake={FAKE}", flags=[
            "--otlp", collector.url, "--otlp-interval", "500ms", "--otlp-traces", "false"]) as server:
        begun = time.time_ns()
        for _ in range(5):
            assert server.infer("fake", INPUT).status == 200
        key = (("model", "fake"), ("version", "1"))
        until(lambda: collector.metrics() and points(collector.metrics()["nv_inference_request_success"])[key].as_int == 5)
        text = server.get("/metrics", port=server.ports["metrics"]).body.decode()
        known = {line.split()[2]: line.split(" ", 3)[3] for line in text.splitlines() if line.startswith("# HELP")}
        kinds = {line.split()[2]: line.split()[3] for line in text.splitlines() if line.startswith("# TYPE")}
        series = parse_metrics(text)
        pushed = collector.metrics()
        assert set(pushed) == {name for name in kinds if name in series or f"{name}_count" in series}
        for name, metric in pushed.items():
            assert metric.description == known[name] and metric.unit
            assert metric.WhichOneof("data") == {"counter": "sum", "gauge": "gauge", "histogram": "histogram"}[kinds[name]], name
            expected = series.get(name, series.get(f"{name}_count"))
            assert set(points(metric)) == set(expected), name
            for point in points(metric).values():
                assert abs(point.time_unix_nano - time.time_ns()) < 60e9
                if kinds[name] != "gauge":
                    assert 0 < point.start_time_unix_nano <= begun
            if kinds[name] != "gauge":
                data = getattr(metric, metric.WhichOneof("data"))
                assert data.aggregation_temporality == metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
            if kinds[name] == "counter":
                assert metric.sum.is_monotonic
        assert pushed["sconce_model_weight_bytes"].unit == "By" and pushed["nv_inference_request_duration_us"].unit == "us"
        latency = points(pushed["sconce_inference_request_duration_seconds"])[key]
        assert latency.count == 5 == sum(latency.bucket_counts) and latency.sum > 0
        assert len(latency.bucket_counts) == len(latency.explicit_bounds) + 1 and list(latency.explicit_bounds) == sorted(latency.explicit_bounds)
        bounds = [dict(labels)["le"] for labels in series["sconce_inference_request_duration_seconds_bucket"]]
        assert [float(bound) for bound in bounds[:-1]] == list(latency.explicit_bounds)
        assert not collector.messages("/v1/traces")
        # The sum of a model that is loaded again begins anew.
        assert server.post("/v2/repository/models/fake/unload", {}, port=server.admin_port).status == 200
        until(lambda: "nv_inference_request_success" not in collector.metrics())
        assert server.post("/v2/repository/models/fake/load", {}, port=server.admin_port).status == 200
        point = until(lambda: points(collector.metrics().get("nv_inference_request_success", metrics_pb2.Metric(sum={}))).get(key))
        assert point.as_int == 0 and point.start_time_unix_nano > begun
        number = len(collector.messages("/v1/metrics"))
        assert server.stop() == 0
        assert len(collector.messages("/v1/metrics")) > number  # once more at the end


def test_what_may_be_tried_again_is():
    """Nothing of a batch is lost, and it is not sent twice after it was taken."""
    failures = [(503, {}, b""), (429, {"Retry-After": "1"}, b"{}"), (502, {"Retry-After": "0"}, b""), (504, {"Retry-After": "0"}, b"")]
    with Collector(lambda _path, number: failures[number] if number < 4 else (200, {}, b"{}")) as collector, Server(
            f"fake={FAKE}", flags=flags(collector, "--trace-rate", "1")) as server:
        assert server.infer("fake", INPUT).status == 200
        until(lambda: pushes(server).get("taken"), 60)
        assert pushes(server) == {"again": 4, "taken": 1}
        bodies = [message.SerializeToString(deterministic=True) for message in collector.messages("/v1/traces")]
        assert len(bodies) == 5 and len(set(bodies)) == 1
        assert spans_counted(server) == {"sent": len(collector.messages("/v1/traces")[0].resource_spans[0].scope_spans[0].spans)}
        waited = [after - before for before, after in zip(collector.times, collector.times[1:], strict=False)]
        assert waited[0] >= 0.5 and waited[1] >= 1  # the first pause, and what Retry-After says
        lines = until(lambda: [line for line in server.log if "cannot be pushed" in line])
        assert len(lines) == 1 and collector.url in lines[0] and "503" in lines[0]
        until(lambda: any("spans are taken by" in line for line in server.log))


@pytest.mark.parametrize("status", [400, 401, 404, 413, 500])
def test_what_is_refused_is_not_tried_again(status):
    said = (status, {}, b'{"message": "no"}')
    with Collector(lambda _path, number: said if number == 0 else (200, {}, b"{}")) as collector, Server(
            f"fake={FAKE}", flags=flags(collector, "--trace-rate", "1")) as server:
        assert server.infer("fake", INPUT).status == 200
        until(lambda: pushes(server).get("refused"))
        lost = spans_counted(server)["lost"]
        assert server.infer("fake", INPUT).status == 200
        until(lambda: pushes(server).get("taken"))
        assert pushes(server) == {"refused": 1, "taken": 1} and spans_counted(server)["lost"] == lost
        assert len(collector.messages("/v1/traces")) == 2


def test_a_partial_success_is_counted_and_logged():
    said = json.dumps({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too\nold"}}).encode()
    with Collector(lambda _path, _number: (200, {}, said)) as collector, Server(
            f"fake={FAKE}", flags=flags(collector, "--trace-rate", "1")) as server:
        assert server.infer("fake", INPUT).status == 200
        until(lambda: pushes(server).get("taken"))
        assert spans_counted(server) == {"rejected": 2, "sent": len(collector.spans()) - 2}
        (line,) = until(lambda: [line for line in server.log if "in part" in line])
        assert "2 were rejected" in line and "too\\x0aold" in line


def test_a_collector_that_says_nothing_costs_requests_nothing():
    """Its queue fills, what comes later is dropped and counted, and memory has a bound."""
    with Collector(lambda _path, _number: None) as collector, Server(
            f"fake={FAKE}", flags=flags(collector, "--trace-rate", "1", "--otlp-timeout", "60s")) as server:
        body = json.loads(BODY)
        answers = [server.post("/v2/models/fake/infer", body).status for _ in range(1200)]
        assert set(answers) == {200}
        # 4096 spans wait, six of each request at most; one push is under way.
        assert spans_counted(server)["dropped"] > 0
        assert spans_counted(server)["dropped"] >= 5 * 1200 - 4096 - 2 * 518
        assert server.stop() == 0  # the last pushes have five seconds
        assert len(collector.messages("/v1/traces")) >= 1


def test_a_collector_that_is_away_and_comes():
    port = reserve_port()
    with Server(f"fake={FAKE}", flags=flags(f"http://127.0.0.1:{port}", "--trace-rate", "1")) as server:
        assert server.infer("fake", INPUT).status == 200
        until(lambda: pushes(server).get("again"))
        until(lambda: any("cannot connect" in line for line in server.log))
        with Collector(port=port) as collector:
            until(lambda: roots(collector), 60)
            until(lambda: set(spans_counted(server)) == {"sent"})


def test_a_name_that_is_not_found():
    with Server(f"fake={FAKE}", flags=flags("http://nowhere.invalid:4318", "--trace-rate", "1")) as server:
        assert server.infer("fake", INPUT).status == 200
        until(lambda: any("cannot find nowhere.invalid" in line for line in server.log), 60)
        assert server.infer("fake", INPUT).status == 200


def test_a_look_up_that_takes_long_costs_requests_nothing(tmp_path):
    found = tmp_path / "found"
    with Collector() as collector:
        port = collector.url.rsplit(":", 1)[1]
        names = {"LD_PRELOAD": str(FAKE_MODELS.parent / "server/fake_names.so"), "FAKE_NAME": "collector.test",
                 "FAKE_ADDRESSES": "127.0.0.1", "FAKE_HELD": str(found)}
        with Server(f"fake={FAKE}", flags=flags(f"http://collector.test:{port}", "--trace-rate", "1"), environment=names) as server:
            for _ in range(20):
                assert server.infer("fake", INPUT).status == 200
            until(lambda: found.with_suffix(".asked").exists())
            assert server.infer("fake", INPUT).status == 200 and not collector.requests
            found.touch()
            until(lambda: len(roots(collector)) == 21)


def test_https_and_header_fields(authority, stranger, tmp_path):
    certificate = authority.issue("collector")
    headers = tmp_path / "headers"
    headers.write_text("# of the gateway\nAuthorization: Bearer first-token\nX-Scope-OrgID: 7\n")
    common = ["--trace-rate", "1", "--otlp-headers-file", str(headers)]
    with Collector(certificate=certificate) as collector:
        with Server(f"fake={FAKE}", flags=flags(collector, *common, "--otlp-ca", str(authority.ca))) as server:
            assert server.infer("fake", INPUT).status == 200
            until(lambda: len(collector.messages("/v1/traces")) == 1)
            headers.write_text("Authorization: Bearer second-token\n")
            assert server.infer("fake", INPUT).status == 200
            until(lambda: len(collector.messages("/v1/traces")) == 2)
            first, second = (fields for _, fields, _ in collector.requests)
            assert first["Authorization"] == "Bearer first-token" and first["X-Scope-OrgID"] == "7"
            assert second["Authorization"] == "Bearer second-token" and second["X-Scope-OrgID"] is None
            headers.write_text("no field\n")
            assert server.infer("fake", INPUT).status == 200
            until(lambda: any("otlp_headers_file" in line for line in server.log))
            assert not any("token" in line.replace("token_file", "") for line in server.log)
        with Server(f"fake={FAKE}", flags=flags(collector, "--trace-rate", "1", "--otlp-ca", str(stranger.ca))) as server:
            assert server.infer("fake", INPUT).status == 200
            until(lambda: any("no TLS" in line for line in server.log))
        assert len(collector.messages("/v1/traces")) == 2


@pytest.mark.parametrize(("words", "said"), [
    (["--otlp", "collector:4318"], "setting otlp"), (["--otlp", "http://a", "--otlp-resource", "x"], "setting otlp_resource"),
    (["--otlp", "http://a", "--otlp-headers-file", "/nowhere"], "setting otlp_headers_file"),
    (["--otlp", "https://a", "--otlp-ca", "/nowhere"], "/nowhere"),
    (["--otlp", "http://a", "--otlp-interval", "0"], "setting otlp_interval")])
def test_wrong_settings_end_the_start(words, said):
    with pytest.raises(RuntimeError, match="ended at start") as problem:
        Server(f"fake={FAKE}", flags=words)
    assert said in str(problem.value)


def test_the_environment_of_opentelemetry():
    with Collector() as collector, Server(f"fake={FAKE}", flags=["--trace-rate", "1"], environment={
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "by-environment", "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test", "OTEL_METRICS_EXPORTER": "none"}) as server:
        assert server.infer("fake", INPUT).status == 200
        until(lambda: roots(collector))
        found = attributes(collector.messages("/v1/traces")[0].resource_spans[0].resource)
        assert found["service.name"] == "by-environment" and found["deployment.environment"] == "test"
        assert server.stop() == 0
        assert not collector.messages("/v1/metrics")


def test_without_a_collector_there_is_no_thread():
    """Neither is there one with a trace level alone: nothing wakes an idle server (test_idle.py)."""
    with Collector() as collector:
        threads = []
        for words in ([], ["--trace-level", "timestamps"], flags(collector)):
            with Server(f"fake={FAKE}", flags=words) as server:
                threads.append(len(os.listdir(f"/proc/{server.process.pid}/task")))
    assert threads[0] == threads[1] == threads[2] - 1
