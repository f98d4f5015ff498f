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
