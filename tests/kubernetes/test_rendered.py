"""What kubectl renders is what Kubernetes takes, names what the program has, and is as restricted as it says."""
import copy
import itertools
import re
import subprocess

import pytest
from rendering import (COMPONENTS, EXCLUSIVE, FOLDER, OVERLAYS, PROGRAM, ROOT, combinations, container, deployment, kserve,
                       of_kind, pod, render, render_folder, settings, yaml)

kubernetes_validate = pytest.importorskip("kubernetes_validate")

VERSIONS = ["1.32", kubernetes_validate.latest_version()]
TABLE = set(re.findall(r"^\| `(\w+)(?:\{[\w,]+\})?` \| (?:counter|gauge|histogram) ", (ROOT / "docs/observability.md").read_text(), re.MULTILINE))


@pytest.fixture(params=combinations(), ids="+".join)
def documents(request):
    return render(*request.param)


@pytest.fixture(scope="module")
def known():
    """Names of settings of the server, and of models."""
    if not PROGRAM.exists():
        pytest.skip(f"the program is not built: {PROGRAM} (./dev build)")
    text = subprocess.run([PROGRAM, "serve", "--print-config"], capture_output=True, text=True, check=True).stdout
    return (set(re.findall(r"^#?([a-z_]+) =", text, re.MULTILINE)), set(re.findall(r"^#?\*\.([a-z_]+) =", text, re.MULTILINE)))


def check_settings(environment, arguments, known):
    """Each SCONCE_KEY, --key and MODEL.KEY is a setting."""
    of_server, of_models = known
    assignments = [value for option, value in itertools.pairwise(arguments) if option == "--set"]
    for name, value in environment.items():
        if name == "SCONCE_SET":
            assignments += value.split(";")
        else:
            assert name.startswith("SCONCE_") and name.removeprefix("SCONCE_").lower() in of_server, name
    for assignment in assignments:
        assert assignment.split("=")[0].rpartition(".")[2] in of_models, assignment
    for option in arguments:
        if option.startswith("--") and option != "--set":
            assert option[2:].replace("-", "_") in of_server, option


def test_valid(documents):
    for version in VERSIONS:
        for document in documents:
            if document["apiVersion"] != "keda.sh/v1alpha1":
                kubernetes_validate.validate(document, version, strict=True)


def test_a_wrong_manifest_is_found():
    wrong = copy.deepcopy(deployment(render("cpu")))
    wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_settings_exist(documents, known):
    check_settings(settings(documents), container(documents)["args"], known)


def test_a_wrong_setting_is_found(known):
    for environment, arguments in (({"SCONCE_ADMINN": "x"}, []), ({"SCONCE_SET": "*.devicez=cpu"}, []), ({}, ["--set", "a.b=1"]),
                                   ({}, ["--htp", "x"])):
        with pytest.raises(AssertionError):
            check_settings(environment, arguments, known)


