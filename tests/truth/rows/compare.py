#!/usr/bin/env python3
"""Compares the proof of independent rows (sconce._rows) with PyTorch: compare.py [--graphs N] [--seed N] [--workers N] [--prove export] [--graph SEED] [--missed]

Random graphs of 1 to 12 operators are recorded (quick.py) or, with --prove export, exported with a dynamic batch, and proved; torch runs each of them on rows alone, in batches
of other sizes and beside adversarial rows (very large, NaN, infinite, equal, zero), at every place of the batch. No graph may be called
independent whose rows are not. --missed prints the graphs that are independent by trial and were not proved; --graph runs one again.
Needs torch. Ends with a line of JSON; exits with 1 if a proof was wrong.
"""
import argparse
import collections
import importlib.util
import json
import multiprocessing
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "python")]

GROUP = 50  # graphs of a task


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--graph", type=int)
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--prove", choices=("record", "export"), default="record")
    args = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("compare.py: this Python has no torch: pip install torch==2.15.0 numpy")
    import torch

    from rows.comparison import Graph, exported, independent, recorded, verdict, work
    if args.graph is not None:
        graph = Graph(args.graph)
        print(graph.text())
        print(f"recorded: {verdict(graph, recorded)}\nexported: {verdict(graph, exported)}\nby trial: {independent(graph) or 'independent'}")
        return 0
    count, wrong, missed, start = collections.Counter(), [], collections.Counter(), time.monotonic()
    tasks = [(range(args.seed * 10 ** 7 + at, args.seed * 10 ** 7 + min(at + GROUP, args.graphs)), args.prove)
             for at in range(0, args.graphs, GROUP)]
    with multiprocessing.get_context("spawn").Pool(args.workers, maxtasksperchild=50) as pool:
        for result in pool.imap_unordered(work, tasks):
            for one in result:
                count["graphs"] += 1
                count["without a graph"] += bool(one["refused"])
                if one["refused"]:
                    continue
                count["independent by trial"] += not one["changed"]
                count["proved"] += one["proved"]
                if one["proved"] and one["changed"]:
                    wrong.append(one["seed"])
                    print(f"WRONG: graph {one['seed']} is proved, but changes: {one['changed']}\n{one['graph']}", flush=True)
                elif not one["proved"] and not one["changed"]:
                    missed[one["text"].partition(": ")[2].partition(" at ")[0] + ": " + one["text"].rpartition(": ")[2]] += 1
                    if args.missed:
                        print(f"missed: graph {one['seed']}: {one['text']}\n{one['graph']}", flush=True)
            if count["graphs"] % 2000 == 0:
                print(f"{count['graphs']} graphs, {time.monotonic() - start:.0f} s, {dict(count)}", file=sys.stderr, flush=True)
    for text, times in missed.most_common(40):
        print(f"missed {times}: {text}")
    print(json.dumps({**count, "wrong": wrong, "missed": sum(missed.values()), "seed": args.seed, "torch": torch.__version__,
                      "seconds": round(time.monotonic() - start)}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
