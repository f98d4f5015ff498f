#!/usr/bin/env python3
"""Counts what ./dev test ran: prints "PASSED FAILED", then a line for each failure.

    tests/counts.py ctest FILE FOLDER   ctest's JUnit file; FOLDER has NAME.xml of each program that told its cases
    tests/counts.py pytest FILE         pytest's JUnit file

A program that told no cases is one case. One that failed although none of its cases did (a leak at exit) is one failure
more; so is one that told of no case at all. Where FILE is missing, broken or empty, nothing ran: one failure.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml


def cases_of(path):
    """(name, how it ended) of each case: "passed", "failed" or "skipped". None where the file is missing or broken."""
    try:
        root = xml.parse(path).getroot()
    except (OSError, xml.ParseError):
        return None
    return [(case.get("name"), ending(case)) for case in root.iter("testcase")]


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


def count_ctest(file, folder):
    """(passed, names of the failures)"""
    programs = cases_of(file)
    if not programs:
        return 0, [f"{file}: nothing ran"]
    passed, failures = 0, []
    for name, ended in programs:
        report = pathlib.Path(folder, f"{name}.xml")
        if ended == "skipped":
            continue
        if not report.exists():
            passed += ended == "passed"
            failures += [name] * (ended == "failed")
            continue
        cases = cases_of(report) or []
        passed += sum(how == "passed" for _, how in cases)
        bad = [f"{name}: {case}" for case, how in cases if how == "failed"]
        if not cases:
            bad = [f"{name}: it told of no case"]
        elif ended == "failed" and not bad:
            bad = [f"{name}: it failed, none of its cases did"]
        failures += bad
    return passed, failures


def count_pytest(file):
    cases = cases_of(file)
    if not cases:
        return 0, [f"{file}: nothing ran"]
    return sum(how == "passed" for _, how in cases), [name for name, how in cases if how == "failed"]


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "ctest":
        passed, failures = count_ctest(*arguments[1:])
    elif len(arguments) == 2 and arguments[0] == "pytest":
        passed, failures = count_pytest(arguments[1])
    else:
        sys.exit(__doc__)
    print(passed, len(failures))
    print("".join(f"{name}\n" for name in failures), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
