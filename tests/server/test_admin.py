"""The admin port: who may use it, weights, replicas, operations."""
import functools
import hashlib
import json
import os
import struct

import pytest
from admin_server import (FAKE, GOOD, LARGE, LARGE_FEATURES, ONES, UNKNOWN_NAME, WRONG_SHAPE, AdminServer, STREAM, expected,  # noqa: F401
                          server, shared)
from serving import FAKE_MODELS, read_answer, run_serve, threads, until
from weights_files import content_digest, fake_weights, floats, repeated, safetensors


# Constants and weight versions.

def test_constants(server):
    body = server.admin("GET", "fake/constants").json
    assert body["model"] == "fake" and body["version"] == "1"
    w, b = body["constants"]
    assert (w["name"], w["dtype"], w["shape"], w["strides"], w["type"]) == ("scale.w", "float32", [4], [1], "parameter")
    assert b["name"] == "scale.b" and not b["folded"] and not b["mutated"]
    folded = {c["name"]: c for c in server.admin("GET", "folded/constants").json["constants"]}
    assert folded["_FOLDED_CONST_w2"]["folded"]
    assert {c["name"] for c in server.admin("GET", "state/constants").json["constants"] if c["mutated"]} <= {"steps"}
    assert server.admin("GET", "fake/versions/1/constants").json == body


def test_every_answer_names_its_weights(server):
    _, weight_version = server.ones()
    answer = server.infer("fake", ONES)
    assert answer.json["parameters"]["weight_version"]
    request = json.dumps({"inputs": [{"name": "INPUT__0", "shape": [1, 4], "datatype": "FP32",
                                      "parameters": {"binary_data_size": 16}}],
                          "parameters": {"binary_data_output": True}}).encode()
    binary = server.post("/v2/models/fake/infer", request + struct.pack("<4f", 1, 1, 1, 1),
                         {"Inference-Header-Content-Length": str(len(request))})
    assert binary.status == 200 and binary.headers["Sconce-Weight-Version"] == str(weight_version)
    head = json.loads(binary.body[:int(binary.headers["Inference-Header-Content-Length"])])
    assert head["parameters"]["weight_version"] == answer.json["parameters"]["weight_version"]
    call = server.post("/v1/models/several.checked:call", {"args": [[1, 2, 3], [0, 1]]})
    assert call.status == 200 and call.headers["Sconce-Weight-Version"] == "1"
    for one in (answer, binary, call):
        assert one.headers["Sconce-Generation"] == one.headers["Sconce-Weight-Version"]  # deprecated
    assert "Sconce-Weight-Version" not in server.get("/v2/models/fake").headers
    assert "Sconce-Weight-Version" not in server.infer("fake", {"INPUT__0": ("FP32", [1, 3], [1, 1, 1])}).headers


def both_names(document):
    """How many objects of the document have a weight version by both names, the former one deprecated."""
    if isinstance(document, list):
        return sum(map(both_names, document))
    if not isinstance(document, dict):
        return 0
    assert ("weight_version" in document) == ("generation" in document), document  # deprecated: the second
    if isinstance(document.get("weight_version"), str):  # the name of the active weights; the number is in their set
        assert [s["weight_version"] for s in document["sets"] if s["state"] == "active"] == [document["generation"]]  # deprecated
    else:
        assert document.get("weight_version") == document.get("generation"), document  # deprecated: the second
    return ("weight_version" in document) + sum(map(both_names, document.values()))


def test_documents_have_both_names_of_a_weight_version():
    with AdminServer(f"fake={FAKE}", flags=["--set", "*.sets=2"]) as server:
        operation = server.push("fake", fake_weights(3), "commit=true&push=p").json
        assert server.admin("POST", "fake/sets/t", fake_weights(4), STREAM).status == 200
        assert server.push("fake", fake_weights(5), "label=staged").status == 200
        weights = server.admin("GET", "fake/weights").json
        assert both_names(operation) == 1 and both_names(weights) == 3  # itself and its sets
        assert [s["weight_version"] for s in weights["sets"]] == [2, None]
        assert both_names(server.admin("POST", "fake/weights/commit?guard=60s").json) == 4  # and its guard
        for path, least in (("fake/weights/guard", 1), ("fake/weights/pushes", 2), ("fake/sets", 1), ("fake/sets/t", 1),
                            ("/v2/admin/audit", 2), ("/v2/admin/operations", 1)):
            assert both_names(server.admin("GET", path).json) >= least, path
        recorded = server.admin("POST", "fake/golden/record", {"requests": 1})
        assert recorded.status == 200 and both_names(recorded.json) == 1


