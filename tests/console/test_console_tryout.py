"""The form of a model: what a visitor draws, types or drops, and what comes back."""
import importlib.util
import io
import json
import os
import subprocess
import sys

import pytest
from browsing import STROKES, choose, expect
from serving import PROGRAM, ROOT

np = pytest.importorskip("numpy", reason="numpy is not installed: ./dev test installs it into .venv")

PYTHON_PACKAGE = PROGRAM.parent.parent / "python"


def test_each_digit_is_recognised_as_it_is_drawn(console):
    page = console.open("models/digits/1")
    for digit, strokes in STROKES.items():
        console.draw(strokes)
        expect(page.locator(".best b")).to_have_text(str(digit))
        # Nobody pressed Run.
        expect(page.locator("[data-output='RESULT[class]'] .scalar")).to_have_text(str(digit))
        page.get_by_role("button", name="Clear").click()


def test_a_digit_is_drawn_with_keys(console):
    page = console.open("models/digits/1")
    page.locator("canvas.drawing").focus()
    # A vertical line from the pen's first place.
    page.keyboard.press("Space")
    for _ in range(10):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(page.locator(".best b")).to_have_text("1")


def rows(page, output):
    return page.locator(f"[data-output='{output}'] table.values tbody tr").all_inner_texts()


def fill_json(page, name, text):
    place = page.locator(f"[data-input='{name}']")
    choose(place, "JSON")
    place.get_by_label("Nested lists").fill(text)
    place.get_by_label("Nested lists").blur()
    return place


def test_a_call_with_a_tree_of_arguments(console):
    page = console.open("models/several.calls/1")
    fill_json(page, "ARGS[0]", "[[1, 2, 3], [4, 5, 6]]")
    page.locator("[data-input='ARGS[1][0]']").get_by_label("Row 0, column 1").fill("2")
    fill_json(page, "ARGS[1][1][shift]", "[0.5, 0, 0]")
    page.locator("[data-input='KWARGS[scale]']").get_by_label("Row 0, column 0").fill("2")
    for column in (0, 1):
        page.locator("[data-input='KWARGS[mask]']").get_by_label(f"Row 0, column {column}").check()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("[data-output='RESULT[any]'] .scalar")).to_have_text("true")
    assert [r.split() for r in rows(page, "RESULT[y]")] == [["0", "2.5", "4", "6"], ["1", "8.5", "10", "12"]]
    # The same in the shape of the Python call.
    choose(page, "Python call (tree)")
    call = json.loads(page.get_by_label("The call as JSON").input_value())
    assert call == {"args": [[[1, 2, 3], [4, 5, 6]], [[0, 2], {"shift": [0.5, 0, 0]}], None],
                    "kwargs": {"scale": 2, "mask": [True, True, False]}}
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("Answer", exact=True)).to_contain_text('"any":true')
    page.get_by_text("Signature").click()
    tree = page.locator(".signature").inner_text()
    assert "shift: ARGS[1][1][shift] FP32 [3]" in tree and "not used by the compiled model" in tree


def test_each_datatype_comes_back(console):
    page = console.open("models/several.dtypes/1")
    values = {0: "[true, false, true]", 5: "[9007199254740993, -1, 0]", 6: "[0.5, 65504, -0.25]", 7: "[1.5, 3, -2]",
              9: "[0.1, 1e300, NaN]"}
    for i, text in values.items():
        fill_json(page, f"ARGS[{i}]", text)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".output")).to_have_count(12)
    shown = {i: rows(page, f"RESULT[{i}]")[0].split()[1:] for i in (0, 5, 6, 7, 9)}
    assert shown == {0: ["false", "true", "false"], 5: ["9007199254740994", "0", "1"], 6: ["1", "Infinity", "-0.5"],
                     7: ["3", "6", "-4"], 9: ["0.2", "2e+300", "NaN"]}


def test_what_a_form_refuses(console):
    page = console.open("models/digits/1")
    for text, message in (("[[1, 2], [3]]", "different lengths"), ("[1, 2]", "the model takes [?, 8, 8]"),
                          ("[[[true]]]", "no number"), ("[1,", "JSON")):
        place = fill_json(page, "ARGS[0]", text)
        expect(place.locator("p.bad-text")).to_contain_text(message)


def test_a_model_without_recorded_dtypes(open_console, server):
    page = open_console(server).open("models/fake/1")
    page.get_by_label("Shape").fill("1, 4")
    page.get_by_label("Shape").blur()
    page.get_by_label("Row 0, column 2").fill("3")
    page.get_by_label("Row 0, column 2").blur()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("[data-output='RESULT'] tbody tr")).to_have_text("0010" + "29" + "30")
    choose(page, "Python call")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("Answer", exact=True)).to_contain_text("29")


def test_an_error_of_the_server_is_shown(open_console, server):
    page = open_console(server, allowed=["status of 500"]).open("models/several.checked/1")
    fill_json(page, "ARGS[1]", "[0, 99]")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("section.panel > p.bad-text").first).not_to_be_empty()


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def drop(page, selector, name, data):
    """Lets go of a file over an element."""
    transfer = page.evaluate_handle("""([name, bytes]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([new Uint8Array(bytes)], name));
      return transfer;
    }""", [name, list(data)])
    page.dispatch_event(selector, "drop", {"dataTransfer": transfer})


