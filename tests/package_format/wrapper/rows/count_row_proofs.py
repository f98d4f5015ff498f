"""Counts the packages with a dynamic batch of which the generated source proves that rows are computed apart.

    python count_row_proofs.py SCONCE SUITE.tar.xz...

Prints, for each suite, how many packages have a first dimension that all inputs share and that varies, how many of these are
proved, and the reasons of the others.
"""

import argparse
import collections
import json
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sconce")
    parser.add_argument("suites", nargs="+", metavar="SUITE")
    options = parser.parse_args()
    sconce, suites = options.sconce, options.suites
    for suite in suites:
        proved, reasons = 0, collections.Counter()
        with tempfile.TemporaryDirectory() as folder:
            if suite.endswith(".pt2"):
                packages = [Path(suite)]
            else:
                with tarfile.open(suite) as archive:
                    archive.extractall(folder, filter="data")
                packages = sorted(Path(folder).rglob("*.pt2"))
            for package in packages:
                run = subprocess.run([sconce, "inspect", "--json", package], capture_output=True, text=True, check=True)
                for model in json.loads(run.stdout)["models"]:
                    shapes = [entry["shape"] for entry in model["inputs"]]
                    symbols = {shape[0]["symbol"] if shape and isinstance(shape[0], dict) else None for shape in shapes}
                    if len(symbols) != 1 or None in symbols:
                        continue
                    proved += model["rows"]["independent"]
                    if not model["rows"]["independent"]:
                        reason = re.sub(r"(kernel|operator) [\w.]+( of [\w., ]+)?", r"\1 *", model["rows"]["reason"])
                        reasons[reason[:110]] += 1
        print(f"{Path(suite).name}: {proved} of {proved + sum(reasons.values())} proved")
        for reason, count in reasons.most_common():
            print(f"    {count} {reason}")


if __name__ == "__main__":
    main()
