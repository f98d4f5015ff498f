"""Published weights outlive the server: restarts, reloads, crashes at each step of writing, damage, full disks."""
import errno
import itertools
import json
import os
import pathlib
import shutil
import signal

import pytest
from admin_server import FAKE, LARGE, LARGE_FEATURES, STORED, AdminServer, expected
from serving import FAKE_MODELS, run_serve, until
from watched_calls import Calls
from weights_files import fake_weights

JOURNAL = "fake/1/journal.json"


def storing_server(folder, *flags, model=FAKE, calls=None, wait=True):
    environment = {} if calls is None else calls.environment(folder)
    return AdminServer(f"fake={model}", flags=["--weights-store", str(folder), *flags], environment=environment, wait=wait)


def push(server, value, label, query="", features=4):
    answer = server.push("fake", fake_weights(value, features), f"commit=true&label={label}{query}")
    assert answer.status == 200, answer.body
    return answer.json


def kill(server):
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()


def files(folder):
    return sorted(p.name for p in (folder / "fake/1").iterdir())


def metric(server, name):
    return server.metrics()[f'sconce_model_stored_weight{name}{{model="fake",version="1"}}']


def journal(folder):
    return json.loads((folder / JOURNAL).read_text())["sets"]


@pytest.fixture()
def folder(tmp_path):
    return tmp_path / "kept"


@pytest.fixture()
def two(folder):
    """A folder in which weight versions 2 ("a") and 3 ("b") are stored."""
    with storing_server(folder) as server:
        push(server, 5, "a")
        push(server, 7, "b")
        kill(server)
    return folder


def test_a_restart_serves_what_was_pushed(folder):
    with storing_server(folder) as server:
        assert server.served() == (STORED, 1, "")
        assert server.admin("GET", "fake/weights").json["stored"] is False
        pushed = push(server, 5, "five")
        assert pushed["stored"] is True and pushed["generation"] == 2
        digest = server.sets(query="digest=true")["active"]["digest"]
        assert metric(server, "_version") == 2 and metric(server, "s_problem") == 0
        kill(server)
    record = journal(folder)[0]
    assert (record["generation"], record["label"], record["digest"]) == (2, "five", digest)
    assert record["peer"].startswith("127.0.0.1:") and record["request"] and record["time"].endswith("Z")
    with storing_server(folder) as server:
        assert server.served() == (expected(5), 2, "five")
        sets = server.sets(query="digest=true")
        assert list(sets) == ["active"] and sets["active"]["digest"] == digest
        assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1] * 4)}).json["parameters"]["weight_version"] == "five"
        answer = server.admin("GET", "fake/weights").json
        assert answer["stored"] is True and answer["ready"] is True
        assert push(server, 6, "six")["generation"] == 3
        assert server.stop() == 0
    with storing_server(folder) as server:
        assert server.served() == (expected(6), 3, "six")


def test_commit_and_rollback_are_stored_and_old_files_go(two):
    with storing_server(two) as server:
        assert server.push("fake", fake_weights(9), "label=c").status == 200
        committed = server.admin("POST", "fake/weights/commit").json
        assert committed["generation"] == 4 and committed["stored"] is True
        assert len([f for f in files(two) if f.endswith(".safetensors")]) == 2
        back = server.admin("POST", "fake/weights/rollback").json
        assert back["generation"] == 5 and back["stored"] is True
        kill(server)
    assert [s["label"] for s in journal(two)] == ["b", "c"]
    with storing_server(two) as server:
        assert server.served() == (expected(7), 5, "b")
        assert push(server, 1, "d")["generation"] == 6
        assert [s["label"] for s in journal(two)] == ["d", "b"]
        assert len([f for f in files(two) if f.endswith(".safetensors")]) == 2


def test_a_partial_update_is_stored_as_a_whole_set(folder):
    from weights_files import repeated, safetensors
    with storing_server(folder) as server:
        assert server.push("fake", safetensors({"scale.b": repeated(3, 4)}), "mode=partial&commit=true").status == 200
        answer = server.ones()
        kill(server)
    with storing_server(folder) as server:
        assert server.ones() == answer


