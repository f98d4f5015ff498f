"""CUDA shared memory (/v2/cudasharedmemory), on devices that tests/server/fake_cuda.cpp makes up."""
import base64
import functools
import json
import mmap
import os
import struct
import uuid

import pytest
from serving import FAKE_MODELS, PROGRAM, Server, fake_expected, threads, until
from weights_files import fake_weights

DEVICES = PROGRAM.parent.parent / "tests/server/fake_cuda"
ROW = [1.0, 2.0, 3.0, 4.0]


class DeviceMemory:
    """Stands for memory from a client's cudaMalloc and its handle from cudaIpcGetMemHandle."""

    def __init__(self, size):
        self.name = f"/sconce-fake-{uuid.uuid4().hex}"
        self.file = open("/dev/shm" + self.name, "w+b")
        self.file.truncate(size)
        self.map = mmap.mmap(self.file.fileno(), size)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.unlink("/dev/shm" + self.name)
        self.map.close()
        self.file.close()

    @property
    def handle(self):
        return base64.b64encode(self.name.encode().ljust(64, b"\0")).decode()

    def put(self, values, at=0):
        data = struct.pack(f"<{len(values)}f", *values)
        self.map[at:at + len(data)] = data

    def floats(self, count, at=0):
        return list(struct.unpack(f"<{count}f", self.map[at:at + 4 * count]))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    log = tmp_path_factory.mktemp("cuda") / "copies"
    with Server(f"gpu={FAKE_MODELS / 'fake_cuda.pt2'}", f"cpu={FAKE_MODELS / 'fake_batched.pt2'}",
                f"held={FAKE_MODELS / 'fake_cuda.pt2'}",
                flags=["--allow-shared-memory", "true", "--set", "gpu.devices=cuda:0", "--set", "held.devices=cuda:1",
                       "--set", "held.replicas=1"],
                environment={"LD_LIBRARY_PATH": str(DEVICES), "FAKE_CUDA_LOG": str(log),
                             "FAKE_MODEL_HOLD": str(log) + ".held"}) as running:
        running.log_of_copies = log
        running.held = log.with_name("copies.held")
        yield running


@pytest.fixture
def memory(server):
    with DeviceMemory(4096) as memory:
        yield memory
        assert server.post("/v2/cudasharedmemory/unregister", b"").status == 200


def register(server, name, memory, size=4096, device=0, handle=None):
    body = {"raw_handle": {"b64": handle or memory.handle}, "device_id": device, "byte_size": size}
    return server.post(f"/v2/cudasharedmemory/region/{name}/register", body)


def shared(name, size, offset=0):
    return {"shared_memory_region": name, "shared_memory_byte_size": size, "shared_memory_offset": offset}


def infer(server, model, source, target, rows=1):
    """source, target: (region, offset), or None for the request's and the answer's own bytes."""
    tensor = {"name": "INPUT__0", "datatype": "FP32", "shape": [rows, 4]}
    size = 16 * rows
    tensor |= {"parameters": shared(source[0], size, source[1])} if source else {"data": ROW * rows}
    output = {"name": "OUTPUT__0"}
    if target:
        output["parameters"] = shared(target[0], size, target[1])
    return server.post(f"/v2/models/{model}/infer", {"inputs": [tensor], "outputs": [output]})


def copies_of(server, call):
    """The lines that `call` adds to the log of copies."""
    before = len(server.log_of_copies.read_text().splitlines()) if server.log_of_copies.exists() else 0
    answer = call()
    assert answer.status == 200, answer.body
    return server.log_of_copies.read_text().splitlines()[before:] if server.log_of_copies.exists() else []


def test_extension_and_status(server, memory):
    assert {"system_shared_memory", "cuda_shared_memory"} <= set(server.get("/v2").json["extensions"])
    assert server.get("/v2/cudasharedmemory/status").json == []
    missing = server.get("/v2/cudasharedmemory/region/a/status")
    assert missing.status == 404 and missing.json["error"] == "Unable to find cuda shared memory region: 'a'"
    answer = register(server, "a", memory, 1024)
    assert (answer.status, answer.body) == (200, b"")
    assert register(server, "b", memory, 4096, device=1).status == 200
    a, b = {"name": "a", "device_id": 0, "byte_size": 1024}, {"name": "b", "device_id": 1, "byte_size": 4096}
    assert server.get("/v2/cudasharedmemory/status").json == [a, b]
    assert server.get("/v2/cudasharedmemory/region/b/status").json == [b]
    for _ in range(2):  # the second time, the name is unknown, which is no error
        assert server.post("/v2/cudasharedmemory/region/a/unregister", b"").status == 200
    assert server.get("/v2/cudasharedmemory/status").json == [b]
    assert server.post("/v2/cudasharedmemory/unregister", b"").status == 200
    assert server.get("/v2/cudasharedmemory/status").json == []


