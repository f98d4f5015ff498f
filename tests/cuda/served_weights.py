#!/usr/bin/env python3
"""Everything of weights that a server does, on a device: served_weights.py SCONCE [--device cuda] [--only WORD,...]

Compiles two small models with PyTorch, serves them and compares every answer with PyTorch's: pushes and rollbacks under load,
kept weights, peers, pushes to two servers, shadow, golden requests, guarded commits, named sets in memory and on the disk and
pushed in two phases, devices=auto, a pipeline, sequences, models on demand, and weights out of this process's memory (CUDA IPC) in the forms of SGLang's
and vLLM's trainers. Needs PyTorch, safetensors and a C++ compiler; --device cuda (the default) also a GPU, which --device cpu
does without. --only: the checks whose names have one of these words. Prints a line for each check; the last line is
"N passed, N failed", and the exit status 1 if any failed.
"""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("program", metavar="SCONCE")
PARSER.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
PARSER.add_argument("--only", default="", help="words of names, separated by commas")
OPTIONS = PARSER.parse_args()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "weights"))

import demand  # noqa: E402
import judged  # noqa: E402
import named_sets  # noqa: E402
import net  # noqa: E402
import pipelines  # noqa: E402
import sequences  # noqa: E402
import served  # noqa: E402
import torch  # noqa: E402
import trainers  # noqa: E402
import updates  # noqa: E402


class Checks:
    passed, failed = 0, 0

    def __call__(self, good, what, told=""):
        """told: what explains a failure."""
        self.passed += bool(good)
        self.failed += not good
        print("ok   " + what if good else f"FAIL {what}: {str(told)[:1500]}", flush=True)

    def skip(self, what):
        print(f"skip {what}: needs a GPU", flush=True)


def main():
    check = Checks()
    words = [word for word in OPTIONS.only.split(",") if word]
    served.Server.program, served.Server.device = OPTIONS.program, "cuda:0" if OPTIONS.device == "cuda" else "cpu"
    served.Server.folder = pathlib.Path(tempfile.mkdtemp(prefix="sconce-served-weights-"))
    # NVIDIA's libraries from Python packages, for systems that have no others.
    libraries = sorted(pathlib.Path(torch.__file__).parents[1].glob("nvidia/*/lib"))
    os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), *map(str, libraries)]))
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name() if OPTIONS.device == 'cuda' else 'CPU'}, torch {torch.__version__}", flush=True)
    subject = net.Subject(net.Net(), OPTIONS.device, served.Server.folder / "net.pt2")
    for module in (updates, judged, named_sets, pipelines, sequences, demand, trainers):
        for one in module.CHECKS:
            name = f"{module.__name__}.{one.__name__}"
            if words and not any(word in name for word in words):
                continue
            begin = time.monotonic()
            print(f"---- {name}: {one.__doc__ or module.__doc__}", flush=True)
            try:
                one(check, subject, OPTIONS.device)
            except Exception:
                check(False, f"{name} ended", traceback.format_exc())
            print(f"     {time.monotonic() - begin:.1f} s", flush=True)
    if check.failed:
        print(f"logs of the servers are in {served.Server.folder}")
    else:
        shutil.rmtree(served.Server.folder)
    print(f"{check.passed} passed, {check.failed} failed")
    return check.failed != 0


if __name__ == "__main__":
    sys.exit(main())
