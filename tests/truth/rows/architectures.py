#!/usr/bin/env python3
"""Which architectures of timm and transformers have independent rows, and which are proved:
architectures.py [--models REGEX] [--sconce PROGRAM] [--out FILE]

Each is made small and with random weights from its configuration, nothing is downloaded. In truth: in float64, a row alone answers as it
does beside other rows, ordinary ones and large ones, in batches of other sizes. Proved: sconce._rows on the exported graph, as
sconce.export does; with --sconce also by the program, from the source that PyTorch generates for single precision. Needs torch, timm and
transformers. Prints a table; exits with 1 if a model is proved that is not independent.
"""
import argparse
import importlib.util
import json
import pathlib
import re
import signal
import sys

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "python"), str(HERE.parents[2] / "package_format/wrapper/rows")]

LIMIT = 240  # seconds for a model


def late(*_):
    raise TimeoutError(f"more than {LIMIT} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="")
    parser.add_argument("--sconce", help="the program, which also tries the proof by generated source")
    parser.add_argument("--out")
    args = parser.parse_args()
    for needed in ("torch", "timm", "transformers"):
        if not importlib.util.find_spec(needed):
            sys.exit(f"architectures.py: this Python has no {needed}: pip install torch==2.15.0 numpy timm transformers")
    import torch

    from rows.models import CASES, by_source, judged
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, late)
    found, failed = [], []
    for name in CASES:
        if not re.search(args.models, name):
            continue
        signal.alarm(LIMIT)
        try:
            found.append(judged(name))
            one = found[-1]
            if args.sconce:
                one["source"] = by_source(name, args.sconce)
            print(f"{name:44} {'independent' if one['independent'] else 'rows meet':12} {'proved' if one['proved'] else 'not proved':11}"
                  + ("" if one["proved"] else f" {one['proof']}") + (f" [{one['truth']}]" if one["truth"] else ""), flush=True)
            if args.sconce:
                print(f"{'':44} by source: {one['source'] or 'proved'}", flush=True)
        except Exception as error:  # noqa: BLE001  libraries and torch may refuse in any way
            failed.append(name)
            print(f"{name:44} not exported: {type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''}", flush=True)
        finally:
            signal.alarm(0)
    right = [one for one in found if one["independent"]]
    proved = [one for one in right if one["proved"]]
    by_its_source = [one for one in right if one.get("source") == ""]
    wrong = [one["model"] for one in found if (one["proved"] or one.get("source") == "") and not one["independent"]]
    print(f"{len(found)} architectures: {len(right)} have independent rows, {len(proved)} of these are proved"
          + (f", {len(by_its_source)} by generated source" if args.sconce else "") + f"; {len(wrong)} proved wrongly; "
          f"{len(failed)} not exported")
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(found, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
