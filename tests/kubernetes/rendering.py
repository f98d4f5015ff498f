"""The manifests of examples/kubernetes as kubectl renders them."""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

yaml = pytest.importorskip("yaml")

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("SCONCE_PROGRAM", ROOT / "build/release/server/sconce"))
FOLDER = ROOT / "examples/kubernetes"
OVERLAYS = sorted(path.name for path in (FOLDER / "overlays").iterdir())
COMPONENTS = sorted(path.name for path in (FOLDER / "components").iterdir())
# Both say how many pods there are.
EXCLUSIVE = {"hpa", "keda"}


def find_kubectl(folder=ROOT / "build/kubectl"):
    """A kubectl whose kustomize is 5 or later; Debian's renders neither `labels` nor components in this form."""
    for candidate in (folder / "kubectl", shutil.which("kubectl")):
        if not candidate or not pathlib.Path(candidate).exists():
            continue
        told = subprocess.run([candidate, "version", "--client", "-o", "json"], capture_output=True, text=True)
        if told.returncode == 0 and re.match(r"v[5-9]", json.loads(told.stdout).get("kustomizeVersion", "")):
            return str(candidate)
    return None


@functools.cache
def kubectl():
    found = find_kubectl()
    if not found:
        pytest.skip("no kubectl with kustomize 5 (tests/kubernetes/fetch_kubectl.py build/kubectl)")
    return found


@functools.cache
def render(overlay, *components):
    """What `kubectl apply -k` would apply: an overlay with components, as docs/kubernetes.md joins them."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(FOLDER, f"{folder}/kubernetes")
        joined = pathlib.Path(folder, "joined")
        joined.mkdir()
        (joined / "kustomization.yaml").write_text(yaml.safe_dump({
            "resources": [f"../kubernetes/overlays/{overlay}"],
            "components": [f"../kubernetes/components/{name}" for name in components]}))
        return render_folder(joined)


def render_folder(folder):
    told = subprocess.run([kubectl(), "kustomize", folder], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert not told.stderr, told.stderr  # warnings of what is deprecated
    return list(yaml.safe_load_all(told.stdout))


def combinations():
    """Each overlay alone, with each component, and with all that go together."""
    found = []
    for overlay in OVERLAYS:
        found += [(overlay,), *((overlay, name) for name in COMPONENTS)]
        for left_out in sorted(EXCLUSIVE):
            found.append((overlay, *(name for name in COMPONENTS if name != left_out)))
    return found


def of_kind(documents, kind, name="sconce"):
    found, = (d for d in documents if d["kind"] == kind and d["metadata"]["name"].startswith(name))
    return found


def deployment(documents):
    return of_kind(documents, "Deployment")


def pod(documents):
    return deployment(documents)["spec"]["template"]["spec"]


def container(documents):
    one, = pod(documents)["containers"]
    return one


def settings(documents):
    """The environment of the container: what its ConfigMap holds."""
    names = [source["configMapRef"]["name"] for source in container(documents)["envFrom"]]
    return {key: value for d in documents if d["kind"] == "ConfigMap" and d["metadata"]["name"] in names
            for key, value in d["data"].items()}


def kserve(kind=None):
    """Of examples/kubernetes/kserve, each with its file's name."""
    return [(path.name, d) for path in sorted((FOLDER / "kserve").glob("*.yaml"))
            for d in yaml.safe_load_all(path.read_text()) if kind in (None, d["kind"])]


def image_environment():
    """ENV and ENTRYPOINT of the image for the CPU."""
    text = (ROOT / "docker/Dockerfile.cpu").read_text()
    pairs = re.search(r"^ENV (.*)$", text, re.MULTILINE)[1]
    entry = re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[1]
    return dict(pair.split("=", 1) for pair in pairs.split()), json.loads(entry)
