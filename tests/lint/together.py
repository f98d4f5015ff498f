#!/usr/bin/env python3
"""Has the compiler read the sources that the preset product compiles as one (SCONCE_TOGETHER); it makes no code.

The other presets compile each source alone, so they do not see what can go wrong: two sources of one group that have
the same name in their anonymous namespaces, or a macro that reaches the next source.
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
    # Nobody has precompiled the headers in this folder: they are read.
    done = subprocess.run([*command, "-fsyntax-only", "-Wno-invalid-pch", entry["file"]], cwd=entry["directory"],
                          capture_output=True, text=True)
    return done.stderr or f"{entry['file']}: the compiler ended with {done.returncode}\n" if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="for the configuration")
    folder = parser.parse_args().folder.absolute()
    subprocess.run(["cmake", "--preset", "product", "-B", folder, "-DSCONCE_CUDA=OFF"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    groups = [entry for entry in json.loads((folder / "compile_commands.json").read_text())
              if "/Unity/" in entry["file"]]
    if not groups:
        sys.exit("lint: the preset product compiles no sources together")
    print(f"lint: the compiler reads {len(groups)} groups of sources", flush=True)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        results = list(threads.map(look, groups))
    for result in results:
        sys.stdout.write(result)
    sys.exit(any(results))


if __name__ == "__main__":
    main()
