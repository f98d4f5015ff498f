"""Named sets of weights: how requests choose one, routes for the others, memory and disk, the admin port."""
import collections
import concurrent.futures
import errno
import itertools
import json
import os
import struct
import threading

import pytest
from admin_server import FAKE, ONES, STORED, STREAM, AdminServer
from serving import FAKE_MODELS, PACKAGES, numbers, raw_post, until
from watched_calls import Calls
from weights_files import fake_weights, floats, repeated, safetensors

FLAGS = ["--set", "*.sets=1000"]
BATCHED = FAKE_MODELS / "fake_batched.pt2"


class SetsServer(AdminServer):
    def put(self, name, data, query="", model="fake", **more):
        return self.admin("POST", f"{model}/sets/{name}?{query}", data, STREAM, **more)

    def held(self, model="fake"):
        return {s["name"]: s for s in self.admin("GET", f"{model}/sets").json["sets"]}

    def routes(self, shares, model="fake"):
        return self.admin("PUT", f"{model}/routes", shares)


def data(answer):
    assert answer.status == 200, answer.body
    return answer.json["outputs"][0]["data"]


def of(value):
    """What fake_weights(value) answers to ones."""
    return [2 * value] * 4


@pytest.fixture(scope="module")
def shared():
    with SetsServer(f"fake={FAKE}", f"folded={FAKE_MODELS / 'fake_folded.so'}", f"b={BATCHED}", PACKAGES / "several.pt2",
                    flags=FLAGS) as server:
        yield server


@pytest.fixture
def server(shared):
    yield shared
    shared.routes({})
    for model in ("fake", "folded", "b"):
        for name in shared.held(model):
            assert shared.admin("DELETE", f"{model}/sets/{name}").status == 200


# Choosing.

def test_each_way_to_choose(server):
    assert server.put("tenant-a", fake_weights(3)).json["result"] == "held"
    assert server.put("tenant-b", fake_weights(5)).status == 200
    weight_version = server.held()["tenant-b"]["generation"]

    def check(answer, value, name="tenant-b"):
        assert data(answer) == of(value)
        assert answer.headers["Sconce-Weights"] == name
        assert answer.json["parameters"]["weight_version"] == name

    check(server.infer("fake", ONES, parameters={"weights": "tenant-a"}), 3, "tenant-a")
    answer = server.infer("fake@tenant-b", ONES)
    check(answer, 5)
    assert answer.headers["Sconce-Weight-Version"] == str(weight_version)
    check(server.post("/v2/models/fake@tenant-b/versions/1/infer", numbers([1, 1, 1, 1])), 5)
    check(server.post("/v2/models/fake/infer", numbers([1, 1, 1, 1]), {"Sconce-Weights": "tenant-b"}), 5)
    check(server.post("/v2/models/fake@tenant-b/infer", numbers([1, 1, 1, 1], parameters={"weights": "tenant-b"}),
                      {"sconce-weights": "tenant-b"}), 5)
    # All other forms of requests, of a package that records what they need.
    server.put("tenant-a", fake_weights(3), model="b")
    server.put("tenant-b", fake_weights(5), model="b")
    values = {"INPUT__0": [1, 1, 1, 1]}
    for path, body in [("/v2/models/b{}/generate", values), ("/v2/models/b{}/generate_stream", values),
                       ("/v1/models/b{}:predict", {"instances": [[1, 1, 1, 1]]}),
                       ("/v1/models/b{}:call", {"args": [[[1, 1, 1, 1]]]})]:
        for answer in (server.post(path.format("@tenant-b"), body),
                       server.post(path.format(""), body, {"Sconce-Weights": "tenant-b"})):
            assert answer.status == 200, (path, answer.body)
            assert answer.headers["Sconce-Weights"] == "tenant-b"
            assert b"10" in answer.body and b"34" not in answer.body
        plain = server.post(path.format(""), body)
        assert "Sconce-Weights" not in plain.headers and b"34" in plain.body
    answer = server.post("/v2/models/b/generate", {**values, "parameters": {"weights": "tenant-a"}})
    assert answer.headers["Sconce-Weights"] == "tenant-a" and b"6" in answer.body
    # The binary form.
    head = json.dumps({"inputs": [{"name": "INPUT__0", "shape": [1, 4], "datatype": "FP32",
                                   "parameters": {"binary_data_size": 16}}]}).encode()
    answer = server.post("/v2/models/fake@tenant-a/infer", head + struct.pack("<4f", 1, 1, 1, 1),
                         {"Inference-Header-Content-Length": str(len(head))})
    assert data(answer) == of(3)
    # The active set, by its name and without one.
    for answer in (server.infer("fake@active", ONES), server.infer("fake", ONES),
                   server.infer("fake", ONES, parameters={"weights": "active"})):
        assert data(answer) == STORED and "Sconce-Weights" not in answer.headers


