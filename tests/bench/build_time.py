#!/usr/bin/env python3
"""What a fresh build costs: seconds of CPU time, by folder and for the slowest files.

It builds `sconce` as ./dev serve does (preset product, no CUDA) in build/build-time, without ccache, and prints
the table. CPU time depends little on other work of the machine; a build takes about the sum divided by the number of cores.
CMake calls this script as the compiler's launcher: it then runs the compiler and records its CPU time.
"""
import argparse
import collections
import os
import pathlib
import resource
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG = "SCONCE_BUILD_TIMES"


def launch(command):
    status = subprocess.run(command, check=False).returncode
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status == 0 and "-o" in command:
        with open(os.environ[LOG], "a") as log:
            log.write(f"{spent.ru_utime + spent.ru_stime:.2f} {command[command.index('-o') + 1]}\n")
    return status


def room(name):
    """The folder of an object's source, two levels deep, from CMake's FOLDER/CMakeFiles/TARGET.dir/FILE."""
    folder, _, file = name.partition("/CMakeFiles/")
    parts = pathlib.PurePath(folder, file.partition(".dir/")[2]).parts
    return "/".join(parts[:-1][:3 if parts[0] == "src" else 2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=["sconce_program"], help="default: %(default)s")
    parser.add_argument("--jobs", default=str(os.cpu_count()), help="default: %(default)s")
    parser.add_argument("--slowest", type=int, default=20, help="how many files to name (default: %(default)s)")
    arguments = parser.parse_args()

    build = ROOT / "build/build-time"
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    log = build / "times.log"
    subprocess.run(["cmake", "--preset", "product", "-B", build, "-DSCONCE_CUDA=OFF", f"-DCCACHE={__file__}"], cwd=ROOT,
                   stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["ninja", "-C", build, "-j", arguments.jobs, *arguments.targets], check=True,
                   env={**os.environ, LOG: str(log)})

    files = [(float(seconds), name) for seconds, name in (line.split() for line in log.read_text().splitlines())]
    rooms = collections.defaultdict(list)
    for seconds, name in files:
        rooms[room(name)].append(seconds)
    print(f"\n{'seconds':>8} {'files':>6}  folder")
    for name, spent in sorted(rooms.items(), key=lambda item: -sum(item[1])):
        print(f"{sum(spent):8.1f} {len(spent):6}  {name}")
    print(f"{sum(seconds for seconds, _ in files):8.1f} {len(files):6}  all of them\n")
    for seconds, name in sorted(files, reverse=True)[:arguments.slowest]:
        print(f"{seconds:8.1f}  {name}")


if __name__ == "__main__":
    if LOG in os.environ and len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        sys.exit(launch(sys.argv[1:]))
    main()