REQUEST = np.array(json.loads((ROOT / "examples/digits/request.json").read_text())["args"][0], np.float32)


@pytest.mark.parametrize("order", ["C", "F"])
def test_dropped_arrays(console, order):
    page = console.open("models/digits/1")
    page.locator(".input").wait_for()
    drop(page, "section.panel:has(.input)", "nine.npy", npy(np.asarray(REQUEST, np.float64, order=order)))
    expect(page.locator(".best b")).to_have_text("9")
    archive = io.BytesIO()
    np.savez_compressed(archive, **{"ARGS[0]": np.concatenate([REQUEST, REQUEST[:, :, ::-1]])})
    drop(page, "section.panel:has(.input)", "two.npz", archive.getvalue())
    expect(page.locator("[data-output='RESULT[probabilities]'] h4")).to_have_text(["Row 0", "Row 1"])
    drop(page, "section.panel:has(.input)", "wrong.npy", npy(np.zeros((3, 3), np.float32)))
    expect(page.locator(".input p.bad-text")).to_contain_text("has the shape [3, 3]; the model takes [?, 8, 8]")


def test_a_dropped_picture(console):
    """The request as a picture of 80 x 80 pixels, black on white."""
    page = console.open("models/digits/1")
    page.locator(".input").wait_for()
    picture = page.evaluate("""async (rows) => {
      const canvas = new OffscreenCanvas(80, 80), context = canvas.getContext("2d");
      rows.forEach((row, y) => row.forEach((ink, x) => {
        const level = 255 - ink * 255 / 16;
        context.fillStyle = `rgb(${level} ${level} ${level})`;
        context.fillRect(x * 10, y * 10, 10, 10);
      }));
      return [...new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer())];
    }""", REQUEST[0].tolist())
    drop(page, "section.panel:has(.input)", "nine.png", picture)
    expect(page.locator(".best b")).to_have_text("9")


def test_random_values_are_the_same_for_the_same_seed(console):
    page = console.open("models/digits/1")
    answers = []
    for _ in range(2):
        choose(page, "Random")
        page.get_by_label("Seed").fill("7")
        page.get_by_role("button", name="Fill").click()
        choose(page, "JSON")
        answers.append(json.loads(page.get_by_label("Nested lists").input_value()))
        page.reload()
    assert np.array(answers[0]).shape == (1, 8, 8) and np.std(answers[0]) > 0.5
    assert answers[0] == answers[1]


def test_the_difference_to_the_answer_before(console):
    page = console.open("models/digits/1")
    difference = page.locator("[data-output='RESULT[probabilities]'] .difference")
    console.draw(STROKES[7])
    expect(page.locator(".best b")).to_have_text("7")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(difference).to_have_text("The same as the answer before.")
    page.get_by_role("button", name="Clear").click()
    expect(difference).to_contain_text("the largest element of 1 of 1 rows is another one")


def save(page, name):
    with page.expect_download() as download:
        page.get_by_role("button", name=name, exact=True).click()
    return download.value.path().read_bytes()


def test_saved_answers(console):
    page = console.open("models/digits/1")
    console.draw(STROKES[3])
    expect(page.locator(".best b")).to_have_text("3")
    loaded = np.load(io.BytesIO(save(page, ".npz")))
    assert loaded["RESULT[class]"].tolist() == [3] and loaded["RESULT[probabilities]"].shape == (1, 10)
    data = save(page, ".safetensors")
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    assert header["RESULT[class]"]["dtype"] == "I64" and header["RESULT[probabilities]"]["shape"] == [1, 10]
    inputs = np.load(io.BytesIO(save(page, "Save inputs (.npz)")))
    assert inputs["ARGS[0]"].dtype == np.float32 and inputs["ARGS[0]"].max() <= 16


def program_of(page, name):
    choose(page, name)
    return page.locator(".snippet code").inner_text()


def test_the_request_as_programs(console):
    """They print what the page shows."""
    page = console.open("models/digits/1")
    fill_json(page, "ARGS[0]", json.dumps(REQUEST.tolist()))
    told = subprocess.run(["bash", "-c", program_of(page, "curl")], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(told.stdout)["class"] == [9]
    # bfloat16 and the like need a module that other tests have, too.
    programs = {"tritonclient": "tritonclient", "sconce.Client": None}
    for name, module in programs.items():
        text = program_of(page, name)
        compile(text, name, "exec")
        if module and not importlib.util.find_spec(module):
            continue
        if not module and not list(PYTHON_PACKAGE.glob("sconce/_native*")):
            continue
        told = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": str(PYTHON_PACKAGE)})
        assert "[9]" in told.stdout, (text, told.stderr)


def test_the_programs_of_every_model_are_python(console):
    for model in ("several.calls", "several.dtypes", "several.channels_last", "fake"):
        page = console.open(f"models/{model}/1")
        page.locator(".snippet").wait_for()
        for name in ("tritonclient", "sconce.Client"):
            compile(program_of(page, name), model, "exec")
        assert f"/{model}/" in program_of(page, "curl")
