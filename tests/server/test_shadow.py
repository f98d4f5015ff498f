"""Live requests that also run on a staged set: what the server says of the two sets' answers is what they differ by."""
import http.client
import json
import math
import random
import re
import shutil
import subprocess
import threading

import pytest
from admin_server import FAKE, STREAM, AdminServer, Clients
from serving import FAKE_MODELS, ROOT, until
from weights_files import fake_weights, floats, safetensors

DIGITS = ROOT / "examples/digits/digits.pt2"
V2 = ROOT / "examples/digits/digits-v2.safetensors"
# The shadow's thread has the lowest priority, and tests run side by side.
PATIENCE = 120
BATCHED = FAKE_MODELS / "fake_batched.pt2"


class ShadowServer(AdminServer):
    def shadow(self, model="digits"):
        answer = self.admin("GET", f"{model}/weights/shadow")
        assert answer.status == 200, answer.body
        return answer.json

    def set_share(self, share, model="digits"):
        return self.admin("PUT", f"{model}/weights/shadow", {"share": share})

    def stage(self, data, model="digits", label=""):
        answer = self.push(model, data, f"label={label}")
        assert answer.status == 200 and answer.json["result"] == "staged", answer.body

    def change(self, what, model="digits"):
        answer = self.admin("POST", f"{model}/weights/{what}")
        assert answer.status == 200, answer.body
        return answer.json

    def wait_for(self, state, model="digits"):
        until(lambda: self.shadow(model)["state"] == state, PATIENCE, lambda: self.shadow(model))

    def wait_for_ended(self, count, model="digits"):
        """Until so many requests were compared, skipped or have failed."""
        def ended():
            now = self.shadow(model)
            return now["compared"] + now["skipped"] + now["failed"]
        until(lambda: ended() >= count, PATIENCE, lambda: self.shadow(model))
        assert ended() == count

    def digits(self, images):
        """The outputs of a request by their names, as lists of rows."""
        count = len(images)
        answer = self.infer("digits", {"ARGS[0]": ("FP32", [count, 8, 8], [x for image in images for x in image])})
        assert answer.status == 200, answer.body
        return {o["name"]: [o["data"][i * len(o["data"]) // count:(i + 1) * len(o["data"]) // count]
                            for i in range(count)] for o in answer.json["outputs"]}


def images(count, seed):
    numbers = random.Random(seed)
    return [[numbers.uniform(0, 16) for _ in range(64)] for _ in range(count)]


def argmax(row):
    return max(range(len(row)), key=lambda i: row[i])


def expected(pairs, name):
    """What two sets' answers differ by, computed from the answers as clients see them."""
    a = [x for first, _ in pairs for row in first[name] for x in row]
    b = [x for _, second in pairs for row in second[name] for x in row]
    apart = [abs(x - y) for x, y in zip(a, b, strict=True)]
    other = [[argmax(x) != argmax(y) for x, y in zip(first[name], second[name], strict=True)] for first, second in pairs]
    return {"answers": len(pairs), "elements": len(a), "changed": sum(d != 0 for d in apart), "largest": max(apart),
            "mean": sum(apart) / len(apart), "changed_argmax": sum(map(any, other)),
            "rows_changed_argmax": sum(map(sum, other)), "rows": sum(map(len, other)),
            "cosine": sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)}


