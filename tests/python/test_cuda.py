"""CUDA models from Python: arrays of the host, results on the GPU, and tensors of PyTorch, JAX and CuPy without a copy.

Needs a GPU and libsconce_cuda in the build. Suites of cases come from ../shared/conformance; packages that are made here
need PyTorch for CUDA and a C++ compiler; JAX and CuPy are tried where this Python has them for CUDA. What is missing skips
the tests that need it, with the reason.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import sconce
from packages import Case, unpack
from test_cases import flat, run_case, structured
from test_processes import in_child
from where import ROOT

SUITES = sorted((ROOT.parent / "shared/conformance").glob("*-cuda.tar.xz"))
pytestmark = pytest.mark.skipif(not pathlib.Path("/dev/nvidiactl").exists(), reason="no GPU")


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    if not SUITES:
        pytest.skip("no suites of CUDA cases in ../shared/conformance")
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


@pytest.fixture(scope="module")
def torch():
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip(f"PyTorch {found.__version__} finds no GPU")
    return found


@pytest.fixture(scope="module")
def jax():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else it takes most of the GPU's memory
    found = pytest.importorskip("jax")
    try:
        found.devices("cuda")
    except RuntimeError as error:
        pytest.skip(f"JAX {found.__version__} finds no GPU: {error}")
    return found


@pytest.fixture(scope="module")
def cupy():
    found = pytest.importorskip("cupy")
    if not found.cuda.is_available():
        pytest.skip(f"CuPy {found.__version__} finds no GPU")
    return found


def test_torch_tensors_stay_on_the_gpu(cases, torch):
    ran = 0
    for case in cases:
        step = next((s for s in case.info["steps"] if s["do"] == "run" and not s.get("fails")), None)
        floats = step and all(t["dtype"] == "float32" and t["offset"] == 0 for t in step["inputs"] if t)
        if not floats or step.get("compare") == "meta" or step.get("mutated") or case.info["steps"][0] is not step:
            continue
        # torch 2.11 takes memory for the descriptors of one block of this kernel, and each block writes its own: what is
        # behind that memory is lost (compute-sanitizer), in PyTorch too.
        if "on_device_tma" in case.info["name"]:
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


# Packages that sconce.export makes here.

def make(torch):
    """A model whose answer for x is (tanh(linear(x)) * scale, argmax), on the GPU."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.linear = torch.nn.Linear(64, 32)
            self.scale = torch.nn.Parameter(torch.tensor(2.0))

        def forward(self, x):
            y = torch.tanh(self.linear(x)) * self.scale
            return {"y": y, "best": y.argmax(1)}
    return Net().cuda().eval()


@pytest.fixture(scope="module")
def exported(torch, tmp_path_factory):
    """The report of an export for the GPU: of a model, one that returns its input, and one that writes it."""
    path = tmp_path_factory.mktemp("exported") / "net.pt2"
    x = torch.randn(3, 64)
    return sconce.export({"net": (make(torch), x), "same": (lambda x: (x, x * 2), x), "adds": (lambda x: x.add_(1) * 3, x)},
                         path, device="cuda", batch=(1, 16))


@pytest.fixture(scope="module")
def net(exported):
    return sconce.load(exported.path, model_name="net")


def expected(torch, x, scale=1.0):
    with torch.no_grad():
        model = make(torch)
        for value in model.parameters():
            value *= scale
        return {name: value.cpu().numpy() for name, value in model(torch.as_tensor(x, device="cuda")).items()}


def agrees(torch, got, x, scale=1.0):
    want = expected(torch, x, scale)
    np.testing.assert_allclose(got["y"].numpy(), want["y"], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(got["best"].numpy(), want["best"])


def host(rows, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, 64), dtype=np.float32)


