#!/usr/bin/env python3
"""device_code.py LIBRARY ARCHITECTURES: checks that every part of the library's device code is there for all architectures.

ARCHITECTURES are those of CMake: "80-real;90-real;120" wants machine code for 8.0, 9.0 and 12.0, and PTX for 12.0 alone.
Reads the fat binaries of the section .nv_fatbin as nvcc writes them; no tool of CUDA's is needed.
"""
import argparse
import collections
import re
import struct
import subprocess
import sys

MAGIC = 0xBA55ED50
PTX, ELF = 1, 2


def section(file, name):
    """The bytes of an ELF section."""
    listed = subprocess.run(["readelf", "-SW", file], check=True, capture_output=True, text=True).stdout
    found = re.search(rf"\s{re.escape(name)}\s+\w+\s+\w+\s+(\w+)\s+(\w+)", listed)
    if not found:
        sys.exit(f"device_code.py: {file} has no section {name}")
    offset, size = (int(text, 16) for text in found.groups())
    with open(file, "rb") as opened:
        opened.seek(offset)
        return opened.read(size)


def fat_binaries(data):
    """For each the list of its entries, (kind, architecture)."""
    at, found = 0, []
    while at + 16 <= len(data):
        magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != MAGIC:  # they are aligned, with zeros between
            at += 8
            continue
        entry, end, entries = at + header, at + header + size, []
        while entry < end:
            kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", data, entry)
            architecture = struct.unpack_from("<I", data, entry + 28)[0]
            entries.append((kind, architecture))
            entry += entry_header + entry_size
        found.append(entries)
        at = end
    return found


def wanted(architectures):
    entries = []
    for word in filter(None, architectures.split(";")):
        number, _, form = word.partition("-")
        if form != "virtual":
            entries.append((ELF, int(number)))
        if form != "real":
            entries.append((PTX, int(number)))
    return entries


def spelled(entries):
    return ", ".join(f"{'PTX' if kind == PTX else 'code'} for {number // 10}.{number % 10}" for kind, number in sorted(entries))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("architectures")
    arguments = parser.parse_args()
    expected = collections.Counter(wanted(arguments.architectures))
    binaries = fat_binaries(section(arguments.library, ".nv_fatbin"))
    parts = [entries for entries in binaries if entries]
    wrong = [entries for entries in parts if collections.Counter(entries) != expected]
    if wrong or not parts:
        sys.exit(f"device_code.py: {len(wrong)} of {len(parts)} parts have other code than {spelled(expected)}: "
                 f"{'; '.join(sorted({spelled(entries) for entries in wrong}))}")
    print(f"{len(parts)} parts, each with {spelled(expected)}")


if __name__ == "__main__":
    main()
