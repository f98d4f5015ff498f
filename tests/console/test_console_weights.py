"""New weights from the browser: compared, tried, published and taken back while requests run."""
import http.client
import json
import re
import threading

import pytest
from browsing import ROOT, V2, digits_server, expect
from serving import until
from weights_files import floats, safetensors

np = pytest.importorskip("numpy", reason="numpy is not installed: ./dev test installs it into .venv")

IMAGE = (ROOT / "examples/digits/request.json").read_bytes()


class Askers:
    """Threads that ask digits without pause; each answer's status, class and weight version."""

    def __init__(self, server, count=2):
        self.server, self.stopped, self.statuses, self.classes, self.weight_versions = server, threading.Event(), set(), set(), set()
        self.threads = [threading.Thread(target=self.run) for _ in range(count)]

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        while not self.stopped.wait(0.005):
            connection.request("POST", "/v1/models/digits:call", IMAGE)
            response = connection.getresponse()
            answer = json.loads(response.read())
            self.statuses.add(response.status)
            self.classes.add(tuple(answer.get("class", ())))
            self.weight_versions.add(response.headers["Sconce-Weight-Version"])
        connection.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


@pytest.fixture()
def fresh():
    with digits_server() as running:
        yield running


def card(page, state):
    return page.get_by_role("article", name=f"{state} set")


def choose_file(page, path_or_file):
    page.get_by_label("File", exact=True).set_input_files(path_or_file)


def file_of(name, data):
    return {"name": name, "mimeType": "application/octet-stream", "buffer": data}


def upload(page, what):
    choose_file(page, what)
    expect(page.get_by_text("names, dtypes and shapes fit")).to_be_visible()
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_text(re.compile("^Staged in"))).to_be_visible()


def test_an_update_is_compared_published_and_taken_back(fresh, open_console):
    page = open_console(fresh).open("models/digits/1/weights")
    expect(card(page, "active")).to_contain_text("weight version 1")
    with Askers(fresh) as askers:
        upload(page, V2)
        staged = card(page, "staged")
        expect(staged).to_contain_text("digits-v2")
        page.get_by_role("button", name="Compare").click()
        rows = page.get_by_role("group", name="Differences").locator("tbody tr")
        expect(rows).to_have_count(8)
        expect(rows.filter(has_text="classifier.weight")).to_have_count(1)
        # Live requests also run on the staged set.
        page.get_by_label("Share of requests, %").fill("100")
        page.get_by_role("button", name="Set", exact=True).click()
        answers = page.get_by_role("group", name="Answers of both sets")
        expect(answers).to_contain_text("RESULT[probabilities]", timeout=60000)
        staged.get_by_role("button", name="Commit").click()
        expect(card(page, "active")).to_contain_text("digits-v2")
        expect(card(page, "active")).to_contain_text("weight version 2")
        expect(page.get_by_label("Events")).to_contain_text("committed")
        card(page, "previous").get_by_role("button", name="Roll back").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("Roll digits back to weight version 1?")
        dialog.get_by_role("button", name="Rollback").click()
        expect(card(page, "active")).to_contain_text("weight version 3")
        expect(page.get_by_label("Events")).to_contain_text("rolled back")
        expect(page.get_by_role("img", name=re.compile("weight version 2 .*, committed.*weight version 3"))).to_be_visible()
    assert askers.statuses == {200} and askers.classes == {(9,)} and askers.weight_versions >= {"1", "2", "3"}
    page.get_by_role("link", name="Operations").click()
    expect(page.get_by_role("group", name="Updates").or_(page.get_by_role("group", name="Operations"))).to_contain_text("digits-v2")
    expect(page.get_by_role("group", name="Changes").locator("tbody tr").first).to_contain_text("rolled back")


