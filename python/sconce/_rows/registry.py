"""The rules by operator, and the operators for which there is none on purpose."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Rule:
    """apply(call) returns the Value of the result, or a list of one per result; it raises Refused.

    sized: takes numbers that depend on B, and looks at them; without it such a number is refused before.
    numbered: takes tensors of row numbers. shape_only: takes no more of Unknown tensors than their shape."""

    apply: object
    sized: bool = False
    numbered: bool = False
    shape_only: bool = False


RULES = {}    # "aten.add" -> Rule
REFUSED = {}  # "aten.nonzero" -> why


def names_of(names):
    """Operators of a text; those without a namespace are ATen's."""
    return [name if "." in name else f"aten.{name}" for name in names.split()]


def rule(names, **flags):
    def added(apply):
        for name in names_of(names):
            assert name not in RULES and name not in REFUSED, name
            RULES[name] = Rule(apply, **flags)
        return apply
    return added


def refuse(names, why):
    for name in names_of(names):
        assert name not in RULES and name not in REFUSED, name
        REFUSED[name] = why
