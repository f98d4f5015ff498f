"""A watch over published weights outlives the server: what is left of its window after a kill, a stop or a reload, and
weights under which the process ends again and again."""
import errno
import itertools
import json
import os
import shutil
import signal

import pytest
from admin_server import FAKE, STORED, AdminServer, expected, url
from serving import run_serve, until
from watched_calls import Calls
from weights_files import fake_weights

NAN = fake_weights(float("nan"))
LONG = "guard=600s"


def storing_server(folder, *flags, model=FAKE, calls=None, **more):
    environment = {} if calls is None else calls.environment(folder)
    return AdminServer(f"fake={model}", flags=["--weights-store", str(folder), *flags], environment=environment, **more)


def push(server, data, label, query=""):
    answer = server.push("fake", data, f"commit=true&label={label}&{query}")
    assert answer.status == 200, answer.body
    return answer.json


def guard(server):
    return server.admin("GET", "fake/weights/guard").json


def over(server):
    """The watch, once it is over."""
    until(lambda: guard(server)["state"] != "watching", 60, lambda: guard(server))
    return guard(server)


def kill(server):
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()


def active(server):
    """Weight version and label, without asking the model."""
    one = server.sets()["active"]
    return one["generation"], one["label"]


def journal(folder):
    return json.loads((folder / "fake/1/journal.json").read_text())


def told(server):
    """What the audit log of this process tells of watches."""
    entries = server.admin("GET", "/v2/admin/audit?model=fake").json["entries"]
    return [(e["event"], e.get("before"), e["weight_version"], e.get("reason")) for e in entries
            if e["by"] == {"server": "guard"}]


@pytest.fixture()
def folder(tmp_path):
    return tmp_path / "kept"


@pytest.fixture()
def watched(folder):
    """A folder in which weight version 2 ("a") and 3 ("b", which answers with NaN, watched) are stored; its server was
    killed."""
    with storing_server(folder) as server:
        push(server, fake_weights(5), "a")
        push(server, NAN, "b", LONG + "&push=p")
        kill(server)
    return folder


def test_a_watch_goes_on_after_a_kill(watched):
    with storing_server(watched) as server:
        assert active(server) == (3, "b")
        seen = guard(server)
        assert seen["state"] == "watching" and seen["weight_version"] == 3 and seen["push"] == "p"
        assert 500 < seen["seconds_left"] <= 600 and seen["bounds"]["seconds"] == 600
        assert server.admin("GET", "fake/weights").json["stored"] is True
        assert [s["label"] for s in server.sets().values()] == ["b", "a"]  # the one to go back to is there
        answer = server.push("fake", fake_weights(9))
        assert answer.status == 409 and "weight version 3 is watched" in answer.json["error"]
        assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1] * 4)}).status == 200
        ended = over(server)
        assert ended["state"] == "rolled_back" and ended["reason"].endswith("have a NaN, guard_nan is 0")
        assert server.ones() == (expected(5), 4)
        kill(server)
    assert "guard" not in journal(watched)
    with storing_server(watched) as server:
        assert server.ones() == (expected(5), 4) and guard(server)["state"] == "none"
        assert server.admin("GET", "fake/weights/pushes?push=p").json["pushes"][0]["state"] == "undone"


def test_weights_under_which_the_process_ends_twice(watched):
    with storing_server(watched) as server:
        assert guard(server)["state"] == "watching"
        kill(server)
    with storing_server(watched) as server:
        reason = "the server ended 2 times while weight version 3 ('b') was watched"
        assert server.ones() == (expected(5), 4) and active(server) == (4, "a")
        assert server.admin("GET", "fake/weights").json["stored"] is True
        seen = guard(server)
        assert (seen["state"], seen["weight_version"], seen["reason"]) == ("rolled_back", 3, reason)
        assert told(server) == [("undone", 3, 4, reason)]
        assert server.metrics()['sconce_weight_guards_total{result="rolled_back"}'] == 1
        record = server.admin("GET", "fake/weights/pushes?push=p").json["pushes"][0]
        assert record["state"] == "undone" and record["generation"] == 4 and record["active"] is True
        assert any("weight version 3 is rolled back, 4 is active" in line for line in server.log)
        kill(server)
    kept = journal(watched)
    assert [(s["generation"], s["label"]) for s in kept["sets"]] == [(4, "a"), (3, "b")] and "guard" not in kept
    assert kept["sets"][0]["peer"] == "guard" and kept["sets"][0]["request"] == reason
    for _ in range(3):  # what was gone back to is not watched
        with storing_server(watched) as server:
            assert server.ones() == (expected(5), 4) and guard(server)["state"] == "none"
            kill(server)


