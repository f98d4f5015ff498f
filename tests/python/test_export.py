"""sconce.export and sconce.compare, in each Python with torch that SCONCE_TORCH_PYTHON names (several are separated by ":"),
else in this one if it has torch. export_cases.py makes the models; Sconce runs what comes out."""
import functools
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

import pure

from serving import PROGRAM

FOLDER = pathlib.Path(__file__).resolve().parent
PYTHONS = [p for p in os.environ.get("SCONCE_TORCH_PYTHON", "").split(":") if p] or \
    ([sys.executable] if importlib.util.find_spec("torch") else [])
pytestmark = [
    pytest.mark.skipif(not PYTHONS, reason="no torch in this Python, and SCONCE_TORCH_PYTHON names none"),
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"the program is not built: {PROGRAM} (./dev build)")]
ENVIRONMENT = {**os.environ, "SCONCE_PROGRAM": str(PROGRAM), "PYTHONPATH": str(pure.ROOT / "python")}


@pytest.fixture(scope="module", params=PYTHONS or ["none"], ids=lambda p: pathlib.Path(p).parts[-3] if p.count("/") > 2 else p)
def torch_python(request, tmp_path_factory):
    return request.param, tmp_path_factory.mktemp("packages")


@functools.cache
def version(python):
    told = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=True)
    return tuple(int(n) for n in told.stdout.split(".")[:2])


