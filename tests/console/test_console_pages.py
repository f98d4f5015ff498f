"""Each page of the console: what it shows, that it fits a phone, and that keys and readers of the screen find their way."""
import re

import pytest
from browsing import DIGITS, ROOT, STROKES, V2, AdminServer, choose, expect

PAGE_FOLDER = ROOT / "server/console/page"
PAGES = ["", "models/digits/1", "models/several.calls/1", "models/digits/1/performance", "models/digits/1/weights",
         "models/digits/1/settings", "operations", "log", "traces"]
IMAGE = (ROOT / "examples/digits/request.json").read_bytes()

# As the route answers, so that a chart has known spans.
TRACES = {"enabled": True, "rate": 1, "traces": [
    {"id": f"{i:032x}", "span": f"{i:016x}", "request_id": f"r{i}", "model": "digits", "version": "1", "status": status,
     "name": "POST /v2/models/digits/infer", "start": 1790000000 + i, "spans": [
         {"name": "request", "start_us": 0.0, "duration_us": 400.0}, {"name": "queue", "start_us": 20.0, "duration_us": 80.0},
         {"name": "compute", "start_us": 100.0, "duration_us": 250.0}]} for i, status in ((1, 200), (2, 500))]}


def ask(server, times=1):
    for _ in range(times):
        answer = server.post("/v1/models/digits:call", IMAGE)
        assert answer.status == 200


def answer_traces(console):
    console.page.route("**/v2/admin/traces*", lambda route: route.fulfill(json=TRACES))


def settled(console, path):
    """The page, once it has read what it shows."""
    page = console.open(path)
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("main h1")).to_have_count(1)
    page.wait_for_load_state("load")
    page.wait_for_timeout(150)
    return page


def test_overview(console, server):
    ask(server, 3)
    page = settled(console, "")
    row = page.locator("tr", has=page.get_by_role("link", name="digits", exact=True))
    expect(row).to_contain_text("ready")
    expect(row).to_contain_text("1 × cpu")
    expect(row).to_contain_text("weight version")
    # Between two events, requests make a rate and a latency.
    ask(server, 3)
    expect(row.locator("td[data-label='p50'] .figure")).to_have_text(re.compile(r"[\d.]+ (µs|ms|s)"))
    ready = page.locator(".tile", has_text="Models ready")
    expect(ready).to_contain_text("6 of 6")
    row.get_by_role("link", name="digits").click()
    expect(page.locator("h1")).to_have_text("digits")


def test_alerts(open_console):
    """A model that waits for its weights is an alert until it has them."""
    with AdminServer(DIGITS, flags=["--set", "digits.require_label=v2"], wait=False) as held:
        console = open_console(held, allowed=["status of 503"])
        page = settled(console, "")
        alert = page.get_by_label("What needs a look").get_by_role("listitem")
        expect(alert).to_contain_text("digits version 1 is not ready")
        expect(page.locator(".tile", has_text="Models ready")).to_contain_text("0 of 1")
        alert.get_by_role("link", name="look").click()
        expect(page.locator("h1")).to_have_text("digits")
        expect(page.locator(".title .tag")).to_have_text("held")
        assert held.push("digits", V2.read_bytes(), "label=v2&commit=true").status == 200
        expect(page.locator(".title .tag")).to_have_text("ready")
        page.get_by_role("link", name="Overview").click()
        expect(alert).to_have_count(0)
        console.page.close()


def test_performance(console, server):
    page = settled(console, "models/digits/1/performance")
    ask(server, 20)
    expect(page.get_by_role("img", name=re.compile("^A request took .* for compute"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Answers by their latency: up to"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Runs by their rows: .* runs of 1 rows"))).to_be_visible()
    expect(page.locator(".facts dd").first).to_have_text("20")
    choose(page, "last minute")
    expect(page.locator(".facts dd").first).to_have_text("20")


def test_settings(console):
    page = settled(console, "models/digits/1/settings")
    replicas = page.locator("section", has_text="Replicas").locator("tbody tr")
    expect(replicas).to_have_count(1)
    page.get_by_role("button", name="Add a replica").click()
    expect(replicas).to_have_count(2)
    page.get_by_role("button", name="Remove replica 1").click()
    expect(replicas).to_have_count(1)
    expect(page.locator(".facts")).to_contain_text("Largest batch15")
    expect(page.locator(".signature")).to_contain_text("probabilities: RESULT[probabilities] FP32 [?, 10]")


def test_log(console, server):
    page = settled(console, "log")
    lines = page.get_by_role("log").get_by_role("listitem")
    expect(lines.filter(has_text="administration on http://127.0.0.1")).to_have_count(1)
    filter_field = page.get_by_label("Filter")
    filter_field.fill("changed over http")
    expect(lines.filter(visible=True)).to_have_count(0)
    server.admin("POST", "/v2/logging", {"log_info": True})
    expect(lines.filter(visible=True)).to_have_count(1)
    # While it is paused, lines are held and not lost.
    page.get_by_role("button", name="Pause").click()
    server.admin("POST", "/v2/logging", {"log_info": True})
    expect(page.get_by_text("1 held")).to_be_visible()
    expect(lines.filter(visible=True)).to_have_count(1)
    page.get_by_role("button", name="Go on").click()
    expect(lines.filter(visible=True)).to_have_count(2)
    filter_field.fill("")
    choose(page, "errors")
    expect(lines).to_have_count(0)


