"""Triton's own gRPC client, sync, aio and streaming, through every method; and that everything is decided as for HTTP."""
import asyncio
import pathlib
import queue
import re
import subprocess

import pytest
from grpc_serving import SERVICE, GrpcServer, HeldGrpcServer
from serving import FAIL_INPUT, FAKE_MODELS, PACKAGES, PROGRAM, ROOT, Server, fake_expected, read_all, until

np = pytest.importorskip("numpy")
grpc = pytest.importorskip("grpc", reason="tritonclient[grpc] is not installed: ./dev test installs it into .venv")
client_module = pytest.importorskip("tritonclient.grpc")
aio_module = pytest.importorskip("tritonclient.grpc.aio")
utils = pytest.importorskip("tritonclient.utils")
pytest.importorskip("ml_dtypes")
from every_dtype import check_every_dtype  # noqa: E402
from tritonclient.grpc import service_pb2, service_pb2_grpc  # noqa: E402

Error = utils.InferenceServerException
MODEL = "several.channels_last"
FAKE = FAKE_MODELS / "fake_model.so"

pytestmark = pytest.mark.skipif(not list(PROGRAM.parent.parent.glob("src/libsconcegrpc.so*")),
                                reason="libsconce_grpc is not built: libgrpc++-dev is missing")


@pytest.fixture(scope="module")
def server():
    with GrpcServer(f"fake={FAKE}", PACKAGES / "several.pt2", flags=["--http-admin", "true", "--allow-shared-memory", "true",
                                                                   "--access-log", "true"]) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with client_module.InferenceServerClient(server.grpc) as running:
        yield running


@pytest.fixture(scope="module")
def stub(server):
    with grpc.insecure_channel(server.grpc) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def image_input(rows=2, module=client_module):
    image = np.random.default_rng(3).standard_normal((rows, 3, 4, 5)).astype(np.float32)
    tensor = module.InferInput("ARGS[0]", image.shape, "FP32")
    tensor.set_data_from_numpy(image)
    return image, tensor


def fake_input(*rows, module=client_module):
    tensor = module.InferInput("INPUT__0", [len(rows), 4], "FP32")
    tensor.set_data_from_numpy(np.array(rows, np.float32).reshape(len(rows), 4))
    return tensor


def check(result, image):
    np.testing.assert_array_equal(result.as_numpy("RESULT[1]"), image * 2)
    np.testing.assert_allclose(result.as_numpy("RESULT[0]"), image.sum(axis=1), rtol=1e-5, atol=1e-6)


def code_of(call):
    with pytest.raises(grpc.RpcError) as refusal:
        call()
    return refusal.value.code()


# Documents: the same as HTTP's.

