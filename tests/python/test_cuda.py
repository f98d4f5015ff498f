"""CUDA models from Python: arrays of the host, results on the GPU, and PyTorch's tensors without a copy. Needs a GPU,
libsconce_cuda in the build, and ../shared/conformance; PyTorch with CUDA for the last test."""
import pathlib

import numpy as np
import pytest
import sconce
from packages import Case, unpack
from test_cases import flat, run_case, structured
from where import ROOT

SUITES = sorted((ROOT.parent / "shared/conformance").glob("*-cuda.tar.xz"))
pytestmark = pytest.mark.skipif(not pathlib.Path("/dev/nvidiactl").exists() or not SUITES,
                                reason="no GPU, or no suites of CUDA cases")


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return [Case(folder) for suite in SUITES for folder in unpack(suite, tmp_path_factory.mktemp("cases"))]


@pytest.mark.parametrize("outputs", ["numpy", "dlpack"])
def test_suites(cases, outputs):
    ran, failures = 0, []
    for case in cases:
        try:
            ran += bool(run_case(case, outputs=outputs))
        except (sconce.Incompatible, sconce.Unsupported, sconce.Unavailable):
            continue
        except Exception as error:  # noqa: BLE001  collected, with the case's name
            failures.append(f"{case.info['name']}: {type(error).__name__}: {str(error)[:300]}")
    assert not failures, f"{len(failures)} of {ran + len(failures)}\n" + "\n".join(failures)
    assert ran > 0, "no case could run"


def test_torch_tensors_stay_on_the_gpu(cases):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    ran = 0
    for case in cases:
        step = next((s for s in case.info["steps"] if s["do"] == "run" and not s.get("fails")), None)
        floats = step and all(t["dtype"] == "float32" and t["offset"] == 0 for t in step["inputs"] if t)
        if not floats or step.get("compare") == "meta" or step.get("mutated") or case.info["steps"][0] is not step:
            continue
        try:
            model = sconce.load(case.package, model_name=case.info.get("model", ""), check_inputs=False)
        except sconce.Incompatible:
            continue
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            # Work that is under way when the model is called: its values come late.
            torch.cuda._sleep(50_000_000)
            tensors = [torch.as_tensor(case.array(t).copy()).cuda(non_blocking=True).as_strided(t["shape"], t["stride"])
                       if 0 not in t["shape"] and case.array(t).flags.c_contiguous else None for t in step["inputs"]]
            if any(tensor is None for tensor in tensors):
                continue
            args, kwargs = structured(model, tensors)
            results = flat(model(*args, **kwargs))
        for got, want in zip(results, step["outputs"], strict=True):
            if want is None:
                continue
            assert isinstance(got, sconce.Tensor)
            if want.get("device", "cuda") == "cuda":
                assert got.device == "cuda:0"
                shared = torch.from_dlpack(got)
                assert shared.is_cuda and shared.data_ptr() == torch.from_dlpack(got).data_ptr()
            expected = case.array(want)
            if expected.dtype.kind in "fc":
                np.testing.assert_allclose(got.numpy(), expected, rtol=step.get("rtol", 1e-4), atol=step.get("atol", 1e-4))
        ran += 1
    assert ran > 0
