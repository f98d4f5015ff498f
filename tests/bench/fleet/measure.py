"""Service times of the digits example, measured on this machine: what simulate.py --measure writes into measured.json."""
import contextlib
import http.client
import os
import pathlib
import re
import statistics
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
DIGITS = ROOT / "examples/digits"
REQUEST = (DIGITS / "request.json").read_bytes()


@contextlib.contextmanager
def served(program, *flags):
    """A server with ports of its own: the process, its ports, and the seconds until it was ready."""
    begin = time.perf_counter()
    process = subprocess.Popen([program, "serve", f"digits={DIGITS / 'digits.pt2'}", "--http", "127.0.0.1:0", "--metrics", "off",
                                "--admin", "127.0.0.1:0", "--drain-grace", "0", "--weights-peers", "127.0.0.1", *flags],
                               stderr=subprocess.PIPE, text=True)
    try:
        ports = {}
        for line in process.stderr:
            if found := re.search(r"(inference|administration) on http://\S+:(\d+)", line):
                ports[found[1]] = int(found[2])
            if line.endswith(" ready\n"):
                break
        else:
            raise RuntimeError(f"{program} does not start")
        took = time.perf_counter() - begin
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield process, ports, took
    finally:
        process.terminate()
        process.wait()


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def request_cost(program, connections=8, seconds=5.0):
    """Processor time of the server for a request, whoever asks and however fast."""
    with served(program) as (process, ports, _):
        counts, ended = [0] * connections, time.perf_counter() + seconds

        def ask(number):
            connection = http.client.HTTPConnection("127.0.0.1", ports["inference"], timeout=30)
            while time.perf_counter() < ended:
                connection.request("POST", "/v1/models/digits:call", REQUEST)
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    raise RuntimeError(f"status {answer.status}")
                counts[number] += 1

        before = processor_seconds(process)
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return (processor_seconds(process) - before) / sum(counts)


def start(program, rounds=5):
    taken = []
    for _ in range(rounds):
        with served(program) as (_, _, took):
            taken.append(took)
    return statistics.median(taken)


def push_times(program, servers, relay, rounds=5):
    """Median seconds from the start of `sconce weights push` until all have staged, and from there to its end."""
    with contextlib.ExitStack() as stack:
        to = ",".join(f"http://127.0.0.1:{stack.enter_context(served(program, '--io-threads', '1'))[1]['administration']}"
                      for _ in range(servers))
        staged, committed = [], []
        for number in range(rounds):
            command = [program, "weights", "push", DIGITS / "digits-v2.safetensors", "--model", "digits", "--label", f"r{number}",
                       "--to", to]
            begin = time.perf_counter()
            process = subprocess.Popen(command + ["--relay"] * relay, stdout=subprocess.PIPE, text=True)
            seen, last = 0, begin
            for line in process.stdout:
                if line.endswith(": staged\n"):
                    seen, last = seen + 1, time.perf_counter()
            if process.wait() != 0 or seen != servers:
                raise RuntimeError(f"a push to {servers} servers failed")
            staged.append(last - begin)
            committed.append(time.perf_counter() - last)
        return statistics.median(staged), statistics.median(committed)


def push_costs(program, few=4, many=24):
    """What each server more adds to a push of small weights: to staging one by one, by relay, and to the commit."""
    (few_direct, few_commit), (many_direct, many_commit) = (push_times(program, n, False) for n in (few, many))
    few_relay, many_relay = (push_times(program, n, True)[0] for n in (few, many))
    each = many - few
    return {"stage_each_s": max(0.0, many_direct - few_direct) / each, "hop_s": max(0.0, many_relay - few_relay) / each,
            "commit_each_s": max(0.0, many_commit - few_commit) / each}


def measure(program):
    return {"request_s": request_cost(program), "start_s": start(program), "push": push_costs(program)}