def test_a_set_need_not_be_kept(two):
    with storing_server(two) as server:
        answer = push(server, 9, "c", "&store=false")
        assert answer["stored"] is False and "store=false" in answer["store_problem"] and answer["generation"] == 4
        assert server.push("fake", fake_weights(9), "store=perhaps").status == 400
        assert server.admin("POST", "fake/weights/rollback?store=false").json["stored"] is False
        kill(server)
    with storing_server(two) as server:
        assert server.served() == (expected(7), 3, "b")


CHANGES = {
    "push": (lambda s: s.push("fake", fake_weights(9), "commit=true&label=c"), (expected(9), 4, "c")),
    "rollback": (lambda s: s.admin("POST", "fake/weights/rollback"), (expected(5), 5, "a")),
}


@pytest.mark.parametrize("halve", [0, 1], ids=["before", "within"])
@pytest.mark.parametrize("change", CHANGES)
def test_killed_at_each_call(tmp_path, folder, change, halve):
    """After a crash, the server serves the old or the new set; the new one if the commit was answered."""
    act, new = CHANGES[change]
    calls = Calls(tmp_path / "calls")
    killed = []
    for number in itertools.count(1):
        assert number < 60
        shutil.rmtree(folder, ignore_errors=True)
        with storing_server(folder, calls=calls) as server:
            push(server, 5, "a")
            push(server, 7, "b")
            old = server.served()
            if change == "rollback":  # from 4, "c", back to "b"
                push(server, 5, "a")
                push(server, 7, "b")
                old = (expected(7), 5, "b")
                new = (expected(5), 6, "a")
            calls.watch(kill_at=number, halve=halve)
            try:
                answered = act(server).status == 200
            except OSError:
                answered = False
            count = calls["count"]
            if count < number:
                assert answered
            kill(server)
        with storing_server(folder) as server:
            now = server.served()
            assert now in ((new,) if answered else (old, new)), (number, calls.names())
            assert not server.index()["fake"][1]
            assert push(server, 2, "after")["stored"] is True  # files of the crash do not disturb
            kill(server)
        assert not [f for f in files(folder) if f.endswith(".part")]
        killed.append(now == new)
        if count < number:
            break
    assert killed == sorted(killed) and killed[0] is False and len(killed) > 6  # old sets, then new ones


def test_bytes_are_on_the_disk_before_their_name(tmp_path, two):
    calls = Calls(tmp_path / "calls")
    with storing_server(two, calls=calls) as server:
        calls.watch()
        push(server, 9, "c")
        names = " ".join(name for name in calls.names() if name != "write")
    assert names.startswith("mkdir mkdir create fsync rename fsync unlink link create fsync rename fsync unlink"), names


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_each_call_fails(tmp_path, folder, error):
    """The new set is served in any case, and after a restart if the answer says that it is stored."""
    calls = Calls(tmp_path / "calls")
    refused = 0
    with storing_server(folder, calls=calls) as server:
        value = 1
        for number in itertools.count(1):
            push(server, value, f"before-{number}")
            calls.watch(fail_at=number, error=error)
            answer = push(server, value + 1, f"at-{number}")
            assert server.ones()[0] == expected(value + 1)
            shutil.copytree(folder, tmp_path / f"copy-{number}", ignore=shutil.ignore_patterns(".lock"))
            if not answer["stored"]:
                refused += 1
                assert os.strerror(error) in answer["store_problem"], answer
                assert server.index()["fake"] == ("READY", answer["store_problem"])
                assert metric(server, "s_failures_total") == refused and metric(server, "s_problem") == 1
            with storing_server(tmp_path / f"copy-{number}") as copy:
                kept = json.loads((folder / JOURNAL).read_text())["sets"][0]["label"]
                assert copy.served()[2] == kept
                assert not answer["stored"] or kept == f"at-{number}"
            value += 2
            if calls["count"] < number:
                break
        assert refused >= 7
        calls.watch()
        assert push(server, value, "last")["stored"] is True
        assert metric(server, "s_problem") == 0
        assert any("weights are not stored" in line for line in server.log)


def damage(path, at=-1):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