def test_documents_have_both_names_of_what_is_stored(tmp_path):
    with AdminServer(f"fake={FAKE}", flags=["--weights-store", str(tmp_path / "store")]) as server:
        for query, stored in (("", True), ("&store=false", False), ("&keep=false", False)):  # deprecated: the last
            told = server.push("fake", fake_weights(3), "commit=true" + query).json
            weights = server.admin("GET", "fake/weights").json
            for document in (told, weights):
                assert document["stored"] is document["kept"] is stored  # deprecated: the second
                assert document.get("store_problem") == document.get("kept_problem")  # deprecated: the second
                assert ("store=false was asked for" == document.get("store_problem")) == (not stored)
        metrics = server.metrics()
        for name, former in (("weight_version", "weight_generation"), ("stored_weight_version", "kept_weight_generation"),
                             ("stored_weights_problem", "kept_weights_problem"),
                             ("stored_weights_failures_total", "kept_weights_failures_total")):  # deprecated: the second
            here, there = (metrics[f'sconce_model_{one}{{model="fake",version="1"}}'] for one in (name, former))
            assert here == there, name
        assert metrics['sconce_model_weight_version{model="fake",version="1"}'] == 4
        assert metrics['sconce_model_stored_weight_version{model="fake",version="1"}'] == 2


# The two phases.

def test_stage_commit_rollback_release(server):
    before, first = server.ones()
    staged = server.push("fake", fake_weights(3), "label=step%203").json
    assert staged["state"] == "done" and staged["result"] == "staged" and staged["label"] == "step 3"
    assert staged["bytes"] == staged["total_bytes"] == len(fake_weights(3))
    assert server.ones() == (before, first)
    sets = server.sets()
    assert sets["staged"]["label"] == "step 3" and sets["staged"]["weight_version"] is None
    assert sets["active"]["weight_version"] == first

    committed = server.admin("POST", "fake/weights/commit")
    assert committed.status == 200 and committed.json["generation"] > first
    assert committed.json["weight_version"] == "step 3"
    assert server.ones() == (expected(3), committed.json["generation"])
    assert server.infer("fake", ONES).json["parameters"]["weight_version"] == "step 3"
    assert server.sets()["previous"]["weight_version"] == first

    back = server.admin("POST", "fake/weights/rollback").json
    assert back["generation"] > committed.json["generation"]
    assert server.ones() == (before, back["generation"])
    assert server.sets()["previous"]["label"] == "step 3"
    assert server.admin("POST", "fake/weights/rollback").status == 200
    assert server.ones()[0] == expected(3)
    assert server.admin("POST", "fake/weights/rollback").status == 200

    assert server.admin("POST", "fake/weights/release").status == 200
    assert set(server.sets()) == {"active"}
    assert server.admin("POST", "fake/weights/rollback").status == 400
    assert server.admin("POST", "fake/weights/release").status == 200
    assert server.ones()[0] == before


def test_abort(server):
    before = server.ones()
    assert server.push("fake", fake_weights(3)).status == 200
    assert server.push("fake", fake_weights(4)).status == 409
    assert server.admin("POST", "fake/weights/abort").status == 200
    assert "staged" not in server.sets()
    assert server.admin("POST", "fake/weights/abort").status == 400
    assert server.admin("POST", "fake/weights/commit").status == 400
    assert server.ones() == before


def test_commit_in_the_same_call(server):
    answer = server.push("fake", fake_weights(5), "commit=true&label=five", {"Content-Digest": content_digest(fake_weights(5))})
    assert answer.status == 200 and answer.json["result"] == "active"
    assert server.ones() == (expected(5), answer.json["generation"])
    assert server.infer("fake", ONES).json["parameters"]["weight_version"] == "five"


