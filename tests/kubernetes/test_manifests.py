"""The manifests are what Kubernetes takes, and name settings, ports, options and metrics that there are."""
import os
import pathlib
import re
import subprocess

import pytest

yaml = pytest.importorskip("yaml")
kubernetes_validate = pytest.importorskip("kubernetes_validate")

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("SCONCE_PROGRAM", ROOT / "build/release/server/sconce"))
FOLDER = ROOT / "examples/kubernetes"
DOCUMENTS = [(path.name, document) for path in sorted(FOLDER.glob("*.yaml"))
             for document in yaml.safe_load_all(path.read_text())]
CORE = [d for _, d in DOCUMENTS if "kserve" not in d["apiVersion"]]
MODEL_SETTINGS = set(re.findall(r"^#?\*\.([a-z_]+) =", (ROOT / "conf/sconce.conf").read_text(), re.MULTILINE))
SETTINGS = set(re.findall(r"^#?([a-z_]+) =", (ROOT / "conf/sconce.conf").read_text(), re.MULTILINE))
VERSIONS = ["1.32", kubernetes_validate.latest_version()]


def of_kind(kind):
    return next(d for _, d in DOCUMENTS if d["kind"] == kind)


def pods():
    """Every pod's specification, those of KServe's kinds too."""
    found = {}
    for name, d in DOCUMENTS:
        if d["kind"] in ("Deployment", "Job"):
            found[f"{name}:{d['kind']}"] = d["spec"]["template"]["spec"]
        elif d["kind"] == "ServingRuntime":
            found[f"{name}:{d['kind']}"] = {"containers": d["spec"]["containers"]}
    return found


def containers():
    return [(name, c) for name, spec in pods().items() for c in spec["containers"]]


def test_all_kinds_are_there():
    kinds = {d["kind"] for _, d in DOCUMENTS}
    assert kinds == {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "HorizontalPodAutoscaler", "Job",
                     "ServingRuntime", "InferenceService"}


@pytest.mark.parametrize("version", VERSIONS)
def test_valid(version):
    for document in CORE:
        kubernetes_validate.validate(document, version, strict=True)
    # KServe's kinds are no part of Kubernetes; the containers in them are.
    runtime = of_kind("ServingRuntime")
    kubernetes_validate.validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
                                  "spec": {"containers": runtime["spec"]["containers"]}}, version, strict=True)


def test_a_wrong_manifest_is_found():
    wrong = yaml.safe_load(yaml.safe_dump(of_kind("Deployment")))
    wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_kserve():
    runtime, service = of_kind("ServingRuntime"), of_kind("InferenceService")
    assert runtime["apiVersion"] == "serving.kserve.io/v1alpha1" and service["apiVersion"] == "serving.kserve.io/v1beta1"
    assert set(runtime["spec"]) <= {"annotations", "labels", "supportedModelFormats", "protocolVersions", "multiModel", "containers"}
    container, = runtime["spec"]["containers"]
    assert container["name"] == "kserve-container"  # the name that KServe looks for
    model = service["spec"]["predictor"]["model"]
    assert model["runtime"] == runtime["metadata"]["name"]
    assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]
    assert model["modelFormat"]["name"] in [f["name"] for f in runtime["spec"]["supportedModelFormats"]]


def test_images_have_the_tag_that_the_documents_build_and_push():
    version = re.search(r"^project\(sconce VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    image = f"registry.example.com/sconce:{version}"
    assert {container["image"] for _, container in containers()} == {image}
    document = (ROOT / "docs/kubernetes.md").read_text()
    for command in (f"docker build -f docker/Dockerfile.cpu -t {image} .", f"docker push {image}"):
        assert f"    {command}\n" in document, command
    # No other tag of it is named anywhere.
    assert set(re.findall(r"registry\.example\.com/sconce:[\w.-]+", document)) == {image}


def test_settings_exist():
    for name, container in containers():
        for variable in container.get("env", []):
            if variable["name"] == "SCONCE_SET":
                for assignment in variable["value"].split(";"):
                    assert assignment.split("=")[0].rpartition(".")[2] in MODEL_SETTINGS, (name, assignment)
                continue
            assert variable["name"].removeprefix("SCONCE_").lower() in SETTINGS, (name, variable)
    compose = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())
    for variable in compose["services"]["sconce"]["environment"]:
        assert variable.removeprefix("SCONCE_").lower() in SETTINGS, variable


