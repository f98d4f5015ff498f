"""New weights on all replicas or on none."""
import concurrent.futures
import os
import signal

import numpy as np
import pytest
import ray
import sconce
import weights
from conftest import IMAGES, PACKAGE, V2, Load, until
from two_phase import Refused


def expected():
    """What the package computes with its own weights, and with those of V2."""
    model = sconce.load(PACKAGE)
    own = model(IMAGES)["probabilities"]
    model.update(V2)
    return own, model(IMAGES)["probabilities"]


def same(one, other):
    return np.allclose(one, other, rtol=1e-5, atol=1e-6)


def test_rolling_updates_under_load(application):
    own, new = expected()
    assert not same(own, new)
    application.run(num_replicas=2)
    with Load(application) as load:
        for turn in range(6):
            done = application.push() if turn % 2 == 0 else weights.rollback(application.journal)
            assert done.number == turn + 2
            assert set(application.served().values()) == {done.number}
            # Whoever asks from now on gets the new weights.
            assert all(application.ask()[1]["generation"] == done.number for _ in range(10))
            load.more()
    assert load.errors == []
    for answers in load.answers:
        newest = {}
        for info, answer in answers:
            assert same(answer["probabilities"], own if info["generation"] % 2 else new), info
            assert info["generation"] >= newest.get(info["replica"], 1)
            newest[info["replica"]] = info["generation"]
            assert info["label"] == ("" if info["generation"] % 2 else "v2")
    assert {info["generation"] for answers in load.answers for info, _ in answers} >= {2, 3, 4, 5, 6, 7}


def test_one_that_cannot_stage_stops_all(application):
    application.run(num_replicas=2)
    application.hold("fail")
    with Load(application) as load:
        with pytest.raises(Refused, match="the test's failure"):
            application.push()
        load.more()
    assert load.errors == []
    assert {info["generation"] for answers in load.answers for info, _ in answers} == {1}
    assert sorted(application.served().values()) == [1, 1]
    application.release()
    assert application.push().number == 2
    application.all_serve(2, replicas=2)


def test_a_deadline_stops_all(application):
    application.run(num_replicas=2)
    application.hold()
    with pytest.raises(Refused, match="not staged in time by"):
        application.push(timeout=1)
    assert application.ask()[1]["generation"] == 1
    application.release()
    with pytest.raises(Refused, match="No such file"):
        weights.push("/nonexistent/file.safetensors", application.journal)
    assert application.push().number == 2


def test_a_replica_is_killed_between_stage_and_commit(application):
    application.run(num_replicas=2)
    before = application.where()
    application.hold()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        pushed = pool.submit(application.push)
        killed = int(until((application.folder / "staged").exists, "one has staged") and (application.folder / "staged").read_text())
        assert killed in before.values()
        os.kill(killed, signal.SIGKILL)
        application.release()
        assert pushed.result().number == 2
    application.all_serve(2, replicas=2)
    assert killed not in application.where().values()
    assert {application.ask()[1]["generation"] for _ in range(20)} == {2}


def test_a_late_replica_begins_with_the_current_set(application):
    application.apply(num_replicas=1)
    application.push()
    early = set(application.where())
    application.apply(num_replicas=3)
    application.all_serve(2, replicas=3)
    seen = {}
    until(lambda: seen.update([(lambda info: (info["replica"], info["generation"]))(application.ask()[1])]) or len(seen) == 3,
          "all three have answered")
    assert set(seen.values()) == {2} and early < set(seen)


def test_the_keeper_is_killed(application):
    application.run(num_replicas=2)
    application.push()
    with Load(application) as load:
        ray.kill(weights.keeper_of(application.journal), no_restart=False)
        # It knows from the journal what was decided last, and from polls who is there.
        application.all_serve(2, replicas=2)
        assert weights.rollback(application.journal).number == 3
        load.more()
    assert load.errors == []
    application.all_serve(3, replicas=2)

