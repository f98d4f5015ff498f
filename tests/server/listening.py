"""Where a started `sconce serve` listens."""
import contextlib
import re
import threading


def read_rest(process, lines):
    """Until the server ends, or the test closes its end of the pipe."""
    with contextlib.suppress(ValueError):
        lines.extend(process.stderr)


def ports_of(process, lines=None):
    """The ports of a server by listener, once it is ready: its log, on standard error, names them.

    `lines` gets the log, also what is written later, which is read so that the server never waits for a reader. RuntimeError
    with the log if the server ends first.
    """
    lines = [] if lines is None else lines
    ports = {}
    for line in process.stderr:
        lines.append(line)
        if found := re.search(r"(inference|metrics|administration) on https?://\S+:(\d+)", line):
            ports[found.group(1)] = int(found.group(2))
        if line.endswith(" ready\n"):
            threading.Thread(target=read_rest, args=(process, lines), daemon=True).start()
            return ports
    raise RuntimeError("the server does not start:\n" + "".join(lines))