def test_health_and_metadata(server, client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready(MODEL) and client.is_model_ready(MODEL, "1")
    with pytest.raises(Error, match="unknown model"):
        client.is_model_ready("nope")
    metadata = client.get_server_metadata(as_json=True)
    assert metadata == server.get("/v2").json
    model = client.get_model_metadata(MODEL, as_json=True)
    over_http = server.get(f"/v2/models/{MODEL}").json
    assert [model["name"], model["versions"], model["platform"]] == [over_http[k] for k in ("name", "versions", "platform")]
    assert [[int(d) for d in t["shape"]] for t in model["inputs"]] == [t["shape"] for t in over_http["inputs"]]
    assert [t["name"] for t in model["outputs"]] == [t["name"] for t in over_http["outputs"]]
    with pytest.raises(Error, match="unknown model"):
        client.get_model_metadata("nope")
    with pytest.raises(Error, match="version 7"):
        client.get_model_metadata(MODEL, "7")


def test_config(server, client):
    config = client.get_model_config(MODEL).config
    over_http = server.get(f"/v2/models/{MODEL}/config").json
    assert (config.name, config.max_batch_size, config.platform) == (MODEL, 8, "torch_aoti")
    assert [list(i.dims) for i in config.input] == [i["dims"] for i in over_http["input"]]
    assert config.input[0].data_type == client_module.model_config_pb2.TYPE_FP32
    assert config.backend == over_http["backend"] and config.default_model_filename == over_http["default_model_filename"]
    assert config.HasField("dynamic_batching") == ("dynamic_batching" in over_http)
    assert config.parameters["rows_proof"].string_value == over_http["parameters"]["rows_proof"]["string_value"] == "source"
    fake = client.get_model_config("fake").config
    if fake.HasField("dynamic_batching"):
        assert fake.dynamic_batching.default_queue_policy.max_queue_size == 1000


def test_statistics(client):
    before = client.get_inference_statistics(MODEL).model_stats[0]
    image, tensor = image_input(rows=3)
    client.infer(MODEL, [tensor])
    after = client.get_inference_statistics(MODEL).model_stats[0]
    assert after.inference_count - before.inference_count == 3
    assert after.inference_stats.success.count - before.inference_stats.success.count == 1
    assert after.inference_stats.queue.count == after.inference_stats.success.count
    assert len(client.get_inference_statistics().model_stats) > 1


def test_index(server, client):
    index = {m.name: (m.version, m.state) for m in client.get_model_repository_index().models}
    assert index["fake"] == ("1", "READY") and MODEL in index
    stub_index = service_pb2.RepositoryIndexRequest(repository_name="other")
    with grpc.insecure_channel(server.grpc) as channel:
        other = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert code_of(lambda: other.RepositoryIndex(stub_index)) == grpc.StatusCode.UNIMPLEMENTED


# Inference.

def test_the_lines_of_the_document(server):
    """Those of docs/grpc.md, for a model and an address that are here."""
    code = re.search(r"pip install tritonclient\[grpc\]`\):\n\n((?:    .*\n)+)", (ROOT / "docs/grpc.md").read_text()).group(1)
    code = re.sub(r"^    ", "", code, flags=re.MULTILINE).replace("localhost:8001", server.grpc).replace('"resnet"', '"fake"')
    code = code.replace("[1, 3, 224, 224]", "[1, 4]").replace("(1, 3, 224, 224)", "(1, 4)").replace("print(", "shown.append(")
    shown = []
    exec(code, {"shown": shown})
    np.testing.assert_array_equal(shown[0], [fake_expected([0, 0, 0, 0])])


def test_infer(client):
    image, tensor = image_input()
    outputs = [client_module.InferRequestedOutput(f"RESULT[{i}]") for i in range(2)]
    for asked in (None, outputs):
        result = client.infer(MODEL, [tensor], outputs=asked, request_id="r1", model_version="1")
        check(result, image)
        response = result.get_response()
        assert (response.id, response.model_version, response.model_name) == ("r1", "1", MODEL)
        assert response.parameters["weight_version"].string_param == "1"
    only = client.infer(MODEL, [tensor], outputs=outputs[1:])
    assert [o.name for o in only.get_response().outputs] == ["RESULT[1]"]


def test_large_tensors_are_sent_whole(client):
    """Above the size at which gRPC's slices refer to the model's memory."""
    rows = np.random.default_rng(5).random((60_000, 4), dtype=np.float32)
    tensor = client_module.InferInput("INPUT__0", rows.shape, "FP32")
    tensor.set_data_from_numpy(rows)
    for compression in (None, "gzip", "deflate"):
        result = client.infer("fake", [tensor], compression_algorithm=compression).as_numpy("RESULT")
        np.testing.assert_allclose(result[:100], [fake_expected(row) for row in rows[:100]], rtol=1e-5)
        np.testing.assert_allclose(result[-100:], [fake_expected(row) for row in rows[-100:]], rtol=1e-5)


def test_async_and_threads(client):
    image, tensor = image_input(rows=8)
    answers = queue.SimpleQueue()
    for _ in range(200):
        client.async_infer(MODEL, [tensor], callback=lambda result, error: answers.put((result, error)))
    for _ in range(200):
        result, error = answers.get(timeout=30)
        assert error is None
        check(result, image)


def test_every_dtype(client):
    check_every_dtype(client, client_module, utils)


FIELDS = {"BOOL": "bool_contents", "UINT8": "uint_contents", "INT8": "int_contents", "INT16": "int_contents",
          "INT32": "int_contents", "INT64": "int64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents"}


def typed_request(**changes):
    """For several.dtypes, but for what has no field: FP16 and BF16 stay out, so the request is incomplete."""
    request = service_pb2.ModelInferRequest(model_name="fake")
    tensor = request.inputs.add(name="INPUT__0", datatype="FP32", shape=[1, 4])
    tensor.contents.fp32_contents.extend([1, 2, 3, 4])
    for key, value in changes.items():
        setattr(tensor, key, value)
    return request


def test_metadata_names_the_weights(stub):
    _, call = stub.ModelInfer.with_call(typed_request())
    told = dict(call.initial_metadata())
    assert told["sconce-weight-version"] == told["sconce-generation"] == "1"  # deprecated: the second


def test_typed_contents(stub):
    answer = stub.ModelInfer(typed_request())
    np.testing.assert_allclose(np.frombuffer(answer.raw_output_contents[0], np.float32), fake_expected([1, 2, 3, 4]))
    values = {"UINT8": [0, 300], "INT8": [-129], "INT16": [1 << 15]}
    request = service_pb2.ModelInferRequest(model_name="several.dtypes")
    for i, (datatype, data) in enumerate({"BOOL": [True, False, True], "UINT8": [0, 1, 254], "INT8": [-128, 0, 126],
                                          "INT16": [-5, 0, 5], "INT32": [-5, 0, 5], "INT64": [-2**62, 0, 2**62]}.items()):
        tensor = request.inputs.add(name=f"ARGS[{i}]", datatype=datatype, shape=[3])
        getattr(tensor.contents, FIELDS[datatype]).extend(data)
    for name, datatype in (("ARGS[6]", "FP16"), ("ARGS[7]", "BF16")):
        tensor = request.inputs.add(name=name, datatype=datatype, shape=[3])
        tensor.contents.fp32_contents.extend([1, 2, 3])
    with pytest.raises(grpc.RpcError, match="FP16 must be in raw_input_contents"):
        stub.ModelInfer(request)
    for datatype, data in values.items():
        bad = service_pb2.ModelInferRequest(model_name="several.dtypes")
        index = list(FIELDS).index(datatype)
        tensor = bad.inputs.add(name=f"ARGS[{index}]", datatype=datatype, shape=[len(data)])
        getattr(tensor.contents, FIELDS[datatype]).extend(data)
        with pytest.raises(grpc.RpcError, match="out of range"):
            stub.ModelInfer(bad)


@pytest.mark.parametrize("change,words", [
    ({"name": "nope"}, "unexpected inference input 'nope'"), ({"name": ""}, "an input has no 'name'"),
    ({"datatype": "INT32"}, "elements of INT32 must be in int_contents"), ({"datatype": ""}, "no 'datatype'"),
    ({"datatype": "BYTES"}, "datatype is not supported: 'BYTES'")])
def test_bad_inputs(stub, change, words):
    with pytest.raises(grpc.RpcError, match=words) as refusal:
        stub.ModelInfer(typed_request(**change))
    assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_bad_requests(stub):
    def refusal(edit, words, code=grpc.StatusCode.INVALID_ARGUMENT):
        request = typed_request()
        edit(request)
        with pytest.raises(grpc.RpcError, match=words) as error:
            stub.ModelInfer(request)
        assert error.value.code() == code

    refusal(lambda r: r.inputs[0].shape.__setitem__(0, 2), "its contents have 4")
    refusal(lambda r: r.inputs[0].shape.__setitem__(0, -1), "negative")
    refusal(lambda r: r.inputs[0].shape.__setitem__(0, 1 << 62), "too many elements")
    refusal(lambda r: r.inputs.append(r.inputs[0]), "given twice")
    refusal(lambda r: r.ClearField("inputs"), r"missing 'ARGS\[0\]'")
    refusal(lambda r: r.inputs[0].contents.int_contents.append(1), "must be in fp32_contents")
    refusal(lambda r: r.raw_input_contents.append(bytes(16)), "has contents, and the request has raw")
    refusal(lambda r: (r.inputs[0].ClearField("contents"), r.raw_input_contents.append(bytes(12))), "unexpected total byte size 12")
    refusal(lambda r: (r.inputs[0].ClearField("contents"), r.raw_input_contents.extend([bytes(16)] * 2)), "has 2 tensors")
    refusal(lambda r: r.outputs.add(name="nope"), "unexpected inference output")
    refusal(lambda r: r.outputs.extend([r.outputs.add(name="OUTPUT__0")]), "asked for twice")
    refusal(lambda r: r.parameters["triton_x"].MergeFrom(service_pb2.InferParameter(bool_param=True)), "reserved")
    refusal(lambda r: r.parameters["timeout"].MergeFrom(service_pb2.InferParameter(string_param="1")), "must be an integer")
    refusal(lambda r: r.inputs[0].parameters["shared_memory_region"].MergeFrom(service_pb2.InferParameter(string_param="x")),
            "and contents|byte_size")
    refusal(lambda r: setattr(r, "model_name", "nope"), "unknown model", grpc.StatusCode.NOT_FOUND)
    refusal(lambda r: setattr(r, "model_version", "9"), "version 9", grpc.StatusCode.NOT_FOUND)
    refusal(lambda r: setattr(r, "model_name", "fake@v2"), "no named sets", grpc.StatusCode.NOT_FOUND)
    refusal(lambda r: setattr(r, "model_name", "fake/infer"), "unknown model", grpc.StatusCode.NOT_FOUND)
    refusal(lambda r: r.inputs[0].contents.fp32_contents.__setitem__(0, FAIL_INPUT), ".", grpc.StatusCode.INTERNAL)
    assert stub.ModelInfer(typed_request()).outputs[0].name == "RESULT"


def test_classification_and_empty_tensors(client):
    image, tensor = image_input(rows=1)
    outputs = [client_module.InferRequestedOutput("RESULT[0]", class_count=2)]
    classes = client.infer(MODEL, [tensor], outputs=outputs).as_numpy("RESULT[0]")
    assert classes.shape[-1] == 2 and b":" in classes.reshape(-1)[0]
    assert client.infer("fake", [fake_input()]).as_numpy("RESULT").shape == (0, 4)


def test_aio(server):
    async def run():
        async with aio_module.InferenceServerClient(server.grpc) as client:
            assert await client.is_server_ready()
            assert (await client.get_model_metadata(MODEL)).versions == ["1"]
            image, tensor = image_input(module=aio_module)
            for result in await asyncio.gather(*[client.infer(MODEL, [tensor]) for _ in range(50)]):
                check(result, image)
            with pytest.raises(Error):
                await client.infer("nope", [tensor])

            async def requests():
                for i in range(20):
                    yield {"model_name": "fake", "inputs": [fake_input([i, 0, 0, 0], module=aio_module)], "request_id": str(i)}

            seen = []
            async for result, error in client.stream_infer(requests()):
                assert error is None
                seen.append(result.get_response().id)
            assert seen == [str(i) for i in range(20)]

    asyncio.run(run())


# Streams.

def test_stream_answers_in_order_and_goes_on_after_an_error(server):
    answers = queue.SimpleQueue()
    with client_module.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for i in range(100):
            model = "nope" if i == 50 else "fake"
            client.async_stream_infer(model, [fake_input([i, 1, 2, 3])], request_id=str(i), enable_empty_final_response=True)
        for i in range(100):
            result, error = answers.get(timeout=30)
            if i == 50:
                assert "unknown model" in str(error)
                continue
            assert error is None and result.get_response().id == str(i)
            assert result.get_response().parameters["triton_final_response"].bool_param
            np.testing.assert_allclose(result.as_numpy("RESULT")[0], fake_expected([i, 1, 2, 3]))
        client.stop_stream()


def test_stream_may_end_with_the_status_of_an_error(stub):
    requests = iter([typed_request(), service_pb2.ModelInferRequest(model_name="nope"), typed_request()])
    answers = stub.ModelStreamInfer(requests, metadata=[("triton_grpc_error", "true")])
    assert next(answers).infer_response.model_name == "fake"
    assert code_of(lambda: next(answers)) == grpc.StatusCode.NOT_FOUND


def test_a_stream_that_its_client_leaves(server, stub):
    def endless():
        while True:
            yield typed_request()

    for _ in range(20):
        answers = stub.ModelStreamInfer(endless())
        next(answers)
        answers.cancel()
    assert stub.ModelInfer(typed_request()).model_name == "fake"


# Deadlines, cancellation, limits.

@pytest.fixture
def held():
    with HeldGrpcServer(f"fake={FAKE}", flags=["--set", "fake.queue=2", "--set", "fake.batching=off"]) as running:
        with grpc.insecure_channel(running.grpc) as channel:
            running.stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            yield running


def counted(server, name, **labels):
    wanted = ",".join(f'{k}="{v}"' for k, v in sorted({"model": "fake", "version": "1", **labels}.items()))
    return server.metrics()[f"{name}{{{wanted}}}"]


def pending(server):
    return counted(server, "nv_inference_pending_request_count")


def hold_one(server):
    """A call whose run is held, so that others wait."""
    server.hold()
    first = server.stub.ModelInfer.future(typed_request())
    replicas = "/v2/admin/models/fake/replicas"
    until(lambda: server.get(replicas, port=server.admin_port).json["replicas"][0]["load"] == 1 and pending(server) == 0)
    return first


def test_a_full_queue_is_unavailable(held):
    first = hold_one(held)
    waiting = [held.stub.ModelInfer.future(typed_request()) for _ in range(2)]
    until(lambda: pending(held) == 2)
    assert code_of(lambda: held.stub.ModelInfer(typed_request())) == grpc.StatusCode.UNAVAILABLE
    held.release()
    assert all(call.result(timeout=20).model_name == "fake" for call in [first, *waiting])


def test_a_cancelled_call_leaves_the_queue(held):
    first = hold_one(held)
    waiting = held.stub.ModelInfer.future(typed_request())
    until(lambda: pending(held) == 1)
    waiting.cancel()
    until(lambda: pending(held) == 0)
    assert counted(held, "nv_inference_request_failure", reason="CANCELED") == 1
    held.release()
    assert first.result(timeout=20).model_name == "fake"
    assert counted(held, "nv_inference_exec_count") == 1


def test_the_clients_deadline_takes_a_call_out_of_the_queue(held):
    first = hold_one(held)
    assert code_of(lambda: held.stub.ModelInfer(typed_request(), timeout=0.3)) == grpc.StatusCode.DEADLINE_EXCEEDED
    until(lambda: pending(held) == 0)
    # A run that has begun goes on, and its call ends all the same.
    held.release()
    assert first.result(timeout=20).model_name == "fake"
    held.hold()
    assert code_of(lambda: held.stub.ModelInfer(typed_request(), timeout=0.3)) == grpc.StatusCode.DEADLINE_EXCEEDED
    held.release()
    assert held.stub.ModelInfer(typed_request()).model_name == "fake"


def test_request_timeout_and_queue_timeout():
    with HeldGrpcServer(f"fake={FAKE}", flags=["--set", "fake.request_timeout=300ms", "--set", "fake.batching=off"]) as held:
        with grpc.insecure_channel(held.grpc) as channel:
            held.stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            held.hold()
            with pytest.raises(grpc.RpcError, match="request_timeout") as refusal:
                held.stub.ModelInfer(typed_request())
            assert refusal.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
            late = typed_request()
            late.parameters["timeout"].int64_param = 50_000
            with pytest.raises(grpc.RpcError) as refusal:
                held.stub.ModelInfer(late)
            assert refusal.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
            held.release()
            until(lambda: pending(held) == 0)


def test_health_service_and_reflection(server):
    health_pb2 = pytest.importorskip("grpc_health.v1.health_pb2")
    health_pb2_grpc = pytest.importorskip("grpc_health.v1.health_pb2_grpc")
    reflection = pytest.importorskip("grpc_reflection.v1alpha.proto_reflection_descriptor_database")
    descriptor_pool = pytest.importorskip("google.protobuf.descriptor_pool")
    with grpc.insecure_channel(server.grpc) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        serving = health_pb2.HealthCheckResponse.SERVING
        for name in ("", SERVICE):
            until(lambda name=name: health.Check(health_pb2.HealthCheckRequest(service=name)).status == serving)
        assert code_of(lambda: health.Check(health_pb2.HealthCheckRequest(service="x"))) == grpc.StatusCode.NOT_FOUND
        database = reflection.ProtoReflectionDescriptorDatabase(channel)
        assert SERVICE in database.get_services()
        described = descriptor_pool.DescriptorPool(database).FindServiceByName(SERVICE)
        ours = {m.name: (m.input_type.full_name, m.output_type.full_name) for m in described.methods}
        theirs = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
        assert ours == {m.name: (m.input_type.full_name, m.output_type.full_name) for m in theirs.methods}


def test_messages_have_the_protocols_names_and_numbers(server):
    """Field by field: what tritonclient knows is the protocol."""
    reflection = pytest.importorskip("grpc_reflection.v1alpha.proto_reflection_descriptor_database")
    descriptor_pool = pytest.importorskip("google.protobuf.descriptor_pool")
    with grpc.insecure_channel(server.grpc) as channel:
        pool = descriptor_pool.DescriptorPool(reflection.ProtoReflectionDescriptorDatabase(channel))
        checked = set()

        def compare(ours, theirs):
            if ours.full_name in checked:
                return
            checked.add(ours.full_name)
            for field in ours.fields:
                same = theirs.fields_by_name[field.name]
                assert (field.number, field.type, field.label) == (same.number, same.type, same.label), field.full_name
                if field.message_type:
                    compare(field.message_type, same.message_type)
                if field.enum_type:
                    for value in field.enum_type.values:
                        assert same.enum_type.values_by_name[value.name].number == value.number
            # A configuration has fields that are never set here; all else is whole.
            if not ours.full_name.startswith("inference.Model") or "Infer" in ours.full_name or "Statistics" in ours.full_name:
                assert {f.name for f in theirs.fields} == {f.name for f in ours.fields}, ours.full_name

        for method in service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods:
            for theirs in (method.input_type, method.output_type):
                compare(pool.FindMessageTypeByName(theirs.full_name), theirs)
        assert len(checked) > 40


# Control.

def test_settings(server, client, stub):
    assert client.get_log_settings().settings["log_info"].bool_param
    changed = client.update_log_settings({"log_verbose_level": 1, "log_info": True})
    assert changed.settings["log_verbose_level"].uint32_param == 1
    client.update_log_settings({"log_verbose_level": 0})
    assert server.get("/v2/logging").json["log_verbose_level"] == 0
    file = service_pb2.LogSettingsRequest()
    file.settings["log_file"].string_param = "/tmp/x"
    assert code_of(lambda: stub.LogSettings(file)) == grpc.StatusCode.PERMISSION_DENIED
    settings = client.get_trace_settings().settings
    assert list(settings["trace_level"].value) == ["OFF"] and list(settings["trace_rate"].value) == ["1000"]
    assert list(client.update_trace_settings(settings={"trace_rate": "7"}).settings["trace_rate"].value) == ["7"]
    assert list(client.update_trace_settings(settings={"trace_rate": None}).settings["trace_rate"].value) == ["1000"]
    assert list(client.update_trace_settings("fake", {"trace_count": "5"}).settings["trace_count"].value) == ["5"]
    with pytest.raises(Error, match="nope"):
        client.get_trace_settings("nope")


def test_load_and_unload(client):
    client.unload_model("fake")
    until(lambda: [m.state for m in client.get_model_repository_index().models if m.name == "fake"] == ["UNAVAILABLE"])
    with pytest.raises(Error, match="fake"):
        client.infer("fake", [fake_input([1, 2, 3, 4])])
    client.load_model("fake")
    until(lambda: client.is_model_ready("fake"))
    for parameters, words in (({"config": "{}"}, "config"),):
        with pytest.raises(Error, match=words):
            client.load_model("fake", **parameters)
    with pytest.raises(Error, match="nope"):
        client.load_model("nope")


def test_system_shared_memory(client):
    shm = pytest.importorskip("tritonclient.utils.shared_memory")
    assert not client.get_system_shared_memory_status().regions
    rows = np.array([[1, 2, 3, 4]], np.float32)
    handle = shm.create_shared_memory_region("in", "/sconce_grpc_test", 32)
    try:
        shm.set_shared_memory_region(handle, [rows])
        client.register_system_shared_memory("in", "/sconce_grpc_test", 32)
        assert client.get_system_shared_memory_status("in").regions["in"].byte_size == 32
        with pytest.raises(Error, match="in"):
            client.register_system_shared_memory("in", "/sconce_grpc_test", 32)
        tensor = client_module.InferInput("INPUT__0", [1, 4], "FP32")
        tensor.set_shared_memory("in", 16)
        output = client_module.InferRequestedOutput("OUTPUT__0")
        output.set_shared_memory("in", 16, offset=16)
        result = client.infer("fake", [tensor], outputs=[output])
        assert list(result.get_output("OUTPUT__0").shape) == [1, 4]
        np.testing.assert_allclose(shm.get_contents_as_numpy(handle, np.float32, [2, 4])[1], fake_expected(rows[0]))
        client.unregister_system_shared_memory("in")
        client.unregister_system_shared_memory()
        client.unregister_cuda_shared_memory()
        assert not client.get_cuda_shared_memory_status().regions
        with pytest.raises(Error, match="nobody"):
            client.get_system_shared_memory_status("nobody")
        with pytest.raises(Error):
            client.register_cuda_shared_memory("gpu", bytes(64), 0, 64)
    finally:
        shm.destroy_shared_memory_region(handle)


# What is recorded.

def test_metrics_access_log_and_request_id(server, client):
    key = 'sconce_grpc_calls_total{code="0",method="ModelInfer"}'
    before = server.metrics().get(key, 0)
    client.infer("fake", [fake_input([1, 2, 3, 4])], headers={"x-request-id": "grpc-id-7"})
    until(lambda: server.metrics()[key] == before + 1)
    assert server.metrics()["sconce_grpc_connections"] >= 1
    until(lambda: any("gRPC ModelInfer" in line and "grpc-id-7" in line and "status=0" in line for line in server.log))
    assert client.is_server_live()
    until(lambda: any("gRPC ServerLive" in line for line in server.log))


def test_traces(tmp_path):
    path = tmp_path / "trace.json"
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with GrpcServer(f"fake={FAKE}", flags=["--trace-file", str(path), "--trace-level", "timestamps", "--trace-format", "otlp"]) as s:
        with client_module.InferenceServerClient(s.grpc) as client:
            client.infer("fake", [fake_input([1, 2, 3, 4])], headers={"traceparent": parent})
        s.stop()
    text = path.read_text()
    assert "0af7651916cd43dd8448eb211c80319c" in text and "inference.GRPCInferenceService/ModelInfer" in text


# Off, and where it cannot be had.

def test_a_process_without_it_has_nothing_of_it():
    def mapped(server):
        return {pathlib.Path(line.split()[-1]).name for line in pathlib.Path(f"/proc/{server.process.pid}/maps").read_text().splitlines()
                if "/" in line}

    with Server(f"fake={FAKE}") as plain, GrpcServer(f"fake={FAKE}") as other:
        words = ("grpc", "protobuf", "absl", "upb")
        assert not [name for name in mapped(plain) if any(word in name for word in words)]
        assert {"libsconcegrpc.so.0"} <= mapped(other)
        assert plain.memory_kb() < other.memory_kb()


def test_without_the_library(tmp_path):
    """A program that asks for a library of another name says what is missing."""
    program = tmp_path / "sconce"
    program.write_bytes(PROGRAM.read_bytes().replace(b"libsconcegrpc.so.0", b"libsconceabsent.so"))
    program.chmod(0o755)
    ended = subprocess.run([program, "serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", f"fake={FAKE}"], text=True,
                           capture_output=True, timeout=60)
    assert ended.returncode != 0 and "setting grpc needs libsconceabsent.so, which cannot be opened" in ended.stderr


def end_all_but_the_run(server):
    """Has the server end, until its idle connections are closed and it waits for what still runs."""
    with server.connect(30) as idle:
        server.process.terminate()
        assert read_all(idle) == b""


def test_drain_finishes_calls_under_way(held):
    call = hold_one(held)
    end_all_but_the_run(held)
    assert not call.done()
    held.release()
    assert call.result(timeout=20).model_name == "fake"
    assert held.process.wait(20) == 0


def test_a_run_that_outlasts_its_call_ends_before_the_server(held):
    held.hold()
    assert code_of(lambda: held.stub.ModelInfer(typed_request(), timeout=0.3)) == grpc.StatusCode.DEADLINE_EXCEEDED
    end_all_but_the_run(held)
    assert held.process.poll() is None
    held.release()
    assert held.process.wait(20) == 0
