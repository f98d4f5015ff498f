"""How notebooks show models."""
from html import escape

_MOST_ROWS = 200


def _table(heads, rows):
    rows = list(rows)
    left_out = len(rows) - _MOST_ROWS
    text = "<table><thead><tr>" + "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr></thead><tbody>"
    for row in rows[:_MOST_ROWS]:
        text += "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>"
    text += "</tbody></table>"
    return text + (f"<p>and {left_out} more</p>" if left_out > 0 else "")


def signature(shown):
    rows = [("input", tensor.path, tensor) for tensor in shown.inputs]
    rows += [("output", tensor.path, tensor) for tensor in shown.outputs]
    return _table(("", "tensor", "type"), rows)


def constants(shown):
    return _table(("constant", "dtype", "shape", "type", "bytes"),
                  ((c.name, c.dtype or "unknown", list(c.shape), c.type, f"{c.nbytes:,}") for c in shown))


def model(name, shown_signature, shown_constants, facts):
    shown_constants = list(shown_constants)
    facts = ", ".join(f"{escape(key)}: {escape(str(value))}" for key, value in facts.items())
    return (f"<div><b>{escape(name)}</b> <code>{escape(str(shown_signature))}</code><br>{facts}"
            f"{signature(shown_signature)}<details><summary>{len(shown_constants)} constants</summary>"
            f"{constants(shown_constants)}</details></div>")
