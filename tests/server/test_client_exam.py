"""Every method of Triton's Python client, sync and aio, and the requests of perf_analyzer, byte for byte."""
import asyncio
import json
import re
import uuid

import pytest
from serving import FAKE_MODELS, PACKAGES, ROOT, Server, read_answer

np = pytest.importorskip("numpy", reason="numpy is not installed: ./dev test installs it into .venv")
httpclient = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed: ./dev test installs it "
                                                             "into .venv")
aioclient = pytest.importorskip("tritonclient.http.aio", reason="tritonclient[http] is not installed")
utils = pytest.importorskip("tritonclient.utils")
shm = pytest.importorskip("tritonclient.utils.shared_memory")

MODEL = "several.channels_last"
IMAGE = np.random.default_rng(5).standard_normal((2, 3, 4, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def exam(tmp_path_factory):
    """A server with control routes and shared memory on the public port, as with Triton."""
    trace = tmp_path_factory.mktemp("trace") / "trace.json"
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}", PACKAGES / "several.pt2",
                flags=["--http-admin", "true", "--allow-shared-memory", "true", "--compress-above", "100",
                       "--trace-file", trace]) as running:
        yield running


def image(module=httpclient, binary=True):
    tensor = module.InferInput("ARGS[0]", IMAGE.shape, "FP32")
    tensor.set_data_from_numpy(IMAGE, binary_data=binary)
    return tensor


def check(result):
    np.testing.assert_array_equal(result.as_numpy("RESULT[1]"), IMAGE * 2)


class Sync:
    """The sync client under the aio client's calling convention, so that one exam is for both."""

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        method = getattr(self.client, name)

        async def call(*arguments, **options):
            return method(*arguments, **options)

        return call


async def whole_exam(client, module):
    # Health and metadata.
    assert await client.is_server_live() and await client.is_server_ready()
    assert await client.is_model_ready(MODEL) and await client.is_model_ready(MODEL, "1")
    assert not await client.is_model_ready("nope")
    meta = await client.get_server_metadata()
    assert meta["name"] == "sconce" and {"statistics", "classification", "system_shared_memory"} <= set(meta["extensions"])
    meta = await client.get_model_metadata(MODEL, "1", headers={"x-test": "1"}, query_params={"a": "1", "b": 2})
    assert meta["platform"] == "torch_aoti" and meta["inputs"][0]["shape"] == [-1, 3, 4, 5]
    assert (await client.get_model_config(MODEL))["max_batch_size"] == 8
    # Repository.
    assert {"name": MODEL, "version": "1", "state": "READY"} in await client.get_model_repository_index()
    await client.load_model(MODEL)
    await client.unload_model("fake", unload_dependents=True)
    assert not await client.is_model_ready("fake")
    await client.load_model("fake")
    assert await client.is_model_ready("fake")
    with pytest.raises(utils.InferenceServerException, match="nope"):
        await client.load_model("nope")
    with pytest.raises(utils.InferenceServerException):
        await client.load_model("fake", config="{}")
    with pytest.raises(utils.InferenceServerException):
        await client.load_model("fake", config="{}", files={"file:1/model.pt2": b"x"})
    # Inference: each form of input and output.
    for binary_in in (True, False):
        for binary_out in (True, False):
            outputs = [module.InferRequestedOutput("RESULT[1]", binary_data=binary_out)]
            result = await client.infer(MODEL, [image(module, binary_in)], outputs=outputs, request_id="one",
                                        priority=1, timeout=5_000_000, parameters={"mine": "x", "n": 3, "f": 0.5})
            check(result)
            assert result.get_response()["id"] == "one"
            assert result.get_output("RESULT[1]")["shape"] == [2, 3, 4, 5]
    check(await client.infer(MODEL, [image(module)], model_version="1", priority=0))
    for algorithm in ("gzip", "deflate"):
        check(await client.infer(MODEL, [image(module)], request_compression_algorithm=algorithm,
                                 response_compression_algorithm=algorithm))
    top = module.InferRequestedOutput("RESULT[1]", class_count=3)
    classes = (await client.infer(MODEL, [image(module)], outputs=[top])).as_numpy("RESULT[1]")
    best = np.argsort(-IMAGE.reshape(2, 60), axis=1)[:, :3]
    assert classes.shape == (2, 3)
    assert [[int(c.decode().split(":")[1]) for c in row] for row in classes] == best.tolist()
    with pytest.raises(utils.InferenceServerException, match="triton_"):
        await client.infer(MODEL, [image(module)], parameters={"triton_x": 1})
    with pytest.raises(utils.InferenceServerException, match="unexpected inference output"):
        await client.infer(MODEL, [image(module)], outputs=[module.InferRequestedOutput("none")])
    # Statistics.
    stats = (await client.get_inference_statistics(MODEL, "1"))["model_stats"][0]
    assert stats["inference_stats"]["success"]["count"] >= 8
    assert len((await client.get_inference_statistics())["model_stats"]) >= 2
    # Settings.
    settings = await client.get_trace_settings()
    assert settings["trace_level"] == ["OFF"]
    assert (await client.update_trace_settings(settings={"trace_rate": "10"}))["trace_rate"] == "10"
    one = await client.update_trace_settings(MODEL, {"trace_level": ["TIMESTAMPS"], "trace_count": "2"})
    assert one["trace_level"] == ["TIMESTAMPS"]
    assert (await client.get_trace_settings(MODEL))["trace_count"] == "2"
    await client.update_trace_settings(MODEL, {"trace_level": None, "trace_count": None})
    assert await client.update_trace_settings(settings={"trace_rate": None}) == settings
    log = await client.get_log_settings()
    assert log["log_info"] is True and log["log_format"] == "ISO8601"
    assert (await client.update_log_settings({"log_verbose_level": 1}))["log_verbose_level"] == 1
    assert await client.update_log_settings({"log_verbose_level": 0}) == log
    with pytest.raises(utils.InferenceServerException):
        await client.update_log_settings({"log_file": "/tmp/x"})
    # Shared memory.
    await client.unregister_system_shared_memory()
    await client.unregister_cuda_shared_memory()
    assert await client.get_system_shared_memory_status() == []
    assert await client.get_cuda_shared_memory_status() == []
    key = f"/exam-{uuid.uuid4().hex}"
    region = shm.create_shared_memory_region("exam", key, 2 * IMAGE.nbytes)
    try:
        shm.set_shared_memory_region(region, [IMAGE])
        await client.register_system_shared_memory("exam", key, 2 * IMAGE.nbytes)
        assert [r["name"] for r in await client.get_system_shared_memory_status("exam")] == ["exam"]
        tensor = module.InferInput("ARGS[0]", IMAGE.shape, "FP32")
        tensor.set_shared_memory("exam", IMAGE.nbytes)
        output = module.InferRequestedOutput("RESULT[1]")
        output.set_shared_memory("exam", IMAGE.nbytes, offset=IMAGE.nbytes)
        result = await client.infer(MODEL, [tensor], outputs=[output])
        entry = result.get_output("RESULT[1]")
        got = shm.get_contents_as_numpy(region, np.float32, entry["shape"], offset=IMAGE.nbytes)
        np.testing.assert_array_equal(got, IMAGE * 2)
        with pytest.raises(utils.InferenceServerException, match="already in manager"):
            await client.register_system_shared_memory("exam", "/x", 10)
        await client.unregister_system_shared_memory("exam")
    finally:
        shm.destroy_shared_memory_region(region)
    with pytest.raises(utils.InferenceServerException):
        await client.register_cuda_shared_memory("cuda", b"x" * 64, 0, 64)


