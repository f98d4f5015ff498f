"""Lines of the user's code at the nodes of a graph."""
import contextlib
import os
import re
import unittest.mock

FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)(?:\n[ \t]+(?!File ")(\S[^\n]*))?')
LONGEST = 160  # characters of a line of code
FORWARD = re.compile(r'\s*File "[^"]+", line \d+, in forward\b')
OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@contextlib.contextmanager
def of_functions(torch):
    """torch.export records no more of a call's frames than those of functions called forward(). Within this context it records
    all of them from the first forward() on, so that lines in functions that forward() calls are found."""
    tracer = torch.fx.proxy.TracerBase
    original = getattr(tracer, "_filter_traceback_frames", None)
    if original is None or not hasattr(tracer, "_record_forward_stack_traces_only"):
        yield
        return

    def all_frames(self, frames):
        with unittest.mock.patch.object(self, "_record_forward_stack_traces_only", False):
            return original(self, frames)
    with unittest.mock.patch.object(tracer, "_filter_traceback_frames", all_frames):
        yield


def shorten(graph_module):
    """Leaves what torch.export would have recorded, which the compiler may write into the package."""
    for module in graph_module.modules():
        for node in module.graph.nodes if hasattr(module, "graph") else ():
            if node.meta.get("stack_trace"):
                frames = re.split(r'(?m)^(?=\s*File ")', node.meta["stack_trace"])
                node.meta["stack_trace"] = "".join(frame for frame in frames if FORWARD.match(frame)).strip()


def place_of(torch, node):
    """The last line outside torch that called the operator, "model.py:12 in forward: x.cumsum(0)"; "" if nothing recorded it.
    The file is named without its folder."""
    root = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
    frames = FRAME.findall(node.meta.get("stack_trace") or "") if node is not None else []
    own = [frame for frame in frames if not frame[0].startswith(("<", root, OWN))]
    if not own:
        return ""
    file, line, function, code = own[-1]
    return f"{os.path.basename(file)}:{line} in {function}" + (f": {code.strip()[:LONGEST]}" if code.strip() else "")
