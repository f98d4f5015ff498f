"""Trains a small language model on text made here, and writes it as a package with the files for sconce's loop.

    python examples/language_model/train.py OUT [--seconds 60]

OUT gets lm.pt2 with three models of the same weights, a loop file for each (docs/generate.md), and tokens.json: the character
of each token. Model "explicit" takes its cache as an input and returns it, so that many loops share runs; model "buffers"
writes it to a buffer, so that nothing is copied; "batch" writes the caches of eight loops, which share runs and copy nothing.
Needs torch 2.6 or later and a C++ compiler.
"""
import argparse
import importlib.util
import pathlib
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, metavar="OUT")
    parser.add_argument("--seconds", type=float, default=60, help="of training")
    arguments = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        sys.exit("train.py: this Python has no torch: pip install torch==2.15.0")
    import language_model
    language_model.write(arguments.out, *language_model.train(arguments.seconds))


if __name__ == "__main__":
    main()
