"""How test_documents.py runs the documents' commands. Each function here is, or makes, what a row of its table
calls with a Clone and the command. It returns what it left out and why, or None.
"""
import fnmatch
import functools
import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import zipfile

import pytest
from clone import PROGRAM
from documents import ROOT, blocks_of

BUILD = PROGRAM.parent.parent


def need_program():
    if not PROGRAM.exists():
        pytest.skip(f"the program is not built: {PROGRAM} (./dev build)")
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")


@functools.cache
def python_with_torch():
    """Only on request, because importing torch takes longer than everything else here."""
    python = os.environ.get("SCONCE_BENCH_PYTHON")
    probe = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
    assert not python or subprocess.run([python, "-c", probe]).returncode == 0, f"SCONCE_BENCH_PYTHON={python} has no torch"
    return python


def run_by(test, reason=""):
    """Another test runs it: FILE::NAME in Python, in doctest, or of CMake's add_test."""
    def check(clone, command):
        path, name = test.split("::", 1)
        text = (ROOT / path).read_text()
        forms = (f"def {name}(", f'TEST_CASE("{name}', f"add_test(NAME {name} ", name if path.startswith(".ci/") else "\0")
        assert any(form in text for form in forms), f"no test {test}"
        return f"run by {test}" + (f": {reason}" if reason else "")
    return check


def of_dev(clone, command):
    """A command of ./dev that would run this test, or all tests; checks its words against ./dev help."""
    for key, value in re.findall(r"([A-Z_]+)=(\S+)", command):
        assert key == "SCONCE_PRESET" and value in [p["name"] for p in presets(clone)]
        assert value in clone.run("./dev help")
    words = command.partition("./dev ")[2].split()
    told = next(line for line in clone.run("./dev help").splitlines() if line.startswith(f"  {words[0]} "))
    assert all(word in told for word in words if word.startswith("--"))
    assert "exec ./dev test\n" in (clone.folder / ".ci/run").read_text()
    return "not run within itself: looked up in ./dev help and CMakePresets.json"


def conformance(clone, command):
    """./dev conformance, which would build first; runs the program that it has built."""
    program = BUILD / "tests/sconce_conformance"
    if not program.exists():
        pytest.skip(f"not built: {program} (./dev build)")
    told = clone.run(command.replace("./dev conformance", str(program)))
    assert int(re.search(r"^(\d+) passed, 0 failed", told, re.MULTILINE)[1]) > 0, told
    assert 'exec "build/$preset/tests/sconce_conformance" "$@"' in (clone.folder / "dev").read_text()


def presets(clone):
    return json.loads((clone.folder / "CMakePresets.json").read_text())["configurePresets"]


def bench(clone, command):
    assert "--rounds" in clone.run(command + " --help")
    return "minutes, and torch from PyPI: --help, and each option in `script` rows"


def renamed_images(clone, command):
    """A line of sed that puts another registry into the manifests."""
    manifests = sorted((clone.folder / "examples/kubernetes").rglob("*.yaml"))
    before = [file.read_text() for file in manifests]
    clone.run(command)
    after = [file.read_text() for file in manifests]
    for file, text in zip(manifests, before):
        file.write_text(text)
    images = [text.count("image: registry.example.com/sconce") for text in before]
    assert sum(images) == 5
    assert [text.count("image: registry.of.yours:5000/team/sconce") for text in after] == images
    assert not any("registry.example.com" in text for text in after)


def of_cluster(clone, command):
    """A line of kubectl on what the manifests make: names, namespaces and images are theirs."""
    base = "".join(file.read_text() for file in sorted((clone.folder / "examples/kubernetes/base").glob("*.yaml")))
    for kind, name in re.findall(r"\b(deployment)/([\w-]+)", command):
        assert re.search(rf"kind: {kind.capitalize()}\nmetadata:\n  name: {name}\n", base), command
    for space in re.findall(r"-n (\S+)", command):
        assert f"namespace: {space}\n" in base
    for container, image in re.findall(r" ([\w-]+)=(\S+/\S+)", command):
        assert f"- name: {container}\n          image: {image}\n" in base
    return "no cluster: what it names is in the manifests"


