#!/usr/bin/env python3
"""Has clang prove that what a mutex guards is touched under that mutex (-Wthread-safety).

Usage: python3 tests/lint/thread_safety.py BUILD

Looks at each C++ file of the product that includes sconce/mutex.h, in however many steps, as
BUILD/compile_commands.json compiles it, alone or with others as one; and first at unguarded.cpp beside this, which is
wrong on purpose: where clang does not say so, the proof is none.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WRONG = ROOT / "tests/lint/unguarded.cpp"
FOLDERS = ("include", "package_format", "src", "server", "examples")
CLANG = ["clang++", "-fsyntax-only", "-fno-color-diagnostics", "-ferror-limit=0", "-Wno-everything", "-Wthread-safety",
         "-Werror=thread-safety"]
# What decides on the meaning of a source; of GCC's other options clang does not know all.
OPTIONS = re.compile(r"-[IDU].|-std=|-m")
PAIRS = ("-isystem", "-iquote", "-I", "-D", "-U")


def includers():
    """Paths of the files that include sconce/mutex.h."""
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cpp")]
    included = {path: set(re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', path.read_text(), re.MULTILINE))
                for path in sources}
    found, names = set(), {"sconce/mutex.h"}
    while True:
        new = {path for path in sources if path not in found and included[path] & names}
        if not new:
            return found
        found |= new
        names |= {str(path.relative_to(ROOT)).removeprefix("include/") for path in new}


def sources_in(path):
    """The sources that a file compiles: itself, or those that CMake put together."""
    if path.parent.name != "Unity":
        return {path}
    return {pathlib.Path(source) for source in re.findall(r'^#include "(.*)"$', path.read_text(), re.MULTILINE)}


def options_of(command):
    words, kept = iter(shlex.split(command)), []
    for word in words:
        if word in PAIRS:
            kept += [word, next(words)]
        elif OPTIONS.match(word):
            kept.append(word)
    return kept


def look(path, options, folder):
    """What clang says; empty if it finds nothing."""
    done = subprocess.run([*CLANG, *options, str(path)], cwd=folder, capture_output=True, text=True)
    return done.stderr or (f"{path}: clang++ ended with {done.returncode}\n" if done.returncode else "")


def look_together(path, sources, options, folder):
    """What clang says of the sources. A group that it does not understand, which one with no mutex can be the cause of, is
    read one by one."""
    said = look(path, options, folder)
    if not said or sources == {path}:
        return said
    return "".join(look(source, options, folder) for source in sorted(sources))


def not_found_out():
    """What is wrong with the check itself: lines of unguarded.cpp that are wrong and pass, or are right and do not."""
    wrong = {number for number, line in enumerate(WRONG.read_text().splitlines(), 1) if "// wrong" in line}
    said = look(WRONG, ["-std=c++20", f"-I{ROOT / 'include'}"], ROOT)
    found = {int(number) for number in re.findall(r"unguarded\.cpp:(\d+):\d+: error: .*\[-Werror,-Wthread-safety", said)}
    if wrong and found == wrong:
        return ""
    return f"lint: {WRONG.relative_to(ROOT)}: wrong in lines {sorted(wrong)}, found in lines {sorted(found)}\n{said}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    said = not_found_out()
    if said:
        sys.exit(said)
    commands = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
    known = includers()
    jobs, looked_at = {}, set()
    for entry in commands:
        path = pathlib.Path(entry["file"])
        if found := sources_in(path) & known:
            jobs[path] = found, options_of(entry["command"]), entry["directory"]
            looked_at |= found
    if not jobs:
        sys.exit("lint: no file that includes sconce/mutex.h is compiled")
    print(f"lint: clang++ -Wthread-safety looks at {len(looked_at)} files", flush=True)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        results = list(threads.map(lambda job: look_together(job[0], *job[1]), jobs.items()))
    for result in results:
        sys.stdout.write(result)
    sys.exit(any(results))


if __name__ == "__main__":
    main()
