"""Published weights are watched for a while, and go back by themselves if requests fare badly with them."""
import json
import subprocess
import urllib.parse

import pytest
from admin_server import FAKE, GOOD, STORED, AdminServer, Clients, expected, url
from serving import FAIL_INPUT, FAKE_MODELS, PROGRAM, until
from weights_files import fake_weights

NAN = fake_weights(float("nan"))


@pytest.fixture()
def server():
    with AdminServer(f"fake={FAKE}", flags=["--set", "fake.sets=2"]) as running:
        yield running


def guard(server, model="fake"):
    return server.admin("GET", f"{model}/weights/guard").json


def over(server, model="fake"):
    """The watch, once it is over."""
    until(lambda: guard(server, model)["state"] != "watching", 20)
    return guard(server, model)


def commit(server, data, query, label="new"):
    answer = server.push("fake", data, f"commit=true&label={label}&{query}")
    assert answer.status == 200, answer.body
    return answer.json["generation"]


def ask(server, times, model="fake", value=1.0):
    return [server.infer(model, {"INPUT__0": ("FP32", [1, 4], [value] * 4)}).status for _ in range(times)]


def told(server):
    """What the audit log tells of watches: event, by whom, why."""
    entries = server.admin("GET", "/v2/admin/audit?model=fake").json["entries"]
    return [(e["event"], e.get("reason"), e["weight_version"]) for e in entries if e["by"] == {"server": "guard"}]


def guards_in_metrics(server):
    return {r: server.metrics()[f'sconce_weight_guards_total{{result="{r}"}}'] for r in ("passed", "rolled_back")}


def test_good_weights_stay(server):
    assert guard(server) == {"model": "fake", "version": "1", "state": "none"}
    assert "guard" not in server.admin("GET", "fake/weights").json
    commit(server, fake_weights(2), "")
    with Clients(server, count=2) as clients:
        weight_version = commit(server, GOOD, "guard=3s&guard_p99=60s")
        watched = guard(server)
        assert watched["state"] == "watching" and watched["weight_version"] == weight_version
        assert 0 < watched["seconds_left"] <= 3
        assert watched["bounds"] == {"seconds": 3, "errors": 0.01, "nan": 0, "p99_ms": 60000}
        assert server.admin("GET", "fake/weights").json["guard"]["state"] == "watching"
        ended = over(server)
    assert not clients.problems
    assert ended["state"] == "passed" and ended["seconds_left"] == 0 and "reason" not in ended
    assert 0 < ended["answers"] <= clients.answers and ended["failures"] == ended["answers_with_nan"] == 0
    assert 0 < ended["p99_ms"] < 60000
    assert server.ones() == (expected(8), weight_version)
    assert guards_in_metrics(server) == {"passed": 1, "rolled_back": 0}
    assert told(server) == [("guard_passed", None, weight_version)]


def test_the_first_nan_brings_the_old_weights_back(server):
    weight_version = commit(server, NAN, "guard=60s")
    assert ask(server, 1) == [200]
    ended = over(server)
    assert ended["state"] == "rolled_back" and ended["answers_with_nan"] >= 1
    assert ended["reason"].endswith("have a NaN, guard_nan is 0")
    assert server.ones() == (STORED, weight_version + 1)
    assert server.sets()["previous"]["label"] == "new"
    assert guards_in_metrics(server) == {"passed": 0, "rolled_back": 1}
    assert told(server) == [("rolled_back", ended["reason"], weight_version + 1)]
    # It is over: the next weights can come.
    assert commit(server, GOOD, "") == weight_version + 2


def test_no_request_fails_while_weights_go_back(server):
    """Clients compare each answer with what its weight version answered before; NaN would not be equal to itself."""
    commit(server, fake_weights(2), "")
    with Clients(server, count=4) as clients:
        commit(server, GOOD, "guard=60s&guard_p99=1us")
        ended = over(server)
    assert ended["state"] == "rolled_back" and ended["answers"] >= 100
    assert "guard_p99 is 1 us" in ended["reason"]
    assert not clients.problems and clients.answers > 100


