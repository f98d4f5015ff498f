"""After warm-up a request allocates nothing, on the I/O thread and through a lane."""
import http.client
import json
import struct

import pytest
from serving import FAKE_MODELS, PROGRAM, Server, binary, numbers, until
from weights_files import fake_weights

COUNTER = PROGRAM.parent.parent / "tests/server/count_allocations.so"
FAKE = FAKE_MODELS / "fake_model.so"
REQUESTS = 2000


def binary_request():
    return "/v2/models/fake/infer", *binary(struct.pack("<8f", *range(8)), parameters={"binary_data_output": True})


def json_request():
    return "/v2/models/fake/infer", json.dumps(numbers([1, 2, 3, 4])).encode(), {}


def set_request():
    """Requests name a set in the header field or in the path."""
    path, body, _ = json_request()
    return path.replace("fake", "fake@tenant-a"), body, {"Sconce-Weights": "tenant-a"}


def allocations(tmp_path, place, model, flags, prepare, request, more=()):
    """Starts a server, calls `prepare` with it and counts its allocations for requests after the first 200. more: what it
    serves besides the model "fake"."""
    count_file = tmp_path / "count"
    count_file.write_bytes(bytes(8))
    flags = ["--io-threads", "1", "--inline-below", "1s" if place == "here" else "0", *flags]
    with Server(f"fake={model}", *more, flags=flags,
                environment={"LD_PRELOAD": str(COUNTER), "COUNT_FILE": str(count_file)}) as server:
        prepare(server)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        path, body, headers = request

        def ask(count):
            for _ in range(count):
                connection.request("POST", path, body, headers)
                answer = connection.getresponse()
                assert answer.status == 200 and answer.read()

        def counted():
            return struct.unpack("<Q", count_file.read_bytes())[0]

        ask(200)
        before = counted()
        assert before > 100  # the counter works
        ask(REQUESTS)
        spent = counted() - before
        connection.close()
        assert server.stop() == 0
    return spent


def send_weights(server, path):
    assert server.post("/v2/admin/models/fake/" + path, fake_weights(2),
                       {"Content-Type": "application/octet-stream"}, port=server.admin_port).status == 200


# Timers and the date allocate once a second, which does not count.
MOST = REQUESTS / 20


@pytest.mark.skipif(not COUNTER.exists(), reason="not built with sanitizers")
@pytest.mark.parametrize("request_of", [binary_request, json_request, set_request])
@pytest.mark.parametrize("place", ["here", "lane"])
def test_no_allocation_for_a_request(tmp_path, request_of, place):
    spent = allocations(tmp_path, place, FAKE, ["--set", "fake.sets=2"],
                        lambda server: send_weights(server, "sets/tenant-a"), request_of())
    assert spent < MOST, f"{spent} allocations in {REQUESTS} requests"


@pytest.mark.skipif(not COUNTER.exists(), reason="not built with sanitizers")
@pytest.mark.parametrize("place", ["here", "lane"])
def test_no_allocation_before_and_after_a_shadow(tmp_path, place):
    """Live requests run on a staged set too only while one is staged."""
    def judge(server):
        send_weights(server, "weights")
        shadow = "/v2/admin/models/fake/weights/shadow"
        until(lambda: json.loads(server.get(shadow, port=server.admin_port).body)["state"] == "running")
        path, body, headers = binary_request()
        assert server.post(path, body, headers).status == 200
        until(lambda: json.loads(server.get(shadow, port=server.admin_port).body)["compared"] == 1)
        assert server.post("/v2/admin/models/fake/weights/commit", b"", port=server.admin_port).status == 200

    for prepare in (lambda server: None, judge):
        spent = allocations(tmp_path, place, FAKE_MODELS / "fake_batched.pt2", ["--set", "fake.shadow=1"], prepare,
                            binary_request())
        assert spent < MOST, f"{spent} allocations in {REQUESTS} requests"


@pytest.mark.skipif(not COUNTER.exists(), reason="not built with sanitizers")
@pytest.mark.parametrize("place", ["here", "lane"])
def test_no_allocation_for_a_request_to_a_pipeline(tmp_path, place):
    """Two branches and a step behind one of them."""
    step = {"model": "fake", "inputs": {"INPUT__0": "INPUT__0"}, "outputs": {"OUTPUT__0": "OUTPUT__0"}}
    steps = [step, {**step, "outputs": {"OUTPUT__0": "branch"}},
             {**step, "inputs": {"INPUT__0": "branch"}, "outputs": {"OUTPUT__0": "end"}}]
    pipeline = tmp_path / "pipe.pipeline.json"
    pipeline.write_text(json.dumps({"inputs": ["INPUT__0"], "outputs": ["OUTPUT__0", "end"], "steps": steps}))
    path, body, headers = binary_request()
    spent = allocations(tmp_path, place, FAKE, [], lambda server: None,
                        (path.replace("fake", "pipe"), body, headers), [pipeline])
    assert spent < MOST, f"{spent} allocations in {REQUESTS} requests"
