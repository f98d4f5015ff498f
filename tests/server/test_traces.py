"""Traces on a full disk: requests are answered, log and metrics report it, and the file stays readable."""
import json
import resource

import pytest
from serving import FAKE_MODELS, Server, until

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