def test_health_and_metadata_of_a_set(server):
    server.put("a", fake_weights(3))
    for path in ("/v2/models/fake{}", "/v2/models/fake{}/versions/1", "/v2/models/fake{}/ready", "/v1/models/fake{}",
                 "/v1/models/fake{}/metadata"):
        assert server.get(path.format("@a")).json == server.get(path.format("")).json
        assert server.get(path.format("@active")).status == 200
        assert server.get(path.format("@none")).status == 404
        assert b"none" in server.get(path.format("@none")).body


def test_sets_that_are_not_there(server):
    server.put("a", fake_weights(3))
    for answer in (server.infer("fake@b", ONES), server.infer("fake", ONES, parameters={"weights": "b"}),
                   server.post("/v2/models/fake/infer", numbers([1, 1, 1, 1]), {"Sconce-Weights": "b"})):
        assert answer.status == 404 and "'b'" in answer.json["error"], answer.body
    for name in ("..", "%2e%2e", "a%2Fb", "x" * 500, "%00", "a@a", "\u00e9".encode().hex()):
        assert server.infer(f"fake@{name}", ONES).status in (400, 404)
    for name in ("../a", "a/b", "", "\x00", "x" * 100000, "\u00e9"):
        answer = server.infer("fake", ONES, parameters={"weights": name})
        assert answer.status == (200 if name == "" else 404), (name[:10], answer.body)
    assert server.infer("fake", ONES, parameters={"weights": 7}).status == 400
    assert server.infer("@a", ONES).status == server.infer("fake@", ONES).status == 404
    assert server.infer("none@a", ONES).status == 404
    # The path and a parameter or header field name different sets.
    assert server.infer("fake@a", ONES, parameters={"weights": "b"}).status == 400
    assert server.post("/v2/models/fake@a/infer", numbers([1, 1, 1, 1]), {"Sconce-Weights": "b"}).status == 400
    # Routes without sets take the whole name for a model's.
    for method, path in [("GET", "/v2/models/fake@a/config"), ("GET", "/v2/models/fake@a/stats"),
                         ("POST", "/v2/repository/models/fake@a/load")]:
        answer = server.request(method, path, b"" if method == "POST" else None, port=server.admin_port)
        assert answer.status == 404 and b"fake@a" in answer.body, (path, answer.body)
    assert server.admin("GET", "fake@a/weights").status == 404
    assert server.push("fake@a", fake_weights(7)).status == 404
    assert server.admin("DELETE", "fake@a/sets/a").status == 404
    assert data(server.infer("fake@a", ONES)) == of(3)


def test_off_unless_allowed():
    with SetsServer(f"fake={FAKE}") as server:
        for answer in (server.infer("fake@a", ONES), server.infer("fake", ONES, parameters={"weights": "a"}),
                       server.infer("fake", ONES, parameters={"weights": "active"}), server.put("a", fake_weights(1)),
                       server.admin("GET", "fake/sets/a"), server.admin("DELETE", "fake/sets/a"),
                       server.admin("POST", "fake/sets/a/promote"), server.get("/v2/models/fake@a/ready"),
                       server.routes({"active": 1})):
            assert answer.status == 404 and b"setting sets" in answer.body, answer.body
        assert server.admin("GET", "fake/sets").json["limit"] == 0
        assert data(server.infer("fake", ONES)) == STORED


