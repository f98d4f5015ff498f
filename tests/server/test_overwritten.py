"""Packages and weights that are written in place while they are served."""
import contextlib
import itertools
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

import pytest
from admin_server import AdminServer
from serving import FAKE_MODELS, PROGRAM, SANITIZED, Clients, threads, until
from weights_files import repeated, safetensors

UPDATE = FAKE_MODELS / "fake_update.so"  # answers x + [min w, max w, min b, max b]
FEATURES = 131072
PATTERN = struct.pack("<16f", *range(1, 17)) * 4  # w repeats these values
ZEROS = [0, 0, 0, 0]
INPUT = {"INPUT__0": ("FP32", [1, 4], ZEROS)}
OLD, NEW = [1, 16, 0, 150], [20, 20, 0, 150]  # of half of each: [1, 20, 0, 150]
# Runs a program without the right to take leases on files of other users, like a server that does not own its packages.
WITHOUT_LEASES = [sys.executable, "-c", "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 28, 0, 0, 0);"
                  "os.execv(sys.argv[1], sys.argv[1:])"]
root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root has others to give files to")


# On a file system without shared blocks, there is no copy of the served file unless there is a lease.
on_tmpfs = pytest.mark.parametrize("folder", ["/dev/shm"], indirect=True)


@pytest.fixture
def folder(request):
    with tempfile.TemporaryDirectory(dir=getattr(request, "param", None)) as path:
        yield pathlib.Path(path)


def changed():
    """The model's library with other weights w, of the same size and valid."""
    library = UPDATE.read_bytes()
    at = library.index(PATTERN)
    return library[:at] + struct.pack("<f", NEW[0]) * FEATURES + library[at + 4 * FEATURES:]


def archive(library, path):
    """A .pt2 of it, whose members have checksums."""
    with tempfile.TemporaryDirectory() as unpacked:
        model = pathlib.Path(unpacked, "data/aotinductor/model")
        model.mkdir(parents=True)
        pathlib.Path(unpacked, "archive_format").write_text("pt2")
        pathlib.Path(unpacked, "version").write_text("0")
        (model / "x.wrapper.so").write_bytes(library)
        subprocess.run([PROGRAM, "pack", unpacked, path], check=True)


def give_away(path):
    os.chown(path, 65534, 65534)


def write(path, data, truncate=True, piece=1 << 20):
    with open(path, "wb" if truncate else "r+b") as file:
        for at in range(0, len(data), piece):
            file.write(data[at:at + piece])
            file.flush()


def answer_of(server, model="m"):
    answer = server.infer(model, INPUT)
    return answer.json["outputs"][0]["data"] if answer.status == 200 else answer.status


