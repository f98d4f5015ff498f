#!/usr/bin/env python3
"""Small models, each compiled as a package with each of a list of options: run by PyTorch's loader, then by
sconce_conformance with the same inputs. With any PyTorch from 2.6 on.

    python tests/harvest/matrix.py                                  # every model with PyTorch's defaults
    python tests/harvest/matrix.py --options . --models everything  # every option that this PyTorch has
    python tests/harvest/matrix.py --versions 2.6 2.7               # every model, with other PyTorchs, from PyPI

Cases that fail stay in --out (build/matrix). The exit status is 1 if one failed.

So far: PyTorch can make and load the model `everything` with 54 of torch 2.15's 63 options. Sconce equals its loader with
each, and runs two more that PyTorch's loader cannot (link_libtorch off, constants pickled beside the code). The models
also equal the loaders of torch 2.6, 2.7, 2.8 and 2.10, except two of 2.6, whose loader loses an inverse and a
conjugation. Operators that only earlier versions call by name are in tests/custom_ops/by_name_earlier.tsv, which
make_by_name_list.py writes under such a version.
"""
import argparse
import collections
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUTCOMES = ("passed", "failed", "not made")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=".", help="a regular expression")
    parser.add_argument("--options", default="^defaults$", help="a regular expression")
    parser.add_argument("--versions", nargs="+", help="versions of torch, each installed and removed again")
    parser.add_argument("--keep", action="store_true", help="keep the cases that pass as well")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/matrix")
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/release/tests/sconce_conformance")
    return parser.parse_args()


def of_versions(options):
    """The same command by the Python of a folder that has that torch."""
    given = ["--models", options.models, "--options", options.options, "--tool", str(options.tool)]
    failed = []
    for version in options.versions:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            pip = subprocess.run([f"{folder}/bin/pip", "install", "-q", "--no-cache-dir", f"torch=={version}.*",
                                  "numpy", "setuptools"])
            out = options.out / version
            command = [f"{folder}/bin/python", __file__, *given, "--out", str(out), *(["--keep"] * options.keep)]
            print(f"torch {version}:", flush=True)
            if pip.returncode or subprocess.run(command).returncode:
                failed.append(version)
    print(f"failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def conform(options, folder):
    run = subprocess.run([options.tool, str(folder), "-j", "1", "--limit", "120"], capture_output=True, text=True)
    if run.returncode == 0 and not options.keep:
        shutil.rmtree(folder)
    return "" if run.returncode == 0 else (run.stdout + run.stderr).strip()[:1500]


def one(options, model, configs, name):
    """An outcome, said as well."""
    import torch

    import matrix_models
    import recorder
    recorder.harvest = recorder.Harvest("cpu")
    torch.manual_seed(0)
    try:
        matrix_models.run(model, configs)
        reasons = [conform(options, folder) for folder in recorder.harvest.write(options.out, name)]
    except Exception as error:
        print(f"not made: {name}: {type(error).__name__}: {str(error).strip()[:400]}", flush=True)
        return "not made"
    failed = "; ".join(r for r in reasons if r)
    print(f"FAIL {name}: {failed}" if failed else f"ok {name}", flush=True)
    return "failed" if failed else "passed"


def main():
    options = arguments()
    options.tool, options.out = options.tool.resolve(), options.out.resolve()
    if options.versions:
        return of_versions(options)
    if not importlib.util.find_spec("torch"):
        sys.exit("matrix.py: this Python has no torch: pip install torch==2.15.0 numpy")
    import torch._inductor.config as inductor

    import matrix_models
    counts = collections.Counter()
    for configs_name, configs in matrix_models.OPTIONS.items():
        if not re.search(options.options, configs_name):
            continue
        unknown = [key for key in configs if key not in inductor.get_config_copy()]
        if unknown:
            print(f"not of this torch: {', '.join(unknown)}", flush=True)
            continue
        for model in (m for m in matrix_models.MODELS if re.search(options.models, m)):
            child = os.fork()  # PyTorch's loader may crash
            if not child:
                os._exit(OUTCOMES.index(one(options, model, configs, f"{model}.{configs_name}")))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status not in range(len(OUTCOMES)):
                print(f"not made: {model}.{configs_name}: PyTorch ended with {status}", flush=True)
            counts[OUTCOMES[status] if status in range(len(OUTCOMES)) else "not made"] += 1
    print(f"{counts['not made']} not made\n{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
