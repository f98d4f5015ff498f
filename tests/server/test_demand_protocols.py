"""Models that are loaded on demand, as steps of pipelines, over gRPC, and where they cost nothing."""
import contextlib
import http.client
import json
import struct

import pytest
from demand_serving import (ANSWER, BATCHED, ROW, Demand, DemandServer, GrpcDemandServer,
                            budget_for, fill, folder, loads_that_run)
from grpc_serving import Grpc
from sequence_serving import needs_grpc
from serving import HeldServer, fake_expected, numbers, until
from test_allocations import COUNTER, MOST, REQUESTS

assert folder  # a fixture


def test_pipelines(folder):
    fill(folder, 6, BATCHED)

    def pipeline(name, first, second):
        (folder / f"{name}.pipeline.json").write_text(json.dumps({"inputs": ["x"], "outputs": ["y"], "steps": [
            {"model": first, "inputs": {"INPUT__0": "x"}, "outputs": {"OUTPUT__0": "mid"}},
            {"model": second, "inputs": {"INPUT__0" if second.startswith("m") else "x": "mid"},
             "outputs": {"OUTPUT__0" if second.startswith("m") else "y": "y"}}]}))

    pipeline("p", "m0", "m1")
    pipeline("outer", "m2", "p")
    pipeline("self", "m0", "self")
    pipeline("here", "m0", "there")
    pipeline("there", "m0", "here")
    pipeline("lost", "m0", "mnone")

    def ask(server, name):
        return server.infer(name, {"x": ("FP32", [1, 4], ROW)})

    twice = fake_expected(ANSWER)
    with DemandServer(folder, flags=budget_for(folder, 3, BATCHED)) as server:
        answer = ask(server, "p")
        assert answer.status == 200 and answer.json["outputs"][0]["data"] == twice, answer.body
        assert server.loaded() == {"p", "m0", "m1"}
        answer = ask(server, "outer")
        assert answer.status == 200 and answer.json["outputs"][0]["data"] == fake_expected(twice), answer.body
        # What its steps need goes with the pipelines, and comes back.
        for name in ("m3", "m4", "m5"):
            server.check(name)
        assert server.loaded() == {"m3", "m4", "m5"}
        for name in ("outer", "p", "m3", "outer"):
            answer = ask(server, name) if name != "m3" else server.ask(name)
            assert answer.status == 200, answer.body
        for name in ("self", "here", "there", "lost"):
            assert ask(server, name).status in (400, 503), name
        server.check("m4")


def values(result):
    """Of the one output that gRPC's answer has."""
    return result.as_numpy(result.get_response().outputs[0].name).ravel().tolist()


@needs_grpc
def test_grpc(folder):
    client_module = pytest.importorskip("tritonclient.grpc")
    np = pytest.importorskip("numpy")
    utils = pytest.importorskip("tritonclient.utils")
    fill(folder, 4)
    (folder / "broken.pt2").write_bytes(b"no package")
    tensor = client_module.InferInput("INPUT__0", [1, 4], "FP32").set_data_from_numpy(np.array([ROW], np.float32))
    with GrpcDemandServer(folder, flags=["--http-admin", "true"]) as server, \
            client_module.InferenceServerClient(server.grpc) as client:
        assert client.is_server_ready() and client.is_model_ready("m0")
        index = {m.name: (m.state, m.reason) for m in client.get_model_repository_index().models}
        assert index["m0"] == ("UNAVAILABLE", "not loaded: a request for it loads it")
        result = client.infer("m0", [tensor])
        assert values(result) == ANSWER
        assert client.get_model_metadata("m1").name == "m1"
        assert client.get_model_config("m2").config.name == "m2"
        assert server.loaded() == {"m0", "m1", "m2"}
        for ask in (lambda: client.infer("broken", [tensor]), lambda: client.get_model_metadata("broken"),
                    lambda: client.infer("nope", [tensor])):
            with pytest.raises(utils.InferenceServerException):
                ask()
        client.unload_model("m0")
        with pytest.raises(utils.InferenceServerException, match="no available versions"):
            client.infer("m0", [tensor])
        client.load_model("m0")
        client.infer("m0", [tensor])
        answers = []
        client.start_stream(lambda result, error: answers.append(error or result))
        client.async_stream_infer("m3", [tensor])
        until(lambda: answers)
        client.stop_stream()
        assert values(answers[0]) == ANSWER


