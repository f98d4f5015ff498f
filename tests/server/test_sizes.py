"""Sizes that are tied to each other, and sizes of 0: what the package of make_relation_packages.py takes and refuses.

Expected values are computed here, by loops that know nothing of the package.
"""
import html
import json
import re
import struct
import subprocess
import zipfile

import pytest
from serving import FAKE_MODELS, PACKAGES, PROGRAM, Server


@pytest.fixture(scope="module")
def relations():
    with Server(PACKAGES / "relations.pt2") as running:
        yield running


def tensor(shape, value=1.0):
    count = 1
    for size in shape:
        count *= size
    return ("FP32", list(shape), [value] * count)


def ask(server, model, shapes, values=None):
    """The answer in JSON; all elements of an input are the same."""
    names = [f"ARGS[{i}]" for i in range(len(shapes))]
    values = values or [1.0] * len(shapes)
    return server.infer(f"relations.{model}", {n: tensor(s, v) for n, s, v in zip(names, shapes, values)})


def ask_binary(server, model, shapes, values=None):
    """The same with inputs and outputs in binary: (status, outputs as lists by name, or the text of the error)."""
    inputs, data = [], b""
    for i, shape in enumerate(shapes):
        _, _, flat = tensor(shape, (values or [1.0] * len(shapes))[i])
        part = struct.pack(f"<{len(flat)}f", *flat)
        inputs.append({"name": f"ARGS[{i}]", "datatype": "FP32", "shape": list(shape),
                       "parameters": {"binary_data_size": len(part)}})
        data += part
    head = json.dumps({"inputs": inputs}).encode()
    answer = server.post(f"/v2/models/relations.{model}/infer", head + data,
                         {"Inference-Header-Content-Length": str(len(head))})
    return answer


def shapes_of(answer):
    assert answer.status == 200, answer.body
    return [output["shape"] for output in answer.json["outputs"]]


WRONG = [
    # model, shapes, what the error says
    ("half", [(8, 4), (3, 4)], "expected size 2*s17 = 6 at dimension 0, got 8, where s17 = 3 is dimension 0 of input 'ARGS[1]'"),
    ("half", [(7, 4), (3, 4)], "expected size 2*s17 = 6 at dimension 0, got 7"),
    ("half", [(128, 4), (1, 4)], "expected size 2*s17 = 2 at dimension 0, got 128"),
    ("half", [(130, 4), (65, 4)], "expected size <= 64 at dimension 0, got 65"),
    ("plus", [(9, 4), (4, 4)], "= 10 at dimension 0, got 4"),
    ("plus", [(3, 4), (9, 4)], "= 4 at dimension 0, got 9"),
    ("cat", [(30, 4), (5, 4), (8, 4)], "= 35 at dimension 0, got 8"),
    ("view", [(3000, 4)], "at dimension 0 for a whole number"),
    ("even", [(2, 1, 7, 6)], "at dimension 2 for a whole number"),
    ("even", [(2, 1, 34, 6)], "expected size <= 32 at dimension 2, got 34"),
    ("empty", [(9, 1, 4, 4)], "expected size <= 8 at dimension 0, got 9"),
]


@pytest.mark.parametrize(("model", "shapes", "text"), WRONG)
@pytest.mark.parametrize("form", [ask, ask_binary])
def test_sizes_that_contradict_each_other_are_refused(relations, model, shapes, text, form):
    answer = form(relations, model, shapes)
    assert answer.status == 400, answer.body
    assert text in answer.json["error"]


@pytest.mark.parametrize("form", [ask, ask_binary])
def test_no_number_of_another_client_comes_back(relations, form):
    """x has 128 rows, y one: with 64 rows of y, the other 63 would be read behind it."""
    for value in (12345.0, 54321.0):
        assert form(relations, "half", [(128, 4), (64, 4)], [0.0, value]).status == 200
        assert form(relations, "half", [(128, 4), (1, 4)], [0.0, 1.0]).status == 400


RIGHT = [
    # model, shapes, the shapes of the outputs: the smallest sizes that were declared, and others
    ("half", [(6, 4), (3, 4)], [[3, 4]]),
    ("half", [(2, 4), (1, 4)], [[1, 4]]),
    ("half", [(0, 4), (0, 4)], [[0, 4]]),
    ("plus", [(9, 4), (10, 4)], [[9, 4]]),
    ("plus", [(1, 4), (2, 4)], [[1, 4]]),
    ("cat", [(30, 4), (5, 4), (35, 4)], [[35, 4]]),
    ("cat", [(1, 4), (1, 4), (2, 4)], [[2, 4]]),
    ("cat", [(0, 4), (5, 4), (5, 4)], [[5, 4]]),
    ("view", [(1496, 4)], [[1, 4]]),
    ("view", [(4488, 4)], [[3, 4]]),
    ("even", [(2, 1, 2, 6)], [[2, 1, 1, 3]]),
    ("even", [(1, 1, 8, 6)], [[1, 1, 4, 3]]),
]


