#!/usr/bin/env python3
"""Has the compiler read sources in the way in which the build at hand does not compile them; it makes no code.

A build that compiles each source alone does not see what can go wrong in the preset product, which compiles several as
one (SCONCE_TOGETHER): two sources of one group that have the same name in their anonymous namespaces, or a macro that
reaches the next source. A build that compiles them as one does not see that a source lacks an include that the one
before it has.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WITH_VALUE = ("-o", "-c")


def look(entry):
    """What the compiler says; empty if it finds nothing."""
    words, command = iter(shlex.split(entry["command"])), []
    for word in words:
        if word in WITH_VALUE:
            next(words)
        else:
            command.append(word)
    # Where nobody has precompiled the headers of this folder, they are read.
    done = subprocess.run([*command, "-fsyntax-only", "-Wno-invalid-pch", entry["file"]], cwd=entry["directory"],
                          capture_output=True, text=True)
    return done.stderr or f"{entry['file']}: the compiler ended with {done.returncode}\n" if done.returncode else ""


def entries_of(folder):
    return json.loads((folder / "compile_commands.json").read_text())


def groups(folder):
    """The groups of sources of the preset product, which is configured in the folder."""
    subprocess.run(["cmake", "--preset", "product", "-B", folder, "-DSCONCE_CUDA=OFF"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    found = [entry for entry in entries_of(folder) if "/Unity/" in entry["file"]]
    if not found:
        sys.exit("lint: the preset product compiles no sources together")
    print(f"lint: the compiler reads {len(found)} groups of sources", flush=True)
    return found


def single(folder, sources):
    """The named sources, as the folder's compile_commands.json compiles each of them."""
    wanted = {str(ROOT / source) for source in sources}
    found = {entry["file"]: entry for entry in entries_of(folder) if entry["file"] in wanted}
    if found.keys() != wanted:
        sys.exit(f"lint: {folder} does not compile {', '.join(sorted(wanted - found.keys()))} alone")
    print(f"lint: the compiler reads {len(found)} sources alone", flush=True)
    return list(found.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=("together", "alone"))
    parser.add_argument("folder", type=pathlib.Path, help="together: for the configuration; alone: a configured one")
    parser.add_argument("sources", nargs="*", help="relative to the checkout; for alone")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    entries = groups(folder) if arguments.way == "together" else single(folder, arguments.sources)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        results = list(threads.map(look, entries))
    for result in results:
        sys.stdout.write(result)
    sys.exit(any(results))


if __name__ == "__main__":
    main()