def test_sync_client(exam):
    with httpclient.InferenceServerClient(f"127.0.0.1:{exam.port}", concurrency=2) as client:
        asyncio.run(whole_exam(Sync(client), httpclient))
        # Methods that the aio client lacks.
        for request in [client.async_infer(MODEL, [image()]) for _ in range(10)]:
            check(request.get_result())
        body, length = client.generate_request_body([image()])
        answer = exam.post(f"/v2/models/{MODEL}/infer", body, {"Inference-Header-Content-Length": str(length)})
        check(client.parse_response_body(answer.body,
                                         header_length=int(answer.headers["Inference-Header-Content-Length"])))


def test_aio_client(exam):
    async def run():
        async with aioclient.InferenceServerClient(f"127.0.0.1:{exam.port}") as client:
            await whole_exam(client, aioclient)
            for result in await asyncio.gather(*[client.infer(MODEL, [image(aioclient)]) for _ in range(50)]):
                check(result)

    asyncio.run(run())


def test_control_is_refused_where_it_was_not_asked_for(server):
    with httpclient.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
        for call in (lambda: client.load_model("fake"), lambda: client.unload_model("fake"), client.get_log_settings,
                     client.get_trace_settings, lambda: client.update_log_settings({"log_info": False})):
            with pytest.raises(utils.InferenceServerException, match="403"):
                call()


# The requests of perf_analyzer's C++ client in their order, as recorded on the wire, and the fields without which it gives
# up.

def send(connection, method, path, extra=b"", body=b""):
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost:8000\r\nUser-Agent: libcurl-agent/1.0\r\nAccept: */*\r\n".encode()
    connection.sendall(head + extra + (b"" if method == "GET" else b"Content-Length: %d\r\n" % len(body)) + b"\r\n" + body)
    code, _, answer, rest = read_answer(connection)
    assert code == 200 and rest == b"", answer
    return answer


REGION = "ARGS[0]_0"  # sent with its brackets, not encoded
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


def perf_infer(connection, header, data, outputs_binary):
    text = json.dumps(header, separators=(",", ":")).encode()
    kind = b"application/octet-stream" if data else b"application/json"
    connection.sendall(f"POST /v2/models/{MODEL}/infer HTTP/1.1\r\nHost: localhost:8000\r\n".encode() +
                       b"User-Agent: libcurl-agent/1.0\r\nAccept: */*\r\nInference-Header-Content-Length: %d\r\n"
                       b"Content-Type: %s\r\nContent-Length: %d\r\n\r\n" % (len(text), kind, len(text) + len(data)) +
                       text + data)
    code, head, answer, rest = read_answer(connection)
    assert code == 200 and rest == b"", answer
    found = re.search(rb"Inference-Header-Content-Length: (\d+)", head)
    assert bool(found) == outputs_binary
    length = int(found.group(1)) if found else len(answer)
    body = json.loads(answer[:length])
    for output in body["outputs"]:
        # The C++ client gives up on an output whose parameters lack binary_data_size, and counts top-level elements.
        assert "parameters" not in output or "binary_data_size" in output["parameters"]
        assert all(not isinstance(v, list) for v in output.get("data", []))
    return body, answer[length:]


