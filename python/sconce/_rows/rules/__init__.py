"""The rules: for each operator, which dimension of which result carries the batch alone."""
from sconce._rows.registry import REFUSED, RULES
from sconce._rows.rules import (attention, creation, elementwise, indexing, linear_algebra, normalization, products, reductions, refusals,
                                scatters, views, windows)

__all__ = ["REFUSED", "RULES", "attention", "creation", "elementwise", "indexing", "linear_algebra", "normalization", "products",
           "reductions", "refusals", "scatters", "views", "windows"]
