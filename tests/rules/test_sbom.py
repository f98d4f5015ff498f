"""Bills of materials say what is really inside: compared with the files of a bundle and with dpkg."""
import importlib.util
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"


def output(*command, **more):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, **more).stdout


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """The folder of libraries and the bill that bundle.py makes for a program of this machine."""
    for program in ("patchelf", "dpkg-query", "readelf"):
        if not shutil.which(program):
            pytest.skip(f"no {program}")
    folder = tmp_path_factory.mktemp("bundle")
    bill = folder / "share/sconce.cdx.json"
    done = subprocess.run([sys.executable, "-B", PACKAGING / "bundle.py", folder / "lib", folder / "licences",
                           shutil.which("openssl") or "/bin/sh", "--sbom", bill, "sconce", "1.2.3"],
                          capture_output=True, text=True)
    if "this machine has no" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return folder / "lib", json.loads(bill.read_text())


def properties(component, name):
    return [p["value"] for p in component.get("properties", []) if p["name"] == name]


def test_each_file_is_listed_once(bundle):
    folder, bill = bundle
    listed = [file for one in bill["components"] for file in properties(one, "sconce:file")]
    assert sorted(listed) == sorted(file.name for file in folder.iterdir())


def test_versions_are_those_of_the_packages(bundle):
    _, bill = bundle
    assert bill["metadata"]["component"]["version"] == "1.2.3"
    named = [one for one in bill["components"] if one.get("scope") != "excluded"]
    assert len({one["bom-ref"] for one in bill["components"]}) == len(bill["components"])
    for one in named:
        assert one["version"] in output("dpkg-query", "-W", "-f", "${Version}\n", one["name"]).split()
        assert one["purl"].startswith("pkg:deb/") and "+" not in one["purl"]
    assert {"libfmt-dev", "libspdlog-dev"} <= {one["name"] for one in named if properties(one, "sconce:compiled-in")}


def test_what_the_system_must_have(bundle):
    folder, bill = bundle
    system = {one["name"] for one in bill["components"] if one.get("scope") == "excluded"}
    assert "libc.so.6" in system and not system & {file.name for file in folder.iterdir()}


@pytest.fixture(scope="module")
def sbom():
    spec = importlib.util.spec_from_file_location("sbom", PACKAGING / "sbom.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_the_module_of_the_wheel_is_made_of(sbom, tmp_path):
    bill = tmp_path / "sconce.cdx.json"
    sbom.write(bill, "sconce", "1", {}, ["sconce"], set())
    sbom.add_python_package(bill, ROOT / "python/requirements-build.txt", "nanobind")
    added = json.loads(bill.read_text())["components"][-1]
    assert f"nanobind=={added['version']}" in (ROOT / "python/requirements-build.txt").read_text()


def test_compiled_in_are_the_headers_that_the_sources_include(sbom):
    included = set()
    for folder in ("src", "server", "package_format", "include", "python"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".h", ".cpp", ".cu", ".cuh"):
                included |= {line.split("<")[1].split("/")[0] for line in file.read_text(errors="replace").splitlines()
                             if line.startswith("#include <") and "/" in line.split("<")[1].split(">")[0]}
    known = {pattern.split("/")[1] if "*" in pattern else pattern.split("/")[0] for pattern in sbom.COMPILED_IN}
    # Of the system; libraries that are linked, and so found as files, or opened where the system has them (curl); CUDA's own;
    # nanobind, which wheel.py adds, and NumPy's C API beside it.
    elsewhere = {"curl", "sys", "linux", "arpa", "net", "netinet", "gnu", "sanitizer", "openssl", "google", "grpc", "grpcpp",
                 "cub", "thrust", "cuda", "nanobind", "numpy"}
    assert included - elsewhere <= known, included - elsewhere - known


def test_the_bill_of_an_image(tmp_path):
    query = tmp_path / "dpkg-query"
    query.write_text("#!/bin/sh\ncase $* in *sconce) printf 1.2.3 ;; *) printf '%s\\n' "
                     "'installed libc6 2.36-9+deb12u9 amd64' 'config-files gone 1 amd64' 'installed sconce 1.2.3 amd64' ;; esac\n")
    query.chmod(query.stat().st_mode | stat.S_IXUSR)
    bill = json.loads(output("sh", PACKAGING / "image_sbom.sh", ROOT / "docker/nvidia-wheels.txt",
                             env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}))
    names = {one["name"]: one for one in bill["components"]}
    assert {"libc6", "sconce", "nvidia-cublas"} <= set(names) and "gone" not in names and "nvidia-cuda-nvcc" not in names
    assert names["libc6"]["purl"].startswith("pkg:deb/") and "2.36-9%2Bdeb12u9" in names["libc6"]["purl"]
    assert bill["metadata"]["component"]["version"] == "1.2.3"
