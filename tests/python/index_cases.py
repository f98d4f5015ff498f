"""Prints what sconce._index_bounds finds in models, a line of JSON each, and whether eager fails beyond. Needs torch."""
import json

import pure  # noqa: F401  finds sconce

import torch
from torch import nn

from sconce import _index_bounds

CASES = {}
TABLE = torch.arange(40.0).view(10, 4)


def case(*arguments, wanted):
    """wanted: {position: [low, high]}."""
    def add(forward):
        CASES[forward.__name__] = (forward, arguments, wanted)
        return forward
    return add


def ids(*shape, dtype=torch.long, high=3):
    return torch.randint(0, high, shape, dtype=dtype)


@case(ids(2, 3), wanted={0: [-10, 9]})
def embedding(x):
    return nn.functional.embedding(x, TABLE)


@case(torch.rand(2, 3), ids(2, 3, dtype=torch.int32), wanted={1: [-10, 9]})
def behind_a_float(a, x):
    return nn.functional.embedding(x.reshape(-1).unsqueeze(0).long(), TABLE).sum() + a


@case(ids(3), ids(3), wanted={0: [-10, 9], 1: [-4, 3]})
def two_dimensions(x, y):
    return TABLE[x, y]


@case(ids(2, 3), wanted={0: [-12, 7]})
def with_an_offset(x):
    return nn.functional.embedding(x + 2, TABLE)


@case(ids(2, 3), wanted={0: [-3, 2]})
def in_two_tables(x):
    return nn.functional.embedding(x, TABLE).sum() + nn.functional.embedding(x, TABLE[:3]).sum()


@case(ids(10, 2), wanted={0: [0, 3]})
def gathered(x):
    return TABLE.gather(1, x)


@case(ids(3), wanted={0: [-10, 9]})
def selected(x):
    return TABLE.index_select(0, x)


@case(ids(2, 3), wanted={})
def only_some_of_it(x):
    return nn.functional.embedding(x[:, 0], TABLE) + x[:, 1:].sum()


@case(ids(2, 3), wanted={})
def clamped(x):
    return nn.functional.embedding(x.clamp(0, 9), TABLE)


@case(ids(2, 3), wanted={})
def narrowed(x):
    return nn.functional.embedding(x.int(), TABLE)


@case(ids(2, 3), wanted={})
def where_it_counts(x):
    return nn.functional.embedding(torch.where(x > 5, 0, x), TABLE)


@case(ids(2, 3), torch.rand(5, 4), wanted={0: [-5, 4]})
def of_another_input(x, table):
    return nn.functional.embedding(x, table)


@case(ids(2, 3), torch.rand(2, 3), wanted={})
def numbers(x, y):
    return x * y


@case(torch.rand(10) > 0.5, ids(3), wanted={})
def behind_a_mask(mask, x):
    return TABLE[mask][x]


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


def fails(model, arguments, at, value):
    changed = [a.clone() for a in arguments]
    changed[at].view(-1)[-1] = value
    try:
        model(*changed)
    except (IndexError, RuntimeError):
        return True
    return False


def main():
    for name, (function, arguments, wanted) in CASES.items():
        model = Model(function)
        program = torch.export.export(model, arguments)
        found = {at: list(pair) for at, pair in _index_bounds.found(torch, program).items()}
        text = _index_bounds.metadata(torch, program)
        beyond = all(fails(model, arguments, at, value) for at, (low, high) in found.items() for value in (low - 1, high + 1))
        print(json.dumps({"case": name, "found": sorted(found.items()), "wanted": sorted(wanted.items()), "beyond": beyond,
                          "text": text}))


if __name__ == "__main__":
    main()
