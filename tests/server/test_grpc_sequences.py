"""Sequences over gRPC: tritonclient sync, aio and streaming (docs/sequences.md)."""
import asyncio
import queue
import random

import pytest

np = pytest.importorskip("numpy")
from sequence_serving import RUNNING, STATE, GrpcSequenceServer, Running, needs_grpc, only, running_input  # noqa: E402


@pytest.fixture(scope="module")
def by_grpc():
    with GrpcSequenceServer(sequences=300) as running:
        yield running


@needs_grpc
def test_grpc(by_grpc):
    module = pytest.importorskip("tritonclient.grpc")
    utils = pytest.importorskip("tritonclient.utils")
    with module.InferenceServerClient(by_grpc.grpc) as client:
        def ask(number, **more):
            tensor = module.InferInput("INPUT__0", [1, 4], "FP32")
            tensor.set_data_from_numpy(np.zeros((1, 4), np.float32))
            return only(client.infer("state", [tensor], sequence_id=number, **more))[0, 0]

        assert [ask(3, sequence_start=True), ask("three", sequence_start=True), ask(3), ask("three", sequence_end=True),
                ask(3, sequence_end=True)] == [0, 0, 1, 1, 2]
        with pytest.raises(utils.InferenceServerException, match="START flag") as problem:
            ask(3)
        assert problem.value.status() == "StatusCode.INVALID_ARGUMENT"
        config = client.get_model_config("state").config
        assert config.sequence_batching.oldest.max_candidate_sequences == 300


@needs_grpc
def test_grpc_without_places():
    module = pytest.importorskip("tritonclient.grpc")
    utils = pytest.importorskip("tritonclient.utils")
    with GrpcSequenceServer(f"state={STATE}", sequences=1) as server, module.InferenceServerClient(server.grpc) as client:
        tensor = module.InferInput("INPUT__0", [1, 4], "FP32")
        tensor.set_data_from_numpy(np.zeros((1, 4), np.float32))
        client.infer("state", [tensor], sequence_id=1, sequence_start=True)
        with pytest.raises(utils.InferenceServerException, match="all places for sequences are taken") as problem:
            client.infer("state", [tensor], sequence_id=2, sequence_start=True)
        assert problem.value.status() == "StatusCode.UNAVAILABLE"


@needs_grpc
def test_grpc_streams(by_grpc):
    """200 sequences in one stream without waiting for answers: each is in order, and each gets its own state."""
    module = pytest.importorskip("tritonclient.grpc")
    rng, pick = np.random.default_rng(1), random.Random(1)
    answers = queue.Queue()
    with module.InferenceServerClient(by_grpc.grpc) as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        alone, expected, waiting = {}, {}, list(range(1, 201))
        sent = 0
        while alone or waiting:
            number = pick.choice([*alone, *waiting[:3]])
            start = number not in alone
            if start:
                waiting.remove(number)
                alone[number] = Running()
            end = pick.random() < 0.15
            x, tensor = running_input(module, rng)
            expected[str(sent)] = alone[number].step(x)
            client.async_stream_infer(RUNNING, [tensor], request_id=str(sent), sequence_id=number, sequence_start=start,
                                      sequence_end=end)
            sent += 1
            if end:
                del alone[number]
        for _ in range(sent):
            result, error = answers.get(timeout=60)
            assert error is None, error
            request = result.get_response().id
            np.testing.assert_allclose(only(result), expected.pop(request), rtol=1e-4, atol=1e-4)
        client.stop_stream()
    assert not expected and by_grpc.count("sequences", RUNNING) == 0


@needs_grpc
def test_grpc_aio(by_grpc):
    module = pytest.importorskip("tritonclient.grpc.aio")

    async def play(client, number):
        rng, alone = np.random.default_rng(number), Running()
        for i in range(12):
            x, tensor = running_input(module, rng)
            answer = await client.infer(RUNNING, [tensor], sequence_id=number, sequence_start=i == 0, sequence_end=i == 11)
            np.testing.assert_allclose(only(answer), alone.step(x), rtol=1e-4, atol=1e-4)

    async def all_of_them():
        async with module.InferenceServerClient(by_grpc.grpc) as client:
            await asyncio.gather(*[play(client, number) for number in range(1000, 1200)])

    asyncio.run(all_of_them())
    assert by_grpc.count("sequences", RUNNING) == 0


@needs_grpc
def test_grpc_streams_of_messages_that_take_long_to_read(by_grpc):
    """Compressed messages are read on another thread; small ones that come after them still wait for their turn."""
    module = pytest.importorskip("tritonclient.grpc")
    rng, answers = np.random.default_rng(2), queue.Queue()
    rows = [4000 if i % 3 == 0 else 1 for i in range(120)]
    with module.InferenceServerClient(by_grpc.grpc) as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)), compression_algorithm="gzip")
        sent = []
        for i, count in enumerate(rows):
            sent.append(rng.standard_normal((count, 4)).astype(np.float32))
            tensor = module.InferInput("INPUT__0", [count, 4], "FP32")
            tensor.set_data_from_numpy(sent[-1])
            client.async_stream_infer("state", [tensor], sequence_id=77, sequence_start=i == 0,
                                      sequence_end=i == len(rows) - 1)
        for i, x in enumerate(sent):
            result, error = answers.get(timeout=60)
            assert error is None, (i, error)
            np.testing.assert_allclose(only(result)[:, 0], x[:, 0] + i, rtol=1e-6, atol=1e-6)
        client.stop_stream()