def test_export_for_the_gpu(exported):
    assert exported.checked and "batch of 3" in str(exported)
    assert exported.models["net"].constants and not exported.models["net"].inlined
    info = sconce.inspect(exported.path)
    assert {model.device for model in info.models.values()} == {"cuda"}
    assert all(x.device == "cuda:0" for model in info.models.values() for x in model.signature.inputs)
    with zipfile.ZipFile(exported.path) as archive:
        names = archive.namelist()
        assert any(name.endswith(".cubin") for name in names), names
        for name in names:
            content = archive.read(name)
            for place in (str(ROOT), os.path.expanduser("~") + "/", sys.prefix + "/", "/tmp/"):
                at = content.find(place.encode())
                assert at < 0, (name, content[max(at - 60, 0):at + 100])


def test_the_model_is_where_it_was(torch, tmp_path):
    """A model on "cuda:0" is on "cuda": no copy of it is made. One on the host stays there."""
    model, x = make(torch), torch.randn(2, 64)
    before = model.linear.weight.data_ptr()
    sconce.export(model, x, tmp_path / "net.pt2", device="cuda", check=False)
    assert model.linear.weight.data_ptr() == before
    model = model.cpu()
    sconce.export(model, x, tmp_path / "net.pt2", device="cuda", check=False)
    assert model.linear.weight.device.type == "cpu" and x.device.type == "cpu"


def test_arrays_of_the_host(torch, net):
    for rows in (1, 3, 16):
        agrees(torch, net(host(rows)), host(rows))


def test_tensors_of_pytorch(torch, net):
    for rows in (1, 3, 3, 3, 3, 16):  # the third run of a shape becomes a CUDA graph
        x = torch.as_tensor(host(rows, rows), device="cuda")
        got = net(x)
        assert isinstance(got["y"], sconce.Tensor) and got["y"].device == "cuda:0"
        agrees(torch, got, x)
        shared = torch.from_dlpack(got["y"])
        assert shared.is_cuda and shared.data_ptr() == torch.from_dlpack(got["y"]).data_ptr()
        shared.add_(1)
        np.testing.assert_allclose(got["y"].numpy(), expected(torch, x)["y"] + 1, rtol=1e-4, atol=1e-4)


def test_results_as_tensors_of_pytorch(torch, exported):
    model = sconce.load(exported.path, model_name="net", outputs="torch")
    got = model(torch.as_tensor(host(3), device="cuda"))
    assert isinstance(got["y"], torch.Tensor) and got["y"].is_cuda and got["best"].dtype == torch.int64
    np.testing.assert_allclose(got["y"].cpu().numpy(), expected(torch, host(3))["y"], rtol=1e-4, atol=1e-4)


def pointer(array):
    """The address of a tensor of any of the libraries."""
    if hasattr(array, "data_ptr"):
        return array.data_ptr()
    return array.data.ptr if hasattr(array, "data") and hasattr(array.data, "ptr") else array.unsafe_buffer_pointer()


def as_library(name, request, x):
    """The array on the GPU, by that library."""
    library = request.getfixturevalue(name)
    if name == "torch":
        return library.as_tensor(x, device="cuda")
    return library.device_put(x, library.devices("cuda")[0]) if name == "jax" else library.asarray(x)


@pytest.mark.parametrize("name", ["torch", "jax", "cupy"])
def test_inputs_are_used_where_they_are(name, request, exported):
    """A model that returns its input returns the caller's memory, and one that writes it writes there."""
    same = sconce.load(exported.path, model_name="same", cuda_graphs=0)
    x = as_library(name, request, host(4))
    result, twice = same(x)
    np.testing.assert_array_equal(twice.numpy(), host(4) * 2)
    np.testing.assert_array_equal(result.numpy(), host(4))
    if name == "jax":
        return  # nobody may write its arrays, so a result that is one may be a copy
    assert request.getfixturevalue("torch").from_dlpack(result).data_ptr() == pointer(x)
    adds = sconce.load(exported.path, model_name="adds", cuda_graphs=0)
    before = pointer(x)
    np.testing.assert_allclose(adds(x).numpy(), (host(4) + 1) * 3, rtol=1e-6)
    now = x.cpu().numpy() if name == "torch" else x.get()
    assert pointer(x) == before
    np.testing.assert_allclose(now, host(4) + 1, rtol=1e-6)


