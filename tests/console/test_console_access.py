"""Who may see and do what in the console; a server that goes away and comes back."""
import re

import pytest
from browsing import DIGITS, AdminServer, Console, expect
from ports import reserve_port

ADMIN, METRICS, INFER = "admin-admin-admin-1", "metrics-metrics-1", "infer-infer-infer-1"
REFUSED = ["status of 40[13]"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(f"metrics {METRICS}\nadmin {ADMIN}\ninfer {INFER}\n")
    with AdminServer(DIGITS, flags=["--token-file", str(tokens)]) as running:
        yield running


def enter(page, token):
    page.get_by_label(re.compile("^Token of the scope")).fill(token)
    page.get_by_role("button", name="Continue").click()


def test_a_wrong_token(open_console, guarded):
    page = open_console(guarded, allowed=REFUSED).open("")
    dialog = page.get_by_role("dialog", name="Token")
    expect(dialog).to_contain_text("token")
    for token in ("wrong-wrong-wrong-wrong", INFER):
        enter(page, token)
        expect(dialog.get_by_role("alert")).not_to_be_empty()
        expect(page.locator("main table")).to_have_count(0)
    enter(page, ADMIN)
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("link", name="digits")).to_be_visible()
    expect(page.locator("#access")).to_be_hidden()
    # This tab keeps it, the address and other tabs do not have it.
    page.reload()
    expect(page.get_by_role("link", name="digits")).to_be_visible()
    assert ADMIN not in page.url and page.evaluate("localStorage.length") == 1
    page.get_by_role("button", name="Forget the token").click()
    expect(page.get_by_role("dialog", name="Token")).to_be_visible()


def test_the_form_sends_the_token(open_console, guarded):
    page = open_console(guarded, allowed=REFUSED).open("models/digits/1")
    enter(page, ADMIN)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".answer-head")).to_contain_text("weight version 1")
    code = page.locator(".snippet code").inner_text()
    assert "Bearer TOKEN" in code and ADMIN not in code


def test_a_metrics_token_reads_only(open_console, guarded):
    page = open_console(guarded, allowed=REFUSED).open("")
    enter(page, METRICS)
    expect(page.locator("#access")).to_have_text("read only")
    expect(page.get_by_role("link", name="digits")).to_be_visible()
    for path, name in (("models/digits/1", "Run"), ("models/digits/1/weights", "Upload"),
                       ("models/digits/1/settings", "Add a replica"), ("models/digits/1/settings", "Unload"), ("traces", "Trace")):
        page.goto(f"http://127.0.0.1:{guarded.admin_port}/console#/{path}")
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    for path in ("models/digits/1/performance", "operations", "log"):
        page.goto(f"http://127.0.0.1:{guarded.admin_port}/console#/{path}")
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator(".notice.bad")).to_have_count(0)


def test_a_server_that_goes_and_comes_back(browser):
    port = reserve_port()

    def start():
        return AdminServer(DIGITS, flags=["--admin", f"127.0.0.1:{port}"])

    with start() as first:
        console = Console(browser, first, allowed=["net::ERR_", "status of 503"])
        page = console.open("")
        expect(page.get_by_role("link", name="digits")).to_be_visible()
        # Somebody is in the middle of something.
        page.goto(f"{console.url}#/models/digits/1")
        page.get_by_label("Size of dimension 0").fill("3")
        assert first.stop() == 0
    expect(page.get_by_role("alert").filter(has_text="has not answered since")).to_be_visible()
    expect(page.locator("#connection")).to_have_text("no answer")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("The server does not answer.")).to_be_visible()
    page.get_by_role("link", name="Operations").click()
    expect(page.locator(".failed").first).to_be_visible()
    with start():
        expect(page.locator("#connection")).to_have_text("live", timeout=20000)
        expect(page.locator("#lost")).to_be_hidden()
        # What could not be read is read again.
        expect(page.locator(".failed")).to_have_count(0)
        expect(page.get_by_text("No weights were sent since the server was started.")).to_be_visible()
        console.close()