def test_kinds_share_their_names_and_nothing_else(server, memory):
    assert register(server, "r", memory).status == 200
    key = memory.name
    again = server.post("/v2/systemsharedmemory/region/r/register", {"key": key, "byte_size": 64})
    assert again.status == 400 and again.json["error"] == "shared memory region 'r' already in manager"
    assert server.get("/v2/systemsharedmemory/status").json == []
    assert server.get("/v2/systemsharedmemory/region/r/status").status == 404
    assert server.post("/v2/systemsharedmemory/region/r/unregister", b"").status == 200
    assert server.post("/v2/systemsharedmemory/unregister", b"").status == 200
    assert len(server.get("/v2/cudasharedmemory/status").json) == 1
    server.post("/v2/systemsharedmemory/region/s/register", {"key": key, "byte_size": 64})
    assert server.get("/v2/cudasharedmemory/region/s/status").status == 404
    assert server.post("/v2/cudasharedmemory/unregister", b"").status == 200
    assert [r["name"] for r in server.get("/v2/systemsharedmemory/status").json] == ["s"]
    assert server.post("/v2/systemsharedmemory/unregister", b"").status == 200


def test_bad_registrations(server, memory):
    def refused(text, **body):
        whole = {"raw_handle": {"b64": memory.handle}, "device_id": 0, "byte_size": 64} | body
        whole = {k: v for k, v in whole.items() if v is not None}
        answer = server.post("/v2/cudasharedmemory/region/x/register", whole)
        assert answer.status == 400 and text in answer.json["error"], answer.body

    nothing = base64.b64encode(b"/nothing".ljust(64, b"\0")).decode()
    refused("failed to open CUDA IPC handle: invalid argument", raw_handle={"b64": nothing})
    refused("'x'", raw_handle={"b64": nothing})
    refused("must be 64 bytes, got 63", raw_handle={"b64": base64.b64encode(bytes(63)).decode()})
    refused("must be 64 bytes, got 65", raw_handle={"b64": base64.b64encode(bytes(65)).decode()})
    refused("must be 64 bytes, got 0", raw_handle={"b64": ""})
    refused("not base64", raw_handle={"b64": "*" * 88})
    refused("'raw_handle'", raw_handle=None)
    refused("'raw_handle'", raw_handle={})
    refused("'raw_handle'", raw_handle=memory.handle)
    refused("'b64'", raw_handle={"b64": 1})
    refused("'device_id'", device_id=None)
    refused("device cuda:2 does not exist", device_id=2)
    refused("does not exist", device_id=128)
    refused("does not exist", device_id=2**63)
    refused("'device_id'", device_id=-1)
    refused("'byte_size'", byte_size=None)
    refused("'byte_size'", byte_size=0)
    refused("beyond the allocation's 4096 bytes", byte_size=4097)
    refused("beyond the allocation's 4096 bytes", byte_size=2**64 - 1)
    for body in (b"", b"[]", b"{", b'{"raw_handle":[]}', b"[" * 60000):
        assert server.post("/v2/cudasharedmemory/region/x/register", body).status == 400
    assert server.get("/v2/cudasharedmemory/status").json == []
    assert register(server, "x", memory).status == 200
    again = register(server, "x", memory)
    assert again.status == 400 and again.json["error"] == "shared memory region 'x' already in manager"


def test_a_registration_that_fails_leaves_nothing_open(server, memory):
    def mappings():
        with open(f"/proc/{server.process.pid}/maps") as maps:
            return sum(memory.name in line for line in maps)

    for _ in range(20):
        assert register(server, "x", memory, 4097).status == 400
    assert mappings() == 0
    assert register(server, "x", memory).status == 200 and mappings() == 1
    for _ in range(20):
        assert register(server, "x", memory).status == 400
    assert mappings() == 1
    server.post("/v2/cudasharedmemory/region/x/unregister", b"")
    assert mappings() == 0