def test_differences_are_those_of_the_two_sets_answers():
    requests = [images(1 + i % 3, i) for i in range(16)]
    with ShadowServer(DIGITS, flags=["--set", f"digits.weights={V2}"]) as second:
        answers = [second.digits(r) for r in requests]
    with ShadowServer(DIGITS, flags=["--set", "digits.shadow=1"]) as server:
        assert server.shadow() == {"model": "digits", "version": "1", "share": 1.0, "state": "waiting"}
        server.stage(V2.read_bytes(), label="v2")
        server.wait_for("running")
        assert server.shadow()["set"]["digest"] == server.sets("digits", "digest=true")["staged"]["digest"]
        pairs = []
        for i, (request, answer) in enumerate(zip(requests, answers, strict=True)):
            pairs.append((server.digits(request), answer))
            server.wait_for_ended(i + 1)
        shown = server.shadow()
        assert (shown["set"]["label"], shown["beside"], shown["compared"]) == ("v2", 1, 16)
        assert shown["skipped"] == shown["failed"] == 0
        outputs = {o["name"]: o for o in shown["outputs"]}
        probabilities = expected(pairs, "RESULT[probabilities]")
        assert 0 < probabilities["changed_argmax"] < 16 and probabilities["largest"] > 0.1
        for field, value in probabilities.items():
            assert outputs["RESULT[probabilities]"][field] == pytest.approx(value, rel=1e-5), field
        classes = expected(pairs, "RESULT[class]")
        for field in ("answers", "elements", "changed", "largest", "mean"):
            assert outputs["RESULT[class]"][field] == pytest.approx(classes[field])
        assert outputs["RESULT[class]"]["rows"] == 0  # its only dimension is the batch
        assert all(o["new_nonfinite"] == o["reshaped"] == 0 for o in outputs.values())
        assert 0 < shown["timed"] < 16
        for times in shown["seconds"].values():
            assert 0 < times["p50"] <= times["p99"]
        short = server.sets("digits")["staged"]["shadow"]
        assert short == {"state": "running", "share": 1.0, "compared": 16, "failed": 0, "skipped": 0,
                         "largest": max(o["largest"] for o in outputs.values()),
                         "changed_argmax": probabilities["changed_argmax"], "new_nonfinite": 0}
        metrics = server.metrics()
        model = 'model="digits",{}version="1"'
        results = {r: metrics["sconce_shadow_requests_total{%s}" % model.format(f'result="{r}",')]
                   for r in ("compared", "skipped", "failed")}
        assert results == {"compared": 16, "skipped": 0, "failed": 0}
        labels = "{%s}" % model.format("")
        assert metrics["sconce_shadow_changed_argmax_total" + labels] == probabilities["changed_argmax"]
        assert metrics["sconce_shadow_new_nonfinite_total" + labels] == 0
        assert metrics["sconce_shadow_largest_difference" + labels] == short["largest"]
        # After the commit nothing more is compared, and the results stay.
        assert "shadow" not in json.dumps(server.change("commit"))
        server.digits(requests[0])
        after = server.shadow()
        assert after["state"] == "waiting"
        assert {k: v for k, v in after.items() if k != "state"} == {k: v for k, v in shown.items() if k != "state"}
        assert all("shadow" not in s for s in server.sets("digits").values())


