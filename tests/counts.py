#!/usr/bin/env python3
"""Counts what ./dev test ran: prints "PASSED FAILED", then a line for each failure.

    tests/counts.py ctest FILE FOLDER [AGAIN FOLDER]   ctest's JUnit file; FOLDER has NAME.xml of each program that told
                                                       its cases
    tests/counts.py pytest FILE [AGAIN]                pytest's JUnit file

A program that told no cases is one case. One that failed although none of its cases did (a leak at exit) is one failure
more; so is one that told of no case at all. Where FILE is missing, broken or empty, nothing ran: one failure.

AGAIN is the file of a second run of what failed. A failure whose test (of ctest: whose whole program) passed there counts
as passed, and gets a line "unsteady: NAME".
"""
import pathlib
import sys
import xml.etree.ElementTree as xml


def cases_of(path):
    """(class, name, how it ended) of each case: "passed", "failed" or "skipped". None where the file is missing or broken."""
    try:
        root = xml.parse(path).getroot()
    except (OSError, xml.ParseError):
        return None
    return [(case.get("classname"), case.get("name"), ending(case)) for case in root.iter("testcase")]


def ending(case):
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    skipped = case.find("skipped")
    if skipped is None and case.get("status", "run") == "run":
        return "passed"
    # ctest says "notrun" of programs that it did not find, too, and then not why they were to be skipped.
    if case.get("status") == "notrun" and (skipped is None or not skipped.get("message", "").startswith("SKIP_")):
        return "failed"
    return "skipped"


def read_ctest(file, folder):
    """(program, what is said of it, how it ended) of each case."""
    read = []
    for _, program, ended in cases_of(file) or []:
        report = pathlib.Path(folder, f"{program}.xml")
        if ended == "skipped":
            continue
        if not report.exists():
            read.append((program, program, ended))
            continue
        cases = cases_of(report) or []
        read += [(program, f"{program}: {case}", how) for _, case, how in cases]
        if not cases:
            read.append((program, f"{program}: it told of no case", "failed"))
        elif ended == "failed" and all(how != "failed" for _, _, how in cases):
            read.append((program, f"{program}: it failed, none of its cases did", "failed"))
    return read


def read_pytest(file):
    """(test, what is said of it, how it ended) of each case."""
    return [((group, name), name, how) for group, name, how in cases_of(file) or []]


def main(arguments):
    readers = {"ctest": (read_ctest, 2), "pytest": (read_pytest, 1)}
    read, width = readers.get(arguments[0] if arguments else "", (None, 0))
    runs = arguments[1:]
    if read is None or len(runs) not in (width, 2 * width):
        sys.exit(__doc__)
    first = read(*runs[:width]) or [(None, f"{runs[0]}: nothing ran", "failed")]
    again = read(*runs[width:]) if len(runs) > width else []
    bad_again = {group for group, _, how in again if how == "failed"}
    good_again = {group for group, _, how in again if how == "passed"} - bad_again
    failures = [(group, name) for group, name, how in first if how == "failed"]
    unsteady = [name for group, name in failures if group in good_again]
    failed = [name for group, name in failures if group not in good_again]
    print(sum(how == "passed" for _, _, how in first) + len(unsteady), len(failed))
    print("".join(f"{name}\n" for name in failed) + "".join(f"unsteady: {name}\n" for name in unsteady), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
