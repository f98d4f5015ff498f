"""Calls take and return the structure that the package records."""
import collections
import dataclasses
import sys

import numpy as np
import pytest
import sconce
import structures
from packages import DIGITS, FAKE, LEAF, call_of, dict_of, fake_expected, node, tuple_of, with_call_spec

IMAGES = np.random.default_rng(1).random((3, 8, 8), np.float32)
X = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)


@pytest.fixture(scope="module")
def expected():
    result = sconce.load(DIGITS)(IMAGES)
    assert list(result) == ["class", "probabilities"]
    return list(result.values())


def check_pair(found, expected):
    found = list(found)
    assert len(found) == 2
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def digits(tmp_path, out_spec):
    return sconce.load(with_call_spec(DIGITS, tmp_path / "digits.pt2", out_spec=out_spec))(IMAGES)


@pytest.mark.parametrize("kind, python_type", [("builtins.tuple", tuple), ("builtins.list", list)])
def test_sequences_come_back(tmp_path, expected, kind, python_type):
    result = digits(tmp_path, node(kind, [LEAF, LEAF]))
    assert type(result) is python_type
    check_pair(result, expected)


def test_deque_comes_back(tmp_path, expected):
    result = digits(tmp_path, node("collections.deque", [LEAF, LEAF]))
    assert type(result) is collections.deque
    check_pair(result, expected)


def test_mappings_come_back(tmp_path, expected):
    keys = ["b", "a"]  # recorded order, not sorted
    result = digits(tmp_path, node("collections.OrderedDict", [LEAF, LEAF], keys))
    assert type(result) is collections.OrderedDict and list(result) == keys
    check_pair(result.values(), expected)
    context = {"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": keys}
    result = digits(tmp_path, node("collections.defaultdict", [LEAF, LEAF], context))
    assert type(result) is collections.defaultdict and list(result) == keys
    check_pair(result.values(), expected)
    result = digits(tmp_path, node("builtins.dict", [LEAF, LEAF], [7, "x"]))
    assert list(result) == [7, "x"]
    check_pair(result.values(), expected)


def test_namedtuple_of_an_importable_class(tmp_path, expected):
    result = digits(tmp_path, node("collections.namedtuple", [LEAF, LEAF], "structures.Pair"))
    assert type(result) is structures.Pair
    check_pair(result, expected)


def test_namedtuple_of_an_unknown_class_is_made_up(tmp_path, expected):
    result = digits(tmp_path, node("collections.namedtuple", [LEAF, LEAF], "nowhere_at_all.Pair"))
    assert isinstance(result, tuple) and type(result).__name__ == "Pair" and len(result._fields) == 2
    check_pair(result, expected)


def test_dataclasses(tmp_path, expected):
    result = digits(tmp_path, node("structures.Answer", [LEAF, LEAF], [["classes", "probabilities"], []]))
    assert type(result) is structures.Answer
    check_pair([result.classes, result.probabilities], expected)
    result = digits(tmp_path, node("nowhere_at_all.Answer", [LEAF, LEAF], [["a", "b"], ["c"]]))
    assert dataclasses.is_dataclass(result) and type(result).__name__ == "Answer" and result.c is None
    check_pair([result.a, result.b], expected)


def test_nesting(tmp_path, expected):
    spec = node("builtins.list", [tuple_of(LEAF), dict_of(x=node("builtins.list", [LEAF]), y=tuple_of())])
    (first,), rest = digits(tmp_path, spec)
    assert rest["y"] == ()
    check_pair([first, rest["x"][0]], expected)


def test_outputs_that_do_not_match_the_call_spec_come_as_a_tuple(tmp_path, expected):
    result = digits(tmp_path, tuple_of(LEAF, LEAF, LEAF))
    assert type(result) is tuple
    check_pair(result, expected)


def fake(tmp_path, *args, **kwargs):
    return sconce.load(with_call_spec(FAKE, tmp_path / "fake.pt2", call_of(*args, **kwargs)))


def test_keyword_arguments(tmp_path):
    model = fake(tmp_path, x=LEAF)
    np.testing.assert_array_equal(model(x=X), fake_expected(X))
    with pytest.raises(sconce.InvalidArgument, match=r"kwargs: 'x' is missing, expected 'x'"):
        model()
    with pytest.raises(sconce.InvalidArgument, match=r"kwargs: unexpected 'y', expected 'x'"):
        model(x=X, y=X)
    with pytest.raises(sconce.InvalidArgument, match=r"args: expected 0 positional arguments, got 1"):
        model(X)