def test_a_set_is_replaced_and_removed_under_load(server):
    server.put("a", fake_weights(1))
    wrong = []
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            answer = server.infer("fake@a", ONES)
            if answer.status != 200 or data(answer) not in [of(v) for v in range(1, 9)]:
                wrong.append((answer.status, answer.body))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(ask)
        for value in range(2, 9):
            assert server.put("a", fake_weights(value)).status == 200
            assert data(server.infer("fake@a", ONES)) == of(value)
        stop.set()
    assert not wrong, wrong[:3]
    assert server.admin("DELETE", "fake/sets/a").status == 200
    assert server.infer("fake@a", ONES).status == 404
    assert server.admin("DELETE", "fake/sets/a").status == 404


def test_batches_do_not_mix(server):
    for value in (3, 5, 7):
        server.put(f"s{value}", fake_weights(value), model="b")

    def ask(i):
        value = (3, 5, 7, None)[i % 4]
        more = {} if value is None else {"parameters": {"weights": f"s{value}"}}
        answer = server.infer("b", {"INPUT__0": ("FP32", [1, 4], [i, 1, 1, 1])}, **more)
        wanted = [i * 1, 12, 23, 34] if value is None else [value * i + value, *[2 * value] * 3]
        return answer.status == 200 and answer.json["outputs"][0]["data"] == wanted

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(400)))


@pytest.mark.parametrize("model", ["fake", "folded"])
def test_more_sets_in_turn_than_a_replica_keeps(model):
    """Whichever thread makes what the replica needs for a set, each answer is of the set that was asked for."""
    package = FAKE if model == "fake" else FAKE_MODELS / "fake_folded.so"
    with SetsServer(f"{model}={package}", flags=[*FLAGS, "--set", "*.sets_instances=1", "--set", "*.replicas=2"]) as server:
        wanted = {}
        for value in (3, 5, 7, 9):
            assert server.put(f"s{value}", fake_weights(value), model=model).status == 200
            wanted[value] = data(server.infer(f"{model}@s{value}", ONES))
        assert len({tuple(values) for values in wanted.values()}) == 4

        def ask(i):
            value = (3, 5, 7, 9)[i % 4]
            return data(server.infer(f"{model}@s{value}", ONES)) == wanted[value]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert all(pool.map(ask, range(400)))


# The admin port.

def test_list_and_one(server):
    own = safetensors({"scale.b": floats(7, 7, 7, 7)})
    assert server.put("a", own, "mode=partial&label=first").json["label"] == "first"
    assert server.put("b", safetensors({"scale.w": repeated(2, 4)}), "mode=partial&base=a").status == 200
    server.infer("fake@b", ONES)
    document = server.admin("GET", "fake/sets").json
    assert document["bytes"] == 32 and document["limit"] == 1000 and document["in_memory"] == 2
    a, b = document["sets"]
    assert (a["name"], a["label"], a["state"], a["own_bytes"]) == ("a", "first", "memory", 0)  # b has the same value
    assert (b["own_bytes"], b["requests"], b["failures"], b["inferences"]) == (16, 1, 0, 1)
    assert server.admin("GET", "fake/sets/b").json["name"] == "b"
    assert server.admin("GET", "fake/sets/c").status == 404
    assert data(server.infer("fake@b", ONES)) == [9] * 4
    assert data(server.infer("fake@a", ONES)) == [8, 9, 10, 11]
    assert "active" in server.sets()


