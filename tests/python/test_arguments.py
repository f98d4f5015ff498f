"""Arrays, tensors and numbers as arguments: right, or a clear error."""
import array
import os
import subprocess
import sys

import numpy as np
import pytest
import sconce
from packages import DIGITS, FAKE, fake_expected, that_writes_its_input

X = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)


@pytest.fixture(scope="module")
def fake():
    return sconce.load(FAKE)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def misaligned(x):
    bytes_ = np.empty(x.nbytes + 1, np.uint8)[1:]
    view = bytes_.view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


FORMS = {
    "row-major": lambda x: x,
    "column-major": np.asfortranarray,
    "negative strides": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "every second": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "other byte order": lambda x: x.astype(">f4"),
    "misaligned": misaligned,
    "read-only": read_only,
    "a field of a structure": lambda x: np.rec.fromarrays([x, x.astype(np.int8)], names="a,b")["a"],
    "subclass": lambda x: x.view(np.recarray),
    "buffer": lambda x: memoryview(x),
}


@pytest.mark.parametrize("form", FORMS)
def test_arrays_of_any_form(fake, form):
    given = FORMS[form](X)
    np.testing.assert_array_equal(fake(given), fake_expected(np.asarray(given, np.float32)))


@pytest.mark.parametrize("form", FORMS)
def test_arrays_of_any_form_where_strides_are_recorded(form):
    model = sconce.load(DIGITS)
    images = np.random.default_rng(2).random((3, 8, 8), np.float32)
    given = FORMS[form](images)
    want = model(np.ascontiguousarray(given, np.float32))
    got = model(given)
    for key in want:
        np.testing.assert_array_equal(got[key], want[key])


def test_empty_batches(fake):
    for given in (np.empty((0, 4), np.float32), np.empty((4, 0), np.float32).T, np.empty((0, 4), np.float32)[::-1]):
        assert fake(given).shape == (0, 4)


@pytest.mark.parametrize("given, message", [
    (X.astype(np.float64), r"args\[0\]: expected float32, got float64"),
    (X.astype(object), r"args\[0\]: expected float32, got an array of object"),
    (X.astype("U8"), r"args\[0\]: expected float32, got an array of <U8"),
    (X.astype("M8[s]"), r"args\[0\]: expected float32, got an array of datetime64\[s\]"),
    (X.astype(np.longdouble), r"args\[0\]: expected float32, got an array of float128"),
    (np.zeros(3, "f4,i4"), r"args\[0\]: expected float32, got an array of "),
    (X[0], r"args\[0\]: expected 2 dimensions, got 1 in \[4\]"),
    (np.float32(3), r"args\[0\]: expected 2 dimensions, got 0 in \[\]"),
    (3, r"args\[0\]: expected 2 dimensions, got 0 in \[\]"),
    (1j, r"args\[0\]: expected float32, got the Python complex 1j, which it cannot hold"),
    (X[:, :2], r"args\[0\]: expected size 4 at dimension 1, got 2"),
    ([[1.0]], r"args\[0\]: expected an array, a tensor or a number, got an object of type list \(numpy.asarray"),
    (None, r"got an object of type NoneType"),
    (b"abcd", r"got an object of type bytes"),
    (array.array("i", [1, 2]), r"args\[0\]: expected float32, got int32"),
])
def test_errors_name_argument_expected_and_found(fake, given, message):
    with pytest.raises(sconce.InvalidArgument, match=message) as caught:
        fake(given)
    assert caught.value.code == "INVALID_ARGUMENT" and isinstance(caught.value, ValueError)


def test_counts(fake):
    with pytest.raises(sconce.InvalidArgument, match="args: expected 1 positional argument, got 0"):
        fake()
    with pytest.raises(sconce.InvalidArgument, match="args: expected 1 positional argument, got 2"):
        fake(X, X)
    with pytest.raises(sconce.InvalidArgument, match="got 0 and the keyword arguments 'x'; the model was exported with none"):
        fake(x=X)
    with pytest.raises(sconce.InvalidArgument, match="kwargs: unexpected 'y'"):
        fake(X, y=1)


def test_results_own_their_memory(fake):
    first = fake(X)
    kept = first.copy()
    for _ in range(50):
        fake(X + 1)
    np.testing.assert_array_equal(first, kept)
    assert first.flags.writeable
    first[0, 0] = 7


def test_objects_are_released(fake):
    given = X.copy()
    before = sys.getrefcount(given)
    for _ in range(100):
        fake(given)
        with pytest.raises(sconce.InvalidArgument):
            fake(given, given)
        fake.submit(given).result()
    del _
    assert sys.getrefcount(given) <= before + 1  # the last future's frame may still go