def test_a_share_of_nan_may_be_allowed(server):
    commit(server, NAN, "guard=1s&guard_nan=1")
    assert set(ask(server, 30)) == {200}
    assert over(server)["state"] == "passed"


def looks_again(server):
    """The server looks at all that it watches, at least twice: another model's weights pass their watch."""
    assert server.push("other", GOOD, "commit=true&guard=200ms").status == 200
    assert over(server, "other")["state"] == "passed"


def test_failures_in_the_model():
    flags = ["--set", "fake.guard=60s", "--set", "fake.guard_errors=0.4"]
    with AdminServer(f"fake={FAKE_MODELS / 'fake_batched.pt2'}", f"other={FAKE}", flags=flags) as server:
        fail = {"INPUT__0": ("FP32", [1, 4], [FAIL_INPUT, 2, 3, 4])}
        assert [server.infer("fake", fail).status for _ in range(30)] == [500] * 30
        weight_version = commit(server, GOOD, "")
        assert guard(server)["failures"] == 0  # those from before do not count
        # What a client does wrong is not the weights' fault.
        for _ in range(30):
            assert server.post("/v2/models/fake/infer", b"{").status == 400
        assert ask(server, 12) == [200] * 12
        assert [server.infer("fake", fail).status for _ in range(7)] == [500] * 7
        looks_again(server)
        assert guard(server)["state"] == "watching" and guard(server)["failures"] == 7  # 7 of 19: too few to say
        assert server.infer("fake", fail).status == 500
        looks_again(server)
        assert guard(server)["state"] == "watching"  # 8 of 20 are 0.4
        assert server.infer("fake", fail).status == 500
        ended = over(server)
        assert ended["state"] == "rolled_back" and ended["reason"] == (
            "9 of 21 requests failed in the model, guard_errors is 0.4")
        assert server.ones()[1] == weight_version + 1


def test_the_previous_set_stays_while_weights_are_watched(server):
    assert server.admin("POST", "fake/sets/other?mode=full", fake_weights(3),
                        {"Content-Type": "application/octet-stream"}).status == 200
    weight_version = commit(server, GOOD, "guard=60s")
    for answer in (server.push("fake", fake_weights(9)), server.admin("POST", "fake/weights/release"),
                   server.admin("POST", "fake/sets/other/promote")):
        assert answer.status == 409 and f"weight version {weight_version} is watched for" in answer.json["error"]
    assert server.push("fake", fake_weights(9), "dry_run=true").status == 200
    # A rollback by hand ends the watch.
    assert server.admin("POST", "fake/weights/rollback").status == 200
    ended = over(server)
    assert ended["state"] == "ended" and ended["reason"] == f"weight version {weight_version + 1} was published"
    assert server.ones() == (STORED, weight_version + 1)
    # A named set that becomes active is watched, too.
    assert server.admin("POST", "fake/sets/other/promote?guard=60s&guard_nan=1").status == 200
    assert guard(server)["state"] == "watching"


def test_bounds_that_are_none(server):
    for wrong in ("guard=abc", "guard_nan=2", "guard_nan=nan", "guard_errors=-1", "guard_p99=5", "guard_errors="):
        answer = server.push("fake", GOOD, "commit=true&" + wrong)
        assert answer.status == 400 and wrong.split("=")[0] in answer.json["error"], wrong
    assert server.ones()[0] == STORED


def test_nothing_to_go_back_to():
    with AdminServer(f"fake={FAKE_MODELS / 'fake_weightless.pt2'}", wait=False) as server:
        until(lambda: server.admin("GET", "fake/weights").status == 200)
        assert server.push("fake", GOOD, "commit=true&guard=60s").status == 200
        assert guard(server)["state"] == "none"
        until(lambda: any("is not watched: there is no complete previous set" in line for line in server.log))