def test_partial_takes_the_rest_from_the_active_set(server):
    assert server.push("fake", fake_weights(5), "commit=true").status == 200
    partial = safetensors({"scale.b": repeated(1, 4)})
    before = server.ones()
    full = server.push("fake", partial)
    assert full.status == 400 and "scale.w" in full.json["error"]
    assert server.ones() == before
    assert server.push("fake", partial, "mode=partial&commit=true").status == 200
    assert server.ones()[0] == [6, 6, 6, 6]


def test_folded_constants_follow(server):
    assert server.push("folded", fake_weights(3), "commit=true").status == 200
    values = server.infer("folded", ONES).json["outputs"][0]["data"]
    assert values == [9, 9, 9, 9]  # 2 w x + b
    assert server.admin("POST", "folded/weights/rollback").status == 200


def test_dry_run_stages_nothing(server):
    before = server.ones()
    answer = server.push("fake", fake_weights(9), "dry_run=true")
    assert answer.status == 200 and answer.json["result"] == "checked"
    assert "staged" not in server.sets()
    assert server.push("fake", safetensors({"scale.w": repeated(1, 4)}), "dry_run=1").status == 400
    assert server.push("fake", fake_weights(9), "dry_run=true&commit=true").status == 400
    assert server.ones() == before


def test_digests_on_request(server):
    assert "digest" not in server.sets()["active"]
    assert server.push("fake", fake_weights(2), "commit=true").status == 200
    assert server.push("fake", fake_weights(3)).status == 200
    sets = server.sets(query="digest=true")
    assert sets["active"]["digest"].startswith("sha-256:") and sets["staged"]["digest"] != sets["active"]["digest"]
    assert server.admin("POST", "fake/weights/commit").status == 200
    again = server.sets(query="digest=true")
    assert again["active"]["digest"] == sets["staged"]["digest"]
    assert again["previous"]["digest"] == sets["active"]["digest"]


def test_how_far_another_set_is_from_the_active_one(server):
    assert server.push("fake", fake_weights(2), "commit=true").status == 200
    assert server.admin("POST", "fake/weights/release").status == 200
    nothing = server.admin("GET", "fake/weights/diff")
    assert nothing.status == 400 and "no previous" in nothing.json["error"]
    assert server.push("fake", safetensors({"scale.w": repeated(5, 4)}), "mode=partial").status == 200
    staged = server.admin("GET", "fake/weights/diff").json
    assert (staged["from"], staged["to"]) == ("active", "staged")
    assert staged["same"] == staged["constants"] - 1
    assert staged["differences"] == [{"name": "scale.w", "elements": 4, "changed": 4, "largest": 3.0, "largest_at": 0,
                                      "mean": 3.0, "relative": 1.5, "cosine": 1.0,
                                      "not_finite_from": 0, "not_finite_to": 0}]
    assert server.admin("GET", "fake/weights/diff?with=previous").status == 400
    assert server.admin("GET", "fake/weights/diff?with=active").status == 400
    assert server.admin("POST", "fake/weights/commit").status == 200
    back = server.admin("GET", "fake/weights/diff").json
    assert back["to"] == "previous" and back["differences"][0]["relative"] == 0.6


def test_differences_that_json_cannot_say_are_null(server):
    assert server.push("fake", fake_weights(0), "commit=true").status == 200
    assert server.push("fake", safetensors({"scale.w": repeated(float("nan"), 4)}), "mode=partial").status == 200
    constant = server.admin("GET", "fake/weights/diff").json["differences"][0]
    assert constant["not_finite_to"] == 4 and constant["changed"] == 4 and constant["relative"] == 0
    assert server.admin("POST", "fake/weights/abort").status == 200
    assert server.push("fake", fake_weights(1)).status == 200
    assert server.admin("GET", "fake/weights/diff").json["differences"][0]["relative"] is None


# Files.

def test_files_below_weights_dir(server):
    digest = hashlib.sha256(fake_weights(7)).hexdigest()
    for body in ({"file": "sub/seven.safetensors"}, {"file": "inside.safetensors"}, {"file": "./sub/../sub/seven.safetensors"},
                 {"file": "sub/seven.safetensors", "sha256": digest, "format": "safetensors"}):
        answer = server.admin("POST", "fake/weights?commit=true", body)
        assert answer.status == 200, answer.body
        assert answer.json["bytes"] == answer.json["total_bytes"] > 0
        assert server.ones()[0] == expected(7)
    assert server.admin("POST", "fake/weights/release").status == 200