# The fake model adds 1 to the first element of its input in every run.
WRITES = r"""
import sys
import numpy as np, sconce
model = sconce.load(sys.argv[1])
def given():
    return np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
x = given(); model(x); assert x[0, 0] == 2 and x[1, 0] == 5, x
x = given(); view = x[::-1, ::-1]; model(view); assert view[0, 0] == 9 and x[1, 3] == 9, x
x = given().astype(">f4"); model(x); assert x[0, 0] == 2, x
x = np.asfortranarray(given()); model(x); assert x[0, 0] == 2, x
x = given(); model.submit(x[::-1]).result(); assert x[1, 0] == 6, x
x = given(); x.flags.writeable = False
for _ in range(2):
    try:
        model(x)
        raise SystemExit("a read-only array was taken")
    except sconce.InvalidArgument as error:
        assert str(error) == "args[0]: the model writes this input, but the array is read-only", error
    assert x[0, 0] == 1, x
try:
    model.submit(x).result()
    raise SystemExit("a read-only array was taken")
except sconce.InvalidArgument:
    pass
print("ok")
"""


def test_arrays_that_the_model_writes(child_env, tmp_path):
    package = that_writes_its_input(FAKE, tmp_path / "fake_batched.pt2")
    assert sconce.inspect(package).models["model"].signature.inputs[0].may_be_written
    done = subprocess.run([sys.executable, "-c", WRITES, package], env={**child_env, "FAKE_MODEL_WRITE_INPUT": "1"},
                          capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr


# The same model, with a source that only reads: what the model writes shows where it read.
READS = r"""
import numpy as np, sconce
from packages import FAKE
model = sconce.load(FAKE)
x = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
x.flags.writeable = False
model(x); assert x[0, 0] == 2, x
model.submit(x).result(); assert x[0, 0] == 3, x
# A copy is made where it must be, and is not compared: nothing comes back.
y = np.array([[1, 2, 3, 4]], ">f4")
model(y); assert y[0, 0] == 1, y
print("ok")
"""


def test_read_only_arrays_are_used_where_they_are(child_env):
    assert not sconce.inspect(FAKE).models["model"].signature.inputs[0].may_be_written
    done = subprocess.run([sys.executable, "-c", READS], env={**child_env, "FAKE_MODEL_WRITE_INPUT": "1"},
                          capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr


RETURNS = r"""
import numpy as np, sconce
from packages import FAKE
model = sconce.load(FAKE)
x = np.array([[1, 2, 3, 4]], np.float32)
assert np.shares_memory(model(x), x)
x.flags.writeable = False
for result in (model(x), model.submit(x).result()):
    assert np.array_equal(result, x) and not np.shares_memory(result, x)
    result[0, 0] = 7
assert x[0, 0] == 1
print("ok")
"""


def test_a_result_that_is_a_read_only_argument_can_be_written(child_env):
    done = subprocess.run([sys.executable, "-c", RETURNS], env={**child_env, "FAKE_MODEL_RETURN_INPUT": "1"},
                          capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr


def test_tensor_objects(fake):
    model = sconce.load(FAKE, outputs="dlpack")
    tensor = model(X)
    assert isinstance(tensor, sconce.Tensor)
    assert (tensor.shape, tensor.strides, tensor.dtype, tensor.device, tensor.nbytes) == ((2, 4), (4, 1), "float32", "cpu", 32)
    assert tensor.__dlpack_device__() == (1, 0) and len(tensor) == 2
    assert repr(tensor) == "sconce.Tensor(float32 [2, 4] strides [4, 1], cpu)" or repr(tensor).startswith("sconce.Tensor(float32 [2, 4]")
    for view in (tensor.numpy(), np.asarray(tensor), np.from_dlpack(tensor)):
        np.testing.assert_array_equal(view, fake_expected(X))
    np.testing.assert_array_equal(fake(tensor), fake_expected(fake_expected(X)))
    assert np.shares_memory(tensor.numpy(), np.from_dlpack(tensor))
    assert not np.shares_memory(np.from_dlpack(tensor, copy=True), tensor.numpy())
    np.testing.assert_array_equal(tensor.bits(), tensor.numpy().view(np.uint32))


def test_outputs_are_checked():
    with pytest.raises(sconce.InvalidArgument, match='outputs: expected "numpy", "dlpack" or "torch", got "jax"'):
        sconce.load(FAKE, outputs="jax")


class OnlyDlpack:
    """A tensor of a library that knows DLPack before version 1."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, *, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_of_any_version(fake):
    np.testing.assert_array_equal(fake(OnlyDlpack(X)), fake_expected(X))

    class Failing(OnlyDlpack):
        def __dlpack__(self, **_):
            raise BufferError("not today")

    with pytest.raises(sconce.InvalidArgument, match=r"args\[0\]: the .*Failing cannot be read by DLPack: not today"):
        fake(Failing(X))


def test_capsules_are_taken_once(fake):
    """The tensor of a capsule belongs to who takes it first, and is freed once."""
    given = X.copy()
    references = sys.getrefcount(given)

    class Once(OnlyDlpack):
        def __init__(self, array, **version):
            super().__init__(array)
            self.capsule = array.__dlpack__(**version)

        def __dlpack__(self, **_):
            return self.capsule

    for version in ({}, {"max_version": (1, 0)}):
        once = Once(given, **version)
        np.testing.assert_array_equal(fake(once), fake_expected(X))
        with pytest.raises(sconce.InvalidArgument, match="cannot be read by DLPack"):
            fake(once)
        with pytest.raises((BufferError, ValueError)):
            np.from_dlpack(once)
        del once
    assert sys.getrefcount(given) == references


def test_bits_stand_for_dtypes_that_numpy_lacks():
    tensor = sconce.Tensor.from_bits(np.array([0x3F80, 0x4000], np.uint16), "bfloat16")
    assert tensor.dtype == "bfloat16" and tensor.shape == (2,)
    np.testing.assert_array_equal(tensor.bits(), [0x3F80, 0x4000])
    with pytest.raises(sconce.InvalidArgument, match="expected elements of 2 bytes for bfloat16, got float32"):
        sconce.Tensor.from_bits(X, "bfloat16")
    with pytest.raises(sconce.InvalidArgument, match="unknown 'bf16'"):
        sconce.Tensor.from_bits(X, "bf16")


def test_without_ml_dtypes_the_error_says_what_to_install(child_env):
    script = """
import sys
sys.modules["ml_dtypes"] = None
import numpy as np, sconce
tensor = sconce.Tensor.from_bits(np.array([0x3F80], np.uint16), "bfloat16")
try:
    tensor.numpy()
except sconce.Unsupported as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], env=child_env, capture_output=True, text=True)
    assert done.stdout.startswith("NumPy has no type bfloat16: pip install ml_dtypes"), done.stdout + done.stderr


def test_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1, 2.5, -3], np.float32)
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        dtype = np.dtype(getattr(ml_dtypes, name))
        array_ = values.astype(dtype)
        tensor = sconce.Tensor.from_bits(array_.view(f"u{dtype.itemsize}"), name)
        assert tensor.numpy().dtype == dtype
        np.testing.assert_array_equal(tensor.numpy().astype(np.float32), array_.astype(np.float32))


