"""The active set gets a larger number, so that servers which serve one set say one weight version."""
import json
import signal

import pytest
from admin_server import FAKE, GOOD, ONES, STORED, STREAM, AdminServer, Clients, expected
from serving import until
from watched_calls import Calls
from weights_files import fake_weights

ROUTE = "fake/weights/set-version"


@pytest.fixture()
def server():
    with AdminServer(f"fake={FAKE}") as running:
        yield running


def digest(server):
    return server.sets(query="digest=true")["active"]["digest"]


def set_version(server, weight_version, **which):
    return server.admin("POST", ROUTE, {"weight_version": weight_version, **(which or {"digest": digest(server)})})


def test_the_number_grows_and_the_answers_stay(server):
    assert server.push("fake", GOOD, "commit=true&label=v8&push=p").status == 200
    with Clients(server, count=4) as clients:
        until(lambda: clients.answers > 50)
        for weight_version in (7, 8, 1000):
            answer = set_version(server, weight_version)
            assert answer.status == 200 and answer.json["generation"] == weight_version, answer.body
            assert server.ones() == (expected(8), weight_version)
        until(lambda: clients.weight_versions.get(1000) == (16, "v8"))
    assert not clients.problems
    push = server.admin("GET", "fake/weights/pushes").json["pushes"][0]
    assert push["weight_version"] == 1000 and push["active"] is True
    assert server.metrics()['sconce_model_weight_generation{model="fake",version="1"}'] == 1000
    told = server.admin("GET", "/v2/admin/audit?model=fake").json["entries"]
    assert [(e["before"], e["weight_version"], e["label"]) for e in told if e["event"] == "version_set"] == [
        (2, 7, "v8"), (7, 8, "v8"), (8, 1000, "v8")]
    # What comes next gets the next number, and the way back is there.
    assert server.admin("POST", "fake/weights/rollback").json["generation"] == 1001
    assert server.ones() == (STORED, 1001) and server.sets()["previous"]["weight_version"] == 1000


def test_who_asks_says_which_set_is_meant(server):
    assert server.push("fake", GOOD, "commit=true&label=v8").status == 200
    right = digest(server)
    for which in ({"label": "v7"}, {"label": ""}, {"digest": "sha-256:00"}, {"digest": right, "label": "v7"},
                  {"digest": "", "label": "v8"}):
        answer = set_version(server, 9, **which)
        assert answer.status == 409 and "of the active weights is" in answer.json["error"], answer.body
    assert server.ones()[1] == 2
    assert set_version(server, 5, label="v8").status == 200
    assert set_version(server, 6, label="v8", digest=right).status == 200
    assert set_version(server, 6, label="v8").status == 200  # it has this number
    smaller = set_version(server, 5, label="v8")
    assert smaller.status == 409 and "numbers only grow" in smaller.json["error"]
    assert server.ones()[1] == 6


@pytest.mark.parametrize("place", ["fake/weights", "fake/versions/1/weights", "fake/sets/t", "fake/versions/1/sets/t"])
def test_the_former_route_answers_for_one_release(place):
    with AdminServer(f"fake={FAKE}", flags=["--set", "*.sets=4"]) as server:
        assert server.push("fake", GOOD, "commit=true&label=v8").status == 200
        assert server.admin("POST", "fake/sets/t?label=v8", GOOD, STREAM).status == 200
        answer = server.admin("POST", f"{place}/renumber", {"generation": 9, "label": "v8"})  # deprecated names
        assert answer.status == 200, answer.body
        got = server.infer("fake@t" if "sets" in place else "fake", ONES)
        assert got.headers["Sconce-Weight-Version"] == got.headers["Sconce-Weight-Version"] == "9"


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", {"weight_version": 9}, {"weight_version": 9, "label": 7}, {"label": ""},
                                  {"weight_version": 0, "label": ""}, {"weight_version": -9, "label": ""},
                                  {"weight_version": 2**53 + 1, "label": ""}, {"weight_version": "9", "label": ""},
                                  {"weight_version": 9, "label": "", "more": 1}])
def test_requests_that_are_none(server, body):
    assert server.admin("POST", ROUTE, body).status == 400
    assert server.ones()[1] == 1


def test_the_largest_number(server):
    assert set_version(server, 2**53).json["generation"] == 2**53
    assert server.push("fake", GOOD, "commit=true").json["generation"] == 2**53 + 1
    assert server.post(f"/v2/admin/models/{ROUTE}", b"{}").status == 404  # not on the public listener
    assert server.admin("POST", ROUTE + "?x=1", {"weight_version": 9, "label": ""}).status == 400
    assert server.admin("POST", "nobody/weights/set-version", {"weight_version": 9, "label": ""}).status == 404


def test_watched_weights_store_their_number(server):
    assert server.push("fake", GOOD, "commit=true&guard=600s").status == 200
    answer = set_version(server, 9)
    assert answer.status == 409 and "is watched" in answer.json["error"]
    assert server.ones()[1] == 2


def test_a_staged_set_stays(server):
    assert server.push("fake", GOOD, "label=v8").status == 200
    assert set_version(server, 9).status == 200
    assert server.sets()["staged"]["label"] == "v8"
    assert server.admin("POST", "fake/weights/commit").json["generation"] == 10


