"""Weights that trainers push: SGLang's and vLLM's routes, and our own for memory of devices (docs/weights.md).

Devices are those that fake_cuda.cpp makes up. Its log shows which copies were made: none through the host.
"""
import base64
import json
import os
import pathlib
import struct
import threading
import time

import pytest
import trainer_pickles as pickles
from admin_server import AdminServer
from serving import FAKE_MODELS, threads, until
from test_device_memory import DEVICES, DeviceMemory
from trainer_pickles import Counters, CudaTensor, bucket, dumps
from weights_files import fake_weights, repeated, safetensors

FIXTURES = json.loads(pathlib.Path(__file__).with_name("trainer_pickles.json").read_text())
ONES = {"INPUT__0": ("FP32", [1, 4], [1, 1, 1, 1])}
NAMES = ["scale.w", "scale.b"]


class TrainerServer(AdminServer):
    def trainer(self, path, body=None, method="POST", query="", **more):
        return self.admin(method, f"/{path}?{query}", body, **more)

    def value(self, model="m"):
        """What the model answers to ones, which is the same in each place, and the version of the weights."""
        answer = self.infer(model, ONES)
        assert answer.status == 200, answer.body
        values = answer.json["outputs"][0]["data"]
        assert len(set(values)) == 1, values
        return values[0], answer.json["parameters"]["weight_version"]

    def copies(self):
        return self.log_of_copies.read_text().splitlines() if self.log_of_copies.exists() else []


@pytest.fixture(scope="module")
def shared_gpu(tmp_path_factory):
    log = tmp_path_factory.mktemp("cuda") / "copies"
    with TrainerServer(f"m={FAKE_MODELS / 'fake_cuda.pt2'}",
                       flags=["--set", "m.devices=cuda:0", "--trainer-timeout", "1s"],
                       environment={"LD_LIBRARY_PATH": str(DEVICES), "FAKE_CUDA_LOG": str(log)}) as running:
        running.log_of_copies = log
        yield running


def idle(server):
    until(lambda: not server.running())
    server.trainer("continue_generation")
    server.trainer("finish_weight_update")


@pytest.fixture
def gpu(shared_gpu):
    yield shared_gpu
    idle(shared_gpu)


