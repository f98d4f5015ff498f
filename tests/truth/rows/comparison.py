"""What compare.py does with a graph: its proof, and whether its rows are independent by trial."""
import warnings

import torch

import rows.steps  # noqa: F401
from rows import quick
from rows.graphs import ROWS, Graph
from sconce import _rows

BESIDE = ("odd", "nan", "inf", "large", "same", "zeros", "integers", "normal")


class Module(torch.nn.Module):
    def __init__(self, graph):
        super().__init__()
        self.graph = graph

    def forward(self, x, y, k):
        for one in (y, k):  # one batch, whether or not the graph joins them
            torch._check(one.shape[0] == x.shape[0])
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