def test_an_orderly_end_is_no_crash(folder):
    left = 600
    with storing_server(folder) as server:
        push(server, fake_weights(5), "a")
        push(server, fake_weights(7), "b", LONG)
        server.stop()
    for _ in range(4):
        with storing_server(folder) as server:
            assert server.ones() == (expected(7), 3)
            seen = guard(server)
            # The time in which nobody watched does not count, and what was watched does.
            assert seen["state"] == "watching" and 300 < seen["seconds_left"] < left
            left = seen["seconds_left"]
            assert server.stop() == 0
    assert journal(folder)["guard"]["ended"] == 0 and journal(folder)["guard"]["instance"] == ""


def test_a_server_that_cannot_start_is_no_crash(watched, tmp_path):
    """Its settings are wrong, not its weights."""
    for _ in range(3):
        status, log = run_serve(f"fake={FAKE}", "--weights-store", watched, "--set", f"fake.golden={tmp_path / 'none.npz'}")
        assert status != 0 and "none.npz" in log
    with storing_server(watched) as server:
        assert active(server) == (3, "b") and guard(server)["state"] == "watching"


def test_what_is_left_of_a_window_shrinks_over_kills(folder):
    """It is written while the weights are watched, an eighth of the window at a time."""
    with storing_server(folder) as server:
        push(server, fake_weights(5), "a")
        push(server, fake_weights(7), "b", "guard=16s")
        until(lambda: journal(folder)["guard"]["left_us"] <= 14_000_000, 60)
        kill(server)
    with storing_server(folder) as server:
        assert guard(server)["seconds_left"] <= 14
        ended = over(server)
        assert ended["state"] == "passed" and told(server) == [("guard_passed", None, 3, None)]
        kill(server)
    assert "guard" not in journal(folder)
    for _ in range(2):
        with storing_server(folder) as server:
            assert server.ones() == (expected(7), 3) and guard(server)["state"] == "none"
            kill(server)


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("source", ["package", "file"])
def test_first_weights_go_back_to_where_the_model_started(tmp_path, folder, source, crash):
    """No set was stored before the watched one: the file of weights, or the package's own."""
    flags, values, first = [], STORED, 1
    if source == "file":
        path = tmp_path / "w.safetensors"
        path.write_bytes(fake_weights(6))
        flags, values, first = ["--set", f"fake.weights={path}"], expected(6), 2
    with storing_server(folder, *flags) as server:
        assert server.ones() == (values, first)
        push(server, NAN, "bad", LONG)
        kill(server)
    with storing_server(folder, *flags) as server:
        assert active(server) == (first + 1, "bad") and guard(server)["state"] == "watching"
        if crash:
            kill(server)
        else:
            assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1] * 4)}).status == 200
            assert over(server)["state"] == "rolled_back"
            assert server.ones() == (values, first + 2)
    with storing_server(folder, *flags) as server:
        assert server.ones() == (values, first + 2)
        assert guard(server)["state"] == ("rolled_back" if crash else "none")


def test_a_reload_goes_on_with_the_watch(folder):
    with storing_server(folder) as server:
        push(server, fake_weights(5), "a")
        push(server, NAN, "b", LONG)
        for _ in range(3):  # no process has ended
            assert server.admin("POST", "/v2/repository/models/fake/load", b"").status == 200
            seen = guard(server)
            assert seen["state"] == "watching" and active(server) == (3, "b")
        assert server.admin("POST", "/v2/repository/models/fake/unload", b"").status == 200
        assert server.admin("POST", "/v2/repository/models/fake/load", b"").status == 200
        assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1] * 4)}).status == 200
        assert over(server)["state"] == "rolled_back" and server.ones() == (expected(5), 4)


def test_a_watch_that_was_ended_does_not_begin_again(folder):
    with storing_server(folder) as server:
        push(server, fake_weights(5), "a")
        push(server, fake_weights(7), "b", LONG)
        assert server.admin("POST", "fake/weights/rollback?store=false").status == 200
        assert over(server)["state"] == "ended"
        kill(server)
    for _ in range(3):
        with storing_server(folder) as server:
            assert server.ones() == (expected(7), 3) and guard(server)["state"] == "none"
            kill(server)


def test_the_same_weights_again_are_not_watched_after_a_restart(folder):
    """Going back would change nothing, and must not find the set before."""
    with storing_server(folder) as server:
        push(server, fake_weights(5), "a")
        push(server, fake_weights(7), "b")
        push(server, fake_weights(7), "b", LONG)
        assert guard(server)["state"] == "watching"
        kill(server)
    for _ in range(3):
        with storing_server(folder) as server:
            assert server.ones() == (expected(7), 4) and guard(server)["state"] == "none"
            kill(server)


