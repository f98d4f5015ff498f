"""load(), check() and inspect(): every source of a package, and what is wrong with it."""
import importlib.util
import io
import shutil
import types
import zipfile

import numpy as np
import pytest
import sconce
from packages import DIGITS, FAKE, FAKES, fake_expected

X = np.array([[1, 2, 3, 4]], np.float32)
CONTENT = FAKE.read_bytes() if FAKE.exists() else b""


@pytest.mark.parametrize("source", [
    lambda: str(FAKE), lambda: FAKE, lambda: CONTENT, lambda: bytearray(CONTENT), lambda: memoryview(CONTENT),
    lambda: io.BytesIO(CONTENT), lambda: open(FAKE, "rb"), lambda: np.frombuffer(CONTENT, np.uint8)],
    ids="str path bytes bytearray memoryview BytesIO file array".split())
def test_sources(source):
    given = source()
    model = sconce.load(given)
    del given
    np.testing.assert_array_equal(model(X), fake_expected(X))
    assert model.update({"scale.w": X[0], "scale.b": X[0]}) == 2
    assert sconce.check(source())
    assert sconce.inspect(source()).models["model"].signature.inputs[0].dtype == "float32"


def test_bytes_may_change_afterwards():
    content = bytearray(CONTENT)
    model = sconce.load(content)
    digest = model.digest()
    content[:] = bytes(len(content))
    np.testing.assert_array_equal(model(X), fake_expected(X))
    assert model.digest() == digest


def test_errors_of_bytes_name_them():
    with pytest.raises(sconce.CorruptPackage, match="<memory>"):
        sconce.load(CONTENT[:-100])


def test_directory(tmp_path):
    with zipfile.ZipFile(FAKE) as archive:
        archive.extractall(tmp_path)
    np.testing.assert_array_equal(sconce.load(next(tmp_path.iterdir()))(X), fake_expected(X))


@pytest.mark.parametrize("source, error, message", [
    ("/no/such.pt2", sconce.FileNotFound, "/no/such.pt2"),
    (b"PK\x03\x04 and no more", sconce.CorruptPackage, "."),
    (b"", sconce.CorruptPackage, "file is empty: <memory>"),
    ("", sconce.InvalidArgument, "path: it is empty"),
    ("a\0b", sconce.InvalidArgument, "path: it has a null character"),
    (3, sconce.InvalidArgument, "package: expected a path, bytes or a file object, got an object of type int"),
    (None, sconce.InvalidArgument, "got an object of type NoneType"),
    (io.StringIO("x"), sconce.InvalidArgument, "opened for bytes, got one opened for text: .*StringIO"),
    (io.TextIOWrapper(io.BytesIO(CONTENT), "utf-8"), sconce.InvalidArgument, "opened for text: .*TextIOWrapper"),
    (types.SimpleNamespace(read=lambda: "x"), sconce.InvalidArgument, "opened for bytes, its read\\(\\) returned a str"),
    (CONTENT[:-100], sconce.CorruptPackage, "."),
])
def test_bad_sources(source, error, message):
    for function in (sconce.load, sconce.inspect, sconce.check):
        if hasattr(source, "seek"):
            source.seek(0)
        with pytest.raises(error, match=message):
            function(source)


def test_a_missing_file_is_the_builtin_error_too():
    with pytest.raises(FileNotFoundError, match="/no/such.pt2"):
        sconce.load("/no/such.pt2")


@pytest.mark.parametrize("make, error, message", [
    (lambda path: path.touch(), sconce.CorruptPackage, "file is empty: {}"),
    (lambda path: path.write_text("<!DOCTYPE html>"), sconce.Unsupported,
     "file is neither a package nor a model library, but a web page or XML: {}"),
    (lambda path: zipfile.ZipFile(path, "w").close(), sconce.Unsupported,
     "archive is not an AOTInductor package: it has no member below data/aotinductor/: {}"),
    (lambda path: path.mkdir(), sconce.Unsupported, "directory is empty, not an AOTInductor package: {}"),
    (lambda path: (path.mkdir(), (path / "notes").touch()), sconce.Unsupported,
     "directory is not an AOTInductor package: it has neither archive_format nor data/aotinductor/: {}"),
    (lambda path: (path.mkdir(), shutil.copy(FAKE, path / "net.pt2")), sconce.Unsupported,
     "directory holds packages, but is not one: {}: name a file in it: net.pt2"),
], ids=["empty", "text", "zip", "empty folder", "folder", "folder of packages"])
def test_a_path_without_a_package_names_it_and_the_reason(tmp_path, make, error, message):
    path = tmp_path / "model.pt2"
    make(path)
    for function in (sconce.load, sconce.inspect, sconce.check):
        with pytest.raises(error) as caught:
            function(path)
        assert str(caught.value) == message.format(path)