def test_probes_ask_for_routes_and_ports_that_there_are():
    checked = 0
    for name, container in containers():
        ports = {p["name"]: p["containerPort"] for p in container.get("ports", [])}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            if probe not in container:
                continue
            get = container[probe]["httpGet"]
            assert get["path"] == ("/v2/health/live" if probe == "livenessProbe" else "/v2/health/ready")
            assert get["port"] in ports or get["port"] in ports.values(), name
            checked += 1
    assert checked == 5


def test_the_end_has_time():
    spec = of_kind("Deployment")["spec"]["template"]["spec"]
    container, = spec["containers"]
    settings = {v["name"]: v["value"] for v in container["env"]}
    seconds = sum(int(settings[f"SCONCE_DRAIN_{k}"].removesuffix("s")) for k in ("GRACE", "TIMEOUT"))
    assert container["lifecycle"]["preStop"]["sleep"]["seconds"] + seconds < spec["terminationGracePeriodSeconds"]


def test_nothing_is_privileged():
    for name, spec in pods().items():
        for container in spec["containers"]:
            security = {**spec.get("securityContext", {}), **container["securityContext"]}
            assert security["runAsNonRoot"] and security["runAsUser"] == 10001, name
            assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
            assert security["capabilities"] == {"drop": ["ALL"]}


def test_services_find_the_pods():
    deployment = of_kind("Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    ports = {p["name"] for p in deployment["spec"]["template"]["spec"]["containers"][0]["ports"]}
    services = [d for d in CORE if d["kind"] == "Service"]
    for service in services:
        assert service["spec"]["selector"].items() <= labels.items()
        assert {p["targetPort"] for p in service["spec"]["ports"]} <= ports
    headless, = [s for s in services if s["spec"].get("clusterIP") == "None"]
    push = of_kind("Job")["spec"]["template"]["spec"]["containers"][0]
    assert f"http://{headless['metadata']['name']}:8003" in push["args"] and "--every-address" in push["args"]


def test_the_autoscaler_looks_at_a_metric_that_there_is():
    metric = of_kind("HorizontalPodAutoscaler")["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert f'"{metric}"' in (ROOT / "server/observe/metrics.def").read_text()
    assert metric in (FOLDER / "autoscaling.yaml").read_text().split("apiVersion")[0]


def commands():
    compose = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]["push"]
    job = of_kind("Job")["spec"]["template"]["spec"]["containers"][0]
    return [compose["entrypoint"] + compose["command"], job["command"] + job["args"]]


@pytest.mark.parametrize("command", commands())
def test_pushes_are_commands_of_the_program(command):
    assert command[0] == "/usr/bin/sconce"
    options = [o for o in command if o.startswith("--")]
    text = subprocess.run([PROGRAM, *command[1:3], "--help"], capture_output=True, text=True, check=True).stdout
    for option in options:
        assert re.search(rf"^\s+{option}\b", text, re.MULTILINE), option


def test_compose():
    compose = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())
    for name, service in compose["services"].items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"]
    assert (ROOT / "docker" / compose["services"]["sconce"]["build"]["context"]).resolve() == ROOT
    assert (ROOT / compose["services"]["sconce"]["build"]["dockerfile"]).exists()
    image = (ROOT / "docker/Dockerfile.cpu").read_text()
    assert "HEALTHCHECK" in image and "USER 10001" in image
