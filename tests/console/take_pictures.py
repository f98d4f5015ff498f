#!/usr/bin/env python3
"""Takes the pictures of docs/console.md, of a server of its own with requests under way.

    .venv/bin/pip install pillow
    ninja -C build/release sconce_program fake_models
    .venv/bin/python tests/console/take_pictures.py

Each picture has at most 60 KB, with 128 colours. It takes a minute, so that the lines have something to show.
"""
import argparse
import contextlib
import io
import pathlib
import random
import sys
import threading
import time

from browsing import DIGITS, PACKAGES, ROOT, STROKES, V2, AdminServer, Console, chromium, expect

OUT = ROOT / "docs/pictures"
MOST_BYTES = 60 * 1024
IMAGE = (ROOT / "examples/digits/request.json").read_bytes()
CALLS = b'{"args": [[[1, 2, 3], [4, 5, 6]], [[0, 2], {"shift": [0.5, 0, 0]}], 0], "kwargs": {"scale": 2, "mask": [true, true, false]}}'


@contextlib.contextmanager
def traffic(server):
    """Requests whose number goes up and down."""
    ended = threading.Event()

    def ask(path, body, pause):
        while not ended.wait(random.expovariate(1 / pause)):
            server.post(path, body)
            if int(time.time() / 8) % 3 == 0:
                server.post(path, body)

    jobs = [("/v1/models/digits:call", IMAGE, 0.01)] * 2 + [("/v1/models/several.calls:call", CALLS, 0.05)]
    threads = [threading.Thread(target=ask, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def keep(console, name, **options):
    from PIL import Image
    taken = Image.open(io.BytesIO(console.page.screenshot(**options))).convert("RGB")
    small = io.BytesIO()
    taken.quantize(128, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    assert small.tell() <= MOST_BYTES, f"{name} has {small.tell()} bytes"
    (OUT / f"{name}.png").write_bytes(small.getvalue())
    print(f"docs/pictures/{name}.png: {small.tell()} bytes")


def to_top(page):
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(300)


def take(browser, server, seconds):
    light = Console(browser, server, viewport={"width": 1120, "height": 620}, color_scheme="light")
    dark = Console(browser, server, viewport={"width": 1120, "height": 700}, color_scheme="dark")
    phone = Console(browser, server, viewport={"width": 390, "height": 780}, color_scheme="dark")
    try:
        light.open("")
        dark.open("models/digits/1")
        dark.draw(STROKES[3])
        expect(dark.page.locator(".best b")).to_have_text("3")
        to_top(dark.page)
        keep(dark, "console_digit")
        phone.open("models/digits/1")
        phone.draw(STROKES[5])
        expect(phone.page.locator(".best b")).to_have_text("5")
        phone.page.locator("h2", has_text="Request").scroll_into_view_if_needed()
        phone.page.evaluate("scrollTo(0, 440)")
        keep(phone, "console_phone")
        server.admin("PUT", "digits/weights/shadow", {"share": 1})
        page = light.page
        time.sleep(seconds)
        keep(light, "console_overview")
        page.goto(f"{light.url}#/models/digits/1/performance")
        expect(page.locator(".columns").first).to_be_visible()
        page.set_viewport_size({"width": 1120, "height": 680})
        keep(light, "console_performance")
        page.goto(f"{light.url}#/models/digits/1/weights")
        page.get_by_label("File", exact=True).set_input_files(V2)
        page.get_by_role("button", name="Upload", exact=True).click()
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_role("group", name="Differences")).to_be_visible()
        expect(page.get_by_role("group", name="Answers of both sets")).to_be_visible(timeout=60000)
        page.set_viewport_size({"width": 1120, "height": 900})
        to_top(page)
        keep(light, "console_weights")
        server.admin("POST", "/v2/trace/setting", {"trace_level": ["TIMESTAMPS"], "trace_rate": "1"})
        dark.page.goto(f"{dark.url}#/traces")
        dark.page.locator(".trace-item").nth(3).click()
        dark.page.set_viewport_size({"width": 1120, "height": 520})
        keep(dark, "console_traces")
    finally:
        for console in (light, dark, phone):
            console.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=50, help="of requests before the overview's picture")
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    with AdminServer(DIGITS, pathlib.Path(PACKAGES) / "several.pt2", flags=["--set", "digits.sets=4"]) as server:
        with chromium() as browser, traffic(server):
            take(browser, server, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