@pytest.mark.skipif(not os.environ.get("SCONCE_BENCH_PYTHON"), reason="SCONCE_BENCH_PYTHON names no Python with torch")
def test_torch_tensors_in_one_process(child_env):
    for order in ("torch, sconce", "sconce, torch"):
        script = f"import {order}\n" + TORCH
        done = subprocess.run([os.environ["SCONCE_BENCH_PYTHON"], "-W", "ignore", "-c", script], env=child_env,
                              capture_output=True, text=True)
        assert done.stdout == "ok\n", done.stdout + done.stderr


TORCH = r"""
from packages import FAKE, fake_expected
import numpy as np
x = torch.arange(8.).reshape(2, 4)
want = fake_expected(x.numpy())
model = sconce.load(FAKE)
def same(got):
    np.testing.assert_array_equal(np.asarray(got), want)
same(model(x)); same(model(torch.nn.Parameter(x))); same(model(x.t().contiguous().t()))
same(model(torch._neg_view(-x)))
assert sconce.load(FAKE, outputs="torch")(x).equal(torch.from_numpy(want))
assert torch.from_dlpack(sconce.load(FAKE, outputs="dlpack")(x)).equal(torch.from_numpy(want))
for bad in (x.to("meta"), x.to_sparse()):
    try:
        model(bad); raise SystemExit("taken")
    except sconce.InvalidArgument as error:
        assert str(error).startswith("args[0]: the torch.Tensor cannot be read by DLPack: Cannot"), error
        assert "frame #" not in str(error)
model.update({"scale.w": torch.full((4,), 2.), "scale.b": torch.zeros(4, dtype=torch.float32)})
np.testing.assert_array_equal(model(x), 2 * x.numpy())
torch.set_num_threads(2); (torch.randn(300, 300) @ torch.randn(300, 300)).sum()
np.testing.assert_array_equal(model(x), 2 * x.numpy())
print("ok")
"""
