"""A browser leaves nothing behind in the process that later tests would stumble over."""
import asyncio

from browsing import chromium


async def nothing():
    await asyncio.sleep(0)


def test_asyncio_runs_after_a_browser():
    with chromium() as browser:
        browser.new_page().close()
    asyncio.run(nothing())


def test_asyncio_runs_after_the_modules_before():
    """Those of this folder have had their browsers by now."""
    asyncio.run(nothing())
