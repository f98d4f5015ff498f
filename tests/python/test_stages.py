"""What sconce.export and sconce compare say on a terminal while they work."""
import re

import pure  # noqa: F401 (finds the module below)

from sconce import _stages
from sconce._stages import Stages


def drawn(capsys):
    return capsys.readouterr().err.replace("\x1b[K", "").split("\r")


def test_steps_in_order_and_nothing_left(capsys):
    with Stages("export", 2, progress=True) as stages:
        stages.begin("torch traces model m")
        stages.begin("torch compiles model m")
    lines = drawn(capsys)
    assert lines[1] == "export 1 of 2: torch traces model m, 0 s"
    assert "export 2 of 2: torch compiles model m, 0 s" in lines
    assert lines[-1] == ""


def test_a_long_step_is_drawn_again_and_again(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(_stages.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Stages, "EVERY", 0.005)
    seen = []
    with Stages("export", 1, progress=True) as stages:
        stages.begin("torch compiles")
        for later in (105.0, 100.0 + 61):
            now[0] = later
            for _ in range(2000):
                seen += drawn(capsys)
                if seen[-1] == stages.line():
                    break
                stages.over.wait(0.005)
    assert "export 1 of 1: torch compiles, 5 s" in seen and "export 1 of 1: torch compiles, 1:01" in seen


def test_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    with Stages("export", 1, progress=True) as stages:
        stages.begin("torch compiles")
    assert all(len(line) < 20 for line in drawn(capsys))


def test_no_terminal_no_line(capsys):
    with Stages("export", 1) as stages:
        stages.begin("torch compiles")
    with Stages("export", 1, progress=False) as stages:
        stages.begin("torch compiles")
    assert capsys.readouterr().err == ""


def test_an_error_leaves_nothing_on_the_line(capsys):
    try:
        with Stages("export", 1, progress=True) as stages:
            stages.begin("torch compiles")
            raise RuntimeError
    except RuntimeError:
        pass
    assert re.search(r"\r\x1b\[K$", capsys.readouterr().err)
