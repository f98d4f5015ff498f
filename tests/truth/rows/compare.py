#!/usr/bin/env python3
"""Compares the proof of independent rows (sconce._rows) with PyTorch: compare.py [--graphs N] [--seed N] [--workers N] [--prove export] [--graph SEED] [--missed]

Random graphs of 1 to 12 operators are recorded (quick.py) or, with --prove export, exported with a dynamic batch, and proved; torch runs each of them on rows alone, in batches
of other sizes and beside adversarial rows (very large, NaN, infinite, equal, zero), at every place of the batch. No graph may be called
independent whose rows are not. --missed prints the graphs that are independent by trial and were not proved; --graph runs one again.
Needs torch. Ends with a line of JSON; exits with 1 if a proof was wrong.
"""
import argparse
import collections
import json
import multiprocessing
import pathlib
import sys
import time
import warnings

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "python")]

import pure  # noqa: E402, F401

import torch  # noqa: E402

import rows.steps  # noqa: E402, F401
from rows import quick  # noqa: E402
from rows.graphs import ROWS, Graph  # noqa: E402
from sconce import _rows  # noqa: E402

GROUP = 50  # graphs of a task
BESIDE = ("odd", "nan", "inf", "large", "same", "zeros", "integers", "normal")


class Module(torch.nn.Module):
    def __init__(self, graph):
        super().__init__()
        self.graph = graph

    def forward(self, x, y, k):
        return self.graph(x, y, k)


def inputs_of(graph, rows):
    return graph.inputs(rows, torch.Generator().manual_seed(graph.seed))


def recorded(graph):
    """The proof of a graph that is recorded at three sizes of the batch (quick.py)."""
    values = _rows.analysed(torch, quick.traced(graph, lambda rows: inputs_of(graph, rows)), quick.B, [_rows.ROWS] * 3)
    return _rows.judged(torch, 0, values[0])


def exported(graph):
    """The proof as sconce.export makes it."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        auto = {0: torch.export.Dim.AUTO}
        return _rows.prove(torch, torch.export.export(Module(graph), tuple(inputs_of(graph, ROWS)), dynamic_shapes=(auto, auto, auto),
                                                      strict=False))


def verdict(graph, prove):
    """A RowProof, or why there is no graph."""
    try:
        return prove(graph)
    except quick.Different:
        return "the operators depend on the batch's size"
    except Exception as error:  # noqa: BLE001  torch has no common class for its refusals
        return f"{type(error).__name__}: {str(error)[:200]}"


def independent(graph):
    """By trial: the answer for a row, and whether it changes with what is beside it. Returns "" or what changed it."""
    generator = torch.Generator().manual_seed(graph.seed + 1)
    others = [(f"beside {before}+{after} {kind}", graph.inputs(before, generator, kind), graph.inputs(after, generator, kind), before)
              for kind in BESIDE for before, after in ((3, 2), (17, 20))]
    with torch.no_grad():
        for kind in ("normal", "integers", "odd"):
            batch = graph.inputs(ROWS, generator, kind)
            try:
                whole = graph(*batch)
            except torch.linalg.LinAlgError:
                continue
            except (RuntimeError, IndexError, ValueError) as error:
                return f"fails: {error}"
            if whole.shape[0] != ROWS:
                return "has another number of rows"
            for row in ({"normal": 0, "integers": 3, "odd": ROWS - 1}[kind],):
                wanted, one = whole[row], [t[row:row + 1] for t in batch]
                for name, beside, at in neighbours(one, others):
                    try:
                        got = graph(*beside)
                    except torch.linalg.LinAlgError:  # a matrix without an answer, and torch says so
                        continue
                    except (RuntimeError, IndexError, ValueError) as error:
                        return f"fails {name}: {str(error)[:100]}"
                    if got.shape[0] != beside[0].shape[0] or got.shape[1:] != whole.shape[1:] or not alike(wanted, got[at]):
                        return f"{kind} row {row} {name}"
    return ""


def neighbours(one, others):
    yield "alone", one, 0
    for name, before, after, at in others:
        yield name, [torch.cat(three) for three in zip(before, one, after)], at
    yield "beside its copies", [torch.cat([t] * 9) for t in one], 4


def alike(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if not a.is_floating_point():
        return bool((a == b).all())
    return torch.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)


def work(task):
    seeds, prove = task
    torch.set_num_threads(1)
    return [judged(Graph(seed), {"record": recorded, "export": exported}[prove]) for seed in seeds]


def judged(graph, prove):
    proof = verdict(graph, prove)
    changed = independent(graph)
    refused = isinstance(proof, str)
    return {"seed": graph.seed, "refused": proof if refused else "", "changed": changed, "proved": not refused and bool(proof),
            "text": str(proof), "graph": graph.text() if not refused and bool(proof) == bool(changed) else ""}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--graph", type=int)
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--prove", choices=("record", "export"), default="record")
    args = parser.parse_args()
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
