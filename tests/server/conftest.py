"""The server that most tests share."""
import pathlib

import pytest
from serving import FAKE_MODELS, PACKAGES, PROGRAM, Server


def pytest_collection_modifyitems(items):
    if PROGRAM.exists() and (FAKE_MODELS / "fake_model.so").exists():
        return
    skip = pytest.mark.skip(reason=f"the program is not built: {PROGRAM} (./dev build)")
    for item in items:
        if str(item.fspath).startswith(str(pathlib.Path(__file__).parent)):
            item.add_marker(skip)


@pytest.fixture(scope="module")
def server():
    """A model without a call spec, one with sleeps and failures on request, and the compiled ones."""
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}", PACKAGES / "several.pt2",
                flags=["--set", "fake.queue=4"]) as running:
        yield running