@functools.cache
def made(python, folder, *cases):
    """case -> what export_cases.py says of it. One process for all, because importing torch takes seconds."""
    done = subprocess.run([python, FOLDER / "export_cases.py", folder, *cases], capture_output=True, text=True, env=ENVIRONMENT,
                          timeout=900)
    found = {line["case"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert set(found) == set(cases), done.stderr[-3000:]
    for one in found.values():
        assert "failed" not in one, one["failed"]
    return found


def one(torch_python, name):
    return made(*torch_python, name)[name]


def program(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sources(path):
    with zipfile.ZipFile(path) as archive:
        return "\n".join(archive.read(n).decode() for n in archive.namelist() if n.endswith(".cpp"))


def test_a_dynamic_batch(torch_python):
    found = one(torch_python, "batch")
    assert found["checked"] and found["calls"] == ["model model, batch of 1", "model model, batch of 2"]
    assert set(found["outputs"]) == {"RESULT[y]", "RESULT[pair][0]", "RESULT[pair][1]"}
    # Every name of state_dict() can be updated, small ones too, unless the graph has no use for it.
    missing = set(found["state"]) - set(found["constants"]["model"])
    assert missing == set(found["unused"]["model"]) <= {"unused", "norm.num_batches_tracked"}
    assert not found["inlined"]["model"] and found["training"]
    listed = json.loads(program("inspect", "--json", found["path"]))["models"][0]
    assert {c["fqn"] for c in listed["constants"]} >= {"scale", "linear.bias", "norm.weight"}
    assert listed["march"] == "x86-64-v3"


def test_the_code_is_for_the_stated_cpu(torch_python):
    path = one(torch_python, "batch")["path"]
    text = sources(path)
    assert set(re.findall(r"-march=(\S+)", text)) == {"x86-64-v3"} and "CPU_CAPABILITY_AVX2" in text
    assert "CPU_CAPABILITY_AVX512" not in text and "-g1" not in text


def test_no_path_of_this_machine(torch_python):
    path = one(torch_python, "batch")["path"]
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            for place in (str(FOLDER), os.path.expanduser("~") + "/", sys.prefix + "/", "/tmp/", "site-packages/torch/include/"):
                found = content.find(place.encode())
                assert found < 0, (name, content[max(found - 60, 0):found + 100])


def test_the_same_model_gives_the_same_bytes(torch_python):
    if version(torch_python[0]) < (2, 8):
        pytest.skip("before 2.8 torch records the time in archives, and 2.6 writes sets in an order of chance")
    one(torch_python, "batch")
    assert one(torch_python, "again")["same"]


def recorded(path):
    """name of a model -> its metadata in the package."""
    with zipfile.ZipFile(path) as archive:
        return {name.split("/")[-2]: json.loads(archive.read(name)) for name in archive.namelist() if name.endswith("_metadata.json")}


def test_the_package_records_whether_rows_are_independent(torch_python):
    found = one(torch_python, "batch")
    assert found["rows"]["model"] == {"version": 1, "independent": True}
    assert "rows are independent: requests may share runs" in found["text"]
    assert json.loads(recorded(found["path"])["model"]["sconce_rows"]) == found["rows"]["model"]


def test_the_package_records_why_rows_are_not_independent(torch_python):
    found = one(torch_python, "joined")
    written = recorded(found["path"])
    assert all(json.loads(written[name]["sconce_rows"]) == found["rows"][name] and written[name]["who"] == "me" for name in written)
    assert found["rows"]["alone"]["independent"] and not found["rows"]["meets"]["independent"]
    assert found["rows"]["meets"]["operator"] == "aten.mean.dim"
    # Torch 2.6 to 2.8 records lines of forward() only.
    line = "in forward: .+" if re.search(r"\btorch 2\.[678]\.", found["text"]) else r"in centred: return x - x\.mean\(0\)"
    assert re.search(rf"rows are not independent: aten\.mean\.dim at export_cases\.py:\d+ {line}: joins all rows", found["text"])


def test_a_package_without_a_batch_records_no_proof(torch_python):
    found = one(torch_python, "native")
    assert found["rows"] == {"model": None} and "sconce_rows" not in recorded(found["path"])["model"]


def test_avx512(torch_python):
    if "avx512vl" not in pathlib.Path("/proc/cpuinfo").read_text():
        pytest.skip("this machine has no AVX-512, without which torch makes none")
    text = sources(one(torch_python, "avx512")["path"])
    assert set(re.findall(r"-march=(\S+)", text)) == {"x86-64-v4"} and "CPU_CAPABILITY_AVX512" in text
    assert "amx" not in text.partition("// Compile cmd")[2]


def test_a_cpu_by_its_name(torch_python):
    text = sources(one(torch_python, "haswell")["path"])
    assert set(re.findall(r"-march=(\S+)", text)) == {"haswell"} and "CPU_CAPABILITY_AVX2" in text


def test_without_updates(torch_python):
    found = one(torch_python, "native")
    assert "linear.weight" not in found["constants"]["model"] and "linear.weight" in found["inlined"]["model"]
    assert found["checked"] and set(re.findall(r"-march=(\S+)", sources(found["path"]))) == {"native"}


def test_weights_beside_the_code(torch_python):
    if version(torch_python[0]) < (2, 10):
        with pytest.raises(AssertionError, match="needs torch 2.10"):
            one(torch_python, "beside")
        return
    found = one(torch_python, "beside")
    with zipfile.ZipFile(found["path"]) as archive:
        assert any(name.endswith(".blob") for name in archive.namelist())
    assert found["checked"] and "linear.weight" in found["constants"]["model"]


def test_weights_that_come_later(torch_python):
    found = one(torch_python, "none")
    assert "linear.weight" in found["constants"]["model"]


def test_bfloat16(torch_python):
    found = one(torch_python, "bfloat16")
    assert found["dtype"] == "torch.float32" and "bfloat16" in found["text"]  # the caller's model is as before
    assert found["calls"] == ["model model, batch of 3", "model model, batch of 1"]


def test_several_models_and_containers(torch_python):
    found = one(torch_python, "several")
    assert set(found["constants"]) == {"first", "second.one", "function"} and found["checked"]
    assert {"RESULT[best]", "RESULT[all]"} <= set(found["outputs"])
    listed = {m["name"]: m for m in json.loads(program("inspect", "--json", found["path"]))["models"]}
    assert [i["name"] for i in listed["second.one"]["inputs"]] == ["ARGS[0][0]", "ARGS[0][1]", "ARGS[1][b][0]"]


def test_a_registered_container(torch_python):
    assert one(torch_python, "registered")["checked"]


def test_arguments_and_buffers_that_the_model_writes(torch_python):
    found = one(torch_python, "written_arguments")
    assert found["untouched"] and found["checked"]


def test_packages_show_which_inputs_the_model_writes(torch_python):
    found = one(torch_python, "written_inputs")
    assert found["checked"]
    listed = {m["name"]: [i["may_be_written"] for i in m["inputs"]]
              for m in json.loads(program("inspect", "--json", found["path"]))["models"]}
    assert listed == found["written"]


def test_another_answer_is_shown_and_nothing_written(torch_python):
    found = one(torch_python, "wrong_answer")
    assert found["error"] == "ExportMismatch" and "DIFFERS at [" in found["text"] and found["kept"]
    assert not [name for name in found["left"] if name.startswith(".")]


REFUSALS = {
    "branch": ("ExportError", "torch.where(condition, a, b)"),
    "item": ("ExportError", "torch._check"),
    "fixed_batch": ("ExportError", "fixes dimension 'batch' to 3"),
    "small_batch": ("ExportError", "Pass batch=(1, 15)"),
    "multiple": ("ExportError", "multiples"),
    "no_fake": ("ExportError", "torch.library.register_fake"),
    "unknown_operator": ("ExportError", "sconce_test::triple"),
    "text_output": ("ExportError", "Return a dict of the tensors"),
    "unregistered": ("ExportError", "return_dict=False"),
    "unnamed_type": ("ExportError", "serialized_type_name="),
    "numpy": ("ExportError", "leaves PyTorch"),
    "no_compiler": ("ExportError", "apt-get install g++"),
    "no_openmp": ("ExportError", "libomp-dev"),
    "no_python_headers": ("ExportError", "python3-dev"),
    "no_cuda": ("ExportError", "a machine with an NVIDIA GPU"),
    "other_device": ("InvalidArgument", "expected 'cpu' or 'cuda', got 'mps'"),
    "failing_model": ("ExportError", "itself fails on its example"),
    "old_cpu": ("ValueError", "has no AVX2"),
    "no_cpu": ("ValueError", "knows no -march=z80"),
    "rows_outside": ("ValueError", "not within (4, 8)"),
    "reserved_metadata": ("ValueError", "keys that begin with 'sconce_' are Sconce's own: 'sconce_rows'"),
    "wrong_name": ("InvalidArgument", "expected NAME.pt2"),
    "wrong_weights": ("ValueError", "'inside', 'beside' or 'none'"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_has_its_cure(torch_python, name):
    found = made(*torch_python, *REFUSALS)[name]
    kind, said = REFUSALS[name]
    assert found["error"] == kind and said in found["text"], found["text"]


def test_what_is_under_way_is_shown(torch_python, tmp_path):
    code = ("import pure, torch\nfrom sconce._export import export\n"
            f"export(torch.nn.Linear(4, 2), torch.randn(3, 4), {str(tmp_path / 'm.pt2')!r}, progress=True)\n")
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}:{FOLDER}"}
    done = subprocess.run([torch_python[0], "-c", code], capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    steps = list(dict.fromkeys(re.findall(r"export (\d of \d: [^,]*),", done.stderr)))
    assert steps == ["1 of 4: torch traces model model", "2 of 4: torch compiles model model", "3 of 4: the package is written",
                     "4 of 4: Sconce and torch run model model"]


def test_nothing_is_left_of_refusals(torch_python):
    made(*torch_python, *REFUSALS)
    assert not [p for p in torch_python[1].iterdir() if p.name.startswith((".", "refused"))]


def compare(python, *arguments, cwd=None):
    # As python -m sconce.compare, where the native module need not be built.
    start = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import pure; from sconce.compare import main; sys.exit(main())"
    return subprocess.run([python, "-c", start, *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                          env=ENVIRONMENT)


def test_compare(torch_python, tmp_path):
    python, _ = torch_python
    path = one(torch_python, "batch")["path"]
    (tmp_path / "later.py").write_text(
        f"import sys\nsys.path.insert(0, {str(FOLDER)!r})\nfrom export_cases import Net, rows\n"
        "def same(): return Net(), (rows(5),), {'y': rows(5)}\n"
        "def other():\n    model = Net()\n    model.scale.data += 1\n    return {'model': (model, (rows(5),), {'y': rows(5)})}\n"
        "def nothing(): return Net()\n"
        "def fails(): raise RuntimeError('no data here')\n")
    done = compare(python, path, "later:same", cwd=tmp_path)
    assert done.returncode == 0 and "3 of 3 outputs agree" in done.stdout, done.stderr
    done = compare(python, path, tmp_path / "later.py:other")
    assert done.returncode == 1 and "DIFFERS at [" in done.stdout and "of 3 outputs agree" in done.stdout, done.stderr
    done = compare(python, path, "later:other", "--tolerance", "2", cwd=tmp_path)
    assert "RESULT[y]" in done.stdout
    for words, said in ((("later:nothing",), "expected (model, args)"), (("later:fails",), "no data here"),
                        (("later:absent",), "no function 'absent'"), (("absent:f",), "absent"), (("later",), "module:function")):
        done = compare(python, path, *words, cwd=tmp_path)
        assert done.returncode == 2 and said in done.stderr, done.stderr


BLOCKS = dict(re.findall(r"^```python (\w+)\n((?:.*\n)*?)^```$", (pure.ROOT / "docs/export.md").read_text(), re.MULTILINE))


@pytest.mark.parametrize("label", [label for label in BLOCKS if label != "later"])
def test_a_block_of_the_document(torch_python, label, tmp_path):
    """As it stands. What it writes is a package that Sconce checks."""
    python, _ = torch_python
    block = BLOCKS[label]
    for library in ("torchvision", "timm", "transformers"):
        if re.search(rf"^import .*\b{library}\b", block, re.MULTILINE):
            probe = subprocess.run([python, "-c", f"import {library}"], capture_output=True, text=True)
            if probe.returncode:
                pytest.skip(f"{python} has no {library} that can be imported: {probe.stderr.strip().splitlines()[-1]}")
    (tmp_path / "block.py").write_text(f"import sys\nsys.path.insert(0, {str(FOLDER)!r})\nimport pure\n{block}")
    done = subprocess.run([python, "block.py"], cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    package, = tmp_path.glob("*.pt2")
    assert "not compared" not in done.stderr
    program("check", package)
    if label == "small":
        assert "small.pt2: " in done.stdout and "batch of 1" in done.stdout
        (tmp_path / "models.py").write_text("import torch\n" + BLOCKS["later"])
        again = compare(python, package, "models.py:example", cwd=tmp_path)
        assert again.returncode == 1 and "DIFFERS" in again.stdout, again.stderr  # other random weights