def test_traces(console):
    answer_traces(console)
    page = settled(console, "traces")
    items = page.locator(".trace-item")
    expect(items).to_have_count(2)
    expect(items.first).to_contain_text("500")
    items.nth(1).click()
    expect(items.nth(1)).to_have_attribute("aria-pressed", "true")
    chart = page.get_by_role("img", name=re.compile("^Spans of the request"))
    expect(chart).to_have_attribute("aria-label", re.compile("compute 250 µs from 100 µs"))
    boxes = [chart.locator("rect").nth(i).bounding_box() for i in range(3)]
    assert boxes[1]["y"] > boxes[0]["y"] and boxes[1]["y"] == boxes[2]["y"]
    assert boxes[2]["width"] == pytest.approx(boxes[0]["width"] * 250 / 400, rel=0.02)


def test_traces_are_turned_on_and_off(console, server):
    page = settled(console, "traces")
    expect(page.get_by_text("No request is traced now.")).to_be_visible()
    page.get_by_role("button", name="Trace", exact=True).click()
    expect(page.get_by_text(re.compile("^One request in 1 is traced"))).to_be_visible()
    ask(server)
    item = page.locator(".trace-item").first
    expect(item).to_contain_text("digits")
    item.click()
    expect(page.locator(".trace h2")).to_have_text("POST /v1/models/digits:call")
    expect(page.get_by_role("img", name=re.compile("compute .* from"))).to_be_visible()
    page.get_by_role("button", name="Trace none").click()
    expect(page.get_by_text("No request is traced now.")).to_be_visible()


@pytest.mark.parametrize("width, scheme", [(360, "dark"), (1280, "light"), (2400, "dark")])
def test_pages_fit_and_are_legible(open_console, server, width, scheme):
    """Nothing is wider than the window; text has a contrast of 4.5 (3 where it is large) and controls have names."""
    console = open_console(server, viewport={"width": width, "height": 800}, color_scheme=scheme)
    answer_traces(console)
    for path in PAGES:
        page = settled(console, path)
        if path == "models/digits/1":
            console.draw(STROKES[3], steps=1)
            expect(page.locator(".best b")).to_have_text("3")
        if path == "traces":
            page.locator(".trace-item").first.click()
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width, path
        assert page.evaluate(SCAN) == [], path


# Controls without a name, and texts whose colour is too near to what is behind them.
SCAN = """() => {
  const found = [];
  const canvas = new OffscreenCanvas(1, 1), context = canvas.getContext("2d", {willReadFrequently: true});
  const rgba = (color) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = rgba(getComputedStyle(node).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
    const disabled = node.closest(":disabled");
    if (own && !disabled && node.checkVisibility() && !node.closest("svg, .hidden, noscript, .skip")) {
      const style = getComputedStyle(node);
      const [a, b] = [luminance(rgba(style.color)), luminance(behind(node))];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (contrast < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) found.push(`${node.textContent.trim().slice(0, 40)}: ${contrast}`);
    }
    if (node.matches("button, input, select, textarea, canvas, [role=img], progress, meter") && node.checkVisibility()) {
      const name = node.ariaLabel || node.labels?.[0]?.textContent || node.textContent || node.closest("[aria-hidden]");
      if (!name) found.push(`no name: ${node.outerHTML.slice(0, 80)}`);
    }
  }
  return found;
}"""


def test_the_theme_is_kept(console):
    page = settled(console, "")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Theme: as the system").click()
    assert page.evaluate(ground) != light
    page.reload()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    page.get_by_role("button", name="Theme: dark").click()
    assert page.evaluate(ground) == light


def test_the_console_by_keys_alone(console):
    page = settled(console, "")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "digits":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("digits")
    # Whoever goes on with Tab goes on in the new page.
    expect(page.locator("main")).to_be_focused()


def test_an_address_that_is_no_page(console):
    page = console.open("nothing")
    expect(page.get_by_text('The console has no page "nothing".')).to_be_visible()


def test_every_module_is_sound(console):
    """The browser parses and runs each file of the page; clang-format, which knows no regular expressions, may break one."""
    page = console.open("")
    names = sorted(path.name for path in PAGE_FOLDER.glob("*.js"))
    assert len(names) > 20
    for name in names:
        assert page.evaluate(f"import('./console/{name}').then((m) => typeof m)") == "object"


def test_nothing_comes_from_elsewhere(console, server):
    asked = []
    answer_traces(console)
    console.page.on("request", lambda r: asked.append(r.url))
    for path in PAGES:
        settled(console, path)
    assert asked and all(url.startswith((f"http://127.0.0.1:{server.admin_port}/", "blob:", "data:")) for url in asked)


def test_sources_make_no_markup_of_text():
    for path in PAGE_FOLDER.glob("*.js"):
        text = path.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), path
        assert text.count("\n") <= 300, path
    page = (PAGE_FOLDER / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", page)
    assert len(list(PAGE_FOLDER.iterdir())) <= 28


def test_two_consoles_at_once(open_console, server):
    first, second = open_console(server), open_console(server)
    settled(first, "")
    settled(second, "")
    connections = first.page.locator(".tile", has_text="Connections")
    expect(connections).to_contain_text("2 consoles")
    second.page.close()
    expect(connections).to_contain_text("1 console")