def test_pod_security_is_restricted(documents):
    """The rules of Kubernetes' own profile "restricted", which the namespace enforces."""
    labels = of_kind(documents, "Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    spec = pod(documents)
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    for one in spec["containers"]:
        assert one["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                          "capabilities": {"drop": ["ALL"]}}
        assert all("hostPort" not in port for port in one["ports"])
    assert all(set(volume) - {"name"} <= {"configMap", "emptyDir", "persistentVolumeClaim", "secret"} for volume in spec["volumes"])
    assert spec["automountServiceAccountToken"] is False
    assert of_kind(documents, "ServiceAccount")["automountServiceAccountToken"] is False
    assert spec["serviceAccountName"] == of_kind(documents, "ServiceAccount")["metadata"]["name"]


def test_everything_is_in_one_namespace(documents):
    for document in documents:
        if document["kind"] != "Namespace":
            assert document["metadata"]["namespace"] == "sconce", document["kind"]


def test_probes_ask_for_routes_and_ports_that_there_are(documents):
    one = container(documents)
    ports = {port["name"]: port["containerPort"] for port in one["ports"]}
    tls = settings(documents).get("SCONCE_METRICS_TLS", "off")
    assert tls != "mutual"  # probes have no certificate
    for probe, path in (("startupProbe", "ready"), ("readinessProbe", "ready"), ("livenessProbe", "live")):
        get = one[probe]["httpGet"]
        assert get["path"] == f"/v2/health/{path}" and get["port"] in ports
        assert get.get("scheme", "HTTP") == ("HTTP" if tls == "off" else "HTTPS")
    for listener, port in ports.items():
        assert settings(documents)[f"SCONCE_{listener.upper()}"] == f"[::]:{port}"


def test_the_end_has_time(documents):
    given = settings(documents)
    seconds = sum(int(given[f"SCONCE_DRAIN_{name}"].removesuffix("s")) for name in ("GRACE", "TIMEOUT"))
    assert container(documents)["lifecycle"]["preStop"]["sleep"]["seconds"] + seconds < pod(documents)["terminationGracePeriodSeconds"]


def test_files_that_settings_name_are_mounted(documents):
    one, given = container(documents), settings(documents)
    volumes = {volume["name"] for volume in pod(documents)["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in one["volumeMounts"]}
    assert {mount["name"] for mount in mounts.values()} == volumes
    texts = [value for name, value in given.items()] + one["args"]
    named = {"/" + path.split("/")[1] for text in texts for path in re.findall(r"(?:^|=)(/[\w./-]+)", text)}
    assert named <= set(mounts) and {"/models", "/weights-store", "/secrets"} <= named
    assert all(mount.get("readOnly", False) == (place != "/weights-store") for place, mount in mounts.items())


def test_services_budget_and_policy_are_about_the_pods(documents):
    labels = deployment(documents)["spec"]["template"]["metadata"]["labels"]
    ports = {port["name"] for port in container(documents)["ports"]}
    services = [d for d in documents if d["kind"] == "Service"]
    for service in services:
        assert service["spec"]["selector"].items() <= labels.items()
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    headless, = (s["metadata"]["name"] for s in services if s["spec"].get("clusterIP") == "None")
    scheme = "http" if settings(documents).get("SCONCE_ADMIN_TLS", "off") == "off" else "https"
    assert f"*.weights_from={scheme}://{headless}:8003" in settings(documents)["SCONCE_SET"]
    for kind, selector in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        assert of_kind(documents, kind)["spec"][selector]["matchLabels"].items() <= labels.items()
    numbers = {port["containerPort"] for port in container(documents)["ports"]}
    policy = of_kind(documents, "NetworkPolicy")["spec"]
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == numbers
    open_to_all = [rule for rule in policy["ingress"] if "from" not in rule]
    assert [port["port"] for rule in open_to_all for port in rule["ports"]] == [8000]
    for constraint in pod(documents)["topologySpreadConstraints"]:
        assert constraint["labelSelector"]["matchLabels"].items() <= labels.items()


def test_components_do_what_they_are_called(documents, request):
    overlay, *components = request.node.callspec.params["documents"]
    given, one = settings(documents), container(documents)
    scaled = {d["kind"] for d in documents} & {"HorizontalPodAutoscaler", "ScaledObject"}
    assert len(scaled) == len(EXCLUSIVE & set(components))
    assert ("replicas" in deployment(documents)["spec"]) == (not scaled)
    assert (given.get("SCONCE_ADMIN_TLS") == "mutual") == ("mtls" in components)
    assert ("digits.weights=/weights/digits.safetensors" in one["args"]) == ("weights-volume" in components)
    assert ("nvidia.com/gpu" in one["resources"]["limits"]) == (overlay == "gpu") == ("*.devices=auto" in one["args"])
    assert (given.get("SCONCE_LOAD") == "demand") == (overlay == "many-models")
    assert set(OVERLAYS) == {"cpu", "gpu", "many-models"} and set(COMPONENTS) == {"hpa", "keda", "mtls", "weights-volume"}


def metrics_of(query):
    return set(re.findall(r"\b((?:nv|sconce)_\w+)", query))


def test_autoscalers_look_at_metrics_that_there_are():
    rules = yaml.safe_load((FOLDER / "components/hpa/rules.yaml").read_text())["rules"]["custom"]
    offered = {rule["name"]["as"] for rule in rules}
    metrics = of_kind(render("cpu", "hpa"), "HorizontalPodAutoscaler")["spec"]["metrics"]
    asked = {metric["pods"]["metric"]["name"] for metric in metrics if metric["type"] == "Pods"}
    assert asked == offered
    series = [metrics_of(rule["seriesQuery"]) for rule in rules]
    triggers = of_kind(render("cpu", "keda"), "ScaledObject")["spec"]["triggers"]
    queries = [metrics_of(trigger["metadata"]["query"]) for trigger in triggers if trigger["type"] == "prometheus"]
    assert all(queries) and series == queries and set.union(*queries) <= TABLE and len(TABLE) > 30


def test_keda_scales_as_the_autoscaler_does():
    autoscaler = of_kind(render("cpu", "hpa"), "HorizontalPodAutoscaler")["spec"]
    scaled = of_kind(render("cpu", "keda"), "ScaledObject")["spec"]
    assert (autoscaler["minReplicas"], autoscaler["maxReplicas"]) == (scaled["minReplicaCount"], scaled["maxReplicaCount"])
    processor, *queries = scaled["triggers"]
    assert [float(t["metadata"]["threshold"]) for t in queries] == [0.7, 4]
    assert [m["pods"]["target"]["averageValue"] for m in autoscaler["metrics"][1:]] == ["700m", "4"]
    target = autoscaler["metrics"][0]["containerResource"]
    assert (processor["type"], processor["metadata"]["value"], processor["metadata"]["containerName"]) == (
        target["name"], str(target["target"]["averageUtilization"]), target["container"])


def test_the_kustomization_of_the_document(tmp_path):
    """docs/kubernetes.md shows how a reader joins an overlay with components."""
    text = (ROOT / "docs/kubernetes.md").read_text()
    block = re.search(r"((?: {4}.*\n)+)", text[text.index("    # kustomization.yaml\n"):])[1]
    place = tmp_path / "sconce/mine"
    place.mkdir(parents=True)
    (place / "kustomization.yaml").write_text(re.sub(r"(?m)^ {4}", "", block))
    (tmp_path / "sconce/examples").symlink_to(ROOT / "examples")
    # kustomize follows no link out of the folder it is given.
    subprocess.run(["cp", "-rL", tmp_path / "sconce", tmp_path / "copy"], check=True)
    documents = render_folder(tmp_path / "copy/mine")
    assert {"Deployment", "HorizontalPodAutoscaler"} <= {d["kind"] for d in documents}
    assert settings(documents)["SCONCE_ADMIN_TLS"] == "mutual"
    assert "registry.of.yours" in container(documents)["image"]


def test_settings_of_kserves_runtimes_exist(known):
    for name, runtime in kserve():
        if not runtime["kind"].endswith("ServingRuntime"):
            continue
        one, = runtime["spec"]["containers"]
        check_settings({e["name"]: e["value"] for e in one["env"]}, one["args"], known)
