"""Weights that trainers push from their memory: SGLang's and vLLM's routes, and our own for memory of devices.

Devices are those that fake_cuda.cpp makes up. Its log shows which copies were made: none through the host.
"""
import base64
import os
import pathlib
import threading
import time

import pytest
import trainer_pickles as pickles
from serving import FAKE_MODELS, threads, until
from test_device_memory import DeviceMemory
from trainer_pickles import CudaTensor, bucket, dumps
from trainer_server import (FIXTURES, NAMES, ONES, TrainerServer, both, counters, from_tensor, gpu, handles,  # noqa: F401
                            memory, refused, shared_gpu, update_info)
from weights_files import fake_weights


# SGLang.

def test_sglang_tensors_of_a_device(gpu, memory, counters):
    before = len(gpu.copies())
    answer = from_tensor(gpu, dumps(both(memory, 2, 1, counters)), weight_version="step-1", unknown={"a": [1]})
    assert answer.status == 200 and answer.json["success"] is True, answer.body
    # Adjacent tensors are one copy, and no byte goes through the host.
    assert gpu.copies()[before:] == ["cuda:0 cuda:0 80"]
    assert counters.values() == [0, 0]  # the server released the trainer's memory
    assert gpu.value() == (3, "step-1")
    for path in ("get_weight_version", "weight_version"):
        assert gpu.trainer(path, method="GET").json == {"weight_version": "step-1"}
    assert gpu.trainer("model_info", method="GET").json["weight_version"] == "step-1"
    memory.put([9] * 32)  # the set must not depend on this memory any more
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
    # The set aligns such small tensors, so their distance differs and each is a copy of its own.
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
    _, before = gpu.value()
    named = both(memory, 1, 1, event=event.ljust(64, b"\0"))
    with threads(lambda: answers.append(from_tensor(gpu, dumps(named)))):
        until(lambda: memory.name in pathlib.Path(f"/proc/{gpu.process.pid}/maps").read_text())
        assert [gpu.value()[1] for _ in range(20)] == [before] * 20  # answered while the push waits
        assert not answers
        memory.put([6] * 4)  # the trainer writes before its event happens
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
    assert done.status == 200 and "published weight version " in done.json["message"]
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
    assert from_tensor(gpu, dumps(both(memory, 1, 2))).status == 200  # the next update succeeds
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
    weight_version = gpu.sets("m")["active"]["weight_version"]
    answer = gpu.trainer("update_weight_version", {"new_version": "renamed", "abort_all_requests": False})
    assert answer.status == 200 and answer.json["new_version"] == "renamed" and answer.json["success"] is True
    assert gpu.value() == (value, "renamed")
    assert gpu.sets("m")["active"]["weight_version"] == weight_version + 1
    assert gpu.trainer("weight_info", method="GET").json == {"weight_version": "renamed"}
    for wrong in ({}, {"new_version": ""}, {"new_version": 1}, {"new_version": "a\nb"}, {"new_version": "x" * 300}):
        assert gpu.trainer("update_weight_version", wrong).status == 400, wrong
    assert gpu.value() == (value, "renamed")


def test_what_needs_nccl_is_refused(gpu):
    for path in ("init_weights_update_group", "destroy_weights_update_group", "update_weights_from_distributed",
                 "update_weights_from_ipc"):
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
    # The server released every handle that it could read, whatever the error.
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


def test_vllm_handles_without_their_function(gpu, memory, counters):
    """As vLLM 0.23 sends them: the arguments of rebuild_cuda_tensor alone."""
    named = both(memory, 20, 2, counters)
    bare = dumps([{pickles.UUIDS[0]: tensor.reduced()[1]} for _, tensor in named])
    assert gpu.trainer("start_weight_update").status == 200
    answer = gpu.trainer("update_weights", update_info(named, bare))
    assert answer.status == 200, answer.body
    assert gpu.trainer("finish_weight_update").status == 200
    assert gpu.value()[0] == 22 and counters.values() == [0, 0]
    few = dumps([{pickles.UUIDS[0]: tensor.reduced()[1][:14]} for _, tensor in named])
    gpu.trainer("start_weight_update")
    refused(gpu.trainer("update_weights", update_info(named, few)), "or its arguments, got a tuple of 14")


def test_vllm_update_info_for_each_worker(gpu, memory, counters):
    named = both(memory, 7, 1, counters)
    info = update_info(named)["update_info"]
    refused(gpu.trainer("update_weights", {"update_info": [None]}), "no update of the model was begun")
    assert gpu.trainer("start_weight_update").status == 200
    assert gpu.trainer("update_weights", {"update_info": [None]}).status == 200
    assert gpu.trainer("update_weights", {"update_info": [info]}).status == 200
    assert gpu.trainer("finish_weight_update").status == 200
    assert gpu.value()[0] == 8 and counters.values() == [0, 0]
    gpu.trainer("start_weight_update")
    refused(gpu.trainer("update_weights", {"update_info": [None, info]}), "this server is one worker; got several")
    refused(gpu.trainer("update_weights", {"update_info": []}), "Missing 'update_info'")


def test_vllm_shutdown_drops_what_was_begun(gpu, memory):
    start = gpu.value()
    assert gpu.trainer("shutdown_weight_transfer_engine").status == 200  # there is nothing to drop
    assert gpu.trainer("start_weight_update").status == 200
    assert gpu.trainer("update_weights", update_info(both(memory, 50, 5))).status == 200
    assert gpu.trainer("shutdown_weight_transfer_engine", {}).json == {"message": "Weight transfer engine shut down"}
    refused(gpu.trainer("finish_weight_update"), "no update of the model was begun")
    assert gpu.value() == start
    answer = gpu.push("m", fake_weights(2), "dry_run=true")  # the model is free again
    assert answer.status == 200, answer.body


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
    assert gpu.value()[0] != value and gpu.value()[0] < 100  # only the bias comes from the second update
    failed = [o for o in gpu.admin("GET", "/v2/admin/operations").json["operations"] if o["state"] == "failed"]
    assert any("another update of the model was begun" in o["error"] for o in failed)


def test_an_update_that_nobody_finishes_is_dropped(gpu, memory):
    start = gpu.value()
    gpu.trainer("start_weight_update")
    assert gpu.trainer("update_weights", update_info(both(memory, 1, 1)[:1])).status == 200
    # While the update is open, the model is busy for others.
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


def test_from_disk_needs_a_folder(gpu):
    refused(gpu.trainer("update_weights_from_disk", {"model_path": "x"}), "weights_dir is not set", 403)


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


def test_an_open_update_holds_up_neither_unloading_nor_the_end():
    with TrainerServer(f"m={FAKE_MODELS / 'fake_model.so'}") as server:
        load = server.admin("POST", "/v2/repository/models/m/load", b"")
        assert load.status in (200, 400)  # the model is not from a repository, so the load may be refused
        assert server.trainer("pause_generation").status == 200
        assert from_tensor(server, FIXTURES["flat"], "flattened_bucket").status == 200
        assert len(server.running()) == 1
        assert server.admin("POST", "/v2/repository/models/m/unload", b"").status == 200
        until(lambda: not server.running())
        assert server.trainer("continue_generation").status in (400, 503)
    with TrainerServer(f"m={FAKE_MODELS / 'fake_model.so'}") as server:
        assert server.trainer("start_weight_update").status == 200
        begin = time.time()
        assert server.stop() == 0
        assert time.time() - begin < 10
