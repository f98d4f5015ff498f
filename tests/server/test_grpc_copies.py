"""How often the bytes of a tensor are copied between a gRPC connection and the model: once on the way in, never on the way out."""
import struct

import pytest
from grpc_serving import GrpcServer
from serving import FAKE_MODELS, PROGRAM, fake_expected

np = pytest.importorskip("numpy")
client_module = pytest.importorskip("tritonclient.grpc")

COUNTER = PROGRAM.parent.parent / "tests/server/count_copies.so"
ROWS, REQUESTS = 500_000, 4

pytestmark = [
    pytest.mark.skipif(not list(PROGRAM.parent.parent.glob("src/libsconcegrpc.so*")),
                       reason="libsconce_grpc is not built: libgrpc++-dev is missing"),
    pytest.mark.skipif(not COUNTER.exists(), reason="a sanitizer has its own memcpy")]


@pytest.mark.parametrize("inline_below", ["1s", "0"])
def test_raw_tensors_are_copied_once(tmp_path, inline_below):
    """gRPC's slices are smaller than a tensor, so the input is copied together; the output leaves from where the model put it."""
    count_file = tmp_path / "count"
    count_file.write_bytes(bytes(8))
    rows = np.random.default_rng(6).random((ROWS, 4), dtype=np.float32)
    tensor = client_module.InferInput("INPUT__0", rows.shape, "FP32")
    tensor.set_data_from_numpy(rows)
    with GrpcServer(f"fake={FAKE_MODELS / 'fake_model.so'}", flags=["--inline-below", inline_below],
                    environment={"LD_PRELOAD": str(COUNTER), "COUNT_FILE": str(count_file)}) as server, \
            client_module.InferenceServerClient(server.grpc) as client:
        def ask():
            result = client.infer("fake", [tensor]).as_numpy("RESULT")
            np.testing.assert_allclose(result[-100:], [fake_expected(row) for row in rows[-100:]], rtol=1e-5)

        def counted():
            return struct.unpack("<Q", count_file.read_bytes())[0]

        ask()
        before = counted()
        assert before >= rows.nbytes  # the counter works
        for _ in range(REQUESTS):
            ask()
        copies = (counted() - before) / (REQUESTS * rows.nbytes)
    assert 1 <= copies < 1.05, f"{copies:.2f} copies of the bytes of each request"