def test_a_model_that_is_unloaded_or_loaded_again(server):
    commit(server, GOOD, "guard=60s")
    assert server.post("/v2/repository/models/fake/unload", b"{}", port=server.ports["administration"]).status == 200
    assert server.post("/v2/repository/models/fake/load", b"{}", port=server.ports["administration"]).status == 200
    until(lambda: server.admin("GET", "fake/weights/guard").status == 200)
    assert guard(server)["state"] == "none"
    assert server.ones()[0] == STORED


def test_what_is_stored_is_what_came_back(tmp_path):
    with AdminServer(f"fake={FAKE}", flags=["--weights-store", str(tmp_path)]) as server:
        commit(server, GOOD, "", label="good")
        weight_version = commit(server, NAN, "guard=60s", label="bad")
        ask(server, 1)
        assert over(server)["state"] == "rolled_back"
    journal = json.loads((tmp_path / "fake/1/journal.json").read_text())
    assert "guard" in json.dumps(journal)
    with AdminServer(f"fake={FAKE}", flags=["--weights-store", str(tmp_path)]) as server:
        assert server.ones() == (expected(8), weight_version + 1)


@pytest.mark.parametrize("peers", [True, False])
def test_all_servers_of_a_push_go_back_if_one_does(tmp_path, peers):
    """With weights_peers, servers tell each other; without, the coordinator does."""
    path = tmp_path / "nan.safetensors"
    path.write_bytes(NAN)
    flags = ["--weights-peers", "127.0.0.1"] if peers else []
    with AdminServer(f"fake={FAKE}", flags=flags) as one, AdminServer(f"fake={FAKE}", flags=flags) as two, \
            AdminServer(f"fake={FAKE}", flags=flags) as three:
        servers = [one, two, three]
        to = ",".join(map(url, servers))
        if peers:
            members = urllib.parse.quote(to, safe="")
            for i, server in enumerate(servers):
                assert server.push("fake", NAN, f"push=p&members={members}&member={i}").status == 200
            for server in servers:
                assert server.admin("POST", "fake/weights/prepare?push=p").status == 200
            for server in servers:
                assert server.admin("POST", "fake/weights/commit?push=p&guard=60s").status == 200
            ask(two, 1)
        else:
            push = subprocess.Popen([PROGRAM, "weights", "push", path, "--model", "fake", "--to", to, "--guard", "60s"],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            until(lambda: all(guard(s)["state"] == "watching" for s in servers))
            ask(two, 1)
            text, _ = push.communicate(timeout=30)
            assert push.returncode == 1, text
            assert f"{url(two)}: rolled back: " in text and f"{url(one)}: rolled back\n" in text, text
        # Asking a model would be one more answer with a NaN.
        until(lambda: all(s.sets()["active"]["weight_version"] == 3 for s in servers), 20, lambda: [s.log for s in servers])
        assert [s.ones() for s in servers] == [(STORED, 3)] * 3
        for server in servers:
            states = [p["state"] for p in server.admin("GET", "fake/weights/pushes").json["pushes"]]
            assert states == ["undone"]
        assert guard(two)["state"] == "rolled_back"
        until(lambda: guard(one)["state"] == "ended")


def test_a_push_that_is_watched_to_the_end(tmp_path):
    path = tmp_path / "good.safetensors"
    path.write_bytes(GOOD)
    with AdminServer(f"fake={FAKE}") as one, AdminServer(f"fake={FAKE}") as two:
        push = subprocess.run([PROGRAM, "weights", "push", path, "--model", "fake", "--to", f"{url(one)},{url(two)}",
                               "--guard", "1s", "--guard-p99", "60s"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
        assert push.returncode == 0, push.stdout
        assert "passed the guard with 0 requests" in push.stdout
        assert one.ones() == two.ones() == (expected(8), 2)
        wrong = subprocess.run([PROGRAM, "weights", "push", path, "--model", "fake", "--to", f"{url(one)},{url(two)}",
                                "--guard", "soon"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
        assert wrong.returncode == 1 and "setting guard: expected a duration" in wrong.stdout
        assert one.ones() == two.ones() == (expected(8), 2)