@pytest.fixture(scope="module")
def shared_cpu(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    with TrainerServer(f"m={FAKE_MODELS / 'fake_model.so'}", flags=["--weights-dir", str(folder)],
                       environment={"LD_LIBRARY_PATH": str(DEVICES)}) as running:
        running.folder = folder
        yield running


@pytest.fixture
def cpu(shared_cpu):
    yield shared_cpu
    idle(shared_cpu)


@pytest.fixture
def memory():
    with DeviceMemory(4096) as memory:
        yield memory


@pytest.fixture
def counters():
    with Counters() as counters:
        yield counters


def from_tensor(server, pickle, load_format=None, query="", **more):
    return server.trainer("update_weights_from_tensor",
                          {"serialized_named_tensors": [pickle], "load_format": load_format, "flush_cache": True, **more},
                          query=query)


def both(memory, w, b, counters=None, **more):
    """Both weights in the memory, with a gap between them that PyTorch's allocator could have left."""
    memory.put([w] * 4, 0)
    memory.put([b] * 4, 64)
    return [(name, CudaTensor(memory, (4,), offset=at, counters=counters, **more)) for name, at in zip(NAMES, (0, 16))]


def handles(named, device=pickles.UUIDS[0]):
    return dumps([{device: tensor.reduced()} for _, tensor in named])


def update_info(named, pickled=None):
    return {"update_info": {"names": [n for n, _ in named], "dtype_names": ["float32"] * len(named),
                            "shapes": [[4]] * len(named), "ipc_handles": None,
                            "ipc_handles_pickled": pickled or handles(named)}}


def refused(answer, text, status=400):
    assert answer.status == status and text in answer.json["error"], answer.body
    return answer


# SGLang.

def test_sglang_tensors_of_a_device(gpu, memory, counters):
    before = len(gpu.copies())
    answer = from_tensor(gpu, dumps(both(memory, 2, 1, counters)), weight_version="step-1", unknown={"a": [1]})
    assert answer.status == 200 and answer.json["success"] is True, answer.body
    # What lies together is one copy, and no byte goes through the host.
    assert gpu.copies()[before:] == ["cuda:0 cuda:0 80"]
    assert counters.values() == [0, 0]  # the trainer's memory is its own again
    assert gpu.value() == (3, "step-1")
    for path in ("get_weight_version", "weight_version"):
        assert gpu.trainer(path, method="GET").json == {"weight_version": "step-1"}
    assert gpu.trainer("model_info", method="GET").json["weight_version"] == "step-1"
    memory.put([9] * 32)  # the set does not depend on it any more
    assert gpu.value() == (3, "step-1")


@pytest.mark.parametrize("form", ["direct", "sglang", "uuid", "plain_handle", "serialized", "parameter"])
def test_sglang_forms(gpu, memory, counters, form):
    more = {"sglang": {"rebuild": pickles.REBUILD_SGLANG, "device": pickles.UUIDS[0]},
            "uuid": {"device": pickles.UUIDS[0]}, "plain_handle": {"prefix": b""}}.get(form, {})
    named = both(memory, 5, 0.25, counters, **more)
    if form == "serialized":
        named = [(n, pickles.LocalSerializedTensor([base64.b64decode(dumps(t))])) for n, t in named]
    if form == "parameter":
        named = [(n, pickles.Reduced(pickles.PARAMETER, (t, True, None))) for n, t in named]
    answer = from_tensor(gpu, dumps(named), "direct" if form == "direct" else None)
    assert answer.status == 200, answer.body
    assert gpu.value()[0] == 5.25 and counters.values() == [0, 0]


def test_sglang_strided(gpu, memory, counters):
    memory.put([4, 1] * 4)
    named = [("scale.w", CudaTensor(memory, (4,), strides=(2,), counters=counters)),
             ("scale.b", CudaTensor(memory, (4,), strides=(2,), offset=1, counters=counters))]
    assert from_tensor(gpu, dumps(named)).status == 200
    assert gpu.value()[0] == 5


@pytest.mark.parametrize("as_bytes", [False, True])
def test_sglang_flat_bucket(gpu, memory, counters, as_bytes):
    memory.put([7] * 4, 256)
    memory.put([0.5] * 4, 272)
    item, dtype = (4, "uint8") if as_bytes else (1, "float32")
    flat = CudaTensor(memory, (8 * item,), dtype, start=256, size=32, counters=counters)
    parts = [(name, (4,), "float32", 4 * item) for name in NAMES]
    before = len(gpu.copies())
    answer = from_tensor(gpu, dumps(bucket(flat, parts)), "flattened_bucket", weight_version="b")
    assert answer.status == 200, answer.body
    # These are too small to lie in the set as in the bucket.
    assert gpu.copies()[before:] == ["cuda:0 cuda:0 16"] * 2
    assert gpu.value() == (7.5, "b") and counters.values() == [0]


def test_a_flat_bucket_is_one_copy(gpu, memory):
    memory.put([3] * 4)
    memory.put([1] * 4, 64)
    flat = CudaTensor(memory, (128,), "uint8")
    value = {"flattened_tensor": flat, "metadata": [
        pickles.FlattenedTensorMetadata(name, pickles.Size((4,)), pickles.DTYPES["float32"], at, at + 16, 4)
        for name, at in zip(NAMES, (0, 64))]}
    before = len(gpu.copies())
    assert from_tensor(gpu, dumps(value), "flattened_bucket").status == 200
    assert gpu.copies()[before:] == ["cuda:0 cuda:0 80"]
    assert gpu.value()[0] == 4


def test_the_trainers_work_is_waited_for(gpu, memory):
    happened = pathlib.Path(f"/dev/shm/sconce-event-{os.getpid()}")
    event = str(happened).encode()
    answers = []
    named = both(memory, 1, 1, event=event.ljust(64, b"\0"))
    with threads(lambda: answers.append(from_tensor(gpu, dumps(named)))):
        time.sleep(0.3)
        assert not answers
        memory.put([6] * 4)  # the trainer's stream gets there
        happened.touch()
    happened.unlink()
    assert answers[0].status == 200 and gpu.value()[0] == 7


def test_memory_of_another_gpu(gpu, memory):
    before = len(gpu.copies())
    assert from_tensor(gpu, dumps(both(memory, 8, 1, device=pickles.UUIDS[1]))).status == 200
    assert gpu.copies()[before:] == ["cuda:1 cuda:0 80"]
    assert gpu.value()[0] == 9


def test_pause_and_continue_publish_together(gpu, memory, counters):
    start, _ = gpu.value()
    named = both(memory, 10, 20, counters)
    paused = gpu.trainer("pause_generation", {"mode": "in_place"})
    assert paused.status == 200 and "nothing is paused" in paused.json["message"]
    assert from_tensor(gpu, dumps(named[:1]), weight_version="a").status == 200
    assert gpu.value()[0] == start
    assert from_tensor(gpu, dumps(named[1:]), weight_version="z").status == 200
    assert gpu.value()[0] == start and counters.values() == [0, 0]
    assert gpu.trainer("flush_cache", method="GET").status == 200
    assert gpu.trainer("flush_cache").json["success"] is True
    done = gpu.trainer("continue_generation", {})
    assert done.status == 200 and "generation" in done.json["message"]
    assert gpu.value() == (30, "z")
    again = gpu.trainer("continue_generation")
    assert again.status == 200 and "nothing" in again.json["message"]
    assert gpu.value() == (30, "z")


def test_a_part_that_fails_spoils_the_whole(gpu, memory):
    start = gpu.value()
    named = both(memory, 10, 20)
    gpu.trainer("pause_generation")
    assert from_tensor(gpu, dumps(named[:1])).status == 200
    refused(from_tensor(gpu, dumps([("scale.x", named[0][1])])), "no constant 'scale.x'")
    refused(from_tensor(gpu, dumps(named[1:])), "is over: the model has no constant 'scale.x'")
    refused(gpu.trainer("continue_generation"), "is over")
    assert gpu.value() == start
    assert from_tensor(gpu, dumps(both(memory, 1, 2))).status == 200  # and then all is well
    assert gpu.value()[0] == 3


def test_partial_and_full(gpu, memory):
    assert from_tensor(gpu, dumps(both(memory, 1, 2))).status == 200
    named = both(memory, 5, 9)
    assert from_tensor(gpu, dumps(named[:1])).status == 200
    assert gpu.value()[0] == 7
    refused(from_tensor(gpu, dumps(named[:1]), query="mode=full"), "must name constant 'scale.b'")
    refused(from_tensor(gpu, dumps(named[:1]), query="mode=half"), "mode must be")
    refused(from_tensor(gpu, dumps(named[:1]), query="what=1"), "unknown parameter")
    extra = [*named, ("scale.x", named[0][1])]
    assert from_tensor(gpu, dumps(extra), query="ignore=scale.x").status == 200
    assert gpu.value()[0] == 14


def test_update_weight_version(gpu):
    value, _ = gpu.value()
    generation = gpu.sets("m")["active"]["generation"]
    answer = gpu.trainer("update_weight_version", {"new_version": "renamed", "abort_all_requests": False})
    assert answer.status == 200 and answer.json["new_version"] == "renamed" and answer.json["success"] is True
    assert gpu.value() == (value, "renamed")
    assert gpu.sets("m")["active"]["generation"] == generation + 1
    assert gpu.trainer("weight_info", method="GET").json == {"weight_version": "renamed"}
    for wrong in ({}, {"new_version": ""}, {"new_version": 1}, {"new_version": "a\nb"}, {"new_version": "x" * 300}):
        assert gpu.trainer("update_weight_version", wrong).status == 400, wrong
    assert gpu.value() == (value, "renamed")


def test_what_needs_nccl_is_refused(gpu):
    for path in ("init_weights_update_group", "destroy_weights_update_group", "update_weights_from_distributed"):
        answer = refused(gpu.trainer(path, {"names": []}), "NCCL")
        assert answer.json["success"] is False and answer.json["message"] == answer.json["error"]
    refused(gpu.trainer("init_weight_transfer_engine", {"init_info": {"master_address": "x", "master_port": 1}}), "NCCL",
            501)


# Memory that cannot be had.

def test_bad_memory(gpu, memory, counters):
    start = gpu.value()

    def bad(text, pickle=None, load_format=None, **more):
        value = dumps(both(memory, 1, 1, counters, **more)) if pickle is None else pickle
        answer = refused(from_tensor(gpu, value, load_format), text)
        assert answer.json["success"] is False

    class Gone:
        handle, map = base64.b64encode(b"/gone".ljust(64, b"\0")).decode(), bytes(64)

    bad("failed to open CUDA IPC handle", dumps([("scale.w", CudaTensor(Gone, (4,), counters=counters))]))
    bad("tensor 'scale.w'", dumps([("scale.w", CudaTensor(Gone, (4,), counters=counters))]))
    bad("expandable_segments", prefix=b"\x02e")
    bad("must have 64 bytes", prefix=b"\x02x")
    bad("no GPU of UUID 'nowhere'", device="nowhere")
    bad("beyond the", start=4080)
    bad("beyond the", size=1 << 40)
    bad("beyond the", dumps([("scale.w", CudaTensor(memory, (1 << 40,), counters=counters))]))
    bad("expected shape [4], got [3]", dumps([("scale.w", CudaTensor(memory, (3,), counters=counters))]))
    bad("expected float32, got bfloat16", dumps([("scale.w", CudaTensor(memory, (4,), "bfloat16", counters=counters))]))
    bad("not aligned", dumps([("scale.w", CudaTensor(memory, (4,), strides=(2,), start=2, counters=counters))]))
    bad("overflow", dumps([("scale.w", CudaTensor(memory, (1 << 62, 1 << 62, 0), counters=counters))]))
    bad("an int of 0 or more", dumps([("scale.w", CudaTensor(memory, (4,), offset=-1, counters=counters))]))
    bad("file_system", dumps([("scale.w", pickles.DescriptorTensor())]))
    bad("cannot be opened", dumps([("scale.w", pickles.FileTensor("/torch_nothing", (4,), "float32", 16))]))
    bad("not the name", dumps([("scale.w", pickles.FileTensor("/other", (4,), "float32", 16))]))
    bad("not the name", dumps([("scale.w", pickles.FileTensor("/torch_/../x", (4,), "float32", 16))]))
    flat = CudaTensor(memory, (8,), counters=counters)
    bad("are not those of its shape", dumps(bucket(flat, [("scale.w", (5,), "float32", 4)])), "flattened_bucket")
    bad("are not those of its shape", dumps(bucket(flat, [("scale.w", (4,), "float32", 4)], start=5)), "flattened_bucket")
    bad("one bucket for each dtype", dumps(bucket(flat, [("scale.w", (8,), "bfloat16", 4)])), "flattened_bucket")
    bad("'flattened_tensor' and 'metadata'", dumps([1]), "flattened_bucket")
    refused(from_tensor(gpu, dumps(both(memory, 1, 1)), "npcache"), "'load_format'")
    bad("expected a list", dumps({"a": 1}))
    bad("expected (name, tensor)", dumps([1]))
    bad("expected a tensor, got a float", dumps([("scale.w", 1.5)]))
    bad("pickle: ", base64.b64encode(b"").decode())
    bad("pickle: ", base64.b64encode(b"\x80\x04K\x01").decode())
    bad("not base64", "*")
    # Whatever was wrong, the trainer gets back what could be read.
    assert counters.values() == [0] * counters.used and counters.used > 15
    assert gpu.value() == start


def test_bad_bodies(gpu):
    for body in ({}, {"serialized_named_tensors": []}, {"serialized_named_tensors": "a"},
                 {"serialized_named_tensors": [1]}, {"serialized_named_tensors": ["", ""]},
                 {"serialized_named_tensors": [""], "load_format": 1},
                 {"serialized_named_tensors": [""], "flush_cache": "yes"}):
        assert gpu.trainer("update_weights_from_tensor", body).status == 400, body
    assert gpu.trainer("update_weights_from_tensor", b"[]").status == 400
    assert gpu.trainer("update_weights_from_tensor", b"{").status == 400
    refused(gpu.trainer("update_weights_from_tensor", {"serialized_named_tensors": ["", ""]}), "one rank")
    assert gpu.trainer("pause_generation", b"[1]").status == 400


def test_routes_are_the_admin_listeners(gpu):
    assert gpu.post("/update_weights_from_tensor", b"{}").status == 404
    assert gpu.get("/get_weight_version").status == 404
    assert gpu.trainer("health", method="GET").status == gpu.trainer("health_generate", method="GET").status == 200


def test_tokens(tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    with TrainerServer(f"m={FAKE_MODELS / 'fake_model.so'}", flags=["--admin-token-file", str(token)]) as server:
        assert server.trainer("pause_generation").status == 401
        assert server.trainer("get_weight_version", method="GET").status == 401
        assert server.trainer("health", method="GET").status == 200
        assert server.trainer("get_weight_version", method="GET",
                              headers={"Authorization": "Bearer 0123456789abcdef"}).status == 200


def test_which_model(tmp_path):
    with TrainerServer(f"a={FAKE_MODELS / 'fake_model.so'}", f"b={FAKE_MODELS / 'fake_model.so'}") as server:
        answer = refused(from_tensor(server, FIXTURES["flat"], "flattened_bucket"), "?model=NAME: a, b")
        assert answer.json["success"] is False
        assert from_tensor(server, FIXTURES["flat"], "flattened_bucket", query="model=b").status == 200
        assert server.value("b")[0] == 6.5 and server.infer("a", ONES).json["outputs"][0]["data"] == [1, 12, 23, 34]
        refused(from_tensor(server, FIXTURES["flat"], "flattened_bucket", query="model=c"), "'c'")


# vLLM.

def test_vllm_update_in_parts(gpu, memory, counters):
    assert gpu.trainer("get_world_size", method="GET", query="include_dp=false").json == {"world_size": 1}
    assert gpu.trainer("init_weight_transfer_engine", {"init_info": {}}).status == 200
    paused = gpu.trainer("pause", query="mode=keep&clear_cache=false")
    assert paused.status == 200 and paused.json["status"] == "not paused"
    assert gpu.trainer("is_paused", method="GET").json == {"is_paused": False}
    start, _ = gpu.value()
    named = both(memory, 30, 12, counters)
    assert gpu.trainer("start_weight_update", {"is_checkpoint_format": True}).status == 200
    for one in named:
        answer = gpu.trainer("update_weights", update_info([one]))
        assert answer.status == 200, answer.body
        assert gpu.value()[0] == start
    done = gpu.trainer("finish_weight_update", {"weight_version": "v7"})
    assert done.status == 200 and done.json["message"] == "Weight update finished"
    assert gpu.trainer("resume").status == 200
    assert gpu.value() == (42, "v7") and counters.values() == [0, 0]
    assert gpu.trainer("weight_info", method="GET").json == {"weight_version": "v7"}


def test_vllm_bucket(gpu, memory, counters):
    memory.put([2.5] * 4)
    memory.put([0.5] * 4, 16)
    packed = CudaTensor(memory, (1024,), "uint8", counters=counters)
    info = {"names": NAMES, "dtype_names": ["float32"] * 2, "shapes": [[4]] * 2, "tensor_sizes": [16, 16],
            "ipc_handles_pickled": dumps({pickles.UUIDS[1]: packed.reduced(), "other": None})}
    gpu.trainer("start_weight_update")
    answer = gpu.trainer("update_weights", {"update_info": info})
    assert answer.status == 200, answer.body
    assert gpu.trainer("finish_weight_update").status == 200
    assert gpu.value()[0] == 3 and counters.values() == [0]
    gpu.trainer("start_weight_update")
    refused(gpu.trainer("update_weights", {"update_info": info | {"tensor_sizes": [16, 12]}}), "tensor_sizes")
    refused(gpu.trainer("update_weights", {"update_info": info | {"tensor_sizes": [16]}}), "as many")


def test_vllm_refusals(gpu, memory):
    start = gpu.value()
    named = both(memory, 1, 2)
    refused(gpu.trainer("update_weights", update_info(named)), "no update of the model was begun")
    refused(gpu.trainer("finish_weight_update"), "no update of the model was begun")
    refused(gpu.trainer("update_weights", {}), "Missing 'update_info'")
    refused(gpu.trainer("init_weight_transfer_engine", {}), "Missing 'init_info'")

    def bad(text, info, status=400):
        assert gpu.trainer("start_weight_update").status == 200
        refused(gpu.trainer("update_weights", info), text, status)
        gpu.trainer("finish_weight_update")

    good = update_info(named)["update_info"]
    bad("no handle for a GPU of this server", update_info(named, handles(named, "elsewhere")))
    bad("'ipc_handles_pickled' must be given", {"update_info": {k: v for k, v in good.items() if "handles" not in k}},
        501)
    bad("'ipc_handles' hold functions", {"update_info": good | {"ipc_handles": [{}]}})
    bad("as many", {"update_info": good | {"names": ["scale.w"]}})
    bad("dtype_names and shapes say", {"update_info": good | {"shapes": [[4], [2, 2]]}})
    bad("dtype_names and shapes say", {"update_info": good | {"dtype_names": ["float32", "float16"]}})
    bad("expected (rebuild_cuda_tensor", update_info(named, dumps([{pickles.UUIDS[0]: (pickles.REBUILD_FD, ())}] * 2)))
    bad("'names'", {"update_info": good | {"names": "scale.w"}})
    assert gpu.value() == start


def test_a_second_update_ends_the_first(gpu, memory):
    named = both(memory, 100, 1)
    gpu.trainer("start_weight_update")
    assert gpu.trainer("update_weights", update_info(named[:1])).status == 200
    gpu.trainer("start_weight_update")
    assert gpu.trainer("update_weights", update_info(named[1:])).status == 200
    value, _ = gpu.value()
    assert gpu.trainer("finish_weight_update").status == 200
    assert gpu.value()[0] != value and gpu.value()[0] < 100  # only the bias of the second
    failed = [o for o in gpu.admin("GET", "/v2/admin/operations").json["operations"] if o["state"] == "failed"]
    assert any("another update of the model was begun" in o["error"] for o in failed)


def test_an_update_that_nobody_finishes_is_dropped(gpu, memory):
    start = gpu.value()
    gpu.trainer("start_weight_update")
    assert gpu.trainer("update_weights", update_info(both(memory, 1, 1)[:1])).status == 200
    # While it lasts, the model is busy for others.
    assert gpu.push("m", fake_weights(3)).status == 409
    until(lambda: not gpu.running())
    refused(gpu.trainer("finish_weight_update"), "trainer_timeout")
    assert gpu.value() == start
    assert gpu.push("m", fake_weights(3), "commit=true").status == 200
    assert gpu.value()[0] == 6


def test_an_update_is_an_operation_that_can_be_cancelled(gpu, memory):
    start = gpu.value()
    gpu.trainer("start_weight_update")
    assert gpu.trainer("update_weights", update_info(both(memory, 1, 1))).status == 200
    running = gpu.running()
    assert len(running) == 1 and running[0]["phase"] == "receiving" and running[0]["bytes"] == 32
    assert gpu.admin("DELETE", f"/v2/admin/operations/{running[0]['operation']}").status == 200
    until(lambda: not gpu.running())
    refused(gpu.trainer("finish_weight_update"), "was cancelled")
    assert gpu.value() == start


# Our own form.

def described(memory, name, offset, **more):
    return {"name": name, "dtype": "float32", "shape": [4], "offset": offset, "handle": memory.handle, "device": 0, **more}


def test_tensors_by_their_handles(gpu, memory):
    both(memory, 11, 0.5)
    before = len(gpu.copies())
    answer = gpu.admin("POST", "m/weights?commit=true&label=own",
                       {"tensors": [described(memory, "scale.w", 0), described(memory, "scale.b", 64, strides=[1],
                                                                               device=pickles.UUIDS[0])]})
    assert answer.status == 200 and answer.json["bytes"] == 32, answer.body
    assert gpu.copies()[before:] in (["cuda:0 cuda:0 80"], ["cuda:0 cuda:0 16"] * 2)
    assert gpu.value() == (11.5, "own")

    def bad(text, tensors, status=400, query="", **more):
        refused(gpu.admin("POST", f"m/weights?{query}", {"tensors": tensors, **more}), text, status)

    w, b = described(memory, "scale.w", 0), described(memory, "scale.b", 64)
    bad("must name constant 'scale.b'", [w])
    bad("given twice", [w, b, w])
    bad("'handle' must be base64 of 64 bytes", [w | {"handle": "AAAA"}])
    bad("'event' must be base64 of 64 bytes", [w | {"event": "AAAA"}])
    bad("must have 'name'", [{k: v for k, v in w.items() if k != "device"}])
    bad("unknown dtype", [w | {"dtype": "float"}])
    bad("unknown member", [w | {"size": 1}])
    bad("beyond the", [w | {"offset": 4092}])
    bad("beyond the", [w | {"offset": 2**62}])
    bad("beyond the", [w | {"shape": [2**40]}])
    bad("failed to open", [w | {"handle": base64.b64encode(bytes(64)).decode()}])
    bad("no GPU of UUID", [w | {"device": "x"}])
    bad("go without 'file'", [w, b], file="x")
    memory.put([float("nan")], 64)
    bad("is not finite", [w, b], query="check_finite=true")
    assert gpu.value() == (11.5, "own")


# Tensors of the CPU, as PyTorch itself pickled them.

@pytest.mark.parametrize("form", ["protocol_2", "protocol_3", "protocol_4", "protocol_5", "parameters", "strided", "shared",
                                  "flat", "flat_bytes"])
def test_torchs_own_pickles(cpu, form):
    cpu.push("m", fake_weights(1), "commit=true")
    answer = from_tensor(cpu, FIXTURES[form], "flattened_bucket" if form.startswith("flat") else None)
    assert answer.status == 200, answer.body
    assert cpu.value()[0] == 6.5


@pytest.mark.parametrize("form,text", [("wrong_dtype", "expected float32, got bfloat16"),
                                       ("float8", "expected float32, got float8_e4m3fn"),
                                       ("unknown_name", "no constant 'scale.x'"),
                                       ("not_a_tensor", "expected a tensor, got a list of 2"),
                                       ("sparse", "expected a tensor, got a call of")])
def test_torchs_own_pickles_that_do_not_fit(cpu, form, text):
    before = cpu.infer("m", ONES).json
    refused(from_tensor(cpu, FIXTURES[form]), text)
    assert cpu.infer("m", ONES).json["outputs"] == before["outputs"]


def test_tensors_in_pytorchs_shared_memory(cpu):
    objects = []
    for value, references in ((3, 1), (4, 2)):
        path = pathlib.Path(f"/dev/shm/torch_{os.getpid()}_{value}_0")
        path.write_bytes(struct.pack("<i", references).ljust(64, b"\0") + struct.pack("<f", value) * 4)
        objects.append(path)
    named = [(n, pickles.FileTensor("/" + p.name, (4,), "float32", 16)) for n, p in zip(NAMES, objects)]
    assert from_tensor(cpu, dumps(named)).status == 200
    assert cpu.value()[0] == 7
    # The reference that PyTorch sent along is dropped; the last one removes the object.
    assert not objects[0].exists()
    assert struct.unpack("<i", objects[1].read_bytes()[:4]) == (1,)
    objects[1].write_bytes(objects[1].read_bytes()[:70])
    refused(from_tensor(cpu, dumps(named[1:])), "has 70 bytes")
    objects[1].unlink()


def test_memory_of_a_gpu_for_a_model_on_the_cpu(cpu, memory, counters):
    assert from_tensor(cpu, dumps(both(memory, 2, 0.125, counters))).status == 200
    assert cpu.value()[0] == 2.125 and counters.values() == [0, 0]


# Files.

def from_disk(server, path, query="", **more):
    return server.trainer("update_weights_from_disk",
                          {"model_path": str(path), "flush_cache": True, "abort_all_requests": False, **more}, query=query)


def shards(folder, **tensors):
    """A folder with a shard for each tensor, as Hugging Face writes it."""
    folder.mkdir()
    names = {}
    for i, (name, value) in enumerate(tensors.items()):
        shard = f"model-{i + 1:05}-of-{len(tensors):05}.safetensors"
        (folder / shard).write_bytes(safetensors({f"scale.{name}": repeated(value, 4)}))
        names[f"scale.{name}"] = shard
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 32}, "weight_map": names}))
    return names


