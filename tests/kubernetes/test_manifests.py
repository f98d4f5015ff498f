"""The manifests that kubectl does not render: KServe's, the job that pushes weights, and docker's compose file."""
import os
import re
import subprocess

import pytest
from rendering import FOLDER, PROGRAM, ROOT, kserve, yaml

kubernetes_validate = pytest.importorskip("kubernetes_validate")

VERSIONS = ["1.32", kubernetes_validate.latest_version()]
JOB = yaml.safe_load((FOLDER / "push-weights.yaml").read_text())
COMPOSE = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]
SETTINGS = set(re.findall(r"^#?([a-z_]+) =", (ROOT / "conf/sconce.conf").read_text(), re.MULTILINE))
RUNTIMES = {d["metadata"]["name"]: d for _, d in kserve() if d["kind"].endswith("ServingRuntime")}
# As KServe's CustomResourceDefinitions have them.
RUNTIME_FIELDS = {"annotations", "supportedModelFormats", "protocolVersions", "multiModel", "containers"}
PROTOCOLS = {"v1", "v2", "grpc-v1", "grpc-v2"}
RESTRICTED = {"runAsNonRoot": True, "runAsUser": 10001, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
              "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}


def pod_with(containers):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": containers}}


@pytest.mark.parametrize("version", VERSIONS)
def test_valid(version):
    """KServe's kinds are no part of Kubernetes; the containers in them are."""
    kubernetes_validate.validate(JOB, version, strict=True)
    for runtime in RUNTIMES.values():
        kubernetes_validate.validate(pod_with(runtime["spec"]["containers"]), version, strict=True)


def test_kinds():
    assert sorted((name, d["kind"]) for name, d in kserve()) == [
        ("many-models.yaml", "InferenceService"), ("many-models.yaml", "ServingRuntime"), ("many-models.yaml", "TrainedModel"),
        ("one-namespace.yaml", "ServingRuntime"), ("runtimes.yaml", "ClusterServingRuntime"), ("services.yaml", "InferenceService"),
        ("services.yaml", "InferenceService")]


@pytest.mark.parametrize("runtime", RUNTIMES.values(), ids=RUNTIMES)
def test_runtimes(runtime):
    spec = runtime["spec"]
    assert runtime["apiVersion"] == "serving.kserve.io/v1alpha1" and set(spec) == RUNTIME_FIELDS
    one, = spec["containers"]
    assert one["name"] == "kserve-container"  # the name that KServe looks for
    assert one["securityContext"] == RESTRICTED
    # TensorFlow Serving's gRPC is the only one of KServe's protocols that Sconce does not speak.
    assert set(spec["protocolVersions"]) <= PROTOCOLS - {"grpc-v1"}
    assert ("grpc-v2" in spec["protocolVersions"]) == ("--grpc" in one["args"]) == ("sconce-grpc:" in one["image"])
    assert one["ports"][0] == {"name": "http1", "containerPort": 8080, "protocol": "TCP"}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = one[probe]["httpGet"]
        assert get["path"] == f"/v2/health/{'live' if probe == 'livenessProbe' else 'ready'}"
        # kubelet reaches the pod's address, and only the metrics listener (SCONCE_METRICS of the image) is at any address then.
        assert get["port"] == (8080 if "[::]:8080" in one["args"] else 8002)


def test_all_protocols_are_there():
    assert set.union(*(set(r["spec"]["protocolVersions"]) for r in RUNTIMES.values())) == PROTOCOLS - {"grpc-v1"}
    assert RUNTIMES["sconce"]["kind"] == "ClusterServingRuntime" and set(RUNTIMES["sconce"]["spec"]["protocolVersions"]) == {
        "v1", "v2", "grpc-v2"}


@pytest.mark.parametrize("service", [d for _, d in kserve("InferenceService")], ids=lambda d: d["metadata"]["name"])
def test_services_name_a_runtime_that_can(service):
    model = service["spec"]["predictor"]["model"]
    runtime = RUNTIMES[model["runtime"]]["spec"]
    assert model["protocolVersion"] in runtime["protocolVersions"]
    assert model["modelFormat"]["name"] in [f["name"] for f in runtime["supportedModelFormats"]]
    # A model is named by its service, or comes from the agent.
    assert ("storageUri" in model) != runtime["multiModel"]
    if model["protocolVersion"] == "grpc-v2":
        grpc = runtime["containers"][0]["args"][runtime["containers"][0]["args"].index("--grpc") + 1]
        assert model["ports"] == [{"name": "h2c", "containerPort": int(grpc.rpartition(":")[2]), "protocol": "TCP"}]


def test_models_of_the_agent():
    trained, = (d for _, d in kserve("TrainedModel"))
    shelf = next(d for _, d in kserve("InferenceService") if d["metadata"]["name"] == trained["spec"]["inferenceService"])
    assert RUNTIMES[shelf["spec"]["predictor"]["model"]["runtime"]]["spec"]["multiModel"]
    assert set(trained["spec"]["model"]) == {"framework", "storageUri", "memory"}


def test_images_have_the_tag_that_the_documents_build_and_push():
    version = re.search(r"^project\(sconce VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    texts = "".join(path.read_text() for path in FOLDER.rglob("*.yaml"))
    image = f"registry.example.com/sconce:{version}"
    assert set(re.findall(r"image: (\S+)", texts)) == {image, f"registry.example.com/sconce-grpc:{version}"}
    document = (ROOT / "docs/kubernetes.md").read_text()
    for command in (f"docker build -f docker/Dockerfile.cpu -t {image} .", f"docker push {image}",
                    f"docker build -f docker/Dockerfile.cpu --build-arg GRPC=yes -t registry.example.com/sconce-grpc:{version} .",
                    f"docker build -f docker/Dockerfile.cuda -t registry.example.com/sconce-cuda:{version} ."):
        assert f"    {command}\n" in document, command
    # No other tag of it is named anywhere.
    assert {name.rpartition(":")[2] for name in re.findall(r"registry\.example\.com/sconce[\w-]*:[\w.-]+", document)} == {version}


def test_the_job_is_restricted_and_finds_the_pods():
    spec = JOB["spec"]["template"]["spec"]
    one, = spec["containers"]
    assert {**spec["securityContext"], **one["securityContext"]}.items() >= RESTRICTED.items()
    assert spec["automountServiceAccountToken"] is False
    assert "http://sconce-pods:8003" in one["args"] and "--every-address" in one["args"]
    policy = (FOLDER / "base/network.yaml").read_text()
    assert f"app: {JOB['spec']['template']['metadata']['labels']['app']}}}" in policy


def commands():
    push = COMPOSE["push"]
    one = JOB["spec"]["template"]["spec"]["containers"][0]
    return [push["entrypoint"] + push["command"], one["command"] + one["args"]]


@pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not built (./dev build)")
@pytest.mark.parametrize("command", commands())
def test_pushes_are_commands_of_the_program(command):
    assert command[0] == "/usr/bin/sconce"
    options = [o for o in command if o.startswith("--")]
    text = subprocess.run([PROGRAM, *command[1:3], "--help"], capture_output=True, text=True, check=True).stdout
    for option in options:
        assert re.search(rf"^\s+{option}\b", text, re.MULTILINE), option


def test_compose():
    for variable in COMPOSE["sconce"]["environment"]:
        assert variable.removeprefix("SCONCE_").lower() in SETTINGS, variable
    for name, service in COMPOSE.items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"]
    assert os.path.samefile(ROOT / "docker" / COMPOSE["sconce"]["build"]["context"], ROOT)
    assert (ROOT / COMPOSE["sconce"]["build"]["dockerfile"]).exists()
    image = (ROOT / "docker/Dockerfile.cpu").read_text()
    assert "HEALTHCHECK" in image and "USER 10001" in image