def script(path="", needs_torch=False, without="", reduced=None):
    """A script exists, takes the command's options, and explains them without torch. If it needs torch, it says so when
    that is missing; otherwise `reduced` runs."""
    def check(clone, command):
        words = [word for word in shlex.split(command) if not re.match(r"[A-Z_]+=", word)]
        known_environment(clone, command)
        by_python = words[0] == "python"
        name, *given = words[by_python:]
        file = clone.folder / (path or name)
        assert file.is_file() and file.name == pathlib.Path(name).name
        program = os.access(file, os.X_OK)
        assert program == file.read_text().startswith("#!")
        assert program or by_python or not given, "it is to be run, and cannot be"
        call = f"{shlex.quote(sys.executable)} {file}" if file.suffix == ".py" else str(file)
        given = shlex.join(word.strip("[].") for word in given)
        help_text = clone.run(f"{call} {given if file.suffix == '.py' else ''} --help")
        # argparse checks values before --help; the help text shows whether it knows the options.
        unknown = [option for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", given)
                   if not re.search(rf"{option}(?![\w-])", help_text)]
        assert not unknown, f"{file.name} has no {unknown}"
        reason = f"{without or 'it takes minutes'}: --help"
        if needs_torch and importlib.util.find_spec("torch") is None:
            problem = clone.run(f"{call} {given}", status=1)
            assert re.search(r"^\S+\.py: this Python has no torch: pip install torch==\S+", problem, re.MULTILINE), problem
            reason += ", and what it says without torch"
        if reduced and python_with_torch():
            clone.run(f"{python_with_torch()} {file} {reduced}".replace("BUILD", str(BUILD)), timeout=300)
            reason += f"; run as `{reduced}`"
        elif reduced:
            reason += "; SCONCE_BENCH_PYTHON names no Python with torch to run " + reduced
        return reason
    return check


def known_environment(clone, command):
    """Something in this repository reads each variable that the command sets."""
    for key in re.findall(r"(?:^|\s)([A-Z_]{2,})=", command):
        assert subprocess.run(["git", "grep", "-qwe", key, "--", ":!*.md"], cwd=ROOT).returncode == 0, f"what reads {key}?"