def test_from_disk(cpu):
    folder = cpu.folder
    (folder / "one.safetensors").write_bytes(fake_weights(21))
    answer = from_disk(cpu, "one.safetensors", weight_version="d1", load_format="auto")
    assert answer.status == 200 and answer.json["success"] is True and answer.json["num_paused_requests"] == 0
    assert cpu.value() == (42, "d1")
    (folder / "step-2").mkdir()
    (folder / "step-2" / "model.safetensors").write_bytes(fake_weights(5))
    assert from_disk(cpu, "step-2").status == 200
    assert cpu.value()[0] == 10
    shards(folder / "step-3", w=1, b=2)
    for path in ("step-3", "step-3/", folder / "step-3", f"{folder}/step-3/"):
        assert from_disk(cpu, path, load_format="safetensors", weight_version="s").status == 200, path
        assert cpu.value() == (3, "s")


def test_a_folder_counts_whole_or_not_at_all(cpu):
    folder = cpu.folder
    assert cpu.push("m", fake_weights(1), "commit=true&label=before").status == 200
    names = shards(folder / "broken", w=8, b=9)

    def bad(text, path="broken", status=400, **more):
        answer = refused(from_disk(cpu, path, **more), text, status)
        assert answer.json["success"] is False and str(os.path.realpath(folder)) not in answer.json["error"]
        assert cpu.value() == (2, "before")

    index = folder / "broken" / "model.safetensors.index.json"
    (folder / "broken" / names["scale.b"]).unlink()
    bad("no such file")
    (folder / "broken" / names["scale.b"]).write_bytes(safetensors({"scale.x": repeated(8, 4)}))
    bad("does not have")
    (folder / "broken" / names["scale.b"]).write_bytes(safetensors({"scale.b": repeated(8, 4), "scale.w": repeated(1, 4)}))
    bad("two files have")
    (folder / "broken" / names["scale.b"]).write_bytes(safetensors({"scale.b": repeated(8, 3)}))
    bad("expected shape [4], got [3]")
    index.write_text(json.dumps({"weight_map": {"scale.w": names["scale.w"]}}))
    bad("must name constant 'scale.b'")
    assert from_disk(cpu, "broken", query="mode=partial").status == 200
    assert cpu.value()[0] == 9
    assert cpu.push("m", fake_weights(1), "commit=true&label=before").status == 200
    for text in ("{", "[]", '{"weight_map": []}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": "../x.safetensors"}}',
                 "{}", '{"weight_map": {"a": "b.bin"}}'):
        index.write_text(text)
        bad("index.json")
    (folder / "empty").mkdir(exist_ok=True)
    bad("no model.safetensors", "empty")
    bad("no model.safetensors", "nothing")
    bad("not below weights_dir", "../x", 403)
    bad("not below weights_dir", "/etc", 403)
    bad("'load_format'", "empty", load_format="pt")
    bad("'model_path'", "")


def test_from_disk_needs_a_folder(gpu):
    refused(from_disk(gpu, "x"), "weights_dir is not set", 403)


def test_pushes_while_clients_ask(gpu):
    """No request fails or mixes two updates while a trainer pushes in parts."""
    stop, seen, problems = threading.Event(), set(), []

    def ask():
        while not stop.is_set():
            try:
                seen.add(gpu.value())
            except AssertionError as problem:
                problems.append(problem)

    with DeviceMemory(4096) as memory, threads(ask, ask, ask, stop=stop):
        for i in range(20):
            named = both(memory, i, 1000 * i)
            gpu.trainer("start_weight_update")
            for one in named:
                assert gpu.trainer("update_weights", update_info([one])).status == 200
            assert gpu.trainer("finish_weight_update", {"weight_version": f"u{i}"}).status == 200
    assert not problems
    assert all(value == 1001 * int(version[1:]) for value, version in seen if version.startswith("u")), seen