@pytest.mark.parametrize("name, status", [
    ("../outside", 403), ("sub/../../x", 403), ("/etc/passwd", 403), ("link.safetensors", 403),
    ("folder/secret.safetensors", 403), ("missing.safetensors", 404), ("sub/seven.safetensors/x", 404), ("sub", 400),
    ("", 400), ("fifo", 400), ("a\0b", 400), (".", 400), ("..", 403), ("sub\\..\\..\\x", 404),
])
def test_files_elsewhere(server, name, status):
    before = server.ones()
    answer = server.admin("POST", "fake/weights?commit=true", {"file": name})
    assert answer.status == status, answer.body
    assert "666" not in answer.body.decode()
    absolute = server.admin("POST", "fake/weights", {"file": str(server.outside / "secret.safetensors")})
    assert absolute.status == 403
    assert server.ones() == before


@pytest.mark.parametrize("body, text", [
    ({"file": 7}, "'file'"), ({}, "file"), ({"file": "sub/seven.safetensors", "colour": 1}, "colour"),
    ({"file": "sub/seven.safetensors", "sha256": "00"}, "sha256"),
    ({"file": "sub/seven.safetensors", "sha256": "00" * 32}, "SHA-256"),
    ({"file": "sub/seven.safetensors", "format": "zip"}, "format"),
    ({"file": "sub/seven.safetensors", "format": "npz"}, "seven"),
])
def test_wrong_references(server, body, text):
    before = server.ones()
    answer = server.admin("POST", "fake/weights?commit=true", body)
    assert answer.status == 400, answer.body
    assert text.lower() in answer.json["error"].lower() and "/proc/" not in answer.json["error"]
    assert server.ones() == before


def test_no_weights_dir():
    with AdminServer(f"fake={FAKE}") as server:
        answer = server.admin("POST", "fake/weights", {"file": "x.safetensors"})
        assert answer.status == 403 and "weights_dir" in answer.json["error"]


# What is refused.