@pytest.mark.parametrize("settings, message", [
    ({"model_name": "other"}, "other"), ({"device": "tpu"}, "tpu"), ({"device": "cuda"}, "compiled for the CPU"),
    ({"device": []}, "device: expected a device or a list"), ({"replicas": 0}, "replicas: 0"),
    ({"replicas": "2"}, "replicas: expected a number, got '2'"), ({"replicas": 10**12}, "replicas: 1000000000000 is out of range"),
    ({"threads": -1}, "threads: -1"), ({"outputs": "list"}, "outputs: expected"), ({"outputs": 3}, "outputs: expected a text, got 3"),
    ({"cpu_set": [100000]}, "100000"), ({"cpu_set": "01"}, "cpu_set: expected numbers of cores, got '01'"),
    ({"cpu_set": 1}, "cpu_set: expected numbers of cores, got 1"), ({"cpu_set": [2**31]}, "cpu_set: 2147483648 is out of range"),
    ({"cpu_set": [-1]}, "cpu_set: -1 is out of range"),
    ({"op_libraries": "/lib.so"}, "op_libraries: expected a list of paths, got '/lib.so'"),
    ({"op_libraries": 3}, "op_libraries: expected a list of paths, got 3")])
def test_bad_settings(settings, message):
    with pytest.raises(sconce.Error, match=message) as caught:
        sconce.load(FAKE, **settings)
    assert isinstance(caught.value, (ValueError, LookupError))


def test_check_takes_libraries_in_a_list():
    with pytest.raises(sconce.InvalidArgument, match="op_libraries: expected a list of paths, got '/lib.so'"):
        sconce.check(FAKE, op_libraries="/lib.so")


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="this Python has torch")
def test_export_without_torch_says_what_to_install():
    with pytest.raises(ModuleNotFoundError, match="sconce.export needs torch 2.6 to 2.15, .* pip install torch==") as caught:
        sconce.export(None, None, "x.pt2")
    assert caught.value.name == "torch"


def test_settings():
    model = sconce.load(FAKE, model_name="model", device=["cpu"], replicas=2, threads=1, check_inputs=False, verify=True,
                        warm_up=False)
    np.testing.assert_array_equal(model(X), fake_expected(X))
    assert len(model.replicas) == 2 and model.load_seconds > 0 and model.constant_bytes >= 32 and model.name == "model"


def test_check():
    result = sconce.check(DIGITS)
    assert result and result.ok and result.reasons == [] and result.models == {"model": ""} and str(result) == "model: ok"
    with pytest.raises(sconce.NotFound, match="model"):
        sconce.check(DIGITS, model_name="other")


def test_check_of_what_does_not_run_here(tmp_path):
    """An operator that nobody has."""
    with zipfile.ZipFile(DIGITS) as old, zipfile.ZipFile(tmp_path / "model.pt2", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content.replace(b"aoti_torch_cpu_convolution\0", b"aoti_torch_cpu_convulsion1\0")
                         if name.endswith(".so") else content)
    result = sconce.check(tmp_path / "model.pt2")
    assert not result and "aoti_torch_cpu_convulsion1" in result.reasons[0]
    with pytest.raises(sconce.Incompatible, match="aoti_torch_cpu_convulsion1"):
        sconce.load(tmp_path / "model.pt2")


def test_inspect():
    info = sconce.inspect(DIGITS)
    assert info.producer.startswith("torch 2.")
    model = info.models["model"]
    assert model.device == "cpu" and model.weights_form == "embedded" and model.code_bytes > 0
    assert model.constants["classifier.weight"].shape == (10, 128)
    assert "model(float32[" in repr(info) and "<table>" in info._repr_html_()


def test_shared_object_without_source(tmp_path):
    path = tmp_path / "model.so"
    shutil.copy(FAKES / "fake_model.so", path)
    info = sconce.inspect(path)
    assert list(info.models) == ["model"] and info.models["model"].signature.args is None or info.models


def test_version_and_operators():
    assert sconce.__version__ == "0.1.0"
    assert "aoti_torch_cpu_convolution" in sconce.operators()
    sconce.manual_seed(3)
