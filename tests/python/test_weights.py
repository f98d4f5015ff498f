"""New weights while the model serves."""
import json
import struct
import sys
import threading

import numpy as np
import pytest
import sconce
from packages import FAKE, FAKES, fake_expected

X = np.array([[1, 2, 3, 4]], np.float32)
ONES = {"scale.w": np.ones(4, np.float32), "scale.b": np.zeros(4, np.float32)}


@pytest.fixture
def model():
    return sconce.load(FAKE)


def test_update_and_rollback(model):
    before = model.digest()
    assert model.weight_version == 1
    assert model.update(ONES, label="ones") == 2 == model.weight_version == model.generation  # deprecated: the last
    np.testing.assert_array_equal(model(X), X)
    result, info = model.call_with_info(X)
    assert (info.weight_version, info.label) == (2, "ones") and info.generation == 2  # deprecated
    assert [(s.state, s.label) for s in model.weight_sets] == [("active", "ones"), ("previous", "")]
    assert model.digest("previous") == before != model.digest()
    assert model.rollback() == 3
    np.testing.assert_array_equal(model(X), fake_expected(X))
    assert model.digest() == before


def test_stage_commit_abort(model):
    model.stage(ONES, label="x")
    np.testing.assert_array_equal(model(X), fake_expected(X))
    assert model.weight_sets[1].state == "staged" and model.weight_sets[1].weight_version == 0
    assert model.weight_sets[0].generation == model.weight_version  # deprecated
    model.abort()
    with pytest.raises(sconce.FailedPrecondition):
        model.commit()
    model.stage(ONES, dry_run=True)
    with pytest.raises(sconce.FailedPrecondition):
        model.abort()
    model.stage(ONES)
    assert model.commit() == 2
    np.testing.assert_array_equal(model(X), X)
    model.release_previous()
    with pytest.raises(sconce.FailedPrecondition):
        model.rollback()


def test_arrays_of_any_form(model):
    swapped = np.array([1, 1, 1, 1], ">f4")
    reversed_ = np.array([3, 2, 1, 0], np.float32)[::-1]
    model.update({"scale.w": swapped, "scale.b": reversed_})
    np.testing.assert_array_equal(model(X), X + np.arange(4))
    tensor = sconce.load(FAKE, outputs="dlpack")(np.ones((1, 4), np.float32))
    with pytest.raises(sconce.InvalidArgument, match="scale.w"):
        model.update({"scale.w": tensor, "scale.b": reversed_})  # [1, 4]


def test_partial_and_ignored(model):
    with pytest.raises(sconce.InvalidArgument, match="scale.b"):
        model.update({"scale.w": ONES["scale.w"]})
    model.update({"scale.w": ONES["scale.w"]}, partial=True)
    np.testing.assert_array_equal(model(X), X + np.arange(0, 40, 10))
    with pytest.raises(sconce.NotFound, match="steps_of_training"):
        model.update({**ONES, "steps_of_training": np.zeros(())})
    model.update({**ONES, "steps_of_training": np.zeros(())}, ignore="steps_of_training")
    np.testing.assert_array_equal(model(X), X)


@pytest.mark.parametrize("weights, error, message", [
    ({**ONES, "scale.w": np.ones(5, np.float32)}, sconce.InvalidArgument, "scale.w"),
    ({**ONES, "scale.w": np.ones(4)}, sconce.InvalidArgument, "scale.w"),
    ({**ONES, "scale.w": "ones"}, sconce.InvalidArgument, r"weights\['scale.w'\]: expected an array"),
    ({**ONES, "scale.w": [1, 2]}, sconce.InvalidArgument, r"weights\['scale.w'\]: expected an array"),
    ({**ONES, "scale.w": np.ones(4, object)}, sconce.InvalidArgument, "got an array of object"),
    ({1: ONES["scale.w"]}, sconce.InvalidArgument, "expected names, got a key of type int"),
    ([1], sconce.InvalidArgument, "expected a mapping of names to arrays, or a path, got an object of type list"),
    ("/no/such.safetensors", sconce.FileNotFound, "/no/such.safetensors"),
])
def test_errors_change_nothing(model, weights, error, message):
    before = model.digest()
    with pytest.raises(error, match=message):
        model.update(weights)
    assert model.digest() == before and model.weight_version == 1 and len(model.weight_sets) == 1


def test_values_that_are_not_finite(model):
    weights = {**ONES, "scale.b": np.array([0, np.nan, 0, 0], np.float32)}
    with pytest.raises(sconce.InvalidArgument, match="scale.b"):
        model.update(weights, check_finite=True)
    model.update(weights)
    assert np.isnan(model(X)[0, 1])


def write_safetensors(path, arrays):
    header, data = {}, b""
    for name, value in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_files(model, tmp_path):
    path = write_safetensors(tmp_path / "ones.safetensors", ONES)
    assert model.update(path) == 2
    np.testing.assert_array_equal(model(X), X)
    np.savez(tmp_path / "twos.npz", **{name: 2 * value for name, value in ONES.items()})
    assert model.update(str(tmp_path / "twos.npz")) == 3
    np.testing.assert_array_equal(model(X), 2 * X)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(sconce.CorruptPackage, match="ones.safetensors"):
        model.update(path)
    assert model.weight_version == 3


def test_state_dict_round_trip(model):
    state = model.state_dict()
    assert set(state) == {"scale.w", "scale.b"}
    model.update(ONES)
    np.testing.assert_array_equal(model(X), X)
    model.update(state)
    np.testing.assert_array_equal(model(X), fake_expected(X))


def test_arrays_are_released(model):
    weights = {name: value.copy() for name, value in ONES.items()}
    before = [sys.getrefcount(value) for value in weights.values()]
    for _ in range(10):
        model.update(weights)
        with pytest.raises(sconce.NotFound):
            model.update({**weights, "nothing": X})
    assert [sys.getrefcount(value) for value in weights.values()] == before


def test_calls_never_mix_weight_versions():
    """Threads call and submit while weights are updated: all weights of a set are the same number, and so is what an
    answer shows of them."""
    model = sconce.load(FAKES / "fake_update.so", replicas=2)
    size = model.constants["scale.w"].shape
    zeros = np.zeros((2, 4), np.float32)

    def weights(number):
        return {"scale.w": np.full(size, number, np.float32), "scale.b": np.full(size, number, np.float32)}

    model.update(weights(2), label="2")
    done = threading.Event()
    faults, seen = [], set()

    def check(result, info):
        number = result[0, 0]
        if not (result == number).all() or str(int(number)) != info.label:
            faults.append((result, info))
        seen.add(info.weight_version)

    def call():
        while not done.is_set():
            check(*model.call_with_info(zeros))

    def submit():
        while not done.is_set():
            futures = [model.submit(zeros) for _ in range(8)]
            for future in futures:
                check(future.result(), future.info)

    threads = [threading.Thread(target=target) for target in (call, call, submit, submit)]
    for thread in threads:
        thread.start()
    for number in range(3, 60):
        model.update(weights(number), label=str(number))
    done.set()
    for thread in threads:
        thread.join()
    assert not faults, faults[:3]
    assert len(seen) > 5 and model.weight_version == 59
