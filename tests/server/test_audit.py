"""The audit log: every change of weights once, in order, with who did it."""
import json
import os
import re

import pytest
from admin_server import FAKE, STREAM, WRONG_SHAPE, AdminServer
from fleet import DIGITS
from serving import until
from test_golden import golden_file, of_fake
from test_weights_client import run
from weights_files import fake_weights

TOKEN = "tok-en-of-16-characters"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def events(entries, *more):
    return [tuple(e.get(key) for key in ("event", *more)) for e in entries]


def digest(server, state="active", model="fake"):
    return server.sets(model, "digest=true")[state]["digest"]


def test_every_event_once_and_in_order(tmp_path):
    log, tokens = tmp_path / "audit.jsonl", tmp_path / "tokens"
    tokens.write_text(f"admin {TOKEN}\n")
    file = golden_file(tmp_path / "golden.safetensors", of_fake(3, 1))
    flags = ["--audit-log", str(log), "--set", f"fake.golden={file}", "--set", "fake.sets=4", "--token-file", str(tokens)]

    class Known(AdminServer):
        def request(self, method, path, body=None, headers=None, **more):
            return super().request(method, path, body, {"Authorization": f"Bearer {TOKEN}", "User-Agent": "trainer/1",
                                                        "X-Request-Id": f"id-{method}", **(headers or {})}, **more)

    with Known(f"fake={FAKE}", flags=flags) as server:
        server.push("fake", fake_weights(3), "label=first")
        staged = digest(server, "staged")
        server.admin("POST", "fake/weights/commit")
        server.push("fake", fake_weights(4), "label=bad")
        server.push("fake", b"nothing", "label=worse")
        server.push("fake", fake_weights(4), "label=try&golden=report")
        server.admin("POST", "fake/weights/abort")
        server.push("fake", fake_weights(3), "label=dry&dry_run=true")
        server.push("fake", fake_weights(3.001), "label=second&commit=true")
        server.admin("POST", "fake/weights/rollback")
        server.admin("POST", "fake/weights/release")
        server.admin("POST", "fake/sets/a?label=as", fake_weights(3), STREAM)
        server.admin("PUT", "fake/routes", {"active": 1, "a": 1})
        server.admin("PUT", "fake/routes", {})
        server.admin("POST", "fake/sets/a/promote")
        server.admin("DELETE", "fake/sets/a")
        server.admin("POST", "fake/weights/commit")  # nothing is staged, so this makes no entry
        entries = lines(log)
        assert events(entries, "label") == [
            ("judged", "first"), ("staged", "first"), ("committed", "first"), ("judged", "bad"), ("refused", "bad"),
            ("refused", "worse"), ("judged", "try"), ("staged", "try"), ("aborted", "try"), ("judged", "second"),
            ("staged", "second"), ("committed", "second"), ("rolled_back", "first"), ("released", "second"),
            ("set_filled", "as"), ("routes_changed", None), ("routes_changed", None), ("judged", "as"), ("promoted", "as"),
            ("set_removed", None)]
        by_event = {(e["event"], e.get("label")): e for e in entries}
        committed = by_event["committed", "first"]
        assert (committed["before"], committed["generation"], committed["digest"]) == (1, 2, staged)
        assert by_event["staged", "first"]["digest"] == staged and by_event["rolled_back", "first"]["digest"] == staged
        assert by_event["judged", "first"]["digest"] == staged and by_event["judged", "as"]["digest"] == digest(server)
        assert by_event["judged", "bad"]["golden"] == {"verdict": "failed", "passed": 0, "failed": 1}
        assert "must pass" in by_event["refused", "bad"]["reason"] and by_event["refused", "worse"]["reason"]
        assert (by_event["rolled_back", "first"]["before"], by_event["rolled_back", "first"]["generation"]) == (3, 4)
        assert entries[15]["routes"] == {"active": 1, "a": 1} and entries[16]["routes"] == {}
        assert by_event["promoted", "as"]["set"] == "a" == by_event["set_filled", "as"]["set"] == entries[-1]["set"]
        assert by_event["promoted", "as"]["digest"] == digest(server)
        for entry in entries:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["time"])
            assert (entry["model"], entry["version"]) == ("fake", "1")
            by = entry["by"]
            assert by["client"].startswith("127.0.0.1:") and by["user_agent"] == "trainer/1" and by["token"] == "admin"
            assert by["request"] in ("id-POST", "id-PUT", "id-DELETE")
        assert [e["time"] for e in entries] == sorted(e["time"] for e in entries)
        assert TOKEN not in log.read_text()
        # The admin port shows the same entries from memory.
        shown = server.admin("GET", "/v2/admin/audit?model=fake&limit=1000").json["entries"]
        assert shown == entries
        assert server.admin("GET", "/v2/admin/audit?limit=2").json["entries"] == entries[-2:]
        assert server.admin("GET", "/v2/admin/audit?model=other").json["entries"] == []
        assert server.admin("GET", "/v2/admin/audit?limit=x").status == 400
        assert server.metrics()["sconce_audit_failures_total"] == 0