DAMAGES = {
    "torn": (lambda path: os.truncate(path, path.stat().st_size - 5), "outside the file"),
    "empty": (lambda path: os.truncate(path, 0), ""),
    "other bytes": (damage, "digest"),
    "gone": (os.remove, "No such file"),
    "a folder": (lambda path: (os.remove(path), path.mkdir()), ""),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_set(two, how):
    """The server serves the set before it, under a new weight version as after a rollback."""
    harm, said = DAMAGES[how]
    harm(two / "fake/1" / journal(two)[0]["file"])
    for _ in range(2):
        with storing_server(two) as server:
            assert server.served() == (expected(5), 4, "a")
            state, reason = server.index()["fake"]
            assert state == "READY" and "weight version 3 ('b') cannot be used" in reason and said in reason
            assert "weight version 2 ('a') stands in" in reason
            assert metric(server, "s_problem") == 1
            assert server.admin("GET", "fake/weights").json["stored"] is False
            kill(server)
    if how == "a folder":
        return
    with storing_server(two) as server:
        assert push(server, 7, "b")["stored"] is True  # the same values as in the damaged file
        kill(server)
    with storing_server(two) as server:
        assert server.served() == (expected(7), 5, "b")


def test_all_sets_are_damaged(two):
    for record in journal(two):
        damage(two / "fake/1" / record["file"])
    with storing_server(two) as server:
        assert server.served() == (STORED, 4, "")
        assert "cannot be used" in server.index()["fake"][1]
        assert push(server, 2, "c")["generation"] == 5


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2, "sets": []}', '{"format": 1, "sets": [{"generation": "3"}]}',
                                  '{"format": 1, "sets": [{"generation": 3, "label": "b", "digest": "x", "file": "../x", '
                                  '"bytes": 1, "time": "", "peer": "", "request": ""}]}', "[" * 100000])
def test_an_unreadable_journal(two, text):
    (two / JOURNAL).write_text(text)
    with storing_server(two) as server:
        # The previous journal has only "a", and there was at least one set after it.
        assert server.served() == (expected(5), 4, "a")
        assert "journal.json" in server.index()["fake"][1]
        assert push(server, 3, "c")["generation"] == 5
        kill(server)
    with storing_server(two) as server:
        assert server.served() == (expected(3), 5, "c")


def test_a_folder_has_one_server(two):
    with storing_server(two) as server:
        status, log = run_serve(f"fake={FAKE}", "--weights-store", two)
        assert status != 0 and "another server keeps its weights in" in log and f"process {server.process.pid}" in log
        assert server.ones()[0] == expected(7)
    with storing_server(two):
        pass


def test_a_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "no" / "where", pathlib.Path("/proc/kept")):
        status, log = run_serve(f"fake={FAKE}", "--weights-store", path)
        assert status != 0 and "weights_store" in log and str(path) in log


def test_another_package_refuses(two):
    with storing_server(two, model=LARGE, wait=False) as server:
        until(lambda: server.index()["fake"][0] == "UNAVAILABLE")
        reason = server.index()["fake"][1]
        assert "weight version 3 ('b') do not fit the package" in reason and "scale.w" in reason
        assert server.get("/v2/health/ready").status == 503 and server.get("/v2/models/fake/ready").status == 503
        answer = server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1] * 4)})
        assert answer.status == 503 and "do not fit" in answer.json["error"]
        document = server.admin("GET", "fake/weights").json
        assert document["ready"] is False and "do not fit" in document["reason"]
        assert metric(server, "s_problem") == 1
        assert push(server, 2, "large", features=LARGE_FEATURES)["generation"] == 5
        assert server.get("/v2/health/ready").status == 200 and server.index()["fake"] == ("READY", "")
        kill(server)
    with storing_server(two, model=LARGE) as server:
        assert (server.sets()["active"]["weight_version"], server.sets()["active"]["label"]) == (5, "large")


def test_another_package_serves_its_own(two):
    with storing_server(two, "--set", "fake.weights_mismatch=package", model=LARGE) as server:
        assert server.sets()["active"]["weight_version"] == 4 and server.sets()["active"]["label"] == ""
        state, reason = server.index()["fake"]
        assert state == "READY" and "do not fit the package" in reason
        assert any("do not fit the package" in line for line in server.log)
    with storing_server(two) as server:  # and the first package again
        assert server.served() == (expected(7), 3, "b")


def put(package, path):
    shutil.copy(package, path.with_name(".new"))
    os.rename(path.with_name(".new"), path)


