"""Compares a package with the model that it was made of: python -m sconce.compare package.pt2 module:function

The function takes nothing and returns (model, args) or (model, args, kwargs), or a dict from the names of the package's
models to such tuples. The module is a file's name without .py, or a path to it; the working directory is searched first.
Prints how each output differs. Exit status: 0 all agree, 1 something differs, 2 it could not be compared.
"""
import argparse
import importlib
import importlib.util
import os
import sys

from sconce import _compare


def subject_of(text):
    """What the function of "module:function" returns, as name -> (model, args, kwargs)."""
    module_name, colon, function_name = text.rpartition(":")
    if not colon or not module_name or not function_name:
        raise ValueError(f"expected module:function, got {text!r}")
    if module_name.endswith(".py"):
        if not os.path.isfile(module_name):
            raise ValueError(f"no file {module_name}")
        spec = importlib.util.spec_from_file_location(os.path.basename(module_name)[:-3], module_name)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        sys.path.insert(0, os.path.dirname(os.path.abspath(module_name)))
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        module = importlib.import_module(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ValueError(f"{module_name} has no function {function_name!r}")
    given = function()
    models = given if isinstance(given, dict) else {"": given}
    for name, one in models.items():
        if not isinstance(one, tuple) or not 2 <= len(one) <= 3:
            raise ValueError(f"{text} returned {type(one).__name__}{' for ' + repr(name) if name else ''}; expected "
                             "(model, args) or (model, args, kwargs)")
    return {name: (*one, None)[:3] for name, one in models.items()}


def compare(package, subjects, tolerance=None, weights=False, progress=None):
    """Comparisons, one for each of the models. weights: gives the package the model's state_dict() first. progress: as of
    sconce.export."""
    import torch

    from sconce._export import Subject
    from sconce._stages import Stages
    names = models_of(package)
    found = []
    with Stages("compare", len(subjects), progress) as stages:
        for name, (model, args, kwargs) in subjects.items():
            if not name:
                name = names[0] if len(names) == 1 else "model"
            if name not in names:
                raise ValueError(f"the package has no model {name!r}; it has {', '.join(names)}")
            stages.begin(f"Sconce and torch run model {name}")
            subject = Subject(torch, name, model, args, kwargs, None, None, None, None)
            with subject.in_eval():
                found.append(subject.compared(package, None, tolerance, "none" if weights else "inside"))
    return found


def models_of(package):
    sconce = _compare.native()
    if sconce:
        return list(sconce.inspect(package).models)
    program = _compare.program()
    if not program:
        raise _compare.NoSconce("there is neither Sconce's native module nor a program `sconce` on PATH (or SCONCE_PROGRAM)")
    return _compare.names_of(program, package)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="sconce compare", description=__doc__.partition("\n")[0],
                                     epilog=__doc__.partition("\n")[2], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("model", metavar="module:function")
    parser.add_argument("--tolerance", type=float, help="how far floating-point outputs may be off, as a share of the largest value")
    parser.add_argument("--weights", action="store_true", help="gives the package the model's state_dict() before it runs")
    given = parser.parse_args(arguments)
    if not importlib.util.find_spec("torch"):
        print("sconce compare: this Python has no torch: pip install torch==2.15.0", file=sys.stderr)
        return 2
    try:
        comparisons = compare(given.package, subject_of(given.model), given.tolerance, given.weights)
    except Exception as error:  # noqa: BLE001  the user's module may fail in any way
        print(f"sconce compare: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    for one in comparisons:
        print(one)
    wrong = sum(not row.ok for one in comparisons for row in one.rows)
    total = sum(len(one.rows) for one in comparisons)
    print(f"{total - wrong} of {total} outputs agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
