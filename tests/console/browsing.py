"""Chromium without a window, for the tests of the console and for its pictures."""
import contextlib
import os
import pathlib
import re
import shutil
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "server"))
from admin_server import AdminServer
from serving import FAKE_MODELS, PACKAGES, ROOT

try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    expect = sync_playwright = None

if expect:
    expect.set_options(timeout=30000)  # 5 s by default, which a busy machine may need for a page

DIGITS = ROOT / "examples/digits/digits.pt2"
V2 = ROOT / "examples/digits/digits-v2.safetensors"
CHROMIUM = os.environ.get("SCONCE_CHROMIUM") or shutil.which("chromium")

# Strokes of digits as a hand draws them, in a square of side 1.
STROKES = {
    0: [[(.5, .1), (.3, .2), (.22, .5), (.3, .8), (.5, .9), (.7, .8), (.78, .5), (.7, .2), (.5, .1)]],
    1: [[(.38, .25), (.55, .1), (.55, .9)]],
    2: [[(.28, .3), (.35, .15), (.55, .1), (.7, .22), (.66, .42), (.45, .65), (.28, .88), (.5, .88), (.75, .88)]],
    3: [[(.3, .2), (.5, .12), (.68, .25), (.6, .44), (.45, .48), (.65, .55), (.7, .75), (.5, .9), (.28, .8)]],
    4: [[(.6, .1), (.25, .6), (.75, .6)], [(.6, .35), (.6, .9)]],
    5: [[(.7, .12), (.35, .12), (.32, .45), (.55, .42), (.7, .6), (.6, .85), (.3, .88)]],
    6: [[(.62, .1), (.4, .3), (.3, .6), (.38, .88), (.6, .88), (.7, .7), (.58, .55), (.35, .65)]],
    7: [[(.28, .12), (.72, .12), (.55, .45), (.42, .9)], [(.36, .5), (.68, .5)]],
    8: [[(.62, .2), (.45, .1), (.34, .25), (.5, .45), (.68, .68), (.52, .9), (.33, .72), (.5, .45), (.65, .25), (.62, .2)]],
    9: [[(.68, .3), (.5, .12), (.32, .28), (.4, .48), (.62, .45), (.68, .3), (.66, .6), (.6, .9)]],
}


def why_not():
    """Why no browser can be started here; None: it can."""
    if not sync_playwright:
        return "this Python has no playwright (tests/console/requirements.txt)"
    return None if CHROMIUM else "Chromium is not installed (dev.packages)"


@contextlib.contextmanager
def chromium():
    """While it runs, playwright's event loop is this thread's running one, so that asyncio.run() fails: a module of tests
    ends it at its own end."""
    playwright = sync_playwright().start()
    try:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
    finally:
        playwright.stop()


class Console:
    """A page of the console at a server, and what the browser's console said of it."""

    def __init__(self, browser, server, allowed=(), **context):
        self.server, self.allowed, self.errors = server, list(allowed), []
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
        self.context.set_default_timeout(30000)
        self.page = self.context.new_page()
        self.page.on("console", lambda m: self.errors.append(f"{m.text} ({m.location['url']})") if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.admin_port}/console"

    def open(self, path=""):
        """path: what follows #/ in the address."""
        self.page.goto(f"{self.url}#/{path}")
        return self.page

    def close(self):
        self.context.close()
        left = [e for e in self.errors if not any(re.search(a, e) for a in self.allowed)]
        assert not left, left

    def draw(self, strokes, steps=2):
        canvas = self.page.locator("canvas.drawing")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        mouse = self.page.mouse
        for stroke in strokes:
            points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
            mouse.move(*points[0])
            mouse.down()
            for point in points[1:]:
                mouse.move(*point, steps=steps)
            mouse.up()


def choose(place, name):
    """One of several choices that are side by side."""
    place.get_by_role("radio", name=name, exact=True).check()


def digits_server(flags=()):
    """digits with room for named sets; models with other signatures."""
    return AdminServer(DIGITS, PACKAGES / "several.pt2", f"fake={FAKE_MODELS / 'fake_model.so'}",
                       flags=["--set", "digits.sets=4", *flags])
