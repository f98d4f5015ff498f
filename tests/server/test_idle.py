"""A server that nobody asks does nothing, once the memory of its last runs was given back."""
import email.utils
import http.client
import os
import pathlib
import re
import shutil
import time

from serving import ROOT, Server, until

DIGITS = ROOT / "examples/digits"


def wake_ups(process):
    """Of each thread, by its number. A thread that ends while this function reads is left out."""
    counts = {}
    for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
        try:
            status = (task / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        counts[task.name] = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)[1])
    return counts


def rests(server, seconds):
    before = wake_ups(server.process)
    time.sleep(seconds)
    return wake_ups(server.process) == before


def test_an_idle_server_is_not_woken(tmp_path):
    """A thread that polls every twelve seconds or more often fails this. What a request left to be done, among it memory to
    give back after ten and twenty seconds, has a minute and a half."""
    request = (DIGITS / "request.json").read_bytes()
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(DIGITS / "digits.pt2", folder)
    # The kernel tells of changes in the folder, so nobody looks at it every 20 ms.
    with Server(folder, flags=["--header-timeout", "500ms", "--watch", "20ms"]) as server:
        for _ in range(2):
            until(lambda: rests(server, 12), 90, why=lambda: f"it is woken: {wake_ups(server.process)}\n" + "".join(server.log))
            asked = time.time()
            answer = server.request("POST", "/v1/models/digits:call", request)
            assert answer.status == 200
            # The thread that rested has no old time. A date has whole seconds, of a clock that may be some ms behind.
            assert email.utils.parsedate_to_datetime(answer.headers["Date"]).timestamp() > asked - 1.5
            # Nor is a deadline lost that begins after a rest.
            begun = time.time()
            assert b" 408 " in server.raw(b"GET / HTTP/1.1\r\nHost: a\r\n")
            assert time.time() - begun < 5
            shutil.copy(DIGITS / "digits.pt2", folder / "other.pt2")
            until(lambda: "other" in server.index())
            os.remove(folder / "other.pt2")
            until(lambda: "other" not in server.index())
            # A console that was open leaves nothing behind.
            console = http.client.HTTPConnection("127.0.0.1", server.admin_port, timeout=30)
            console.request("GET", "/v2/admin/live")
            assert console.getresponse().readline().strip()
            console.close()