def test_share():
    with ShadowServer(DIGITS) as server:
        server.stage(V2.read_bytes())
        assert server.shadow()["state"] == "off"
        for i in range(20):
            server.digits(images(1, i))
        assert "compared" not in server.shadow()
        assert server.set_share(0.25).json["share"] == 0.25
        server.wait_for("running")
        for i in range(32):
            server.digits(images(1, i))
            if i % 4 == 3:
                server.wait_for_ended((i + 1) // 4)
        assert server.set_share(0).json["state"] == "off"
        server.digits(images(1, 0))
        now = server.shadow()
        assert now["compared"] + now["skipped"] == 8
        for wrong in (-0.5, 1.5, "1", None):
            assert server.set_share(wrong).status == 400
        assert server.admin("PUT", "digits/weights/shadow", {}).status == 400
        assert server.admin("PUT", "digits/weights/shadow", {"share": 1, "more": 2}).status == 400
        assert server.admin("PUT", "none/weights/shadow", {"share": 1}).status == 404
        assert server.shadow()["share"] == 0


def test_many_clients_are_compared_or_skipped_and_none_fails():
    """While sets are committed, aborted, rolled back and replaced."""
    with ShadowServer(BATCHED, flags=["--set", "*.shadow=1", "--io-threads", "2"]) as server:
        model = "fake_batched"

        def asked():
            return server.metrics()['nv_inference_request_success{model="fake_batched",version="1"}']

        def judged():
            metrics = server.metrics()
            return sum(v for k, v in metrics.items() if k.startswith("sconce_shadow_requests_total{"))

        def check(value, active):
            server.stage(fake_weights(value), model)
            server.wait_for("running", model)
            until(lambda: server.shadow(model)["compared"] > 0, PATIENCE, lambda: server.shadow(model))
            now = server.shadow(model)
            assert now["failed"] == 0
            assert now["outputs"][0]["largest"] == 2 * abs(value - active)

        server.stage(fake_weights(1), model)
        server.change("commit", model)
        with Clients(server, model, 4) as clients:
            check(5, 1)
            server.change("abort", model)
            check(7, 1)
            assert server.push(model, fake_weights(8)).status == 409
            server.wait_for("running", model)
            server.change("abort", model)
            check(9, 1)
            server.change("commit", model)
            check(3, 9)
            server.change("commit", model)
            server.change("rollback", model)
            assert server.shadow(model)["state"] == "waiting"
            check(4, 9)
            threads = [threading.Thread(target=server.set_share, args=(share, model)) for share in (0.5, 0, 1, 0.1)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            server.change("commit", model)
        assert not clients.problems, clients.problems[:3]
        assert clients.answers > 100
        # Nobody asks any more: all that was picked of this set has ended.
        server.set_share(1, model)
        server.stage(fake_weights(6), model)
        server.wait_for("running", model)
        with Clients(server, model, 4) as clients:
            until(lambda: clients.answers > 200)
        assert not clients.problems
        server.wait_for_ended(clients.answers, model)
        assert server.shadow(model)["compared"] > 0
        assert judged() <= asked()


def test_a_set_whose_lease_expires_ends_its_shadow():
    with ShadowServer(BATCHED, flags=["--set", "*.shadow=1"]) as server:
        assert server.push("fake_batched", fake_weights(3), "push=p1&lease=500ms").status == 200
        server.wait_for("running", "fake_batched")
        server.wait_for("waiting", "fake_batched")
        assert "staged" not in server.sets("fake_batched")


def test_a_promoted_set_is_what_comes_next_is_compared_with():
    with ShadowServer(BATCHED, flags=["--set", "*.shadow=1", "--set", "*.sets=2"]) as server:
        ones = {"INPUT__0": ("FP32", [1, 4], [1] * 4)}
        assert server.admin("POST", "fake_batched/sets/a", fake_weights(2), STREAM).status == 200
        assert server.admin("POST", "fake_batched/sets/a/promote").status == 200
        server.stage(fake_weights(3), "fake_batched")
        server.wait_for("running", "fake_batched")
        assert server.infer("fake_batched@a", ones).status == 200  # not the active set's answer
        assert server.infer("fake_batched", ones).status == 200
        server.wait_for_ended(1, "fake_batched")
        now = server.shadow("fake_batched")
        assert now["beside"] == server.sets("fake_batched")["active"]["weight_version"]
        assert (now["compared"], now["outputs"][0]["largest"]) == (1, 2)


def test_a_set_with_nan_is_noticed():
    with ShadowServer(BATCHED, flags=["--set", "*.shadow=1"]) as server:
        server.stage(safetensors({"scale.w": floats(math.nan, 1, 1, 1), "scale.b": floats(0, 0, math.inf, 0)}),
                     "fake_batched")
        server.wait_for("running", "fake_batched")
        for i in range(3):
            server.infer("fake_batched", {"INPUT__0": ("FP32", [2, 4], [1] * 8)})
            server.wait_for_ended(i + 1, "fake_batched")
        output = server.shadow("fake_batched")["outputs"][0]
        assert output["new_nonfinite"] == 3
        assert output["changed"] == output["elements"] == 24
        assert server.metrics()['sconce_shadow_new_nonfinite_total{model="fake_batched",version="1"}'] == 3


def test_models_that_cannot_be_asked_twice_are_refused():
    with ShadowServer(f"fake={FAKE}", flags=["--set", "*.shadow=0.5"]) as server:
        now = server.shadow("fake")
        assert now["state"] == "refused" and "may write its input 'ARGS[0]'" in now["reason"]
        refused = server.set_share(1, "fake")
        assert refused.status == 400 and now["reason"] in refused.json["error"]
        assert server.set_share(0, "fake").json["state"] == "off"
        server.stage(fake_weights(3), "fake")
        assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1] * 4)}).status == 200
        assert "shadow" not in server.sets()["staged"]