def mapped(server, path, key):
    """A number of /proc/PID/smaps, in kB, of where the file is mapped."""
    kilobytes, inside = 0, False
    for line in pathlib.Path(f"/proc/{server.process.pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = line.endswith(str(path))
        elif inside and line.startswith(key + ":"):
            kilobytes += int(line.split()[1])
    return kilobytes


def assert_explained(errors, path):
    for status, text in errors:
        assert status == 503 and str(path) in text and "in place" in text, (status, text)


IN_PLACE = {
    "cp": lambda path: write(path, changed()),
    "truncate": lambda path: os.truncate(path, 0),
    "truncate to less": lambda path: os.truncate(path, 1 << 20),
    "write into it": lambda path: write(path, changed(), truncate=False),
}
ASIDE = {
    "remove": lambda path: os.remove(path),
    "rename over it": lambda path: (write(path.with_name("new"), changed()), os.rename(path.with_name("new"), path)),
}


@pytest.mark.parametrize("folder", [None, "/dev/shm"], indirect=True)
@pytest.mark.parametrize("change", [*IN_PLACE, *ASIDE])
def test_a_model_answers_as_before_while_its_package_is_overwritten(folder, change):
    path, other = folder / "m.so", folder / "other.so"
    shutil.copy(UPDATE, path)
    shutil.copy(UPDATE, other)
    with AdminServer(path, other) as server:
        with Clients(server, "m", row=ZEROS) as clients, Clients(server, "other", row=ZEROS) as others:
            {**IN_PLACE, **ASIDE}[change](path)
            clients.wait(50)
            others.wait(50)
        assert clients.answers == others.answers == {tuple(OLD)}
        assert not clients.errors and not others.errors
        assert server.index()["m"] == ("READY", "")
        assert server.get("/v2/health/ready").status == 200
        assert any("is written in place" in line for line in server.log) == (change in IN_PLACE)


@pytest.mark.skipif(SANITIZED, reason="a sanitizer has memory of its own")
def test_weights_stay_in_the_page_cache_until_somebody_writes(folder):
    path = folder / "m.so"
    shutil.copy(UPDATE, path)
    os.sync()  # pages that are still to be written count as dirty
    with AdminServer(path) as one, AdminServer(path) as two:
        for server in one, two:
            assert answer_of(server) == OLD
        for server in one, two:
            assert mapped(server, path, "Rss") > 1000
            assert mapped(server, path, "Shared_Clean") > 1000
            assert mapped(server, path, "Private_Dirty") + mapped(server, path, "Anonymous") == 0
            assert mapped(server, path, "Private_Clean") < 200  # one of the two may have read ahead
        os.truncate(path, 0)
        for server in one, two:
            assert mapped(server, path, "Rss") == 0
            assert answer_of(server) == OLD


@root_only
@on_tmpfs
@pytest.mark.parametrize("change", IN_PLACE)
def test_without_a_lease_a_model_that_was_overwritten_says_so(folder, change):
    path, other = folder / "m.so", folder / "other.so"
    for name in path, other:
        shutil.copy(UPDATE, name)
        give_away(name)
    with AdminServer(path, other, prefix=WITHOUT_LEASES) as server:
        with Clients(server, "m", row=ZEROS) as clients, Clients(server, "other", row=ZEROS) as others:
            IN_PLACE[change](path)
            clients.wait(50)
            others.wait(50)
        assert clients.answers == others.answers == {tuple(OLD)}
        assert not others.errors
        assert clients.errors
        assert_explained(clients.errors, path)
        state, reason = server.index()["m"]
        assert state == "UNAVAILABLE" and str(path) in reason
        assert server.index()["other"] == ("READY", "")
        assert server.get("/v2/models/m/ready").status == 503
        assert server.get("/v2/health/ready").status == 200  # there is another model
        said = "answer with errors until they are loaded again"
        until(lambda: any(said in line for line in server.log))
        assert sum(said in line for line in server.log) == 1
        # Loading serves the file's new content.
        write(path, changed())
        assert server.post("/v2/repository/models/m/load", b"", port=server.admin_port).status == 200
        assert answer_of(server) == NEW
        assert server.index()["m"] == ("READY", "")
        assert server.get("/v2/models/m/ready").status == 200


@root_only
@on_tmpfs
def test_the_only_model_is_lost_and_the_server_is_not_ready(folder):
    path = folder / "m.so"
    shutil.copy(UPDATE, path)
    give_away(path)
    with AdminServer(path, prefix=WITHOUT_LEASES) as server:
        os.truncate(path, 0)
        assert answer_of(server) == 503
        assert server.get("/v2/health/ready").status == 503
        assert server.get("/v2/health/live").status == 200


@root_only
@on_tmpfs
def test_without_a_lease_a_rename_costs_nothing(folder):
    path = folder / "m.so"
    shutil.copy(UPDATE, path)
    give_away(path)
    with AdminServer(path, prefix=WITHOUT_LEASES) as server, Clients(server, "m", row=ZEROS) as clients:
        os.rename(path, folder / "old")
        clients.wait()
        ASIDE["rename over it"](path)
        clients.wait()
        os.remove(folder / "old")
        clients.wait()
        assert not clients.errors and clients.answers == {tuple(OLD)}


@pytest.mark.parametrize("leases", [True, pytest.param(False, marks=root_only)])
def test_watched_packages_that_are_copied_over_in_steps(folder, leases):
    """The half-written file in between is never served."""
    path = folder / "repository/m.pt2"
    path.parent.mkdir()
    archive(UPDATE.read_bytes(), path)
    archive(changed(), folder / "m.pt2")
    new = (folder / "m.pt2").read_bytes()
    assert len(new) == path.stat().st_size
    if not leases:
        give_away(path)
    prefix = () if leases else WITHOUT_LEASES
    with AdminServer(path.parent, flags=["--watch", "150ms"], prefix=prefix) as server:
        def refusals():
            return sum("recorded CRC" in line and "cannot be opened" in line for line in server.log)

        with Clients(server, "m", row=ZEROS) as clients:
            # Each step opens the file anew, after the server has taken the file for complete and refused it. The second
            # refusal since a step cannot be of what was there before it.
            half = path.read_bytes().index(PATTERN) + FEATURES * 2
            for begin, end in (0, half), (half, half + 1000), (half + 1000, len(new)):
                with open(path, "r+b") as file:
                    file.seek(begin)
                    file.write(new[begin:end])
                before = refusals()
                until(lambda: refusals() >= before + 2 if end < len(new) else answer_of(server) == NEW)
            clients.wait()
        assert clients.answers == {tuple(OLD), tuple(NEW)}
        assert not leases or not clients.errors
        assert_explained(clients.errors, path)


def test_watched_packages_that_are_copied_over_at_once(folder):
    path = folder / "repository/m.pt2"
    path.parent.mkdir()
    archive(UPDATE.read_bytes(), path)
    archive(changed(), folder / "m.pt2")
    with AdminServer(path.parent, flags=["--watch", "100ms"]) as server:
        with Clients(server, "m", row=ZEROS) as clients:
            shutil.copyfile(folder / "m.pt2", path)
            until(lambda: answer_of(server) == NEW)
            clients.wait()
        assert not clients.errors
        assert clients.answers == {tuple(OLD), tuple(NEW)}


def weights(value):
    return safetensors({"scale.w": repeated(value, FEATURES), "scale.b": repeated(value, FEATURES)})


@contextlib.contextmanager
def rewriting(turn):
    """Writes a file over and over meanwhile."""
    stop = threading.Event()

    def run():
        for count in itertools.count():
            turn(count)
            if stop.wait(0.02):
                return

    with threads(run, stop=stop):
        yield


def test_weights_by_file_are_whole_or_refused_while_they_are_overwritten(folder):
    path = folder / "w.safetensors"
    path.write_bytes(weights(1))
    push = {"file": "w.safetensors"}
    with AdminServer(f"m={UPDATE}", flags=["--weights-dir", folder]) as server:
        statuses = set()
        with rewriting(lambda turn: write(path, weights(1 + turn % 2), truncate=turn % 4 < 2, piece=100_000)):
            for _ in range(80):
                answer = server.admin("POST", "m/weights?commit=true", push)
                statuses.add(answer.status)
                assert answer.status == 200 or (answer.status == 400 and answer.json["error"]), answer.body
                assert answer_of(server) in ([1] * 4, [2] * 4, OLD)
        assert 200 in statuses  # a writer is waited for, unless it begins while the file is read
        # Staged weights are in the server's own memory.
        write(path, weights(7))
        assert server.admin("POST", "m/weights?commit=true", push).status == 200
        os.truncate(path, 0)
        assert answer_of(server) == [7] * 4


def test_weights_by_file_of_a_writer_that_pauses_are_refused(folder):
    """Half of it is new; a pause that is longer than the whole reading leaves no trace in the file's times."""
    path = folder / "w.safetensors"
    path.write_bytes(weights(1))
    new = weights(2)
    push = {"file": "w.safetensors"}
    with AdminServer(f"m={UPDATE}", flags=["--weights-dir", folder]) as server:
        with open(path, "r+b") as file:
            file.write(new[:len(new) // 2])
            file.flush()
            answer = server.admin("POST", "m/weights?commit=true", push)
            assert answer.status == 400 and "open for writing" in answer.json["error"], answer.body
            assert answer_of(server) == OLD
            file.write(new[len(new) // 2:])
        assert server.admin("POST", "m/weights?commit=true", push).status == 200
        assert answer_of(server) == [2] * 4


@pytest.mark.parametrize("leases", [True, pytest.param(False, marks=root_only)])
def test_weights_of_a_package_by_file_that_is_truncated_meanwhile(folder, leases):
    path = folder / "w.pt2"
    archive(changed(), path)
    whole = path.read_bytes()
    if not leases:
        give_away(path)

    def rewrite(_):
        os.truncate(path, 4096)
        write(path, whole, truncate=False)

    with AdminServer(f"m={UPDATE}", flags=["--weights-dir", folder],
                     prefix=() if leases else WITHOUT_LEASES) as server:
        with rewriting(rewrite):
            for _ in range(40):
                answer = server.admin("POST", "m/weights?commit=true", {"file": "w.pt2"})
                assert answer.status in (200, 400, 503), answer.body
                assert answer_of(server) in (OLD, NEW)
        assert answer_of(server) in (OLD, NEW)
