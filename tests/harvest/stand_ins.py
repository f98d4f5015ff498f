"""Imports of tests that were written for another torch: a name that is gone becomes a stand-in that is false."""
import ast
import builtins
import importlib
import re
import sys
import types


class StandIn:
    def __init__(self, *_, **__):
        pass

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self  # as a decorator

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()

    def __bool__(self):
        return False


def importable(name):
    """The module, or an empty one of that name."""
    try:
        return importlib.import_module(name)
    except Exception:
        parent, _, last = name.rpartition(".")
        module = types.ModuleType(name)
        module.__path__ = []
        sys.modules[name] = module
        if parent:
            setattr(importable(parent), last, module)
        return module


def prepare(tests, name, seen):
    """Stand-ins for what the test module, and those it imports from its folder, ask torch for and do not find."""
    path = tests / f"{name}.py"
    if name in seen or not path.exists():
        return
    seen.add(name)
    foreign = ("torch", "torchao", "triton")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in foreign:
                    importable(alias.name)
                else:
                    prepare(tests, alias.name.split(".")[-1], seen)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.level or node.module.split(".")[0] not in foreign:
                prepare(tests, node.module.split(".")[-1], seen)
                continue
            module = importable(node.module)
            for alias in node.names:
                if alias.name == "*" or hasattr(module, alias.name):
                    continue
                try:
                    importlib.import_module(f"{node.module}.{alias.name}")
                except Exception:
                    setattr(module, alias.name, StandIn())


def load(tests, name, seen):
    prepare(tests, name, seen)
    while True:
        try:
            return importlib.import_module(name)
        except NameError as error:  # came with a star
            missing = re.search(r"name '(\w+)'", str(error))[1]
            if hasattr(builtins, missing):
                raise
            setattr(builtins, missing, StandIn())