@pytest.mark.parametrize("name", ["torch", "jax", "cupy"])
def test_inputs_that_are_written_when_a_graph_runs(name, request, exported):
    if name == "jax":
        pytest.skip("JAX's arrays are not to be written")
    adds = sconce.load(exported.path, model_name="adds")
    for _ in range(5):
        x = as_library(name, request, host(4))
        np.testing.assert_allclose(adds(x).numpy(), (host(4) + 1) * 3, rtol=1e-6)
        np.testing.assert_allclose(x.cpu().numpy() if name == "torch" else x.get(), host(4) + 1, rtol=1e-6)


@pytest.mark.parametrize("taker", ["torch", "jax", "cupy"])
@pytest.mark.parametrize("giver", ["torch", "jax", "cupy"])
def test_from_each_library_to_each(giver, taker, request, torch, net):
    x = as_library(giver, request, host(5, 7))
    got = net(x)
    agrees(torch, got, host(5, 7))
    library = request.getfixturevalue(taker)
    take = library.dlpack.from_dlpack if taker == "jax" else library.from_dlpack
    y, again = take(got["y"]), torch.from_dlpack(got["y"])
    assert pointer(y) == again.data_ptr()
    del got  # the memory lives as long as whoever took it
    values = y.cpu().numpy() if taker == "torch" else np.asarray(y) if taker == "jax" else y.get()
    np.testing.assert_allclose(values, expected(torch, host(5, 7))["y"], rtol=1e-4, atol=1e-4)


def test_results_are_arguments(torch, exported):
    """What one model returns goes into the next, without a library between them."""
    same = sconce.load(exported.path, model_name="same")
    net = sconce.load(exported.path, model_name="net")
    agrees(torch, net(same(host(3))[1]), host(3) * 2)


def test_streams_of_pytorch(torch, net):
    """The argument is made on a stream of the caller's that is late, and the result is used there at once."""
    stream = torch.cuda.Stream()
    for _ in range(4):
        with torch.cuda.stream(stream):
            late = torch.zeros(3, 64, device="cuda")
            torch.cuda._sleep(100_000_000)
            late.copy_(torch.as_tensor(host(3)))
            got = net(late)
            late.fill_(float("nan"))  # after the call
            doubled = torch.from_dlpack(got["y"]) * 2
        np.testing.assert_allclose(doubled.cpu().numpy(), expected(torch, host(3))["y"] * 2, rtol=1e-4, atol=1e-4)


def test_streams_of_cupy(torch, cupy, net):
    stream = cupy.cuda.Stream(non_blocking=True)
    slow = cupy.ones((4096, 4096), np.float32)
    for _ in range(4):
        with stream:
            late = cupy.zeros((3, 64), np.float32)
            for _ in range(20):
                slow = slow @ slow * 1e-4
            late += cupy.asarray(host(3)) + slow[:3, :64] * 0
            got = net(late)
            late.fill(np.nan)
            doubled = cupy.from_dlpack(got["y"]) * 2
        stream.synchronize()
        np.testing.assert_allclose(doubled.get(), expected(torch, host(3))["y"] * 2, rtol=1e-4, atol=1e-4)


def test_streams_of_jax(torch, jax, net):
    """JAX returns before the GPU has computed."""
    numpy = jax.numpy

    @jax.jit
    def slow(x, y):
        y = jax.lax.fori_loop(0, 20, lambda _, y: y @ y * 1e-4, y)
        return x + y[:3, :64] * 0
    ones = numpy.ones((4096, 4096), numpy.float32)
    for _ in range(4):
        got = net(slow(host(3), ones))
        doubled = jax.dlpack.from_dlpack(got["y"]) * 2
        np.testing.assert_allclose(np.asarray(doubled), expected(torch, host(3))["y"] * 2, rtol=1e-4, atol=1e-4)