@pytest.mark.parametrize(("model", "shapes", "expected"), RIGHT)
def test_sizes_that_agree_are_answered(relations, model, shapes, expected):
    assert shapes_of(ask(relations, model, shapes)) == expected


def test_values(relations):
    half = ask(relations, "half", [(6, 4), (3, 4)], [2.0, 5.0])
    assert half.json["outputs"][0]["data"] == [7.0] * 12
    plus = ask(relations, "plus", [(1, 4), (2, 4)], [2.0, 5.0])
    assert plus.json["outputs"][0]["data"] == [7.0] * 4
    cat = ask(relations, "cat", [(1, 4), (2, 4), (3, 4)], [2.0, 5.0, 10.0])
    assert cat.json["outputs"][0]["data"] == [20.0] * 4 + [50.0] * 8
    view = ask(relations, "view", [(2992, 4)], [0.5])
    assert view.json["outputs"][0]["data"] == [748.0] * 8


def test_no_picture_is_computed_from_another(relations):
    """A convolution of ones over constant pictures: what is inside has nine times the value."""
    pictures = [1.0] * 48 + [100.0] * 48
    answer = relations.infer("relations.even", {"ARGS[0]": ("FP32", [2, 1, 8, 6], pictures)})
    data = answer.json["outputs"][0]["data"]
    taps = [[(2 if h == 0 else 3) * (2 if w == 0 else 3) for w in range(3)] for h in range(4)]
    flat = [n for row in taps for n in row]
    assert data == [1.0 * n for n in flat] + [100.0 * n for n in flat]


@pytest.mark.parametrize("form", [ask, ask_binary])
def test_no_rows_are_answered_with_no_rows(relations, form):
    answer = form(relations, "empty", [(0, 1, 4, 4)])
    assert shapes_of(answer) == [[0, 3], [0, 32], [0, 32], [32], [0]]
    sums = answer.json["outputs"][3]
    assert sums["data"] == [0.0] * 32


def test_one_row_beside_none(relations):
    """Requests may share runs; each has the rows that it sent."""
    for rows in (0, 1, 0, 2, 8, 0):
        assert shapes_of(ask(relations, "empty", [(rows, 1, 4, 4)]))[0] == [rows, 3]


def test_one_row_where_two_were_declared(relations):
    answer = ask(relations, "two", [(1, 4), (1, 4)], [2.0, 5.0])
    assert answer.json["outputs"][0]["data"] == [9.0] * 4
    assert answer.json["outputs"][1]["data"] == [10.0] * 16


def test_the_first_page_shows_sizes_that_agree(relations):
    """Its requests of half: x has twice the rows of y."""
    page = html.unescape(relations.get("/").body.decode())
    shown = re.findall(r'relations\.half/infer.*?"shape": \[(\d+), 4\].*?"shape": \[(\d+), 4\]', page, re.DOTALL)
    assert shown
    assert all(int(x) == 2 * int(y) for x, y in shown)


def test_inspect_says_which_access_needs_two_rows(tmp_path):
    """x - x[:1] takes one row; its kernel is rewritten to that of x - x[1:2]."""
    with zipfile.ZipFile(FAKE_MODELS.parent / "server/batching/first_row.pt2") as archive:
        archive.extractall(tmp_path)
    one = tmp_path / "first_row"
    for source in one.rglob("*.cpp"):
        text = source.read_text()
        source.write_text(text.replace("in_ptr0 + static_cast<int64_t>(x1),", "in_ptr0 + static_cast<int64_t>(16L + x1),"))
    two = tmp_path / "second_row.pt2"
    subprocess.run([PROGRAM, "pack", one, two], check=True)

    def told(package, *flags):
        return subprocess.run([PROGRAM, "inspect", package, *flags], capture_output=True, text=True, check=True, timeout=60).stdout

    why = "kernel cpp_fused_slice_sub_0: 'arg0_1' is accessed outside of its elements"
    assert re.search(rf"^sizes +s33: 2 or more, because of {re.escape(why)}$", told(two), re.MULTILINE)
    assert json.loads(told(two, "--json"))["models"][0]["why_not_smaller"] == why
    told(two, "--html", tmp_path / "page.html")
    assert why in html.unescape((tmp_path / "page.html").read_text())
    original = FAKE_MODELS.parent / "server/batching/first_row.pt2"
    assert "\nsizes" not in told(original)
    assert json.loads(told(original, "--json"))["models"][0]["why_not_smaller"] is None
