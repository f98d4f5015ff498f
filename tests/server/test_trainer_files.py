"""Weights that trainers push from the host: pickles of PyTorch's own, files and folders."""
import json
import os
import pathlib
import struct

import pytest
import trainer_pickles as pickles
from trainer_pickles import dumps
from trainer_server import (FIXTURES, NAMES, ONES, both, counters, cpu, from_tensor, memory, refused,  # noqa: F401
                            shared_cpu)
from weights_files import fake_weights, repeated, safetensors


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
    # The server drops the reference that PyTorch sent. The object goes with its last reference.
    assert not objects[0].exists()
    assert struct.unpack("<i", objects[1].read_bytes()[:4]) == (1,)
    objects[1].write_bytes(objects[1].read_bytes()[:70])
    refused(from_tensor(cpu, dumps(named[1:])), "has 70 bytes")
    assert not objects[1].exists()


def torch_object(name, values, references=1):
    path = pathlib.Path(f"/dev/shm/torch_{os.getpid()}_{name}_0")
    path.write_bytes(struct.pack("<i", references).ljust(64, b"\0") + struct.pack(f"<{len(values)}f", *values))
    return path


def test_tensors_of_one_storage_have_one_reference(cpu):
    path = torch_object("shared", [5] * 4 + [2] * 4, references=2)
    first = pickles.FileTensor("/" + path.name, (4,), "float32", 32)
    assert from_tensor(cpu, dumps([(NAMES[0], first), (NAMES[1], first.beside((4,), 4))])).status == 200
    assert cpu.value()[0] == 7
    assert struct.unpack("<i", path.read_bytes()[:4]) == (1,)
    path.unlink()


@pytest.mark.parametrize("wrong", ["tensor", "name", "bytes"])
def test_a_refused_push_gives_references_back(cpu, wrong):
    """Whether it is refused while pickles are read, before objects are opened, or by the model."""
    assert cpu.push("m", fake_weights(1), "commit=true").status == 200
    good, bad = torch_object("good", [1] * 4), torch_object("bad", [1] * 4)
    named = [(NAMES[0], pickles.FileTensor("/" + good.name, (4,), "float32", 16)),
             (NAMES[1] if wrong != "name" else "nothing",
              pickles.FileTensor("/" + bad.name, (4,) if wrong != "tensor" else (400,), "float32",
                                 16 if wrong != "bytes" else 1 << 39))]
    before = cpu.value()
    assert from_tensor(cpu, dumps(named)).status == 400
    assert cpu.value() == before
    assert not good.exists() and not bad.exists()


# What was served can be looked at.

def test_sglang_reads_weights_by_name(cpu):
    assert cpu.push("m", fake_weights(3), "commit=true").status == 200
    for answer in (cpu.trainer("get_weights_by_name", {"name": "scale.w", "truncate_size": 2}),
                   cpu.trainer("get_weights_by_name", {"name": "scale.w", "truncate_size": 2}, method="GET"),
                   cpu.trainer("get_weights_by_name", method="GET", query="name=scale.w&truncate_size=2")):
        assert answer.status == 200 and len(answer.json) == 2, answer.body
    assert len(cpu.trainer("get_weights_by_name", {"name": "scale.w"}).json) == 4
    refused(cpu.trainer("get_weights_by_name", {"name": "scale.x"}), "no weight 'scale.x'")
    refused(cpu.trainer("get_weights_by_name", {}), "'name' must be given")


def test_sglang_checks_weights(cpu):
    def check(method="POST", **body):
        return cpu.trainer("weights_checker", body or None, method=method)

    answer = check(action="compare")
    assert answer.status != 200 and "no snapshot" in answer.json["message"]
    assert cpu.push("m", fake_weights(3), "commit=true").status == 200
    one = check().json
    assert one["success"] is True and set(one["ranks"][0]["checksums"]) == set(NAMES), one
    assert check(method="GET").json == one
    assert check(action="snapshot").status == check(action="compare").status == 200
    assert cpu.push("m", fake_weights(4), "commit=true").status == 200
    other = check().json
    assert other["per_engine_checksum"] != one["per_engine_checksum"]
    answer = check(action="compare")
    assert answer.status != 200 and answer.json["success"] is False and "scale." in answer.json["message"]
    assert cpu.push("m", fake_weights(3), "commit=true").status == 200
    assert check().json == one and check(action="compare").status == 200
    refused(check(action="reset_tensors"), "not overwritten")
    refused(check(action="other"), "'action' must be")
    refused(check(method="GET", action="snapshot"), "a GET")


def test_sglang_begins_and_ends_an_update(cpu):
    begun = cpu.trainer("begin_weight_update", {"selector": "all", "weight_version": "11"})
    assert begun.status == 200, begun.body
    before = cpu.value()
    path = torch_object("first", [5] * 4)
    assert from_tensor(cpu, dumps([(NAMES[0], pickles.FileTensor("/" + path.name, (4,), "float32", 16))])).status == 200
    assert cpu.value() == before
    path = torch_object("second", [2] * 4)
    assert from_tensor(cpu, dumps([(NAMES[1], pickles.FileTensor("/" + path.name, (4,), "float32", 16))])).status == 200
    assert cpu.trainer("end_weight_update", {}).status == 200
    assert cpu.value() == (7, "11")
    assert cpu.trainer("end_weight_update", {}).status != 200
    refused(cpu.trainer("begin_weight_update", {"selector": "draft"}), "no draft model")


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


def test_vllm_checks_weights(cpu):
    check = lambda **body: cpu.trainer("weight_checker", body)
    assert cpu.push("m", fake_weights(3), "commit=true").status == 200
    sums = check(action="checksum").json["checksums"]
    assert set(sums) == set(NAMES) and all(len(each) == 64 for each in sums.values())
    assert check(action="compare", baseline=sums).json == {"match": True, "mismatches": []}
    assert check(action="compare", baseline={**sums, "scale.b": "0", "other": "1"}).json == {
        "match": False, "mismatches": ["other", "scale.b"]}
    refused(check(action="compare"), "needs 'baseline'")
    refused(check(action="reset"), "not overwritten", 501)
    refused(check(action="other"), "'action' must be")


def test_vllm_aborts_nothing_and_has_no_draft(cpu):
    assert cpu.trainer("abort_requests", {}).json["aborted"] == 0
    refused(cpu.trainer("start_draft_weight_update"), "no draft model")