def test_reload_and_unload(tmp_path, folder):
    repository = tmp_path / "repository"
    repository.mkdir()
    put(FAKE, repository / "fake.pt2")
    with AdminServer(repository, flags=["--weights-store", str(folder)]) as server:
        push(server, 5, "a")
        for _ in range(3):
            assert server.admin("POST", "/v2/repository/models/fake/load", b"").status == 200
            assert server.served() == (expected(5), 2, "a")
        assert server.admin("POST", "/v2/repository/models/fake/unload", b"").status == 200
        assert server.admin("POST", "/v2/repository/models/fake/load", b"").status == 200
        assert server.served() == (expected(5), 2, "a")
        # A package that does not fit the stored weights does not replace the loaded one.
        put(LARGE, repository / "fake.pt2")
        answer = server.admin("POST", "/v2/repository/models/fake/load", b"")
        assert answer.status >= 400 and "do not fit the package" in answer.json["error"]
        assert server.served() == (expected(5), 2, "a")
        assert "do not fit" in server.index()["fake"][1]
        assert server.admin("GET", "fake/weights").json["stored"] is True and metric(server, "s_problem") == 0


def test_a_watched_package(tmp_path, folder):
    repository = tmp_path / "repository"
    repository.mkdir()
    put(FAKE, repository / "fake.pt2")
    with AdminServer(repository, flags=["--weights-store", str(folder), "--watch", "100ms"]) as server:
        push(server, 5, "a")
        put(FAKE_MODELS / "fake_folded.so", repository / "fake.pt2")
        until(lambda: sum("model fake version 1 is ready:" in line for line in server.log) == 2)
        until(lambda: server.served()[1:] == (2, "a"))
        assert server.ones()[0] == [15] * 4  # the other package computes twice w times x plus b


def test_a_commit_while_the_model_is_loaded_again(tmp_path, folder):
    """The next load serves each set whose commit was answered."""
    repository = tmp_path / "repository"
    repository.mkdir()
    put(FAKE, repository / "fake.pt2")
    import threading
    with AdminServer(repository, flags=["--weights-store", str(folder)]) as server:
        stop = threading.Event()

        def load():
            while not stop.is_set():
                server.admin("POST", "/v2/repository/models/fake/load", b"")

        loader = threading.Thread(target=load)
        loader.start()
        last = 0
        try:
            for value in range(1, 60):
                answer = server.push("fake", fake_weights(value), "commit=true")
                assert answer.status in (200, 503), answer.body
                if answer.status == 200:
                    last = value
                assert server.ones()[0] == (expected(last) if last else STORED)
        finally:
            stop.set()
            loader.join()
        assert last and server.ones()[0] == expected(last)


def test_require_label(folder):
    with storing_server(folder, "--set", "fake.require_label=b", wait=False) as server:
        until(lambda: server.index()["fake"][0] == "UNAVAILABLE")
        assert server.index()["fake"][1] == "the label of its weights is '', require_label is 'b'"
        assert server.get("/v2/health/ready").status == 503 and server.get("/v2/health/live").status == 200
        push(server, 5, "a")
        assert "'a'" in server.index()["fake"][1]
        push(server, 7, "b")
        assert server.get("/v2/health/ready").status == 200 and server.get("/v2/models/fake/ready").status == 200
        assert server.served() == (expected(7), 3, "b")
        assert server.admin("POST", "fake/weights/rollback").status == 200
        assert server.get("/v2/health/ready").status == 503
        answer = server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1] * 4)})
        assert answer.status == 503 and "require_label" in answer.json["error"]
        assert server.admin("POST", "fake/weights/rollback").status == 200
        kill(server)
    with storing_server(folder, "--set", "fake.require_label=b") as server:
        assert server.served() == (expected(7), 5, "b")


def test_a_reload_does_not_replace_what_is_ready(tmp_path):
    with AdminServer(f"fake={FAKE}", flags=["--set", "fake.require_label=a"], wait=False) as server:
        until(lambda: server.index()["fake"][0] == "UNAVAILABLE")
        push(server, 5, "a")
        answer = server.admin("POST", "/v2/repository/models/fake/load", b"")
        assert answer.status >= 400 and "require_label" in answer.json["error"]
        assert server.served() == (expected(5), 2, "a") and server.get("/v2/health/ready").status == 200