def test_uploads_that_are_refused(server):
    for name in (".a", "a%20b", "active", "x" * 65, "a:b", "%2e%2e"):
        assert server.put(name, fake_weights(1)).status in (400, 404), name
    assert server.put("a", fake_weights(1, 5)).status == 400
    assert server.put("a", fake_weights(1), "commit=true").status == 400
    assert server.put("a", fake_weights(1), "base=none").status == 404
    assert server.push("fake", fake_weights(1), "base=a").status == 400
    assert server.put("a", fake_weights(1), "dry_run=true").json["result"] == "checked"
    assert server.put("a", fake_weights(1)[:-1]).status == 400
    assert server.admin("POST", "fake/sets/a", b"x", {"Content-Type": "text/plain"}).status == 415
    assert server.held() == {}
    assert server.admin("GET", "fake/sets?x=1").status == 400


def test_promote(server):
    server.put("a", fake_weights(6), "label=six")
    answer = server.admin("POST", "fake/sets/a/promote")
    assert answer.status == 200 and answer.json["weight_version"] == "six"
    assert server.ones() == (of(6), answer.json["generation"])
    assert data(server.infer("fake@a", ONES)) == of(6)
    assert server.admin("GET", "fake/sets").json["bytes"] == 0
    assert server.admin("POST", "fake/weights/rollback").status == 200
    assert server.ones()[0] == STORED
    assert server.admin("POST", "fake/sets/b/promote").status == 404
    server.admin("POST", "fake/weights/release")


def test_statistics_and_metrics(server):
    server.put("a", fake_weights(6))
    labels = 'model="fake",set="a",version="1"'
    for _ in range(3):
        server.infer("fake@a", ONES)
    metrics = server.metrics()
    assert metrics[f"sconce_set_requests_total{{{labels}}}"] == 3
    assert metrics[f"sconce_set_inferences_total{{{labels}}}"] == 3
    assert metrics[f"sconce_set_request_seconds_total{{{labels}}}"] > 0
    assert metrics['sconce_named_sets{model="fake",state="memory",version="1"}'] == 1
    assert metrics['sconce_named_set_memory_bytes{model="fake",version="1"}'] == 32
    stats = server.get("/v2/models/fake/stats").json["model_stats"][0]
    assert stats["set_stats"]["a"]["success"]["count"] == 3
    server.admin("DELETE", "fake/sets/a")
    assert not [name for name in server.metrics() if 'set="a"' in name]
    server.infer("fake@a", ONES)  # unknown names make no series in metrics
    assert not [name for name in server.metrics() if 'set="a"' in name]


# Routes.

def shares_of(server, count, headers=lambda i: {}):
    return collections.Counter(
        server.post("/v2/models/fake/infer", numbers([1, 1, 1, 1]), headers(i)).headers.get("Sconce-Weights", "active")
        for i in range(count))


def test_routes_share_requests_that_name_no_set(server):
    server.put("v2", fake_weights(2))
    server.put("v3", fake_weights(3))
    assert server.routes({"active": 70, "v2": 20, "v3": 10}).json == {"active": 70, "v2": 20, "v3": 10}
    assert server.admin("GET", "fake/routes").json == {"active": 70, "v2": 20, "v3": 10}
    got = shares_of(server, 500)
    assert abs(got["active"] - 350) <= 5 and abs(got["v2"] - 100) <= 5 and abs(got["v3"] - 50) <= 5, got
    # With keys, the sets get about their shares, and each key always gets the same set.
    got = shares_of(server, 500, lambda i: {"Sconce-Affinity": f"user-{i}"})
    assert abs(got["active"] - 350) < 50 and abs(got["v2"] - 100) < 40 and abs(got["v3"] - 50) < 30, got
    for i in range(20):
        assert len(shares_of(server, 5, lambda _: {"Sconce-Affinity": f"user-{i}"})) == 1
        assert len(shares_of(server, 3, lambda _: {"X-Request-Id": f"request-{i}"})) == 1
        by_id = {server.infer("fake", ONES, id=f"r{i}").headers.get("Sconce-Weights") for _ in range(3)}
        assert len(by_id) == 1
    # A request that names a set gets that set.
    assert all(data(server.infer("fake@v3", ONES)) == of(3) for _ in range(20))
    assert all(data(server.infer("fake@active", ONES)) == STORED for _ in range(20))
    # A set in the routes cannot be removed.
    assert server.admin("DELETE", "fake/sets/v2").status == 409
    server.routes({"v2": 1})
    assert shares_of(server, 20) == {"v2": 20}
    assert server.admin("DELETE", "fake/sets/v3").status == 200
    assert server.routes({}).json == {}
    assert shares_of(server, 20) == {"active": 20}