def test_without_a_file():
    with AdminServer(f"fake={FAKE}") as server:
        server.push("fake", fake_weights(3), "commit=true")
        entries = server.admin("GET", "/v2/admin/audit").json["entries"]
        assert events(entries, "digest") == [("staged", None), ("committed", None)]
        assert "token" not in entries[0]["by"] and "user_agent" not in entries[0]["by"]


def test_pushes(tmp_path):
    log = tmp_path / "audit.jsonl"
    with AdminServer(DIGITS / "digits.pt2", flags=["--audit-log", str(log)]) as server, \
            AdminServer(DIGITS / "digits.pt2") as other:
        to = ",".join(f"http://127.0.0.1:{s.admin_port}" for s in (server, other))
        assert run("push", DIGITS / "digits-v2.safetensors", "--model", "digits", "--label", "v2", "--to", to).returncode == 0
        staged, committed = lines(log)
        assert events([staged, committed], "label") == [("staged", "v2"), ("committed", "v2")]
        assert staged["push"] == committed["push"] and staged["digest"] == committed["digest"] == digest(server, model="digits")
        assert staged["by"]["user_agent"].startswith("sconce/")
        assert other.admin("GET", "/v2/admin/audit").json["entries"][0]["push"] == staged["push"]
        # Undone, aborted, expired.
        body = (DIGITS / "digits-v2.safetensors").read_bytes()
        assert server.admin("POST", f"digits/weights/rollback?push={staged['push']}").status == 200
        assert server.push("digits", body, "push=two&lease=30s").status == 200
        assert server.admin("POST", "digits/weights/abort?push=two").status == 200
        assert server.admin("POST", "digits/weights/abort?push=two").status == 200  # the second abort changes nothing
        assert server.push("digits", body, "push=three&lease=100ms").status == 200
        until(lambda: len(lines(log)) == 7)
        entries = lines(log)
        assert events(entries[2:], "push") == [("undone", staged["push"]), ("staged", "two"), ("aborted", "two"),
                                               ("staged", "three"), ("expired", "three")]
        assert entries[-1]["by"] == {"server": "this one"}
        assert (entries[2]["before"], entries[2]["generation"]) == (2, 3)


def test_a_trainer(tmp_path):
    log = tmp_path / "audit.jsonl"
    (tmp_path / "w.safetensors").write_bytes(fake_weights(3))
    with AdminServer(f"fake={FAKE}", flags=["--audit-log", str(log), "--weights-dir", str(tmp_path)]) as server:
        (tmp_path / "wrong.safetensors").write_bytes(WRONG_SHAPE)
        for name in ("w.safetensors", "wrong.safetensors"):
            server.admin("POST", "/update_weights_from_disk", {"model_path": name, "weight_version": "step"})
        assert events(lines(log), "label") == [("staged", "step"), ("committed", "step"), ("refused", None)]
        assert all(e["by"]["client"].startswith("127.0.0.1:") for e in lines(log))


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path):
    with AdminServer(f"fake={FAKE}", flags=["--audit-log", "/dev/full"]) as server:
        assert server.push("fake", fake_weights(3), "commit=true").json["result"] == "active"
        assert server.ones()[0] == [6] * 4 and server.get("/v2/health/ready").status == 200
        assert server.metrics()["sconce_audit_failures_total"] == 2
        until(lambda: sum("is not written: No space left on device" in line for line in server.log) == 2)
    with AdminServer(f"fake={FAKE}", flags=["--audit-log", str(tmp_path / "none" / "audit.jsonl")]) as server:
        assert server.get("/v2/health/ready").status == 200
        until(lambda: any("cannot be written: No such file" in line for line in server.log))


@pytest.mark.parametrize("moved", [True, False])
def test_a_log_that_is_rotated(tmp_path, moved):
    log = tmp_path / "audit.jsonl"
    with AdminServer(f"fake={FAKE}", flags=["--audit-log", str(log)]) as server:
        server.push("fake", fake_weights(3))
        if moved:
            os.rename(log, tmp_path / "audit.jsonl.1")
        else:
            os.truncate(log, 0)  # copytruncate
        server.admin("POST", "fake/weights/commit")
        assert events(lines(log)) == [("committed",)]
    with AdminServer(f"fake={FAKE}", flags=["--audit-log", str(log)]) as server:
        server.push("fake", fake_weights(3))
    assert events(lines(log)) == [("committed",), ("staged",)]
