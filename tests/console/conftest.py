"""A browser for each module, and a page for each test that must leave no error in the browser's console."""
import pathlib

import pytest
from browsing import Console, chromium, digits_server, why_not
from serving import FAKE_MODELS, PROGRAM

HERE = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(items):
    built = PROGRAM.exists() and (FAKE_MODELS / "fake_model.so").exists()
    reason = why_not() if built else f"the program is not built: {PROGRAM} (./dev build)"
    if not reason:
        return
    for item in items:
        if str(item.fspath).startswith(str(HERE)):
            item.add_marker(pytest.mark.skip(reason=reason))


# Never of a wider scope: see chromium().
@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def server():
    with digits_server() as running:
        yield running


@pytest.fixture()
def open_console(browser):
    """Opens consoles; at the end of the test each must have been without errors."""
    opened = []

    def open_one(server, **options):
        opened.append(Console(browser, server, **options))
        return opened[-1]

    yield open_one
    for console in opened:
        console.close()


@pytest.fixture()
def console(open_console, server):
    return open_console(server)
