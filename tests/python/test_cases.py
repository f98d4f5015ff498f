"""Results of conformance cases, through Python, are PyTorch's: the suites of tests/data, and those of
../shared/conformance that are there."""
import numpy as np
import pytest
import sconce
from packages import SUITES, Case, unpack


def close(got, want, rtol, atol):
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, got.dtype, want.shape, want.dtype)
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=atol, equal_nan=True)


def flat(result):
    """The leaves of a result in order."""
    if isinstance(result, dict):
        return [leaf for value in result.values() for leaf in flat(value)]
    if isinstance(result, (tuple, list)):
        return [leaf for value in result for leaf in flat(value)]
    return [result]


def structured(model, arrays):
    """The call's arguments: the arrays at their places of the recorded structure, 0 where a number was dropped."""
    at = {tensor.path: array for tensor, array in zip(model.signature.inputs, arrays, strict=True)}

    def build(node, path):
        if node.kind == "leaf":
            return at.get(path, 0)
        if node.kind == "none":
            return None
        keys = node.keys if len(node.keys) == len(node.children) else range(len(node.children))
        steps = [f"{path}.{key}" if node.kind == "dataclass" else f"{path}[{key!r}]" for key in keys]
        values = [build(child, step) for child, step in zip(node.children, steps, strict=True)]
        if node.kind in ("dict", "OrderedDict", "defaultdict"):
            return dict(zip(keys, values, strict=True))
        if node.kind == "dataclass":
            return type("Fields", (), dict(zip(keys, values, strict=True)))
        return values

    signature = model.signature
    if signature.args is None or len(at) != len(arrays) or not all("args" in path for path in at):
        return arrays, {}
    return build(signature.args, "args"), build(signature.kwargs, "kwargs")


def run_case(case, **settings):
    model = sconce.load(case.package, model_name=case.info.get("model", ""), check_inputs=False, **settings)
    ran = 0
    for step in case.info["steps"]:
        if step["do"] != "run" or step.get("fails") or step.get("checks"):
            # Without updates the later runs differ.
            if step["do"] != "run":
                break
            continue
        if any("same_as" in tensor for tensor in step["inputs"]):
            continue
        if "seed" in step:
            sconce.manual_seed(step["seed"])
        arrays = [case.array(tensor) for tensor in step["inputs"]]
        args, kwargs = structured(model, arrays)
        leaves = [leaf.numpy() if isinstance(leaf, sconce.Tensor) else leaf for leaf in flat(model(*args, **kwargs))]
        assert len(leaves) == len(step["outputs"])
        for got, want in zip(leaves, step["outputs"], strict=True):
            if want is None:
                assert got is None
                continue
            expected = case.array(want, own=False)
            if step.get("compare") == "meta":
                assert got.shape == expected.shape and got.dtype == expected.dtype
                continue
            close(got, expected, want.get("rtol", step.get("rtol", 0)), want.get("atol", step.get("atol", 0)))
        for change in step.get("mutated", []):
            close(arrays[change["input"]], case.array(change["after"], own=False), step.get("rtol", 0), step.get("atol", 0))
        ran += 1
    return ran


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.name.partition(".")[0])
def test_suite(suite, tmp_path):
    pytest.importorskip("ml_dtypes")
    ran = left_out = 0
    failures = []
    for folder in unpack(suite, tmp_path):
        case = Case(folder)
        if case.info["device"] != "cpu":
            continue
        try:
            if run_case(case):
                ran += 1
            else:
                left_out += 1
        except (sconce.Incompatible, sconce.Unsupported):
            left_out += 1
        except Exception as error:  # noqa: BLE001  collected, with the case's name
            failures.append(f"{case.info['name']}: {type(error).__name__}: {str(error)[:300]}")
    assert not failures, f"{len(failures)} of {ran + len(failures)}\n" + "\n".join(failures)
    assert ran >= left_out, f"{left_out} of {ran + left_out} cases were left out"
