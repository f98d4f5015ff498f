"""Commands in the documents work. A marked block is run; in all other code, names are looked up.

```sh run         Bash runs the block, in a folder that all blocks of the page share (clone.py); it must succeed. A block
                  of `sconce serve` starts a server, which runs until the page ends. Where lines begin with `$ `, the
                  lines below each are its output: `...` stands for any text, and white space does not count.
```python run     Python runs the block.
```sh run fails   The exit status is not 0.
```sh run torch   The block is skipped unless SCONCE_BENCH_PYTHON names a Python with torch.
```sh NAME        Another test of the page runs the block under this name.
"""
import fnmatch
import functools
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import documents
import pytest
from clone import BUILD, PROGRAM, Reader, add_files_of_a_reader, make_clone, path_with
from documents import PAGES, ROOT, TRACKED, blocks, code_of, text_of

COMMANDS = list(documents.commands())
MARKED = {page: [block for block in blocks(page) if block.words[1:2] == ["run"]] for page in PAGES}


def need_program():
    if not PROGRAM.exists():
        pytest.skip(f"the program is not built: {PROGRAM} (./dev build)")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    return make_clone(tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    need_program()
    if not shutil.which("curl") or not shutil.which("openssl"):
        pytest.skip("curl or openssl is not installed")
    folder = make_clone(tmp_path_factory.mktemp("prepared"))
    add_files_of_a_reader(folder)
    return folder


@functools.cache
def python_with_torch():
    python = os.environ.get("SCONCE_BENCH_PYTHON")
    probe = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
    assert not python or subprocess.run([python, "-c", probe]).returncode == 0, f"SCONCE_BENCH_PYTHON={python} has no torch"
    return python


# Blocks that are run

def steps(code):
    """(command, its output or None)"""
    if not code.startswith("$ "):
        return [(code.rstrip(), None)]
    return [tuple(step.split("\n", 1)) for step in re.split(r"^\$ ", code.replace("\\\n", " "), flags=re.MULTILINE)[1:]]


def agrees(output, documented):
    parts = "".join(documented.split()).split("...")
    return re.fullmatch(".*".join(map(re.escape, parts)), "".join(output.split()))


def run_block(reader, block):
    language, _, *options = block.words
    assert set(options) <= {"fails", "torch"}, f"{block.place}: {options}"
    more = {}
    if "torch" in options:
        if not python_with_torch():
            return f"{block.place}: SCONCE_BENCH_PYTHON names no Python with torch"
        more = {"PATH": path_with(python_with_torch()), "timeout": 600}
    if language == "python":
        (reader.folder / "block.py").write_text(block.code)
        reader.run("python block.py", **more)
    elif block.code.startswith("sconce serve "):
        line, = documents.lines_of(block.code)
        reader.serve(line)
    else:
        for command, output in steps(block.code):
            told = reader.run(command, fails="fails" in options, **more)
            assert output is None or agrees(told, output), f"{block.place}: {command}\nprints\n{told}\nin place of\n{output}"


@pytest.mark.parametrize("page", [page for page in PAGES if MARKED[page]])
def test_marked_blocks(page, prepared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "folder"
    shutil.copytree(prepared, folder, symlinks=True, copy_function=os.link)
    reader = Reader(folder)
    with reader.stack:
        left_out = [reason for block in MARKED[page] if (reason := run_block(reader, block))]
    print(*left_out, sep="\n")
    if len(left_out) == len(MARKED[page]):
        pytest.skip("; ".join(left_out))


def test_named_blocks_are_run_by_a_test_of_their_page():
    tests = [(ROOT / name).read_text() for name in TRACKED if re.fullmatch(r"tests/.*test_\w+\.py", name)]
    named = [(page, block) for page in PAGES for block in blocks(page) if block.words[1:2] not in ([], ["run"])]
    lost = [block for page, block in named
            if not any(page in text and (f'"{block.words[1]}"' in text or "```python" in text) for text in tests)]
    assert named and not lost, lost


def test_output_may_have_gaps():
    assert agrees('{"a":[1,2], "b": 3}\n', '{"a": [...],\n "b": 3}')
    assert not agrees('{"a":[1,2], "b": 4}\n', '{"a": [...],\n "b": 3}')
    assert steps("$ a \\\n b\nc\nd\n$ e\n") == [("a   b", "c\nd\n"), ("e", "")]


# Names in all code

@functools.cache
def help_of(*command, cwd=ROOT):
    done = subprocess.run([*command, "--help"], cwd=cwd, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    if "ModuleNotFoundError" in done.stderr:
        return pathlib.Path(cwd, command[-1]).read_text()
    assert done.returncode == 0, f"{' '.join(map(str, command))} --help: {done.stdout}{done.stderr}"
    return done.stdout


def unknown_options(words, text):
    options = [found[0] for word in words if (found := re.match(r"--[a-z][a-z0-9-]*", word))]
    return [option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", text)]


def test_the_program_has_the_commands_and_options():
    need_program()
    wrong = []
    for place, _, words in COMMANDS:
        if words[0] != "sconce":
            continue
        call, rest = [PROGRAM], words[1:]
        while "\nSubcommands:\n" in help_of(*call) and rest and not rest[0].startswith("--"):
            call.append(rest.pop(0))
            if not re.search(rf"^  {re.escape(call[-1])} ", help_of(*call[:-1]).partition("\nSubcommands:\n")[2], re.MULTILINE):
                wrong.append((place, words))
                break
        else:
            if unknown := unknown_options(rest, help_of(*call)):
                wrong.append((place, words, unknown))
            elif call[1:] == ["serve"] and "MODEL.KEY=VALUE" not in rest:
                # --print-config reads all settings first.
                done = subprocess.run([*call, *rest, "--print-config"], capture_output=True, text=True)
                if done.returncode:
                    wrong.append((place, words, done.stderr))
    assert not wrong, wrong


def test_the_program_has_the_settings():
    """Those in code such as `load = demand` and `--set MODEL.KEY=VALUE`."""
    need_program()
    sample = subprocess.run([PROGRAM, "serve", "--print-config"], capture_output=True, text=True, check=True).stdout
    of_server, of_models = (set(re.findall(rf"^#?{form}([a-z_0-9]+) =", sample, re.MULTILINE)) for form in ("", r"\*\."))
    wrong = []
    for page in PAGES:
        for place, text in code_of(page):
            for model, key in re.findall(r"^([\w*]+\.)?([a-z][a-z_0-9]+) = (?:[*/\d]\S*|[a-zA-Z]+)(?:, \S+)*$", text):
                if key not in (of_models if model else of_server | of_models) and not page.startswith("package_format/"):
                    wrong.append((place, text))
            wrong += [(place, text) for key in re.findall(r"--set '?[\w*.]+\.([a-z_0-9]+)", text) if key not in of_models]
    assert not wrong, wrong


def test_dev_has_the_commands_and_options():
    text, dev = help_of("./dev"), (ROOT / "dev").read_text()
    presets = {preset["name"] for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
    wrong = []
    for place, environment, words in COMMANDS:
        if words[0] == "./dev" and len(words) > 1:
            told = re.search(rf"^  {words[1]} .*\n(?:    .*\n)*", text, re.MULTILINE)
            code = re.search(rf"^  {words[1]}\)\n(?:    .*\n)*", dev, re.MULTILINE)
            runs = [(ROOT / path).read_text() for path in re.findall(r"(?<!/)tests/[\w/]+\.\w+", code[0] if code else "")]
            runs += [help_of(path) for name in re.findall(r"exec .*preset/(\S+?)\"", code[0] if code else "")
                     if (path := BUILD / name).exists()]
            if not told or unknown_options(words, "\n".join([told[0], *runs])):
                wrong.append((place, words))
        wrong += [(place, word) for word in environment if word.startswith("SCONCE_PRESET=") and word[14:] not in presets]
    assert not wrong, wrong
    unknown = subprocess.run(["./dev", "nonsense"], cwd=ROOT, capture_output=True, text=True)
    assert unknown.returncode != 0 and "no command 'nonsense'" in unknown.stderr


def scripts():
    """{script: its commands in the documents}"""
    found = {}
    for command in COMMANDS:
        words = command.words[1:] if command.words[0] in ("python", "python3", "bash") else command.words
        if words and re.fullmatch(r"(?!.*/test_)[\w./-]+\.(py|sh)", words[0]):
            for name in TRACKED:
                if name == words[0] or len(words) > 1 and "/" not in words[0] and name.endswith("/" + words[0]):
                    found.setdefault(name, []).append((command.place, words[1:]))
    return found


@pytest.mark.parametrize("script", sorted(scripts()))
def test_a_script_has_the_options(script, clone):
    source = (clone / script).read_text()
    assert os.access(clone / script, os.X_OK) == source.startswith("#!")
    call = [sys.executable, script] if script.endswith(".py") else [f"./{script}"]
    has_torch = importlib.util.find_spec("torch") is not None
    text = help_of(*call, cwd=clone) if re.search(r"ArgumentParser|--help", source) else source
    for place, words in scripts()[script]:
        assert not unknown_options(words, text), f"{place}: {script} {words}"
        if ".py: this Python has no torch" in source and not has_torch and "--versions" not in words:  # which installs torch
            done = subprocess.run([*call, *words], cwd=clone, capture_output=True, text=True, timeout=60)
            assert re.search(r"^\S+\.py: this Python has no torch: pip install torch==\S+|the following arguments are required",
                             done.stderr, re.MULTILINE), f"{place}: {script} {words}: {done.stderr}"


def test_what_is_built_exists():
    """Targets of ninja, programs below build/, and tests that -tc chooses."""
    if not (BUILD / "build.ninja").exists():
        pytest.skip(f"not configured: {BUILD} (./dev build)")
    told = subprocess.run(["ninja", "-C", BUILD, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
    targets = {line.rsplit(": ", 1)[0] for line in told.splitlines()}
    names = {target.rsplit("/", 1)[-1] for target in targets}
    texts = "".join((ROOT / name).read_text() for name in TRACKED if name.endswith("CMakeLists.txt"))
    cases = [case.lower() for name in TRACKED if name.endswith("_test.cpp")
             for case in re.findall(r'TEST_CASE\("(.*?)"', (ROOT / name).read_text())]
    wrong = []
    for place, _, words in COMMANDS:
        if words[0] == "ninja":
            wrong += [(place, word) for word in words[3:] if word not in targets]
        for word in words:
            if re.fullmatch(r"build/[a-z]+/[\w/.]+", word) and pathlib.Path(word).suffix in ("", ".so"):
                path = word.split("/", 2)[2]
                known = any((target + "/").startswith(path + "/") for target in targets)
                # A build that lacks libraries may leave a target out. ROOM is any.
                if not known and f"add_executable({path.rsplit('/', 1)[-1]} " not in texts and "ROOM" not in path:
                    wrong.append((place, word))
            if word.startswith("-tc=") and not fnmatch.filter(cases, word[4:].lower().replace("[", "?")):
                wrong.append((place, word))
        if re.match(r"(test|bench|sconce)_\w+$", words[0]) and len(words) > 1 and words[0] not in names:
            wrong.append((place, words))
    assert not wrong, wrong


def test_files_exist():
    """Paths of this repository in documents, ./dev and CI. CHANGELOG.md also tells of former ones."""
    folders = {str(parent) for name in TRACKED for parent in pathlib.PurePath(name).parents}
    tops = "|".join(re.escape(name) for name in sorted({name.split("/")[0] for name in TRACKED if "/" in name}))
    missing = [(page, path) for page in [*PAGES, "dev", ".ci/run"] if page != "CHANGELOG.md"
               for path in re.findall(rf"(?<![\w./*-])((?:{tops})/[\w./-]*\w)", text_of(page))
               if path not in folders and path not in TRACKED and not list(ROOT.glob(path + ".*"))]
    assert not missing, missing


@pytest.mark.parametrize("form, places", [
    (r"(?:^| )([A-Z_]{3,})=\S* \S", [":!*.md"]),  # a variable before a command
    (r"-D(SCONCE_\w+)=", ["*CMakeLists.txt"]),
    (r"--build-arg (\w+)=", ["docker"]),
    (r"kubectl .*-n ([\w-]+)", ["examples/kubernetes"]),
    (r"deployment/([\w-]+)", ["examples/kubernetes"]),
    (r"kubectl .* ([\w-]+)=registry", ["examples/kubernetes"]),
    (r"pip install ([a-z]+)", ["*requirements*.txt", "tests/**.py"]),
    (r"dist/([a-z_-]+?)[-_]\d", ["dev", "packaging"]),
    (r"dist/\S+?\d\.\d\.\d-(\S+)", ["dev", "packaging"]),
    (r"dist/\S+?[-_](\d+\.\d+\.\d+)[-_]", ["CMakeLists.txt"]),
])
def test_names_occur_where_they_are_defined(form, places):
    named = {(page, name) for page in PAGES for _, text in code_of(page) for name in re.findall(form, text)}
    lost = [(page, name) for page, name in sorted(named)
            if subprocess.run(["git", "grep", "-qwFe", name, "--", *places], cwd=ROOT).returncode]
    assert not lost, lost


def test_commands_are_found():
    assert documents.split("ninja x && tests/a.py  -b '#1'   # why") == [["ninja", "x"], ["tests/a.py", "-b", "#1"]]
    assert documents.split("a [--config FILE] 'b|c' | x[y] d") == [["a", "--config", "FILE", "b|c"], ["x[y]", "d"]]


def test_what_begins_with_an_interpreter_can_be_run():
    for name in TRACKED:
        if name.endswith((".py", ".sh")) or name == "dev" or name.startswith(".ci/"):
            assert os.access(ROOT / name, os.X_OK) == (ROOT / name).read_bytes().startswith(b"#!"), name