@pytest.mark.parametrize("memory, full", [("32M", 1), ("36M", 1), ("37M", 0), ("1G", 0)])
def test_large_requests_are_skipped_unless_there_is_memory_for_them(memory, full):
    """A request may have a quarter: 9.6 MB of 37 MiB, not of 36 MiB, which is the default's 32 MiB in the same way."""
    with ShadowServer(BATCHED, flags=["--set", "*.shadow=1", "--set", "*.max_batch_size=1000000", *
                                      (["--set", f"*.shadow_memory={memory}"] if memory != "32M" else [])]) as server:
        server.stage(fake_weights(3), "fake_batched")
        server.wait_for("running", "fake_batched")
        rows = 300_000  # 4.8 MB each way
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        head = json.dumps({"inputs": [{"name": "INPUT__0", "datatype": "FP32", "shape": [rows, 4],
                                       "parameters": {"binary_data_size": rows * 16}}],
                           "parameters": {"binary_data_output": True}}).encode()
        connection.request("POST", "/v2/models/fake_batched/infer", head + bytes(rows * 16),
                           {"Inference-Header-Content-Length": str(len(head))})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        server.wait_for_ended(1, "fake_batched")
        seen = server.shadow("fake_batched")
        assert seen["skipped_for"] == {"busy": 0, "full": full, "placed": 0, "ended": 0} and seen["compared"] == 1 - full


@pytest.mark.skipif(shutil.which("curl") is None, reason="the example uses curl")
def test_the_example():
    block = re.search(r"```sh shadow\n(.*?)```", (ROOT / "docs/validation.md").read_text(), re.DOTALL).group(1)
    with ShadowServer(DIGITS) as server:
        server.stage(V2.read_bytes())
        block = block.replace("127.0.0.1:8003", f"127.0.0.1:{server.admin_port}")
        output = subprocess.run(["sh", "-ec", block], text=True, capture_output=True, check=True).stdout
        assert output.count('"share":0.1') == 2
        server.wait_for("running")


def test_the_model_is_loaded_again_and_the_server_ends_while_it_runs(tmp_path):
    shutil.copy(BATCHED, tmp_path / "fake_batched.pt2")
    with ShadowServer(tmp_path, flags=["--set", "*.shadow=0.5"]) as server:
        for action in ("reload", "end"):
            server.set_share(1, "fake_batched")
            server.stage(fake_weights(3), "fake_batched")
            server.wait_for("running", "fake_batched")
            with Clients(server, "fake_batched", 2) as clients:
                until(lambda: clients.answers > 20)
                if action == "reload":
                    # A file that was written again is loaded again.
                    shutil.copy(BATCHED, tmp_path / "new")
                    (tmp_path / "new").replace(tmp_path / "fake_batched.pt2")
                    assert server.post("/v2/repository/models/fake_batched/load", {}, port=server.admin_port).status == 200
                    now = server.shadow("fake_batched")
                    assert (now["share"], now["state"]) == (0.5, "waiting") and "compared" not in now
            # The package's own weights answer no constant, and a model that was loaded again begins to count anew.
            assert not [p for p in clients.problems if p[0] not in ("mixed", "back in time", "another answer")]
        assert server.stop() == 0
