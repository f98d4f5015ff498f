"""After warm-up a request allocates nothing, on the I/O thread and through a lane."""
import http.client
import json
import struct

import pytest
from serving import FAKE_MODELS, PROGRAM, Server, binary, numbers
from weights_files import fake_weights

COUNTER = PROGRAM.parent.parent / "tests/server/count_allocations.so"
FAKE = FAKE_MODELS / "fake_model.so"
REQUESTS = 2000


def binary_request():
    return "/v2/models/fake/infer", *binary(struct.pack("<8f", *range(8)), parameters={"binary_data_output": True})


def json_request():
    return "/v2/models/fake/infer", json.dumps(numbers([1, 2, 3, 4])).encode(), {}


def set_request():
    """With a named set, by its header and by the path."""
    path, body, _ = json_request()
    return path.replace("fake", "fake@tenant-a"), body, {"Sconce-Weights": "tenant-a"}


@pytest.mark.skipif(not COUNTER.exists(), reason="not built with sanitizers")
@pytest.mark.parametrize("request_of", [binary_request, json_request, set_request])
@pytest.mark.parametrize("place", ["here", "lane"])
def test_no_allocation_for_a_request(tmp_path, request_of, place):
    count_file = tmp_path / "count"
    count_file.write_bytes(bytes(8))
    flags = ["--io-threads", "1", "--inline-below", "1s" if place == "here" else "0", "--set", "fake.sets=2"]
    with Server(f"fake={FAKE}", flags=flags,
                environment={"LD_PRELOAD": str(COUNTER), "COUNT_FILE": str(count_file)}) as server:
        assert server.post("/v2/admin/models/fake/sets/tenant-a", fake_weights(2),
                           {"Content-Type": "application/octet-stream"}, port=server.admin_port).status == 200
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        path, body, headers = request_of()

        def ask(count):
            for _ in range(count):
                connection.request("POST", path, body, headers)
                answer = connection.getresponse()
                assert answer.status == 200 and answer.read()

        def counted():
            return struct.unpack("<Q", count_file.read_bytes())[0]

        ask(200)
        before = counted()
        assert before > 100  # it counts
        ask(REQUESTS)
        spent = counted() - before
        connection.close()
        assert server.stop() == 0
    # Timers and the date, made once a second, are not the requests' allocations.
    assert spent < REQUESTS / 20, f"{spent} allocations in {REQUESTS} requests"