@functools.cache
def ninja_targets():
    if not (BUILD / "build.ninja").exists():
        pytest.skip(f"not configured: {BUILD} (./dev build)")
    told = subprocess.run(["ninja", "-C", BUILD, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
    return {line.rsplit(": ", 1)[0] for line in told.splitlines() if ": " in line}


def ninja(clone, command):
    folder, *targets = re.fullmatch(r"ninja -C (build/\w+)((?: \w+)+)", command).groups()
    assert folder == "build/release" and any(p["name"] == "release" for p in presets(clone))
    missing = set(targets[0].split()) - ninja_targets()
    assert not missing
    return "compiles for minutes: its targets exist (ninja -t targets)"


def built(source="", tests=""):
    """A program of the build tree: a target makes it, its source has the options, and -tc finds tests."""
    def check(clone, command):
        known_environment(clone, command)
        words = [word for word in shlex.split(command) if not re.match(r"[A-Z_]+=", word)]
        name = re.sub(r"^build/\w+/", "", words[0])
        assert any(target == name or target.endswith("/" + name) for target in ninja_targets()), f"nothing makes {name}"
        for option in (word for word in words[1:] if word.startswith("--")):
            assert f'"{option}"' in (ROOT / source).read_text(), f"{source} has no {option}"
        if pattern := re.search(r'-tc="(.*?)"', command):
            doctests(tests, pattern[1])
        return "what needs a build, a GPU or minutes: its target, its options, its tests exist"
    return check


def doctests(folder, pattern):
    names = [name for file in (ROOT / folder).rglob("*.cpp") for name in re.findall(r'TEST_CASE\("(.*?)"', file.read_text())]
    assert fnmatch.filter([n.lower() for n in names], pattern.lower().replace("[", "?")), f"{folder}: no test {pattern}"


def rooms(clone, command):
    """build/release/tests/test_ROOM: a program for each room in the table beside it."""
    text = (ROOT / "tests/README.md").read_text()
    row = next(line for line in text.splitlines() if line.endswith("the rooms; expected values come from PyTorch through the "
                                                                   "`make_*.py` beside them |"))
    for room in re.findall(r"`(\w+)`", row.split("|")[1]):
        assert {f"test_{room}"} <= ninja_targets(), room
    return "ctest runs them: each room's target exists"


def pytest_file(clone, command):
    path = command.split()[-1]
    files = [clone.folder / path] if path.endswith(".py") else sorted((clone.folder / path).glob("test_*.py"))
    assert files and all(re.search(r"^def test_", file.read_text(), re.MULTILINE) for file in files)
    return "./dev test runs it beside this file: it has tests"


def pip(scripts=""):
    """The requirements can be parsed and cover what the scripts import; `pip install` is not tested."""
    def check(clone, command):
        from packaging.requirements import Requirement  # comes with pytest
        named = {Requirement(word).name for word in command.split()[2:]}
        if not scripts:
            lines = (clone.folder / "tests/server/requirements.txt").read_text().splitlines()
            asked = [Requirement(line) for line in lines if not line.startswith("#")]
            wanted = Requirement(command.split()[2])
            assert any(one.name == wanted.name and wanted.extras <= one.extras for one in asked), command
            return "installs from PyPI: it is among tests/server/requirements.txt, which ./dev test installs"
        known, imported = {*sys.stdlib_module_names, "torchgen"}, set()  # comes with torch
        for file in sorted((clone.folder / scripts).glob("*.py")):
            imported |= set(re.findall(r"^ *(?:import|from) (\w+)", file.read_text(), re.MULTILINE))
        local = {file.stem for file in clone.folder.rglob("*.py")}
        assert "torch" in named and imported - known - local <= named
        return "installs 2 GB from PyPI: it names what the scripts import"
    return check


def in_file(path, text, reason):
    def check(clone, command):
        assert text in (clone.folder / path).read_text()
        return reason
    return check


def both(*rows):
    def check(clone, command):
        return "; ".join(filter(None, [row(clone, command) for row in rows]))
    return check


# Commands of the program, run for real on the digits example.

def shown(*texts, **replace):
    """Runs it beside model.pt2, with these words of the document replaced, and expects these texts."""
    def check(clone, command):
        need_program()
        folder = clone.digits.parent / "reader"
        if not folder.exists():
            folder.mkdir()
            shutil.copy(clone.digits / "digits.pt2", folder / "model.pt2")
            (folder / "image.json").write_text(json.dumps(json.loads((clone.digits / "request.json").read_text())["args"][0]))
            with zipfile.ZipFile(folder / "model.pt2") as archive:
                archive.extractall(folder / "unpacked")
        for word, ours in replace.items():
            command = re.sub(rf"\b{word}\b", ours, command)
        told = clone.run(command, cwd=folder)
        assert all(text in told for text in texts), told
    return check


def subcommand(clone, command):
    """Named without arguments."""
    need_program()
    assert "Usage: " + command in clone.run(command + " --help")


def packed(clone, command):
    shown(DIRECTORY="unpacked", model="again")(clone, command)
    assert clone.run("sconce check again.pt2", cwd=clone.digits.parent / "reader") == "again.pt2: ok\n"


def healthy(clone, command):
    need_program()
    with clone.served("sconce serve digits.pt2", cwd=clone.digits) as ports:
        clone.run(command, SCONCE_HTTP=f"127.0.0.1:{ports['inference']}")
    clone.run(command, status=1, SCONCE_HTTP=f"127.0.0.1:{ports['inference']}")


def asked(answer):
    """A line of curl, sent to the digits example."""
    def check(clone, command):
        need_program()
        with clone.served("sconce serve digits.pt2", cwd=clone.digits) as ports:
            told = json.loads(clone.run(re.sub(r"(localhost|127\.0\.0\.1):8000", f"127.0.0.1:{ports['inference']}", command)))
        for name, value in answer.items():
            assert told[name] == value
    return check


def generated(clone, command):
    """Replaces the document's `...` by the pixels that it leaves out."""
    pixels = sum(json.loads((clone.digits / "request.json").read_text())["args"][0][0], [])
    image = json.dumps([0, 0, 5, *pixels[3:]])
    asked({"model_name": "digits", "model_version": "1", "RESULT[class]": 9})(
        clone, command.replace("[0, 0, 5, ...]", image))


def serves(*replace):
    """Starts, gets ready, ends. Words that stand for a package are replaced, and so are ports."""
    def check(clone, command):
        need_program()
        folder = clone.digits.parent / "served"
        (folder / "repository/digits/1").mkdir(parents=True, exist_ok=True)
        for place in ("model.pt2", "m.pt2", "repository/digits/1/model.pt2"):
            shutil.copy(clone.digits / "digits.pt2", folder / place)
        for text, ours in replace:
            command = command.replace(text, ours.replace("CLONE", str(clone.folder)))
        with clone.served(re.sub(r"(\d+\.0\.0\.\d):\d+", r"\1:0", command), cwd=folder) as ports:
            told = json.loads(clone.run(f"curl -s http://127.0.0.1:{ports['inference']}/v1/models"))
            assert len(told["models"]) == 1
    return check


def serves_tls(more=""):
    """With certificates of authorities made here. tests/server/test_tls.py checks who gets in."""
    def check(clone, command):
        need_program()
        if not shutil.which("openssl"):
            pytest.skip("the openssl program is not installed")
        sys.path.insert(0, str(ROOT / "tests/server"))
        from certificates import Authority
        folder = clone.digits.parent / "certificates"
        folder.mkdir(exist_ok=True)
        for name in ("clients", "admins"):
            authority = Authority(folder, name)
        authority.issue("server")
        with clone.served(command.replace("...", str(clone.digits / "digits.pt2") + more), cwd=folder) as ports:
            done = subprocess.run(["curl", "-s", "--cacert", "admins.pem", f"https://127.0.0.1:{ports['inference']}/v1/models"],
                                  cwd=folder, capture_output=True, text=True)
            # A client without a certificate gets in unless the listener is mutual.
            assert (done.returncode != 0) == ("--http-tls mutual" in command)
    return check


def refused_device(clone, command):
    need_program()
    package = str(clone.digits / "digits.pt2")
    told = clone.run(command.replace("model.pt2", f"model={package}"), status=1)
    assert "device cuda:0: the model was compiled for the CPU" in told
    return "needs a GPU and a CUDA package, as tests/cuda/run_on_gpu.sh has them: the setting arrives"


def on_two_servers(clone, command):
    """sconce weights with two servers; pushes first, so that there is something to roll back."""
    need_program()
    serve = "sconce serve digits.pt2"
    with clone.served(serve, cwd=clone.digits) as a, clone.served(serve, cwd=clone.digits) as b:
        addresses = [f"http://127.0.0.1:{ports['administration']}" for ports in (a, b)]
        to = f"--model digits --to {','.join(addresses)}"
        command = command.replace("http://a:8003,http://b:8003", ",".join(addresses)).replace("URL,URL", ",".join(addresses))
        command = command.replace("--guard 60s --guard-p99 5ms", "--guard 1s --guard-p99 5s")
        command = command.replace("--model M ", "--model digits ").replace(" FILE ", " digits-v2.safetensors ")
        if "rollback" in command:
            clone.run(f"sconce weights push digits-v2.safetensors {to}", cwd=clone.digits)
        told = clone.run(command if "--to" in command else f"{command} {to}", cwd=clone.digits)
        assert all(address.removeprefix("http://") in told for address in addresses), told
        for address in addresses:
            sets = json.loads(clone.run(f"curl -s {address}/v2/admin/models/digits/weights"))
            assert sets["generation"] == (3 if "rollback" in command else 2 if "push" in command else 1)


def dev_serves(clone, command):
    """./dev serve builds, so this runs in the repository itself, which is built."""
    preset = BUILD.name
    if not PROGRAM.exists() or PROGRAM != ROOT / "build" / preset / "server/sconce":
        pytest.skip(f"not a program of ./dev build: {PROGRAM}")
    with clone.served(command.replace("model.pt2", str(clone.digits / "digits.pt2")), cwd=ROOT, SCONCE_PRESET=preset) as ports:
        assert json.loads(clone.run(f"curl -s http://127.0.0.1:{ports['inference']}/v1/models")) == {"models": ["digits"]}


def ctest(clone, command):
    if not (BUILD / "CTestTestfile.cmake").exists():
        pytest.skip(f"not configured: {BUILD} (./dev build)")
    assert int(re.search(r"Total Tests: (\d+)", clone.run(command.replace("build/release", str(BUILD)) + " -N"))[1]) > 10
    return "./dev test runs it: -N lists the tests"


def compiled_here(clone, first):
    """The lines for export in docs/migrating.md, on a reader's model, if torch is installed."""
    text = (clone.folder / "docs/migrating.md").read_text()
    code, = ("\n".join(lines) for _, lines in blocks_of(text) if lines[0].strip() == first)
    compile(code, "docs/migrating.md", "exec")
    if not python_with_torch():
        return "SCONCE_BENCH_PYTHON names no Python with torch: it is Python"
    model = ("import torch\nclass Model(torch.nn.Module):\n  def forward(self, x):\n    return x * 2\n"
             "model, x = Model(), torch.zeros(2, 4)\n")
    folder = clone.digits.parent / "exported"
    (folder / "models/resnet/1").mkdir(parents=True)
    (folder / "export.py").write_text(model + code)
    clone.run(f"{python_with_torch()} export.py", cwd=folder, timeout=300)
    need_program()
    with clone.served("sconce serve models", cwd=folder) as ports:
        told = json.loads(clone.run(f"curl -s http://127.0.0.1:{ports['inference']}/v2/models/resnet"))
        assert [tensor["shape"] for tensor in told["inputs"]] == [[-1, 4]]


def said(clone, first):
    return "an answer, a picture or a list, nothing to run"