@pytest.mark.parametrize("crash", [False, True])
def test_the_set_before_is_damaged(watched, crash):
    """Then the package's own weights are what is gone back to."""
    os.remove(watched / "fake/1" / journal(watched)["sets"][1]["file"])
    with storing_server(watched) as server:
        assert active(server) == (3, "b") and guard(server)["state"] == "watching"
        assert any("to which a guard might go back, cannot be used" in line for line in server.log)
        if not crash:
            assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1] * 4)}).status == 200
            assert over(server)["state"] == "rolled_back"
        else:
            kill(server)
    with storing_server(watched) as server:
        assert server.ones() == (STORED, 4)


def test_peers_that_serve_the_watched_set_do_not_bring_it_back(watched):
    with AdminServer(f"fake={FAKE}") as peer:
        for value in (1, 2):
            push(peer, fake_weights(value), "x")
        flags = ["--set", f"fake.weights_from={url(peer)}"]
        assert active(peer)[0] == 3
        with storing_server(watched, *flags) as server:
            assert guard(server)["state"] == "watching"
            kill(server)
        with storing_server(watched, *flags) as server:
            assert server.ones() == (expected(5), 4)
            server.stop()
        for value in (3, 4):
            push(peer, fake_weights(value), "y")
        with storing_server(watched, *flags) as server:
            assert server.ones() == (expected(4), 5)  # newer than what was gone back to


@pytest.mark.parametrize("halve", [0, 1], ids=["before", "within"])
def test_killed_at_each_call(tmp_path, folder, halve):
    """The new set is never served without its watch, nor without its push being known as committed."""
    calls = Calls(tmp_path / "calls")
    seen = []
    for number in itertools.count(1):
        assert number < 60
        shutil.rmtree(folder, ignore_errors=True)
        with storing_server(folder, calls=calls) as server:
            push(server, fake_weights(5), "a")
            calls.watch(kill_at=number, halve=halve)
            try:
                answered = server.push("fake", fake_weights(7), f"commit=true&label=b&push=p&{LONG}").status == 200
            except OSError:
                answered = False
            count = calls["count"]
            kill(server)
        with storing_server(folder) as server:
            assert active(server) in ([(3, "b")] if answered else [(2, "a"), (3, "b")])
            new = active(server)[0] == 3
            assert guard(server)["state"] == ("watching" if new else "none"), calls.names()
            assert [p["state"] for p in server.admin("GET", "fake/weights/pushes").json["pushes"]] == ["committed"] * new
            seen.append(new)
            kill(server)
        if count < number:
            break
    assert seen == sorted(seen) and not seen[0] and seen[-1]


def test_killed_while_the_next_process_starts(tmp_path, watched):
    """Whatever it was doing, the third one goes back."""
    calls = Calls(tmp_path / "calls")
    for number in itertools.count(1):
        assert number < 30
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(watched, copy, ignore=shutil.ignore_patterns(".lock"))
        calls.watch(kill_at=number)
        try:
            with storing_server(copy, calls=calls) as server:
                count = calls["count"]
                kill(server)
        except Exception:  # it ended before it was ready
            count = calls["count"]
        with storing_server(copy) as server:
            # A process that was killed before it had noted that it watches has not ended while watching.
            state = guard(server)["state"]
            assert (state, active(server)) in (("rolled_back", (4, "a")), ("watching", (3, "b"))), number
            if count < number:
                assert state == "rolled_back"
            kill(server)
        if count < number:
            break


def test_a_full_disk_does_not_end_the_watch(tmp_path, watched):
    """Whichever call fails at the start: the server says why it does not start, or it watches."""
    calls = Calls(tmp_path / "calls")
    said = 0
    for number in itertools.count(1):
        assert number < 40
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(watched, copy, ignore=shutil.ignore_patterns(".lock"))
        calls.watch(fail_at=number, error=errno.ENOSPC)
        try:
            with storing_server(copy, calls=calls) as server:
                assert active(server) == (3, "b") and guard(server)["state"] == "watching"
                said += any("that this process watches weight version 3 ('b') is not stored: " in line for line in server.log)
                server.stop()
        except RuntimeError as refused:  # the folder cannot be used at all
            assert "setting weights_store: " in str(refused) and os.strerror(errno.ENOSPC) in str(refused)
        if calls["count"] < number:
            break
    assert said >= 4  # a file is made, written, synchronised and renamed


@pytest.mark.parametrize("wrong", [{"window_us": -1}, {"left_us": "x"}, {"errors": "0.1"}, {"ended": 1.5}, 7, []])
def test_a_watch_that_cannot_be_read(watched, wrong):
    """The journal is damaged: the one before it counts."""
    text = journal(watched)
    text["guard"] = {**text["guard"], **wrong} if isinstance(wrong, dict) else wrong
    (watched / "fake/1/journal.json").write_text(json.dumps(text))
    with storing_server(watched) as server:
        assert server.ones() == (expected(5), 4) and guard(server)["state"] == "none"
        assert "journal.json" in server.post("/v2/repository/index", b"").json[0]["reason"]