def test_routes_that_are_refused(server):
    server.put("v2", fake_weights(2))
    server.routes({"active": 1, "v2": 1})
    for body in ({"active": -1}, {"active": 0}, {"active": "x"}, {"active": 1e300}, [], {"v2": None}):
        assert server.admin("PUT", "fake/routes", json.dumps(body), {"Content-Type": "application/json"}).status == 400
    assert server.admin("PUT", "fake/routes", '{"v2":1,"v2":2}', {"Content-Type": "application/json"}).status == 400
    assert server.routes({"none": 1}).status == 404
    assert server.admin("GET", "fake/routes").json == {"active": 1, "v2": 1}
    assert server.request("PUT", "/v2/admin/models/fake/routes", "{}").status in (404, 405)  # not on the public listener


def test_routes_of_the_settings():
    with SetsServer(f"fake={FAKE}", flags=[*FLAGS, "--set", "fake.routes=active:1,v2:1"]) as server:
        assert shares_of(server, 10) == {"active": 10}  # v2 does not exist yet
        server.put("v2", fake_weights(2))
        assert shares_of(server, 10) == {"active": 5, "v2": 5}


# Memory and disk.

def test_memory_without_a_folder(tmp_path):
    with SetsServer(f"fake={FAKE}", flags=["--set", "fake.sets=3", "--set", "fake.sets_memory=64"]) as server:
        assert server.put("a", fake_weights(1)).status == 200
        assert server.put("b", fake_weights(2)).status == 200
        answer = server.put("c", fake_weights(3))
        assert answer.status == 507 and "sets_folder" in answer.json["error"]
        assert server.put("d", safetensors({"scale.w": repeated(1, 4)}), "mode=partial").status == 200  # shared with a
        assert server.put("e", safetensors({"scale.w": repeated(1, 4)}), "mode=partial").status == 507
        assert data(server.infer("fake@a", ONES)) == of(1)


