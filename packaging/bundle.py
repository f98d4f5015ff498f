#!/usr/bin/env python3
"""bundle.py FOLDER LICENCES FILE... [--beside FILE...] [--sbom BILL NAME VERSION]: makes a portable installation whole.

Copies into FOLDER every library that FILE... and libsconce need, or open when they first need it, beyond what every Linux
system has; each looks for the others beside itself. Puts the copyright file of each one's Debian package into LICENCES,
and the general licences that these name. With --beside, an earlier call with those files has filled FOLDER: only what
FILE... need beyond that is copied. With --sbom, says in a bill of materials what is inside (sbom.py).
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

import sbom

# What libsconce and the program open by name (sconce_lazy_library, SLEEF). LAPACK is the reference implementation:
# OpenBLAS would double the size, and singular values and eigenvalues are what it would speed up.
OPENED = ("libzip.so.4", "libdnnl.so.2", "liblapack.so.3", "libcrypto.so.3", "libssl.so.3", "libsleef.so.3")
# Opened too, but only for requests to other servers, and left to the system: its libcurl knows the system's
# certificates, gets its security updates, and needs dozens of libraries.
FROM_THE_SYSTEM = ("libcurl.so.4", "libexpat.so.1")
PREFERRED = ("/usr/lib/x86_64-linux-gnu/lapack", "/usr/lib/x86_64-linux-gnu/blas")
# manylinux's list of what every system has, and GPU drivers, which come with the GPU.
SYSTEM = re.compile(r"ld-linux-x86-64|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so|libcuda\.so|libsconce")


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def needed(file):
    return re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", file))


def find_library(name):
    for folder in PREFERRED:
        if (library := pathlib.Path(folder, name)).exists():
            return library
    found = re.search(rf"^\s*{re.escape(name)} .*x86-64.* => (\S+)$", output("/sbin/ldconfig", "-p"), re.MULTILINE)
    if not found:
        sys.exit(f"bundle: this machine has no {name}")
    return pathlib.Path(found[1])


def libraries_of(names):
    """Where these libraries are, and all that they need."""
    wanted, origins = list(names), {}
    while wanted:
        name = wanted.pop()
        if name in origins or name in FROM_THE_SYSTEM or SYSTEM.match(name):
            continue
        origins[name] = find_library(name)
        wanted += needed(origins[name])
    return origins


def copy_libraries(folder, files, beside):
    """Returns where each came from."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for file in files for name in needed(file)]
    origins = libraries_of(names if beside else (*OPENED, *names))
    if beside:
        there = libraries_of((*OPENED, *(name for file in beside for name in needed(file))))
        origins = {name: origin for name, origin in origins.items() if name not in there}
    for name, origin in origins.items():
        shutil.copyfile(origin, folder / name)
        output("patchelf", "--set-rpath", "$ORIGIN", folder / name)
    return origins


def copy_licences(folder, origins):
    folder.mkdir(parents=True, exist_ok=True)
    general = set()
    for origin in origins.values():
        package = sbom.package_of(origin)
        text = pathlib.Path("/usr/share/doc", package, "copyright").read_text()
        (folder / f"{package}.txt").write_text(text)
        general |= set(re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", text))
    for name in sorted(general):
        shutil.copyfile(pathlib.Path("/usr/share/common-licenses", name), folder / f"{name}.txt")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("licences", type=pathlib.Path)
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    parser.add_argument("--beside", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--sbom", nargs=3, metavar=("BILL", "NAME", "VERSION"))
    arguments = parser.parse_args()
    origins = copy_libraries(arguments.folder, arguments.files, arguments.beside)
    copy_licences(arguments.licences, origins)
    if arguments.sbom:
        bill, name, version = arguments.sbom
        files = [*arguments.files, *(arguments.folder / file for file in origins)]
        system = {one for file in files for one in needed(file) if SYSTEM.match(one) and not one.startswith("libsconce")}
        sbom.write(pathlib.Path(bill), name, version, origins, [file.name for file in arguments.files], system)


if __name__ == "__main__":
    main()
