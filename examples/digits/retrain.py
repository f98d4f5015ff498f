"""Trains the digits example anew and writes only its weights, digits-v2.safetensors: for a server that has digits.pt2.

    python -m venv .venv && .venv/bin/pip install torch==2.15.0 scikit-learn safetensors
    .venv/bin/python examples/digits/retrain.py

Any training that keeps names, dtypes and shapes will do; here it is another seed. docs/weights.md pushes the result.
"""
import argparse
import importlib.util
import os
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--out", default=str(here / "digits-v2.safetensors"))
    args = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("retrain.py: this Python has no torch: pip install torch==2.15.0 scikit-learn safetensors")
    from safetensors.torch import save_file
    from train import train

    model, _, _ = train(args.seed, args.epochs)
    save_file(model.state_dict(), args.out)
    print(args.out, os.path.getsize(args.out), "bytes", *sorted(model.state_dict()))


if __name__ == "__main__":
    main()