def test_to_the_disk_and_back(tmp_path):
    flags = ["--set", "fake.sets=100", "--set", "fake.sets_memory=96", "--set", f"fake.sets_folder={tmp_path}"]
    with SetsServer(f"fake={FAKE}", flags=flags) as server:
        for i in range(1, 11):
            assert server.put(f"s{i}", fake_weights(i)).status == 200
        held = server.held()
        assert sum(s["state"] == "memory" for s in held.values()) == 3
        assert server.metrics()['sconce_named_sets{model="fake",state="disk",version="1"}'] == 7
        assert (tmp_path / "fake/1/s1.safetensors").exists()
        for i in [*range(1, 11), 3, 9, 1]:
            answer = server.infer(f"fake@s{i}", ONES)
            assert data(answer) == of(i) and answer.headers["Sconce-Weight-Version"] == str(held[f"s{i}"]["generation"])
            assert server.admin("GET", "fake/sets").json["bytes"] <= 96
        # Many clients of many sets at once: more sets than there is room for.
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda i: (i % 10 + 1, server.infer(f"fake@s{i % 10 + 1}", ONES)), range(300)))
        assert all(data(answer) == of(i) for i, answer in answers)
        assert server.admin("GET", "fake/sets").json["bytes"] <= 96
        # A file that is gone or damaged is an error for requests of that set alone.
        on_disk = [name for name, s in server.held().items() if s["state"] == "disk"]
        (tmp_path / f"fake/1/{on_disk[0]}.safetensors").unlink()
        (tmp_path / f"fake/1/{on_disk[1]}.safetensors").write_bytes(b"torn")
        assert server.infer(f"fake@{on_disk[0]}", ONES).status == 500
        assert server.infer(f"fake@{on_disk[1]}", ONES).status == 400
        assert data(server.infer("fake", ONES)) == STORED
        assert server.get("/v2/models/fake@" + on_disk[2] + "/ready").status == 200
        assert server.admin("DELETE", f"fake/sets/{on_disk[0]}").status == 200
        assert server.put(on_disk[1], fake_weights(11)).status == 200
        assert data(server.infer(f"fake@{on_disk[1]}", ONES)) == of(11)
        # Promoted from the disk.
        other = next(name for name, s in server.held().items() if s["state"] == "disk")
        assert server.admin("POST", f"fake/sets/{other}/promote").status == 200
        assert server.ones()[0] == of(int(other[1:]))
        kept = sorted(server.held())
    with SetsServer(f"fake={FAKE}", flags=flags) as server:
        assert sorted(server.held()) == kept
        for name in kept:
            assert data(server.infer(f"fake@{name}", ONES)) == of(11 if name == on_disk[1] else int(name[1:]))
        # A reload of the model keeps them as well.
        assert server.post("/v2/repository/models/fake/load", b"", port=server.admin_port).status == 200
        assert sorted(server.held()) == kept
        assert data(server.infer(f"fake@{kept[0]}", ONES)) == of(int(kept[0][1:]) if kept[0] != on_disk[1] else 11)


def test_a_client_that_leaves_while_its_set_is_read(tmp_path):
    flags = ["--set", "fake.sets=100", "--set", "fake.sets_memory=32", "--set", f"fake.sets_folder={tmp_path}"]
    with SetsServer(f"fake={FAKE}", flags=flags) as server:
        for i in range(1, 5):
            server.put(f"s{i}", fake_weights(i))
        for turn in range(50):
            connection = server.connect()
            connection.sendall(raw_post(f"/v2/models/fake@s{turn % 4 + 1}/infer".encode(),
                                        json.dumps(numbers([1, 1, 1, 1])).encode()))
            connection.close()
        assert data(server.infer("fake@s1", ONES)) == of(1)
        assert server.stop() == 0


def test_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("x")
    with SetsServer(f"fake={FAKE}", wait=False, flags=[*FLAGS, "--exit-on-error", "false", "--set",
                                                       f"fake.sets_folder={tmp_path / 'file'}"]) as server:
        until(lambda: any("cannot use the folder for named sets" in line for line in server.log))
        assert server.get("/v2/models/fake/ready").status == 503


@pytest.mark.parametrize("error, status", [(errno.ENOSPC, 507), (errno.EIO, 500)], ids=["full", "broken"])
def test_a_set_that_cannot_be_written_is_refused(tmp_path, error, status):
    """Each call that writes the file fails once. Requests still get the old set of that name."""
    folder = tmp_path / "sets"
    calls = Calls(tmp_path / "calls")
    flags = ["--set", "fake.sets=4", "--set", f"fake.sets_folder={folder}"]
    refused = 0
    with SetsServer(f"fake={FAKE}", flags=flags, environment=calls.environment(folder)) as server:
        for number in itertools.count(1):
            assert server.put("a", fake_weights(3)).status == 200
            calls.watch(fail_at=number, error=error)
            answer = server.put("a", fake_weights(5))
            count = calls["count"]
            calls.watch()
            if count < number:
                break
            if answer.status != 200:
                assert answer.status == status and os.strerror(error) in answer.json["error"], (number, answer.body)
                assert data(server.infer("fake@a", ONES)) == of(3), number
                refused += 1
    assert refused >= 2
