"""Triton's own Python client, sync and aio, unchanged."""
import asyncio

import pytest
from serving import FAKE_MODELS, Server

np = pytest.importorskip("numpy", reason="numpy is not installed: ./dev test installs it into .venv")
httpclient = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed: ./dev test installs it "
                                                             "into .venv")
aioclient = pytest.importorskip("tritonclient.http.aio", reason="tritonclient[http] is not installed")
utils = pytest.importorskip("tritonclient.utils")
pytest.importorskip("ml_dtypes")
from every_dtype import check_every_dtype  # noqa: E402

MODEL = "several.channels_last"


@pytest.fixture(scope="module")
def client(server):
    with httpclient.InferenceServerClient(f"127.0.0.1:{server.port}", concurrency=4) as running:
        yield running


def image_input(rows=2, binary=True, module=httpclient):
    image = np.random.default_rng(3).standard_normal((rows, 3, 4, 5)).astype(np.float32)
    tensor = module.InferInput("ARGS[0]", image.shape, "FP32")
    tensor.set_data_from_numpy(image, binary_data=binary)
    return image, tensor


def check(result, image):
    np.testing.assert_array_equal(result.as_numpy("RESULT[1]"), image * 2)
    np.testing.assert_allclose(result.as_numpy("RESULT[0]"), image.sum(axis=1), rtol=1e-5, atol=1e-6)


def test_health_and_metadata(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(MODEL)
    assert client.is_model_ready(MODEL, "1")
    assert not client.is_model_ready("nope")
    assert client.get_server_metadata()["name"] == "sconce"
    assert client.get_model_metadata(MODEL)["platform"] == "torch_aoti"
    assert client.get_model_config(MODEL)["max_batch_size"] == 8
    assert MODEL in [m["name"] for m in client.get_model_repository_index()]
    assert client.get_inference_statistics(MODEL)["model_stats"][0]["name"] == MODEL
    assert client.get_inference_statistics()["model_stats"]


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False, None])
def test_infer(client, binary_in, binary_out):
    image, tensor = image_input(binary=binary_in)
    outputs = None
    if binary_out is not None:
        outputs = [httpclient.InferRequestedOutput(f"RESULT[{i}]", binary_data=binary_out) for i in range(2)]
    result = client.infer(MODEL, [tensor], outputs=outputs, request_id="r1", model_version="1")
    check(result, image)
    assert result.get_response()["id"] == "r1"
    assert result.get_response()["model_version"] == "1"


def test_async_infer(client):
    image, tensor = image_input(rows=8)
    for request in [client.async_infer(MODEL, [tensor]) for _ in range(20)]:
        check(request.get_result(), image)


def test_every_dtype(client):
    check_every_dtype(client, httpclient, utils)


def test_zero_rows_and_scalars(client):
    empty = httpclient.InferInput("INPUT__0", [0, 4], "FP32")
    empty.set_data_from_numpy(np.zeros((0, 4), np.float32))
    output = httpclient.InferRequestedOutput("OUTPUT__0")
    assert client.infer("fake", [empty], outputs=[output]).as_numpy("OUTPUT__0").shape == (0, 4)
    names = {"ARGS[0]": np.ones((2, 3), np.float32), "ARGS[1][0]": np.array([0, 2]),
             "ARGS[1][1][shift]": np.zeros(3, np.float32), "KWARGS[scale]": np.array(3, np.float32),
             "KWARGS[mask]": np.ones(3, bool)}
    inputs = []
    for name, value in names.items():
        inputs.append(httpclient.InferInput(name, value.shape, utils.np_to_triton_dtype(value.dtype)))
        inputs[-1].set_data_from_numpy(value)
    result = client.infer("several.calls", inputs)
    np.testing.assert_array_equal(result.as_numpy("RESULT[y]"), np.full((2, 3), 3, np.float32))
    assert result.as_numpy("RESULT[any]") == np.array(True)
    assert result.as_numpy("RESULT[picked][1]") is None  # the model returns None there


def test_errors_reach_the_caller(client):
    _, tensor = image_input(rows=9)
    with pytest.raises(utils.InferenceServerException, match=r"input 'ARGS\[0\]'"):
        client.infer(MODEL, [tensor])
    with pytest.raises(utils.InferenceServerException, match="unknown model"):
        client.infer("nope", [tensor])


def test_aio(server):
    async def run():
        async with aioclient.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
            assert await client.is_server_ready()
            assert (await client.get_model_metadata(MODEL))["versions"] == ["1"]
            assert await client.get_model_repository_index()
            image, tensor = image_input(module=aioclient)
            for result in await asyncio.gather(*[client.infer(MODEL, [tensor]) for _ in range(20)]):
                check(result, image)
            with pytest.raises(utils.InferenceServerException):
                await client.infer("nope", [tensor])

    asyncio.run(run())


def test_threads(server):
    with httpclient.InferenceServerClient(f"127.0.0.1:{server.port}", concurrency=32) as client:
        image, tensor = image_input(rows=4)
        for request in [client.async_infer(MODEL, [tensor]) for _ in range(400)]:
            check(request.get_result(), image)


def test_models_appear_in_the_repository_index(tmp_path):
    with Server(f"a={FAKE_MODELS / 'fake_model.so'}") as server:
        with httpclient.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
            assert [(m["name"], m["state"]) for m in client.get_model_repository_index()] == [("a", "READY")]
