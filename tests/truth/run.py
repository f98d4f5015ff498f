#!/usr/bin/env python3
"""Random draws of every operator against ATen: run.py FOLDER [--device cuda] [--draws N] [--seed S] [--family F]

FOLDER has libsconce.so.0 (and libsconcecu.so.0); needs torch. Each family in families/ draws calls on both sides of the limits
at which its kernels choose another way. A draw is named FAMILY:SEED:NUMBER and made from its name alone:
--draw NAME repeats one. SCONCE_CPU_ISA=avx2 keeps kernels to AVX2, --threads gives their number. Ends with a table, and 1 where a draw failed.
"""
import argparse
import collections
import importlib
import multiprocessing
import multiprocessing.connection
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
    """Before torch is imported: fresh memory of ours holds what nobody expects, so that what is not written shows."""
    os.environ.setdefault("MALLOC_PERTURB_", "165")
    os.environ["OMP_NUM_THREADS"] = str(options.threads)


def one(name, device):
    """(label, what is wrong or None) of the draw with this name."""
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
    except Exception as error:  # noqa: BLE001  (the next draw must run; a broken generator is a failure of its own)
        if type(error).__name__ == "OutOfMemoryError":
            return label, None
        return label, "generator: " + "".join(traceback.format_exception_only(error)).strip()[:300] + " @ " + " < ".join(
            f"{pathlib.Path(f.filename).name}:{f.lineno}" for f in reversed(traceback.extract_tb(error.__traceback__)[-4:]))


def work(options, jobs, results, running):
    start(options)
    import torch
    torch.set_num_threads(1)
    import abi
    abi.open_libraries(str(options.folder), options.device)
    while True:
        with jobs.get_lock():
            number = jobs.value
            jobs.value += 1
        if number >= len(options.chunks):
            return
        family, first, count = options.chunks[number]
        for i in range(first, first + count):
            name = f"{family}:{options.seed}:{i}"
            running.value = name.encode()
            label, wrong = one(name, options.device)
            results.send((name, family, label, wrong))
        running.value = b""


def campaign(options):
    context = multiprocessing.get_context("spawn")
    per_family = max(1, options.draws // len(options.families))
    options.chunks = [(f, i, min(CHUNK, per_family - i)) for i in range(0, per_family, CHUNK) for f in options.families]
    jobs = context.Value("i", 0)
    seen, bad, left = collections.Counter(), collections.defaultdict(list), collections.Counter()
    workers = []

    def add():
        # A pipe for each: a process that crashes leaves no lock behind that another one waits for.
        running, (results, sender) = context.Array("c", 200), context.Pipe(duplex=False)
        process = context.Process(target=work, args=(options, jobs, sender, running))
        process.start()
        sender.close()
        workers.append((process, running, results))

    for _ in range(options.jobs):
        add()
    begun, said = time.time(), time.time()

    def take(name, family, label, wrong):
        if label is None:
            left[family] += 1
            return
        seen[family] += 1
        if wrong:
            bad[family].append((name, label, wrong))
            if len(bad[family]) <= options.show:
                print(f"FAIL {name}  {label} - {wrong}", flush=True)

    while workers:
        for process, running, results in list(workers):
            ended = not process.is_alive()  # before the last results are taken
            if results not in multiprocessing.connection.wait([r for _, _, r in workers], 0.2) and not ended:
                continue
            try:
                while results.poll():
                    take(*results.recv())
            except (EOFError, OSError):
                pass
            if not ended:
                continue
            workers.remove((process, running, results))
            name = running.value.decode()
            if process.exitcode != 0 and name:
                take(name, name.split(":")[0], name, f"ended the process with {process.exitcode}")
                # The rest of its chunk.
                family, number = name.split(":")[0], int(name.split(":")[2])
                end = min((number // CHUNK + 1) * CHUNK, per_family)
                if number + 1 < end:
                    with jobs.get_lock():
                        options.chunks.append((family, number + 1, end - number - 1))
                add()
        if time.time() - said > 60:
            said = time.time()
            print(f"  {sum(seen.values())} draws in {said - begun:.0f} s, {sum(map(len, bad.values()))} failed", flush=True)
        if options.seconds and time.time() - begun > options.seconds:
            with jobs.get_lock():
                jobs.value = len(options.chunks) + 10**6
            options.seconds = 0
    print(f"\n{'family':24}{'draws':>8}{'failed':>8}")
    for family in options.families:
        print(f"{family:24}{seen[family]:8}{len(bad[family]):8}")
    failed = sum(map(len, bad.values()))
    print(f"seed {options.seed}, {options.device}, {os.environ.get('SCONCE_CPU_ISA', 'widest')} instructions, "
          f"{options.threads} threads, {time.time() - begun:.0f} s, {sum(left.values())} names drew nothing")
    print(f"{sum(seen.values()) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--family", action="append", default=[], dest="families", help="only this one; again for more")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--draws", type=int, default=10000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--show", type=int, default=25, help="failures of a family that are printed")
    parser.add_argument("--seconds", type=int, default=0, help="start no further draws after so long")
    parser.add_argument("--draw", action="append", default=[], help="repeat this draw")
    options = parser.parse_args()
    start(options)
    if options.draw:
        import abi
        import torch
        torch.set_num_threads(1)
        abi.open_libraries(str(options.folder), options.device)
        wrong = [one(name, options.device) for name in options.draw]
        for name, (label, text) in zip(options.draw, wrong):
            print(f"{'FAIL' if text else 'ok  '} {name}  {label} - {text}")
        return int(any(text for _, text in wrong))
    options.families = options.families or families(options.device)
    return campaign(options)


if __name__ == "__main__":
    sys.exit(main())