def test_containers_as_arguments(tmp_path):
    model = fake(tmp_path, dict_of(x=tuple_of(node("builtins.list", [LEAF]), node("builtins.list", []))))
    np.testing.assert_array_equal(model({"x": ([X], [])}), fake_expected(X))
    np.testing.assert_array_equal(model(collections.UserDict(x=[collections.deque([X]), ()])), fake_expected(X))
    wrong = [({"x": ([X, X], [])}, r"args\[0\]\['x'\]\[0\]: expected a list of 1, got 2 items"),
             ({"x": ([X], None)}, r"args\[0\]\['x'\]\[1\]: expected a list of 0, got an object of type NoneType"),
             ({"x": (X, [])}, r"args\[0\]\['x'\]\[0\]: expected a list of 1, got an object of type numpy.ndarray"),
             ({}, r"args\[0\]: 'x' is missing, expected 'x'"),
             ([X], r"args\[0\]: expected a dict with the keys 'x', got an object of type list"),
             ({"x": (["a"], [])}, r"args\[0\]\['x'\]\[0\]\[0\]: expected an array, a tensor or a number, got an object of type str"),
             ({"x": ([X[:, :3]], [])}, r"args\[0\]\['x'\]\[0\]\[0\]: expected size 4 at dimension 1, got 3")]
    for argument, message in wrong:
        with pytest.raises(sconce.InvalidArgument, match=message):
            model(argument)


def test_dataclasses_and_namedtuples_as_arguments(tmp_path):
    model = fake(tmp_path, node("structures.Request", [LEAF], [["image"], ["note"]]))
    np.testing.assert_array_equal(model(structures.Request(X)), fake_expected(X))
    with pytest.raises(sconce.InvalidArgument, match="expected a structures.Request with the fields 'image', 'note'"):
        model(X)
    with pytest.raises(sconce.InvalidArgument, match=r"args\[0\].note: expected None, got an object of type int"):
        model(structures.Request(X, 1))
    model = fake(tmp_path, node("collections.namedtuple", [LEAF, LEAF], "structures.Pair"))
    np.testing.assert_array_equal(model(structures.Pair(X, None)), fake_expected(X))


def test_numbers_that_the_compiler_dropped(tmp_path):
    # The input's name, arg0_1, says that it is the first leaf.
    model = fake(tmp_path, LEAF, LEAF)
    for dropped in (2, 2.5, np.float32(2), None, "two"):
        np.testing.assert_array_equal(model(X, dropped), fake_expected(X))
    # What was None at the export: the answer would be that of a call without it.
    with pytest.raises(sconce.InvalidArgument, match=r"args\[1\] cannot be a tensor: it was None, a number or a string"):
        model(X, X)


def test_numbers_that_the_compiler_dropped_somewhere(tmp_path, expected):
    # Nothing says which leaf is the input: the array is.
    model = sconce.load(with_call_spec(DIGITS, tmp_path / "digits.pt2", call_of(LEAF, LEAF)))
    check_pair(model(2, IMAGES).values(), expected)
    check_pair(model(IMAGES, None).values(), expected)
    with pytest.raises(sconce.InvalidArgument, match="does not say which"):
        model(IMAGES, IMAGES)


def test_signature():
    model = sconce.load(DIGITS)
    signature = model.signature
    (image,) = signature.inputs
    assert (image.path, image.dtype, image.device) == ("args[0]", "float32", "cpu")
    batch, *rest = image.dims
    assert [dim.min for dim in rest] == [8, 8] and all(dim.is_static for dim in rest)
    assert not batch.is_static and batch.max is not None and batch.symbol
    assert [tensor.path for tensor in signature.outputs] == ["result['class']", "result['probabilities']"]
    assert "'probabilities': float32[" in repr(model) and "float32[" in model._repr_html_()
    assert signature.result.keys == ("class", "probabilities")
    assert model.constants["classifier.bias"].shape == (10,)
    assert "classifier.weight: float32[10, 128] parameter" in repr(model.constants)
    assert "<td>classifier.weight</td>" in model.constants._repr_html_()


def test_inspect_imports_nothing_that_a_package_names(tmp_path):
    """Only load() looks for the class."""
    path = with_call_spec(DIGITS, tmp_path / "digits.pt2", out_spec=node("collections.namedtuple", [LEAF, LEAF], "this.Zen"))
    sys.modules.pop("this", None)
    assert "Zen(int64[" in str(sconce.inspect(path).models["model"].signature)
    assert "this" not in sys.modules
    assert type(sconce.load(path)(IMAGES)).__name__ == "Zen" and "this" in sys.modules


def test_bare_library_takes_flat_inputs():
    """A model's .so without its source, whose call spec says no names."""
    from packages import FAKES
    model = sconce.load(FAKES / "fake_model.so")
    np.testing.assert_array_equal(model(X), fake_expected(X))
