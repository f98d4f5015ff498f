#!/usr/bin/env python3
"""Random cases for every operator against ATen: run.py FOLDER [--device cuda] [--draws N] [--seed S] [--family F]

FOLDER has libsconce.so.0 with all names (BUILD/testing; for CUDA libsconcecu.so.0 beside it); needs torch. Each family in families/ draws calls around the limits at
which its kernels change algorithm. A draw is named FAMILY:SEED:NUMBER and depends on its name alone; --draw NAME repeats
one. SCONCE_CPU_ISA=avx2 limits kernels to AVX2, --threads sets their number. Ends with a table; exits with 1 if a draw failed."""
import argparse
import collections
import importlib
import importlib.util
import multiprocessing
import os
import pathlib
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "families")]
CHUNK = 50  # draws of one family that a process takes at once


def families(device):
    names = sorted(p.stem for p in (HERE / "families").glob("*.py"))
    found = []
    for name in names:
        module = importlib.import_module(name)
        if device in getattr(module, "DEVICES", ("cpu",)):
            found.append(name)
    return found


def start(options):
    """Before torch is imported: fills our fresh memory with a pattern, so that unwritten results show."""
    os.environ.setdefault("MALLOC_PERTURB_", "165")
    os.environ["OMP_NUM_THREADS"] = str(options.threads)


def one(name, device):
    """(label, what is wrong or None) of the draw with this name; no label if nothing was drawn."""
    import abi
    import case
    import draw
    family = importlib.import_module(name.split(":")[0])
    label = name
    try:
        drawn = family.draw(draw.Draw(name, device))
        if drawn is None:
            return None, None
        label = drawn.label
        return label, case.judge(drawn)
    except abi.Missing:  # missing in the installed torch
        return None, None
    except Exception as error:  # noqa: BLE001  (the next draw must run; a broken generator is a failure of its own)
        if type(error).__name__ == "OutOfMemoryError":
            return None, None
        return label, "generator: " + "".join(traceback.format_exception_only(error)).strip()[:300] + " @ " + " < ".join(
            f"{pathlib.Path(f.filename).name}:{f.lineno}" for f in reversed(traceback.extract_tb(error.__traceback__)[-4:]))


def device_is_lost():
    """Whether the device's error persists, so that no later call of this process would mean anything."""
    import torch
    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda").item()
        return False
    except Exception:  # noqa: BLE001
        return True


def open_all(options):
    start(options)
    import torch
    torch.set_num_threads(1)
    if options.device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = True  # the defaults, as in ours
    import abi
    abi.open_libraries(str(options.folder), options.device)


def work(options, first, jobs, results, running):
    """Chunk `first`, which a previous process did not finish, then the chunks by number."""
    open_all(options)
    chunk = first
    while True:
        if chunk is None:
            with jobs.get_lock():
                number = jobs.value
                jobs.value += 1
            if number >= len(options.chunks):
                return
            chunk = options.chunks[number]
        family, begin, count = chunk
        for i in range(begin, begin + count):
            name = f"{family}:{options.seed}:{i}"
            running.value = name.encode()
            label, wrong = one(name, options.device)
            lost = wrong and options.device == "cuda" and device_is_lost()
            results.put((name, family, label, wrong and wrong + (" (the device's error stays: the process ends)" if lost else "")))
            if lost:
                running.value = b"=" + name.encode()
                os._exit(4)
        running.value = b""
        chunk = None


class Worker:
    def __init__(self, context, options, first, jobs, results):
        self.running = context.Array("c", 200)
        self.name, self.since = "", time.time()
        self.process = context.Process(target=work, args=(options, first, jobs, results, self.running))
        self.process.start()

    def hangs(self, limit):
        """Whether one draw has taken this long."""
        name = self.running.value
        if name != self.name:
            self.name, self.since = name, time.time()
        return bool(name) and time.time() - self.since > limit


def campaign(options):
    context = multiprocessing.get_context("spawn")
    per_family = max(1, options.draws // len(options.families))
    options.chunks = [(f, i, min(CHUNK, per_family - i)) for i in range(0, per_family, CHUNK) for f in options.families]
    # SimpleQueue has no thread: a process that dies during a draw leaves no lock held.
    jobs, results = context.Value("i", 0), context.SimpleQueue()
    seen, bad, left = collections.Counter(), collections.defaultdict(list), collections.Counter()
    workers = [Worker(context, options, None, jobs, results) for _ in range(options.jobs)]
    begun = said = time.time()
    stopped, started = False, True

    def take(name, family, label, wrong):
        if label is None:
            left[family] += 1
            return
        seen[family] += 1
        if wrong:
            bad[family].append((name, label, wrong))
            if len(bad[family]) <= options.show:
                print(f"FAIL {name}  {label} - {wrong}", flush=True)

    while workers or not results.empty():
        if results.empty():
            time.sleep(0.05)
        while not results.empty():
            take(*results.get())
        for worker in list(workers):
            if worker.process.is_alive():
                if worker.hangs(options.hang):
                    worker.process.kill()
                continue
            while not results.empty():
                take(*results.get())
            workers.remove(worker)
            name = worker.running.value.decode()
            if worker.process.exitcode == 0 or not name:
                if worker.process.exitcode != 0:
                    print(f"a process ended with {worker.process.exitcode} before it drew anything", flush=True)
                    started = False
                continue
            told, name = name.startswith("="), name.lstrip("=")
            family, number = name.split(":")[0], int(name.split(":")[2])
            if not told:
                take(name, family, name, f"ended the process with {worker.process.exitcode}")
            end = min((number // CHUNK + 1) * CHUNK, per_family)
            if not stopped:
                rest = (family, number + 1, end - number - 1) if number + 1 < end else None
                workers.append(Worker(context, options, rest, jobs, results))
        if time.time() - said > 60:
            said = time.time()
            print(f"  {sum(seen.values())} draws in {said - begun:.0f} s, {sum(map(len, bad.values()))} failed", flush=True)
        if options.seconds and not stopped and time.time() - begun > options.seconds:
            stopped = True
            with jobs.get_lock():
                jobs.value = len(options.chunks) + 10**6
    print(f"\n{'family':24}{'draws':>8}{'failed':>8}")
    for family in options.families:
        print(f"{family:24}{seen[family]:8}{len(bad[family]):8}")
    failed = sum(map(len, bad.values()))
    print(f"seed {options.seed}, {options.device}, {os.environ.get('SCONCE_CPU_ISA', 'widest')} instructions, "
          f"{options.threads} threads, {time.time() - begun:.0f} s, {sum(left.values())} names drew nothing")
    print(f"{sum(seen.values()) - failed} passed, {failed} failed")
    return 0 if started and not failed else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--family", action="append", default=[], dest="families", help="only this one; again for more")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--draws", type=int, default=10000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--hang", type=int, default=300, help="seconds after which a draw has hung")
    parser.add_argument("--show", type=int, default=25, help="failures of a family that are printed")
    parser.add_argument("--seconds", type=int, default=0, help="start no further draws after so long")
    parser.add_argument("--draw", action="append", default=[], help="repeat this draw")
    options = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("run.py: this Python has no torch: pip install torch==2.15.0 numpy")
    start(options)
    if options.draw:
        open_all(options)
        wrong = [one(name, options.device) for name in options.draw]
        for name, (label, text) in zip(options.draw, wrong):
            print(f"{'FAIL' if text else 'ok  '} {name}  {label} - {text}")
        return int(any(text for _, text in wrong))
    options.families = options.families or families(options.device)
    return campaign(options)


if __name__ == "__main__":
    sys.exit(main())
