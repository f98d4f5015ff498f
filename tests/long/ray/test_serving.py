"""Requests, while replicas and nodes come and go."""
import json
import os
import signal
import urllib.error
import urllib.request

import numpy as np
import pytest
import sconce
from conftest import IMAGES, PACKAGE, Load, until
from ray import serve


def running(application):
    held = serve.status().applications[application.name].deployments["Held"]
    return held.replica_states.get("RUNNING", 0), sum(held.replica_states.values())


def test_requests_over_http(cluster, application):
    application.run(num_replicas=1)
    url = f"http://127.0.0.1:{cluster.port}/{application.name}"
    wanted = sconce.load(PACKAGE)(IMAGES)

    def ask(path, document=None):
        data = None if document is None else json.dumps(document).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(url + path, data)) as answer:
                return answer.status, answer.headers, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, error.headers, json.load(error)

    tensor = {"name": "ARGS[0]", "datatype": "FP32", "shape": [3, 8, 8], "data": IMAGES.reshape(-1).tolist()}
    status, headers, answer = ask("/v2/models/digits/infer", {"inputs": [tensor]})
    assert status == 200 and headers["Sconce-Weight-Version"] == "1" and answer["parameters"] == {"weight_version": "1"}
    found = {one["name"]: np.reshape(one["data"], one["shape"]) for one in answer["outputs"]}
    assert found["RESULT[class]"].tolist() == wanted["class"].tolist()
    assert np.allclose(found["RESULT[probabilities]"], wanted["probabilities"])

    application.push()
    status, headers, answer = ask("/v2/models/digits/infer", {"inputs": [tensor], "id": "a", "outputs": [{"name": "RESULT[class]"}]})
    assert headers["Sconce-Weight-Version"] == "2" and answer["id"] == "a" and len(answer["outputs"]) == 1
    assert answer["parameters"] == {"weight_version": "v2"}

    for document, words in (({}, "inputs"), ({"inputs": []}, "missing inputs: ARGS[0]"),
                            ({"inputs": [{**tensor, "datatype": "INT32"}]}, "expected FP32"),
                            ({"inputs": [{**tensor, "shape": [3, 64]}]}, "expected 3 dimensions"),
                            ({"inputs": [{**tensor, "shape": [1, 8, 8]}]}, "reshape"),
                            ({"inputs": [tensor], "outputs": [{"name": "RESULT[other]"}]}, "RESULT[other]")):
        status, _, answer = ask("/v2/models/digits/infer", document)
        assert status == 400 and words in answer["error"], (document, answer)
    assert ask("/v2/models/other/infer", {})[0] == 404
    assert ask("/v2/health/ready")[0] == ask("/v2/models/digits/ready")[0] == 200


def test_arrays_through_a_handle_are_not_copied(application):
    application.run(num_replicas=1)
    assert application.handle.in_place.remote(np.ones(1 << 20, np.float32)).result()
    assert application.handle.in_place.remote(IMAGES).result()
    answer = application.handle.call.remote(IMAGES).result()
    assert np.allclose(answer["probabilities"], sconce.load(PACKAGE)(IMAGES)["probabilities"], rtol=1e-4, atol=1e-6)
    with pytest.raises(Exception, match="expected 3 dimensions"):
        application.handle.call.remote(IMAGES[0, 0]).result()


def test_a_replica_is_killed_under_load(application, capsys):
    application.run(num_replicas=3)
    with Load(application) as load:
        load.more()
        killed, process = next(iter(application.where().items()))
        os.kill(process, signal.SIGKILL)
        load.more()
        until(lambda: running(application) == (3, 3) and killed not in application.served(), "another one in its place")
        load.more()
    # Ray does not try a request again that a dead replica was working on; the clients do.
    with capsys.disabled():
        print(f"{load.count} answers, {len(load.errors)} errors")
    assert len(load.errors) <= len(load.answers)
    assert killed not in application.where()


def test_a_node_is_killed_under_load(cluster, application, capsys):
    application.run(num_replicas=4, max_replicas_per_node=2)
    application.push()
    with Load(application) as load:
        load.more()
        cluster.remove_node(cluster.second, allow_graceful=False)
        until(lambda: running(application)[0] == 2, "two replicas are left")
        load.more()
        application.all_serve(2, replicas=2)
        cluster.second = cluster.add_node(num_cpus=1)
        until(lambda: running(application) == (4, 4), "four replicas again")
        load.more()
    with capsys.disabled():
        print(f"{load.count} answers, {len(load.errors)} errors")
    assert {info["generation"] for answers in load.answers for info, _ in answers} == {2}
    application.all_serve(2, replicas=4)


def test_replicas_follow_the_load(application):
    application.run(autoscaling_config={"min_replicas": 1, "max_replicas": 3, "target_ongoing_requests": 1, "upscale_delay_s": 1,
                                        "downscale_delay_s": 2, "metrics_interval_s": 0.5, "look_back_period_s": 2})
    application.push()
    assert running(application) == (1, 1)
    with Load(application, clients=8) as load:
        until(lambda: running(application)[0] == 3, "three replicas")
        load.more()
    until(lambda: running(application) == (1, 1), "one replica again")
    assert load.errors == []
    assert {info["generation"] for answers in load.answers for info, _ in answers} == {2}
    assert len({info["replica"] for answers in load.answers for info, _ in answers}) == 3
    application.all_serve(2, replicas=1)


def test_a_config_file_changes_weights_and_replicas_without_a_restart(application):
    application.journal = ""
    application.apply(num_replicas=1)
    before = application.where()
    assert application.ask()[1]["generation"] == 1
    application.apply(num_replicas=2, user_config={"weights": str(application.v2), "label": "by config"})
    assert running(application) == (2, 2) and before.items() < application.where().items()
    assert {(application.ask()[1]["label"], application.ask()[1]["generation"]) for _ in range(20)} == {("by config", 2)}