def test_tensors_in_place_on_the_device(server, memory):
    memory.put(ROW * 2)
    assert register(server, "r", memory).status == 200
    answer = None

    def call():
        nonlocal answer
        answer = infer(server, "gpu", ("r", 0), ("r", 1024), rows=2)
        return answer

    # Tensors do not pass through the host: the model reads the input in place, and the output is copied on the device.
    assert copies_of(server, call) == ["cuda:0 cuda:0 32"]
    assert answer.json["outputs"] == [{"name": "OUTPUT__0", "datatype": "FP32", "shape": [2, 4]}]
    assert memory.floats(8, 1024) == fake_expected(ROW) * 2
    # Only one of input and output is in shared memory.
    assert copies_of(server, lambda: infer(server, "gpu", None, ("r", 2048))) == ["cpu cuda:0 16", "cuda:0 cuda:0 16"]
    assert memory.floats(4, 2048) == fake_expected(ROW)
    assert copies_of(server, lambda: infer(server, "gpu", ("r", 16), None)) == ["cuda:0 cpu 16"]
    assert infer(server, "gpu", ("r", 16), None).json["outputs"][0]["data"] == fake_expected(ROW)


def test_addresses_that_kernels_cannot_read_are_copied_first(server, memory):
    assert register(server, "r", memory).status == 200
    for at, to in ((4, 1028), (1, 1025), (7, 1039)):
        memory.put(ROW, at)
        copies = copies_of(server, lambda: infer(server, "gpu", ("r", at), ("r", to)))
        assert copies == ["cuda:0 cuda:0 16"] * 2
        assert memory.floats(4, to) == fake_expected(ROW)


def test_models_of_another_place(server, memory):
    memory.put(ROW)
    assert register(server, "r", memory).status == 200
    assert copies_of(server, lambda: infer(server, "cpu", ("r", 0), ("r", 1024))) == ["cuda:0 cpu 16", "cpu cuda:0 16"]
    assert memory.floats(4, 1024) == fake_expected(ROW)
    memory.put([0.0] * 4, 1024)
    # The shared memory is on another device than the model.
    assert infer(server, "held", ("r", 0), ("r", 1024)).status == 200
    assert memory.floats(4, 1024) == fake_expected(ROW)
    # The model is on the device, the shared memory on the host.
    key = memory.name
    assert server.post("/v2/systemsharedmemory/region/s/register", {"key": key, "byte_size": 4096}).status == 200
    assert infer(server, "gpu", ("s", 0), ("s", 3000)).status == 200
    assert memory.floats(4, 3000) == fake_expected(ROW)
    assert server.post("/v2/systemsharedmemory/unregister", b"").status == 200


def test_bounds(server, memory):
    assert register(server, "r", memory, 100).status == 200

    def refused(text, source=("r", 0), target=None, **more):
        answer = infer(server, "gpu", source, target)
        assert answer.status in (400, 404) and text in answer.json["error"], answer.body

    refused("invalid offset", ("r", 85))
    refused("invalid offset", ("r", 2**64 - 1))
    refused("invalid offset", target=("r", 85))
    refused("Unable to find shared memory region: 'none'", ("none", 0))
    tensor = {"name": "INPUT__0", "datatype": "FP32", "shape": [1, 4], "parameters": shared("r", 12)}
    answer = server.post("/v2/models/gpu/infer", {"inputs": [tensor]})
    assert answer.status == 400 and "unexpected total byte size 12" in answer.json["error"]
    tensor["parameters"] = shared("r", 16)
    outputs = [{"name": "OUTPUT__0", "parameters": shared("r", 12, 32)}]
    answer = server.post("/v2/models/gpu/infer", {"inputs": [tensor], "outputs": outputs})
    assert answer.status == 400 and "should be at least 16 bytes" in answer.json["error"]


def test_requests_with_device_tensors_and_others_do_not_share_runs(server, memory):
    """While one run holds the only replica, requests of both forms gather; all get their own answer."""
    memory.put(ROW)
    assert register(server, "r", memory).status == 200
    server.held.touch()
    answers = {}

    def ask(i):
        target = ("r", 1024 + 16 * i) if i % 3 == 0 else None
        answers[i] = infer(server, "held", ("r", 0) if i % 2 else None, target)

    with threads(*[functools.partial(ask, i) for i in range(8)]):
        # If a region is unregistered while it is in use, its memory stays open until the requests are over.
        until(lambda: server.metrics().get('nv_inference_pending_request_count{model="held",version="1"}', 0) == 7)
        assert server.post("/v2/cudasharedmemory/region/r/unregister", b"").status == 200
        assert infer(server, "cpu", ("r", 0), None).status == 404
        server.held.unlink()
    for i, answer in answers.items():
        assert answer.status == 200, answer.body
        if i % 3 == 0:
            assert memory.floats(4, 1024 + 16 * i) == fake_expected(ROW)
        else:
            assert answer.json["outputs"][0]["data"] == fake_expected(ROW)