@needs_grpc
def test_grpc_deadline_while_a_model_is_loaded(folder):
    client_module = pytest.importorskip("tritonclient.grpc")
    np = pytest.importorskip("numpy")
    utils = pytest.importorskip("tritonclient.utils")
    fill(folder, 1, BATCHED)
    tensor = client_module.InferInput("INPUT__0", [1, 4], "FP32").set_data_from_numpy(np.array([ROW], np.float32))

    class Held(Demand, Grpc, HeldServer):
        pass

    with Held(folder, flags=[*loads_that_run(folder), "--set", "m0.request_timeout=300ms"]) as server, \
            client_module.InferenceServerClient(server.grpc) as client:
        server.hold()
        with pytest.raises(utils.InferenceServerException, match="not loaded in time"):
            client.infer("m0", [tensor])
        with pytest.raises(utils.InferenceServerException, match="not loaded in time"):
            client.get_model_metadata("m0")
        with pytest.raises(utils.InferenceServerException, match="(?i)deadline"):
            client.infer("m0", [tensor], client_timeout=0.1)
        until(lambda: server.value("demand_waiting_requests") == 0)
        server.release()

        def answered():
            with contextlib.suppress(utils.InferenceServerException):
                return values(client.infer("m0", [tensor])) == ANSWER
        until(answered)


@needs_grpc
@pytest.mark.parametrize("how", ["cancelled", "deadline", "closed"])
def test_grpc_calls_that_left_wait_no_more_for_a_model(folder, how):
    """Before, those that ask for no inference waited until the model was loaded, and filled load_queue."""
    grpc = pytest.importorskip("grpc")
    pb = pytest.importorskip("tritonclient.grpc.service_pb2")
    stubs = pytest.importorskip("tritonclient.grpc.service_pb2_grpc")
    fill(folder, 1, BATCHED)

    class Held(Demand, Grpc, HeldServer):
        pass

    with Held(folder, flags=loads_that_run(folder)) as server:
        server.hold()
        with grpc.insecure_channel(server.grpc) as channel:
            stub = stubs.GRPCInferenceServiceStub(channel)
            timeout = 1 if how == "deadline" else 60
            calls = [stub.ModelMetadata.future(pb.ModelMetadataRequest(name="m0"), timeout=timeout) for _ in range(5)]
            if how != "deadline":
                until(lambda: server.value("demand_waiting_requests") == 5)
            if how == "cancelled":
                for call in calls:
                    call.cancel()
            if how == "deadline":
                assert all(call.code() == grpc.StatusCode.DEADLINE_EXCEEDED for call in calls)
            if how == "closed":
                channel.close()
            until(lambda: server.value("demand_waiting_requests") == 0)
        server.release()
        with grpc.insecure_channel(server.grpc) as channel:
            stub = stubs.GRPCInferenceServiceStub(channel)
            assert stub.ModelMetadata(pb.ModelMetadataRequest(name="m0"), timeout=60).name == "m0"


# The path of requests to loaded models

@pytest.mark.skipif(not COUNTER.exists(), reason="not built with sanitizers")
@pytest.mark.parametrize("inline", ["1s", "0"])
def test_no_allocation_for_a_request_to_a_loaded_model(folder, tmp_path, inline):
    fill(folder, 2)
    count_file = tmp_path / "count"
    count_file.write_bytes(bytes(8))
    body = json.dumps(numbers(ROW))
    with DemandServer(folder, flags=["--io-threads", "1", "--inline-below", inline, "--memory-budget", "1G"],
                      environment={"LD_PRELOAD": str(COUNTER), "COUNT_FILE": str(count_file)}) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)

        def ask(count):
            for _ in range(count):
                connection.request("POST", "/v2/models/m0/infer", body)
                response = connection.getresponse()
                assert response.status == 200 and response.read()

        ask(200)
        before = struct.unpack("<Q", count_file.read_bytes())[0]
        ask(REQUESTS)
        spent = struct.unpack("<Q", count_file.read_bytes())[0] - before
        connection.close()
    assert spent < MOST, f"{spent} allocations in {REQUESTS} requests"