def test_a_watched_commit(fresh, open_console):
    page = open_console(fresh).open("models/digits/1/weights")
    upload(page, V2)
    page.get_by_text("watch it after the commit").click()
    page.get_by_label("Seconds").fill("60")
    card(page, "staged").get_by_role("button", name="Commit").click()
    expect(page.get_by_text("Watch over weight version 2: watching")).to_be_visible()
    assert fresh.admin("GET", "digits/weights/guard").json["bounds"]["errors"] == 0.01


def test_a_staged_set_is_dropped(fresh, open_console):
    page = open_console(fresh).open("models/digits/1/weights")
    upload(page, V2)
    card(page, "staged").get_by_role("button", name="Abort").click()
    expect(card(page, "staged")).to_have_count(0)
    expect(card(page, "active")).to_contain_text("weight version 1")


def test_what_another_coordinator_does_is_seen(fresh, open_console):
    page = open_console(fresh).open("models/digits/1/weights")
    expect(card(page, "active")).to_contain_text("weight version 1")
    assert fresh.push("digits", V2.read_bytes(), "label=elsewhere&commit=true").status == 200
    expect(card(page, "active")).to_contain_text("elsewhere")


def test_files_that_do_not_fit(fresh, open_console):
    page = open_console(fresh, allowed=["status of 400"]).open("models/digits/1/weights")
    choose_file(page, file_of("wrong.safetensors", safetensors({"features.0.weight": floats(1, 2), "other": floats(1)})))
    problems = page.get_by_role("group", name="Problems")
    for text in ("features.0.weight", "the model wants [16, 1, 3, 3]", "other", "the model has no constant of this name", "is missing"):
        expect(problems).to_contain_text(text)
    upload_button = page.get_by_role("button", name="Upload", exact=True)
    expect(upload_button).to_be_disabled()
    choose_file(page, file_of("no.safetensors", b"x" * 100))
    expect(page.get_by_text("The file is no safetensors file")).to_be_visible()
    expect(upload_button).to_be_disabled()
    # What only the server sees.
    data = bytearray(V2.read_bytes())
    data[-4:] = np.float32("nan").tobytes()
    choose_file(page, file_of("nan.safetensors", bytes(data)))
    upload_button.click()
    expect(page.locator("section", has_text="New weights").locator("p.bad-text")).to_contain_text("is not finite")
    expect(card(page, "staged")).to_have_count(0)


def test_named_sets(fresh, open_console):
    page = open_console(fresh).open("models/digits/1/weights")
    page.get_by_label("Named set", exact=True).fill("tenant-a")
    choose_file(page, V2)
    page.get_by_role("button", name="Upload", exact=True).click()
    row = page.get_by_role("group", name="Named sets").locator("tbody tr")
    expect(row).to_contain_text("tenant-a")
    page.get_by_label("tenant-a, %").fill("25")
    page.get_by_label("active, %").fill("75")
    page.get_by_role("button", name="Share out").click()
    until(lambda: fresh.admin("GET", "digits/routes").json == {"active": 75, "tenant-a": 25})
    page.reload()
    expect(page.get_by_label("tenant-a, %")).to_have_value("25")
    # A request of the form chooses it.
    page.get_by_role("link", name="Try it").click()
    page.get_by_label("Weights", exact=True).select_option("tenant-a")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".answer-head")).to_contain_text("the set tenant-a")


def test_an_archive_of_numpy_becomes_safetensors(fresh, open_console, tmp_path):
    data = V2.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {name: np.frombuffer(data[8 + length:], np.float32, count=int(np.prod(t["shape"])), offset=t["data_offsets"][0])
               .reshape(t["shape"]) for name, t in json.loads(data[8:8 + length]).items() if name != "__metadata__"}
    np.savez(tmp_path / "weights.npz", **tensors)
    page = open_console(fresh).open("models/digits/1/weights")
    upload(page, tmp_path / "weights.npz")
    card(page, "staged").get_by_role("button", name="Commit").click()
    expect(card(page, "active")).to_contain_text("weights")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as safetensors").click()
    assert download.value.path().stat().st_size > 60000
