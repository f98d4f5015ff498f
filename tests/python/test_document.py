"""The blocks of docs/python.md, in their order."""
import re
import shutil

import sconce
from packages import DIGITS
from where import ROOT


def test_the_blocks_of_the_document(tmp_path, monkeypatch, capsys):
    shutil.copy(DIGITS, tmp_path / "digits.pt2")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/python.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    names = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)
    assert names["weight_version"] == 2 and names["model"].weight_version == 4
    assert "(3, 10)" in capsys.readouterr().out


def test_the_table_of_errors():
    text = (ROOT / "docs/python.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \| (`.*?`) \|", text.partition("## Errors")[2], re.MULTILINE)
    told = set()
    for classes, builtins in rows:
        classes, builtins = re.findall(r"`(\w+)`", classes), re.findall(r"`(\w+)`", builtins)
        if len(builtins) == 1:
            builtins *= len(classes)
        for name, builtin in zip(classes, builtins, strict=True):
            assert issubclass(getattr(sconce, name), __builtins__[builtin]), name
            assert issubclass(getattr(sconce, name), sconce.Error)
            told.add(name)
    assert told >= {"InvalidArgument", "CorruptPackage", "Busy", "InputOutputError"}
