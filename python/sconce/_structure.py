"""Makes the containers that a model's call spec names: namedtuples, dataclasses and the like."""
import collections
import dataclasses
import importlib
import keyword
import re
import sys


def resolve(name):
    """The class of that qualified name, or None. Imports its module, but never torch for the sake of a name."""
    parts = name.split(".")
    if len(parts) < 2 or "<locals>" in parts:
        return None
    for cut in range(len(parts) - 1, 0, -1):
        module_name = ".".join(parts[:cut])
        module = sys.modules.get(module_name)
        if module is None:
            if parts[0] == "torch":
                continue
            try:
                module = importlib.import_module(module_name)
            except Exception:  # noqa: BLE001  the module of another program may fail in any way
                continue
        found = module
        for part in parts[cut:]:
            found = getattr(found, part, None)
        if isinstance(found, type):
            return found
    return None


def _simple_name(name):
    last = re.sub(r"\W", "_", name.rpartition(".")[2])
    return last if last.isidentifier() and not keyword.iskeyword(last) else "Result"


def _namedtuple(name, fields, count):
    found = resolve(name)
    if found is not None and issubclass(found, tuple):
        made_of = getattr(found, "_make", None)
        if made_of and len(getattr(found, "_fields", ())) == count:
            return made_of
        if getattr(found, "n_fields", None) == count:  # torch.return_types.max
            return found
    if len(fields) != count:
        fields = [f"field_{i}" for i in range(count)]
    return collections.namedtuple(_simple_name(name), fields, rename=True)._make


def _dataclass(name, fields):
    found = resolve(name)
    if found is None:
        if all(field.isidentifier() and not keyword.iskeyword(field) for field in fields):
            found = dataclasses.make_dataclass(_simple_name(name), fields)
        else:
            return lambda values: dict(zip(fields, values, strict=True))
    return lambda values: found(**dict(zip(fields, values, strict=True)))


def maker(kind, name, fields, count):
    """A function from the list of children to the container."""
    if kind == "namedtuple":
        return _namedtuple(name, fields, count)
    if kind == "dataclass":
        return _dataclass(name, fields)
    if kind == "OrderedDict":
        return lambda values: collections.OrderedDict(zip(fields, values, strict=True))
    if kind == "defaultdict":
        return lambda values: collections.defaultdict(None, zip(fields, values, strict=True))
    assert kind == "deque", kind
    return collections.deque