WRONG = {
    "name": (UNKNOWN_NAME, "", 404, "scale.c"),
    "dtype": (safetensors({"scale.w": repeated(8, 4), "scale.b": ("F16", [4], b"\0" * 8)}), "", 400, "scale.b"),
    "shape": (WRONG_SHAPE, "", 400, "scale.b"),
    "rank": (safetensors({"scale.w": ("F32", [2, 2], b"\0" * 16), "scale.b": repeated(8, 4)}), "", 400, "scale.w"),
    "missing": (safetensors({"scale.w": repeated(8, 4)}), "", 400, "scale.b"),
    "nothing": (b"", "", 400, ""),
    "empty": (safetensors({}), "", 400, "scale"),
    "no safetensors": (b"PK\x03\x04" + b"x" * 100, "", 400, ""),
    "header too long": (struct.pack("<Q", 1 << 60) + b"{}", "", 400, "header"),
    "bytes behind": (GOOD + b"x", "", 400, ""),
    "bytes missing": (GOOD[:-1], "", 400, ""),
    "not finite": (safetensors({"scale.w": repeated(8, 4), "scale.b": floats(1, 2, float("nan"), 4)}),
                   "check_finite=true", 400, "scale.b"),
    "infinite": (safetensors({"scale.w": floats(1, float("-inf"), 3, 4), "scale.b": repeated(8, 4)}),
                 "check_finite=true", 400, "scale.w"),
    "mode": (GOOD, "mode=half", 400, "mode"),
    "flag": (GOOD, "commit=perhaps", 400, "commit"),
    "parameter": (GOOD, "comit=true", 400, "comit"),
    "twice": (GOOD, "mode=full&mode=full", 400, "mode"),
    "label too long": (GOOD, "label=" + "x" * 300, 400, "label"),
    "label not printable": (GOOD, "label=%0a", 400, "label"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_weights(server, kind):
    data, query, status, text = WRONG[kind]
    before = server.ones()
    answer = server.push("fake", data, query + "&commit=true" if "commit" not in query else query)
    assert answer.status == status, answer.body
    assert text in answer.json["error"], answer.json
    assert server.ones() == before
    assert "staged" not in server.sets()
    # Nothing remains that blocks the next update.
    assert server.push("fake", GOOD, "dry_run=true").status == 200


@pytest.mark.parametrize("field, status", [
    (content_digest(b"other"), 400), ("sha-256=:AAAA:", 400), ("sha-256", 400), ("md5=:AAAA:", 400),
    ("sha-512=:AAAA:, " + content_digest(GOOD), 200), (content_digest(GOOD), 200),
])
def test_content_digest(server, field, status):
    before = server.ones()
    answer = server.push("fake", GOOD, headers={"Content-Digest": field})
    assert answer.status == status, answer.body
    assert ("staged" in server.sets()) == (status == 200)
    assert server.ones() == before


@pytest.mark.parametrize("headers, status", [
    ({}, 415), ({"Content-Type": "text/plain"}, 415), ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ({"Content-Type": "Application/Octet-Stream; x=y"}, 200),
])
def test_content_types(server, headers, status):
    assert server.admin("POST", "fake/weights?dry_run=true", GOOD, headers).status == status


def test_unknown_things(server):
    for method, path in [("GET", "nobody/constants"), ("GET", "nobody/weights"), ("POST", "nobody/weights/commit"),
                         ("GET", "fake/versions/2/weights"), ("GET", "nobody/replicas"), ("DELETE", "fake/replicas/77"),
                         ("GET", "/v2/admin/operations/123456789"), ("DELETE", "/v2/admin/operations/123456789"),
                         ("GET", "/v2/admin/operations/99999999999999999999999"), ("GET", "/v2/admin"),
                         ("GET", "fake/weights/history")]:
        answer = server.admin(method, path)
        assert answer.status == 404 and answer.json["error"], (method, path)
    assert server.push("nobody", GOOD).status == 404
    wrong = server.admin("DELETE", "fake/weights")
    assert wrong.status == 405 and wrong.headers["Allow"] == "GET, HEAD, POST"
    assert server.request("GET", "/v2/admin/models/fake/weights").status == 404  # not on the public port
    assert server.request("POST", "/v2/admin/models/fake/weights/commit").status == 404


def test_weights_limit():
    with AdminServer(f"fake={FAKE}", f"large={LARGE}", flags=["--weights-limit", "1K", "--max-body-bytes", "150"]) as server:
        before = server.ones()
        assert server.push("large", fake_weights(1, LARGE_FEATURES)).status == 413
        assert server.push("fake", GOOD, "commit=true").status == 200  # more than max_body_bytes
        assert server.admin("POST", "fake/weights", {"file": "x" * 200}).status == 413
        assert server.ones() == (expected(8), before[1] + 1)
    with AdminServer(f"fake={FAKE}") as server:
        connection = server.begin_push("fake", b"x" * (1 << 30), 100)
        status, _, body, _ = read_answer(connection)
        assert status == 413 and b"weights_limit" in body


# Operations.

def test_async(server):
    answer = server.push("fake", fake_weights(6), "async=true&commit=true&label=six")
    assert answer.status == 202 and list(answer.json) == ["operation"]
    operation = server.wait_operation(answer.json["operation"])
    assert operation["state"] == "done" and operation["result"] == "active" and operation["phase"] == "over"
    assert operation["label"] == "six" and operation["seconds"] >= 0
    assert [r["state"] for r in operation["replicas"]] == ["active"]
    assert server.ones() == (expected(6), operation["weight_version"])
    reference = server.admin("POST", "fake/weights?async=1", {"file": "sub/seven.safetensors"})
    assert reference.status == 202
    assert server.wait_operation(reference.json["operation"])["result"] == "staged"
    assert server.admin("POST", "fake/weights/abort").status == 200
    missing = server.admin("POST", "fake/weights?async=1", {"file": "nothing.safetensors"})
    assert missing.status == 202
    operation = server.wait_operation(missing.json["operation"])
    assert operation["state"] == "failed" and operation["status"] == 404 and "nothing" in operation["error"]
    over = server.admin("DELETE", f"/v2/admin/operations/{missing.json['operation']}")
    assert over.status == 400 and "over" in over.json["error"]


def test_progress_of_each_replica():
    with AdminServer(f"folded={FAKE_MODELS / 'fake_folded.so'}", flags=["--set", "folded.replicas=3"],
                     environment={"FAKE_MODEL_FAIL_IN_FOLDS": "5"}) as server:
        before = server.ones("folded")
        with server.begin_push("folded", GOOD, 50) as connection:
            running = until(server.running)
            assert [(r["replica"], r["state"], r["seconds"]) for r in running[0]["replicas"]] == [(i, "waiting", 0) for i in range(3)]
            connection.sendall(GOOD[50:])
            assert read_answer(connection)[0] == 500
        # Loading took three folds; the second fold of the update fails.
        failed = server.admin("GET", "/v2/admin/operations").json["operations"][-1]
        assert [r["state"] for r in failed["replicas"]] == ["unchanged", "failed", "unchanged"]
        assert failed["replicas"][0]["seconds"] > 0 and failed["replicas"][2]["seconds"] == 0
        assert server.ones("folded") == before
        done = server.push("folded", GOOD, "commit=true").json
        assert [r["state"] for r in done["replicas"]] == ["active"] * 3
        assert all(0 < r["seconds"] <= done["seconds"] for r in done["replicas"])
        dry = server.push("folded", GOOD, "dry_run=true").json
        assert [(r["state"], r["seconds"]) for r in dry["replicas"]] == [("checked", 0)] * 3


def test_cancel(server):
    data = fake_weights(9, LARGE_FEATURES)
    before = server.sets("large")
    with server.begin_push("large", data, len(data) // 2, "commit=true") as connection:
        operation, = until(server.running)
        assert operation["model"] == "large" and operation["total_bytes"] == len(data)
        answer = server.admin("DELETE", f"/v2/admin/operations/{operation['operation']}")
        assert answer.status == 200
        status, _, body, _ = read_answer(connection)
        assert status == 409 and b"cancelled" in body
    operation = server.wait_operation(operation["operation"])
    assert operation["state"] == "cancelled" and operation["bytes"] <= len(data) // 2
    assert server.sets("large") == before


def test_two_updates_at_once(server):
    """Concurrent pushes either succeed or get 409; the last success is served."""
    before = server.ones()[1]
    statuses = []

    def push(value):
        for _ in range(20):
            answer = server.push("fake", fake_weights(value), f"commit=true&label={value}")
            statuses.append(answer.status)
            if answer.status == 200:
                assert answer.json["label"] == str(value)

    with threads(*[functools.partial(push, value) for value in range(1, 9)]):
        pass
    assert set(statuses) <= {200, 409}
    values, weight_version = server.ones()
    assert weight_version == before + statuses.count(200)
    assert values == expected(int(server.sets()["active"]["label"]))


# Replicas.

def test_replicas(server):
    one = server.admin("GET", "fake/replicas").json
    assert one["count"] == 1 and one["replicas"][0]["device"] == "cpu"
    three = server.admin("POST", "fake/replicas", {"count": 2, "device": "cpu"})
    assert three.status == 200 and three.json["count"] == 3
    assert len({r["replica"] for r in three.json["replicas"]}) == 3
    assert [(r["replica"], r["device"], r["state"]) for r in server.push("fake", fake_weights(2), "commit=true").json["replicas"]] == [
        (r["replica"], "cpu", "active") for r in three.json["replicas"]]
    for _ in range(6):
        assert server.ones()[0] == expected(2)
    index = one["replicas"][0]["replica"]
    assert server.admin("DELETE", f"fake/replicas/{index}").json["count"] == 2
    assert server.admin("DELETE", "fake/replicas").json["count"] == 1
    last = server.admin("DELETE", "fake/replicas")
    assert last.status == 400 and last.json["error"]
    assert server.ones()[0] == expected(2)
    for body, status in [({"count": 0}, 400), ({"count": 5000}, 400), ({"device": "tpu"}, 400), ({"cpus": [100000]}, 400),
                         ({"cpus": "60000"}, 400), ({"cpus": "x"}, 400), ({"cpus": "numa:9999"}, 400),
                         ({"colour": 1}, 400), ({"count": -1}, 400)]:
        assert server.admin("POST", "fake/replicas", body).status == status, body
    assert server.admin("GET", "fake/replicas").json["count"] == 1
    core = min(os.sched_getaffinity(server.process.pid))
    pinned = server.admin("POST", "fake/replicas", {"cpus": f"{core}-{core}"}).json
    assert pinned["replicas"][-1]["cpus"] == [core] or pinned["replicas"][0]["cpus"] == [core]
    assert server.ones()[0] == expected(2)
    for replica in [r["replica"] for r in pinned["replicas"] if r["cpus"]]:
        assert server.admin("DELETE", f"fake/replicas/{replica}").status == 200


# Who may ask.

TOKEN = "correct-horse-battery-staple"


@pytest.fixture()
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


def test_token(token_file):
    with AdminServer(f"fake={FAKE}", flags=["--admin-token-file", str(token_file)]) as server:
        good = {"Authorization": f"Bearer {TOKEN}"}
        routes = [("GET", "fake/constants"), ("GET", "fake/weights"), ("POST", "fake/weights"), ("POST", "fake/weights/commit"),
                  ("POST", "fake/weights/abort"), ("POST", "fake/weights/rollback"), ("POST", "fake/weights/release"),
                  ("GET", "fake/replicas"), ("POST", "fake/replicas"), ("DELETE", "fake/replicas"),
                  ("GET", "/v2/admin/operations"), ("GET", "/v2/admin/operations/1"), ("DELETE", "/v2/admin/operations/1"),
                  ("GET", "/v2"), ("GET", "/v2/models/fake"), ("POST", "/v2/repository/index"),
                  ("POST", "/v2/repository/models/fake/unload"), ("GET", "/nowhere")]
        for method, path in routes:
            missing = server.admin(method, path)
            assert missing.status == 401 and missing.headers["WWW-Authenticate"].startswith("Bearer"), path
            assert server.admin(method, path, headers={"Authorization": "Basic eDp5"}).status == 401
            for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), TOKEN[:-1] + "f", TOKEN * 2):
                assert server.admin(method, path, headers={"Authorization": f"Bearer {wrong}"}).status in (401, 403), wrong
        assert server.admin("GET", "fake/weights", headers={"Authorization": "Bearer nonsense-nonsense"}).status == 403
        assert server.admin("GET", "fake/weights", headers=good).status == 200
        assert server.admin("GET", "fake/weights", headers={"Authorization": f"bearer  {TOKEN}"}).status == 200
        assert server.push("fake", GOOD, "commit=true", good).status == 200
        assert server.push("fake", GOOD, "commit=true").status == 401
        assert server.admin("GET", "/v2/health/live").status == 200  # probes need no token
        assert server.ones()[0] == expected(8)
        # A new file replaces the token.
        os.replace(write(token_file.with_name("next"), "another-token-another"), token_file)
        assert server.admin("GET", "fake/weights", headers=good).status == 403
        assert server.admin("GET", "fake/weights", headers={"Authorization": "Bearer another-token-another"}).status == 200
        # A file without a valid token changes nothing.
        os.replace(write(token_file.with_name("next"), "short"), token_file)
        assert server.admin("GET", "fake/weights", headers={"Authorization": "Bearer another-token-another"}).status == 200
        assert TOKEN not in "".join(server.log)


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("content", [None, "", "short", "two words in a token file", "x" * 5000, "\x01" * 20])
def test_token_files_that_hold_none(tmp_path, content):
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    status, output = run_serve(f"fake={FAKE}", "--admin-token-file", str(path))
    assert status != 0 and "admin_token_file" in output


def test_other_addresses_need_a_token(token_file):
    status, output = run_serve(f"fake={FAKE}", "--admin", "0.0.0.0:0")
    assert status != 0 and "admin_token_file" in output
    with AdminServer(f"fake={FAKE}", flags=["--admin", "0.0.0.0:0", "--admin-token-file", str(token_file)]) as server:
        assert server.admin("GET", "fake/weights").status == 401
        assert server.admin("GET", "fake/weights", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200


def test_web_pages_may_change_nothing(server):
    page = {"Origin": "http://evil.example"}
    assert server.admin("POST", "fake/weights/rollback", headers=page).status == 403
    assert server.push("fake", GOOD, headers=page).status == 403
    assert server.admin("POST", "/v2/repository/models/fake/unload", headers=page).status == 403
    assert server.admin("GET", "fake/weights", headers=page).status == 200


# Real packages.

def test_several_models_of_a_package(server):
    for model in ("several.calls", "several.dtypes"):
        assert server.admin("GET", f"{model}/constants").status == 200
        assert server.sets(model)["active"]["weight_version"] == 1