def test_a_restart_says_the_new_number(tmp_path):
    folder = tmp_path / "kept"
    flags = ["--weights-store", str(folder)]
    with AdminServer(f"fake={FAKE}", flags=flags) as server:
        # Nothing is stored yet: the package's own weights get the number for as long as the process lives.
        assert set_version(server, 3).json["stored"] is False
        assert server.push("fake", GOOD, "commit=true&label=v8&push=p").json["generation"] == 4
        answer = set_version(server, 9)
        assert answer.status == 200 and answer.json["stored"] is True
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    assert json.loads((folder / "fake/1/journal.json").read_text())["sets"][0]["generation"] == 9
    with AdminServer(f"fake={FAKE}", flags=flags) as server:
        assert server.ones() == (expected(8), 9)
        push = server.admin("GET", "fake/weights/pushes").json["pushes"][0]
        assert push["weight_version"] == 9 and push["active"] is True
        assert server.admin("POST", "/v2/repository/models/fake/load", b"").status == 200
        assert server.ones() == (expected(8), 9)
        # Another set, which is not stored, leaves what is stored alone.
        assert server.push("fake", fake_weights(2), "commit=true&store=false").json["generation"] == 10
        assert set_version(server, 20).json["stored"] is False
    with AdminServer(f"fake={FAKE}", flags=flags) as server:
        assert server.ones() == (expected(8), 9)


def test_a_number_that_cannot_be_stored_is_not_taken(tmp_path):
    folder = tmp_path / "kept"
    calls = Calls(tmp_path / "calls")
    with AdminServer(f"fake={FAKE}", flags=["--weights-store", str(folder)],
                     environment=calls.environment(folder)) as server:
        assert server.push("fake", GOOD, "commit=true").status == 200
        failed = 0
        for number in range(1, 40):
            calls.watch(fail_at=number, error=28)
            answer = set_version(server, 10 + number)
            assert answer.status in (200, 500), answer.body
            kept = json.loads((folder / "fake/1/journal.json").read_text())["sets"][0]["generation"]
            if answer.status == 200:
                assert server.ones() == (expected(8), 10 + number) and kept == 10 + number
            else:
                failed += 1
                assert "No space left" in answer.json["error"]
                assert server.ones()[1] <= kept  # a restart does not make it smaller
            if calls["count"] < number:
                break
        assert failed >= 4 and answer.status == 200


def test_a_named_set():
    with AdminServer(f"fake={FAKE}", flags=["--set", "*.sets=4"]) as server:
        assert server.admin("POST", "fake/sets/t?label=v8&push=p", GOOD, STREAM).status == 200
        assert server.admin("POST", "fake/weights/commit?push=p").status == 200
        assert server.push("fake", fake_weights(3), "commit=true").status == 200

        def answer():
            got = server.infer("fake@t", ONES)
            return got.json["outputs"][0]["data"], int(got.headers["Sconce-Weight-Version"])
        told = server.admin("GET", "fake/sets/t?digest=true").json
        assert answer() == (expected(8), told["generation"])

        def set_version(weight_version, **which):
            return server.admin("POST", "fake/sets/t/set-version", {"weight_version": weight_version, **which})
        own = server.ones()
        for which in ({"label": "v7"}, {"digest": "sha-256:00"}, {"digest": told["digest"], "label": "v7"}):
            wrong = set_version(9, **which)
            assert wrong.status == 409 and "of set 't' is" in wrong.json["error"], wrong.body
        for weight_version in (7, 7, 1000):
            now = set_version(weight_version, digest=told["digest"])
            assert now.status == 200 and now.json["generation"] == weight_version, now.body
            assert answer() == (expected(8), weight_version)
        smaller = set_version(8, label="v8")
        assert smaller.status == 409 and "numbers only grow" in smaller.json["error"]
        assert set_version(0, label="v8").status == set_version(1001).status == 400
        assert server.admin("POST", "fake/sets/u/set-version", {"weight_version": 5, "label": ""}).status == 404
        assert server.ones() == own
        push = server.admin("GET", "fake/weights/pushes?push=p").json["pushes"][0]
        assert (push["weight_version"], push["active"]) == (1000, True)
        entries = server.admin("GET", "/v2/admin/audit?model=fake").json["entries"]
        assert [(e["set"], e["before"], e["weight_version"]) for e in entries if e["event"] == "version_set"] == [
            ("t", told["generation"], 7), ("t", 7, 1000)]
        # The next weights of the server get the next number, and the push can still be undone.
        assert server.push("fake", fake_weights(4), "commit=true").json["generation"] == 1001
        assert server.admin("POST", "fake/weights/rollback?push=p").status == 200
        assert server.infer("fake@t", ONES).status == 404


def test_a_named_sets_number_outlives_the_server(tmp_path):
    flags = ["--set", "*.sets=4", "--set", f"*.sets_folder={tmp_path}"]
    with AdminServer(f"fake={FAKE}", flags=flags) as server:
        assert server.admin("POST", "fake/sets/t?label=v8", GOOD, STREAM).status == 200
        assert server.admin("POST", "fake/sets/t/set-version", {"weight_version": 50, "label": "v8"}).status == 200
        server.stop(signal.SIGKILL)
    with AdminServer(f"fake={FAKE}", flags=flags) as server:
        got = server.infer("fake@t", ONES)
        assert (got.json["outputs"][0]["data"], got.headers["Sconce-Weight-Version"]) == (expected(8), "50")
        assert server.ones() == (STORED, 1)
        assert server.push("fake", fake_weights(4), "commit=true").json["generation"] == 51
