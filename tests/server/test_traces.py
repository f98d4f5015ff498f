"""Traces on a full disk: requests are answered, log and metrics report it, and the file stays readable. The last traces."""
import json
import re
import resource
import shutil
import time

import pytest
from serving import FAIL_INPUT, FAKE_MODELS, Server, until

FAKE = FAKE_MODELS / "fake_model.so"
INPUT = {"INPUT__0": ("FP32", [1, 4], [1, 2, 3, 4])}
FAILED = "sconce_trace_records_failed_total"


def flags(file, form):
    return ["--trace-file", str(file), "--trace-level", "timestamps", "--trace-rate", "1", "--trace-format", form]


def test_records_that_cannot_be_written_are_counted_and_logged_once():
    with Server(f"fake={FAKE}", flags=flags("/dev/full", "otlp")) as server:
        for _ in range(50):
            assert server.infer("fake", INPUT).status == 200
        until(lambda: server.metrics()[FAILED] == 50)
        lines = [line for line in server.log if "trace records cannot be written to /dev/full" in line]
        assert len(lines) == 1 and "No space left on device" in lines[0]
        assert server.stop() == 0


def records(file, form):
    text = file.read_text()
    if form == "chrome":
        return [event for event in json.loads(text) if event["name"] == "request"]
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("form", ["chrome", "otlp"])
def test_a_file_that_could_not_grow_for_a_while_can_be_read(tmp_path, form):
    file = tmp_path / "trace.json"
    with Server(f"fake={FAKE}", flags=flags(file, form)) as server:
        def infer(times):
            for _ in range(times):
                assert server.infer("fake", INPUT).status == 200

        infer(3)
        until(lambda: file.read_text().count("queue") >= 3)
        # Part of the next record fits.
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (file.stat().st_size + 100, resource.RLIM_INFINITY))
        infer(5)
        until(lambda: server.metrics()[FAILED] == 5)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        infer(4)
        until(lambda: any("trace records are written again; 5 were lost" in line for line in server.log))
        assert server.stop() == 0
    assert len(records(file, form)) == 7


def last_traces(server, query=""):
    answer = server.get(f"/v2/admin/traces{query}", port=server.admin_port)
    assert answer.status == 200, answer.body
    return answer.json


def set_level(server, level, model=None, **more):
    path = f"/v2/models/{model}/trace/setting" if model else "/v2/trace/setting"
    assert server.post(path, {"trace_level": level, **more}, port=server.admin_port).status == 200


def test_the_last_traces_without_a_file():
    with Server(f"fake={FAKE}", f"other={FAKE}") as server:
        assert last_traces(server) == {"enabled": False, "rate": 1000, "traces": []}
        assert server.infer("fake", INPUT).status == 200
        set_level(server, ["TIMESTAMPS"], trace_rate="1")
        parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
        body = json.dumps({"inputs": [{"name": "INPUT__0", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]})
        assert server.post("/v2/models/fake/infer", body, {"X-Request-Id": "a", "traceparent": parent}).status == 200
        assert server.post("/v2/models/fake/versions/1/infer", b"{", {"X-Request-Id": "b"}).status == 400
        assert server.infer("other", INPUT).status == 200
        until(lambda: len(last_traces(server)["traces"]) == 3)
        document = last_traces(server)
        assert document["enabled"] and document["rate"] == 1
        first, bad, other = document["traces"]
        assert first["id"] == "4bf92f3577b34da6a3ce929d0e0e4736" and re.fullmatch("[0-9a-f]{16}", first["span"])
        assert (first["request_id"], first["model"], first["version"], first["name"], first["status"]) == (
            "a", "fake", "1", "POST /v2/models/fake/infer", 200)
        assert abs(first["start"] - time.time()) < 60
        assert [span["name"] for span in first["spans"]] == ["request", "decode", "queue", "compute", "encode", "send"]
        whole = first["spans"][0]
        assert whole["start_us"] == 0 and whole["duration_us"] > 0
        assert all(0 <= span["start_us"] and span["start_us"] + span["duration_us"] <= whole["duration_us"] + 0.01
                   for span in first["spans"])
        assert (bad["request_id"], bad["status"], bad["name"]) == ("b", 400, "POST /v2/models/fake/versions/1/infer")
        assert re.fullmatch("[0-9a-f]{32}", bad["id"]) and bad["id"] != other["id"]
        assert [trace["model"] for trace in last_traces(server, "?model=other")["traces"]] == ["other"]
        assert last_traces(server, "?limit=1")["traces"] == [other]
        assert last_traces(server, "?model=nobody")["traces"] == []
        for query in ("?limit=x", "?limit=-1", "?colour=red"):
            assert server.get(f"/v2/admin/traces{query}", port=server.admin_port).status == 400, query
        assert server.get("/v2/admin/traces").status == 404
        set_level(server, ["OFF"], "other")
        assert last_traces(server, "?model=other")["enabled"] is False and last_traces(server)["enabled"] is True


def test_a_pipeline_has_a_span_for_each_step(tmp_path):
    for name in ("a", "b", "c"):
        shutil.copy(FAKE_MODELS / "fake_batched.pt2", tmp_path / f"{name}.pt2")
    step = {name: {"model": name, "inputs": {"INPUT__0": source}, "outputs": {"OUTPUT__0": result}}
            for name, source, result in (("a", "x", "mid"), ("b", "mid", "y"), ("c", "x", "z"))}
    (tmp_path / "p.pipeline.json").write_text(json.dumps({"inputs": ["x"], "outputs": ["y", "z"], "steps": list(step.values())}))
    with Server(tmp_path) as server:
        assert server.infer("p", {"x": ("FP32", [1, 4], [1, 2, 3, 4])}).status == 200
        set_level(server, ["TIMESTAMPS"], trace_rate="1")
        for first in (1, FAIL_INPUT, 1):
            server.infer("p", {"x": ("FP32", [1, 4], [first, 2, 3, 4])})
        until(lambda: len(last_traces(server)["traces"]) == 3)
        good, bad, again = last_traces(server)["traces"]
        for trace in (good, again):
            spans = trace["spans"]
            assert [span["name"] for span in spans] == ["request", "decode", "step", "step", "step", "encode", "send"]
            a, b, c = (span for span in spans if span["name"] == "step")
            assert [span["model"] for span in (a, b, c)] == ["a", "b", "c"] and "model" not in spans[0]
            # What it needs had ended; the third needs nothing of the others.
            assert b["start_us"] >= a["start_us"] + a["duration_us"] - 0.01
            whole = spans[0]["duration_us"]
            assert all(0 < span["start_us"] and span["start_us"] + span["duration_us"] <= whole for span in (a, b, c))
        assert bad["status"] == 500
        # b needs what a did not make; c may have begun before a failed.
        assert {span["model"] for span in bad["spans"] if span["name"] == "step"} in ({"a"}, {"a", "c"}, {"c"})


def test_no_more_than_the_last_256_traces_are_kept_and_no_tensors():
    with Server(f"fake={FAKE}", flags=["--trace-level", "tensors", "--trace-rate", "1"]) as server:
        for _ in range(300):
            assert server.infer("fake", INPUT).status == 200
        until(lambda: len(last_traces(server, "?limit=1000")["traces"]) == 256)
        assert len(last_traces(server)["traces"]) == 100
        assert "TENSOR" not in json.dumps(last_traces(server, "?limit=1000"))
