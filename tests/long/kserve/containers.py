#!/usr/bin/env python3
"""KServe's client against its runtimes' containers, and their manifests against its client's models: containers.py SCONCE"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]


def models_of(spec, kind, place, problems):
    """Notes members of a manifest that the client's model of this kind does not have."""
    import kserve
    import kubernetes.client
    if found := re.fullmatch(r"list\[(.*)\]", kind):
        for part in spec:
            models_of(part, found[1], place, problems)
        return
    model = getattr(kserve, kind, None) or getattr(kubernetes.client, kind, None)
    if model is None or not hasattr(model, "attribute_map"):
        return
    names = {name: attribute for attribute, name in model.attribute_map.items()}
    for name, value in spec.items():
        if name not in names:
            problems.append(f"{place}: {kind} has no {name}")
        else:
            models_of(value, model.openapi_types[names[name]], f"{place}.{name}", problems)


def manifests(kserve_documents):
    problems, kinds = [], {"ServingRuntime": "V1alpha1ServingRuntime", "ClusterServingRuntime": "V1alpha1ClusterServingRuntime",
                           "InferenceService": "V1beta1InferenceService", "TrainedModel": "V1alpha1TrainedModel"}
    for file, document in kserve_documents:
        models_of(document, kinds[document["kind"]], f"{file}:{document['metadata']['name']}", problems)
    return problems


def main(program):
    os.environ["SCONCE_PROGRAM"] = program
    sys.path.insert(0, str(ROOT / "tests/kubernetes"))
    import boxed
    import pytest
    import rendering
    results = []

    def check(good, what):
        results.append(bool(good))
        print(f"{'ok  ' if good else 'FAIL'} {what}", flush=True)

    problems = manifests(rendering.kserve())
    check(not problems, f"the manifests have what KServe's models have {problems}")
    wrong = {"kind": "ServingRuntime", "spec": {"containers": [{"imagee": ""}], "protocols": []}}
    found = []
    models_of(wrong, "V1alpha1ServingRuntime", "x", found)
    check(len(found) == 2, "wrong members would be found")

    runtime = next(d for _, d in rendering.kserve("ClusterServingRuntime"))
    container, = runtime["spec"]["containers"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        folder.chmod(0o755)
        try:
            models = boxed.volume(folder, "models", {"model.pt2": (ROOT / "examples/digits/digits.pt2").read_bytes()})
            box = boxed.Box(folder, [a.replace("{{.Name}}", "digits") for a in container["args"]],
                            {e["name"]: e["value"] for e in container["env"]}, {"/mnt/models": (models, "ro")})
        except pytest.skip.Exception as reason:
            print(f"kserve: the container is left out: {reason}")
        else:
            with box:
                box.wait_ready("http://127.0.0.1:8080/v2/health/ready")
                told = subprocess.run(box.inside(sys.executable, ROOT / "tests/server/kserve_client.py", "--rest", 8080, "--grpc", 9000),
                                      capture_output=True, text=True)
                print(told.stdout, told.stderr)
                passed, failed = map(int, re.search(r"^(\d+) passed, (\d+) failed", told.stdout, re.MULTILINE).groups())
                results += [True] * passed + [False] * failed
                check(box.end(30) == 0, "it ends as asked")
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return not all(results)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve())))
