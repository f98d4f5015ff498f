"""Classes that packages of test_structure.py name."""
import collections
import dataclasses

import numpy as np

Pair = collections.namedtuple("Pair", "classes probabilities")


@dataclasses.dataclass
class Answer:
    classes: np.ndarray
    probabilities: np.ndarray


@dataclasses.dataclass
class Request:
    image: np.ndarray
    note: None = None