def test_weights_from_the_gpu(torch, exported):
    """A state_dict() as a training process has it: on the GPU, one tensor still being computed."""
    model = sconce.load(exported.path, model_name="net")
    x = host(3)
    agrees(torch, model(x), x)
    weights = {name: value.detach().clone() for name, value in make(torch).state_dict().items()}
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(100_000_000)
        weights = {name: value * 3 for name, value in weights.items()}
        assert model.update(weights, label="tripled", check_finite=True) == 2
    agrees(torch, model(x), x, 3)
    agrees(torch, model(torch.as_tensor(x, device="cuda")), x, 3)
    transposed = {"linear.weight": weights["linear.weight"].t().contiguous().t() / 3}  # strides of its own
    model.update(transposed, partial=True)
    with torch.no_grad():
        other = make(torch)
        other.linear.bias *= 3
        other.scale *= 3
        np.testing.assert_allclose(model(x)["y"].numpy(), other(torch.as_tensor(x, device="cuda"))["y"].cpu().numpy(), rtol=1e-4,
                                   atol=1e-4)
    model.rollback()
    agrees(torch, model(x), x, 3)
    with pytest.raises(sconce.InvalidArgument, match="linear.weight"):
        model.update({"linear.weight": torch.full((32, 64), float("nan"), device="cuda")}, partial=True, check_finite=True)
    agrees(torch, model(x), x, 3)


def test_weights_of_other_libraries(request, torch, exported):
    for name in ("cupy", "jax"):
        if not importlib.util.find_spec(name):
            continue
        model = sconce.load(exported.path, model_name="net")
        model.update({key: as_library(name, request, value.detach().cpu().numpy() * 2)
                      for key, value in make(torch).state_dict().items()})
        agrees(torch, model(host(2)), host(2), 2)


SHARED = r"""
import sys
import numpy as np
if {first!r} == "torch":
    import torch
    torch.ones(3, device="cuda").sum().item()
import sconce
model = sconce.load({path!r}, model_name="same")
x = np.arange(128, dtype=np.float32).reshape(2, 64)
assert np.array_equal(model(x)[1].numpy(), x * 2)
import torch
given = torch.as_tensor(x, device="cuda")
for i in range(20):
    # Both allocators work in turns, and PyTorch's current device and stream stay its own.
    with torch.cuda.stream(torch.cuda.Stream()):
        kept = torch.randn(256, 256, device="cuda") @ torch.randn(256, 256, device="cuda")
        result = torch.from_dlpack(model(given + i)[1])
        assert torch.equal(result.cpu(), torch.as_tensor((x + i) * 2)), i
assert torch.cuda.current_device() == 0
del model
assert torch.ones(3, device="cuda").sum().item() == 3
print("ok")
"""


@pytest.mark.parametrize("first", ["torch", "sconce"])
def test_a_process_with_the_context_of_pytorch(first, exported, child_env):
    script = SHARED.format(first=first, path=str(exported.path))
    done = subprocess.run([sys.executable, "-c", script], env=child_env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == "ok\n", done.stderr[-3000:]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork", "ignore:os.fork")
def test_a_forked_child_is_told_why(net, exported):
    """CUDA does not survive fork(): neither does a model that was loaded before, nor can one be loaded."""
    net(host(2))
    answer = in_child(lambda: net(host(2)))
    assert answer.startswith("FailedPrecondition: the model was loaded before this process was forked"), answer
    answer = in_child(lambda: sconce.load(exported.path, model_name="net"))
    assert "forked" in answer and "spawn" in answer, answer
    net(host(2))


FORKED_AFTER_TORCH = r"""
import os, torch
torch.ones(3, device="cuda")
import sconce
child = os.fork()
if child == 0:
    try:
        sconce.load({path!r}, model_name="net")
    except sconce.Error as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_child_of_pytorch_is_told_why(exported, child_env):
    """The same where only PyTorch had used CUDA before the fork."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED_AFTER_TORCH.format(path=str(exported.path))],
                          env=child_env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "forked" in done.stdout and "spawn" in done.stdout, done.stdout + done.stderr[-3000:]