def test_a_host_without_devices_says_so(memory):
    with Server(f"cpu={FAKE_MODELS / 'fake_batched.pt2'}", flags=["--allow-shared-memory", "true"],
                environment={"CUDA_VISIBLE_DEVICES": ""}) as plain:
        answer = register(plain, "r", memory)
        assert answer.status == 400 and "CUDA devices" in answer.json["error"], answer.body
        assert plain.get("/v2/cudasharedmemory/status").json == []
        assert plain.get("/v2/health/ready").status == 200


def test_it_is_off_by_default(memory):
    with Server(f"cpu={FAKE_MODELS / 'fake_batched.pt2'}") as plain:
        answer = register(plain, "r", memory)
        assert answer.status == 403 and "allow_shared_memory" in answer.json["error"]
        assert plain.get("/v2/cudasharedmemory/status").json == []
        assert "cuda_shared_memory" not in plain.get("/v2").json["extensions"]


def test_tritonclient(server, memory):
    client_module = pytest.importorskip("tritonclient.http")
    client = client_module.InferenceServerClient(f"127.0.0.1:{server.port}")
    memory.put(ROW)
    client.register_cuda_shared_memory("c", memory.handle.encode(), 0, 4096)
    assert client.get_cuda_shared_memory_status() == [{"name": "c", "device_id": 0, "byte_size": 4096}]
    assert client.get_cuda_shared_memory_status("c")[0]["byte_size"] == 4096
    tensor = client_module.InferInput("INPUT__0", [1, 4], "FP32")
    tensor.set_shared_memory("c", 16)
    output = client_module.InferRequestedOutput("OUTPUT__0")
    output.set_shared_memory("c", 16, 256)
    result = client.infer("gpu", [tensor], outputs=[output])
    assert result.get_output("OUTPUT__0")["shape"] == [1, 4]
    assert memory.floats(4, 256) == fake_expected(ROW)
    with pytest.raises(Exception, match="already in manager"):
        client.register_cuda_shared_memory("c", memory.handle.encode(), 0, 4096)
    client.unregister_cuda_shared_memory("c")
    client.unregister_cuda_shared_memory()
    assert client.get_cuda_shared_memory_status() == []
    json.dumps(client.get_server_metadata())
    client.close()


def test_shadow_leaves_out_what_its_owner_may_write_again():
    """Inputs were read in place, so the client may overwrite them only after its answer."""
    with DeviceMemory(4096) as memory, \
            Server(f"gpu={FAKE_MODELS / 'fake_cuda.pt2'}", f"cpu={FAKE_MODELS / 'fake_batched.pt2'}",
                   flags=["--allow-shared-memory", "true", "--set", "gpu.devices=cuda:0", "--set", "*.shadow=1"],
                   environment={"LD_LIBRARY_PATH": str(DEVICES)}) as server:
        assert register(server, "r", memory).status == 200
        memory.put(ROW)

        def shadow(model):
            return server.get(f"/v2/admin/models/{model}/weights/shadow", port=server.admin_port).json

        for model, skipped in (("gpu", 3), ("cpu", 0)):
            pushed = server.post(f"/v2/admin/models/{model}/weights", fake_weights(3),
                                 {"Content-Type": "application/octet-stream"}, port=server.admin_port)
            assert pushed.status == 200, pushed.body
            until(lambda m=model: shadow(m)["state"] == "running", 60, lambda m=model: shadow(m))
            for count, (source, target) in enumerate([(None, None), (("r", 0), None), (None, ("r", 64)),
                                                      (("r", 0), ("r", 64))], 1):
                assert infer(server, model, source, target).status == 200
                until(lambda m=model, n=count: shadow(m)["compared"] + shadow(m)["skipped"] == n, 60,
                      lambda m=model: shadow(m))
            now = shadow(model)
            assert (now["compared"], now["skipped_for"]["placed"], now["failed"]) == (4 - skipped, skipped, 0)
            apart = [abs(y - (3 * x + 3)) for x, y in zip(ROW, fake_expected(ROW), strict=True)]
            assert now["outputs"][0]["largest"] == max(apart)