@pytest.mark.parametrize("form", ["binary", "json", "shared memory"])
def test_perf_analyzer(exam, form):
    with exam.connect() as connection:
        send(connection, "GET", "/v2/health/live")
        send(connection, "POST", "/v2/trace/setting", FORM, b'{"trace_level":["OFF"],"trace_rate":"1000"}')
        meta = json.loads(send(connection, "GET", f"/v2/models/{MODEL}"))
        assert meta["name"] == MODEL and meta["versions"] and meta["platform"]
        assert all({"name", "datatype", "shape"} <= t.keys() for t in meta["inputs"] + meta["outputs"])
        config = json.loads(send(connection, "GET", f"/v2/models/{MODEL}/config"))
        assert config["max_batch_size"] == 8 and config["name"] == MODEL
        assert config["model_transaction_policy"]["decoupled"] is False and config["response_cache"]["enable"] is False
        assert all({"name", "data_type", "dims"} <= t.keys() for t in config["input"] + config["output"])
        region = None
        tensor = {"name": "ARGS[0]", "shape": [1, 3, 4, 5], "datatype": "FP32"}
        outputs = [{"name": o["name"], "parameters": {"binary_data": form != "json"}} for o in meta["outputs"]]
        data = IMAGE[:1].tobytes()
        try:
            if form == "shared memory":
                send(connection, "POST", "/v2/systemsharedmemory/unregister", FORM)
                send(connection, "POST", "/v2/cudasharedmemory/unregister", FORM)
                key = f"/{REGION}-{uuid.uuid4().hex}"
                region = shm.create_shared_memory_region("input", key, 2 * len(data))
                shm.set_shared_memory_region(region, [IMAGE[:1]])
                send(connection, "POST", f"/v2/systemsharedmemory/region/{REGION}/register", FORM,
                     json.dumps({"key": key, "offset": 0, "byte_size": 2 * len(data)}).encode())
                tensor["parameters"] = {"shared_memory_region": REGION, "shared_memory_byte_size": len(data)}
                outputs = [{"name": "RESULT[1]", "parameters": {
                    "shared_memory_region": REGION, "shared_memory_byte_size": len(data),
                    "shared_memory_offset": len(data)}}]
                data = b""
            elif form == "binary":
                tensor["parameters"] = {"binary_data_size": len(data)}
            else:
                tensor["data"] = IMAGE[:1].flatten().tolist()
                data = b""
            assert "statistics" in json.loads(send(connection, "GET", "/v2"))["extensions"]
            before = json.loads(send(connection, "GET", f"/v2/models/{MODEL}/stats"))["model_stats"][0]
            header = {"id": "", "inputs": [tensor], "outputs": outputs}
            for _ in range(20):
                body, tail = perf_infer(connection, header, data, form == "binary")
                assert "id" not in body and len(tail) == (4 * (20 + 60) if form == "binary" else 0)
            after = json.loads(send(connection, "GET", f"/v2/models/{MODEL}/stats"))["model_stats"][0]
            if region is not None:
                send(connection, "POST", f"/v2/systemsharedmemory/region/{REGION}/unregister", FORM)
        finally:
            if region is not None:
                shm.destroy_shared_memory_region(region)

    def grown(key, part):
        return after["inference_stats"][key][part] - before["inference_stats"][key][part]

    assert {"name", "version", "inference_count", "execution_count"} <= after.keys()
    for key in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        assert grown(key, "count") == 20
    assert {"cache_hit", "cache_miss", "fail"} <= after["inference_stats"].keys()
    parts = sum(grown(k, "ns") for k in ("queue", "compute_input", "compute_infer", "compute_output"))
    assert 0 < parts <= grown("success", "ns")


def test_expect_continue_of_large_posts(exam):
    """libcurl waits for the 100 of a load with files."""
    body = json.dumps({"parameters": {"config": "x" * 2000}}).encode()
    with exam.connect() as connection:
        connection.sendall(b"POST /v2/repository/models/fake/load HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(body))
        assert connection.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert read_answer(connection)[0] == 400


def test_the_lines_of_the_readme(capsys):
    text = (ROOT / "README.md").read_text()
    code, = re.findall(r"^    (import numpy as np, tritonclient.http.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    code = "\n".join(line.removeprefix("    ") for line in code.splitlines())
    with Server(ROOT / "examples/digits/digits.pt2") as server:
        exec(code.replace("localhost:8000", f"127.0.0.1:{server.port}"), {})
    assert re.fullmatch(r"\[\d\]\n", capsys.readouterr().out)

