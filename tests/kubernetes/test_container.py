"""The containers of the manifests, started as they stand there: what they answer, what they may, and how they end."""
import contextlib
import json
import pathlib
import shutil
import sys

import pytest
from boxed import Box, Load, Network, digits_body, need_namespaces, volume
from rendering import PROGRAM, ROOT, container, kserve, pod, render, settings, yaml

sys.path.insert(0, str(ROOT / "tests/server"))
from certificates import Authority

DIGITS = ROOT / "examples/digits"
PACKAGE = (DIGITS / "digits.pt2").read_bytes()
NEW = (DIGITS / "digits-v2.safetensors").read_bytes()
TOKEN = "a-token-of-the-test"
GRPC = PROGRAM.parents[1] / "src/libsconcegrpc.so.0"


@pytest.fixture(autouse=True)
def namespaces():
    need_namespaces()


def volumes_of(folder, documents, files):
    """Mount paths of the container to folders with these files, by the volume's name."""
    found = {}
    for mount in container(documents)["volumeMounts"]:
        source = volume(folder, mount["name"], files.get(mount["name"], {}))
        found[mount["mountPath"]] = (source, "ro" if mount.get("readOnly") else "rw")
    return found


def start(folder, *names, files=None, user=None):
    documents = render(*names)
    given = {"models": {"digits.pt2": PACKAGE}, "token": {"token": TOKEN.encode()}, **(files or {})}
    volumes = volumes_of(folder, documents, given)
    return Box(folder, container(documents)["args"], settings(documents), volumes,
               user=pod(documents)["securityContext"]["runAsUser"] if user is None else user or None)


def started_runtime(folder, name, files, **more):
    """A KServe runtime with a service called digits."""
    one, = next(d for file, d in kserve() if file == name and d["kind"].endswith("ServingRuntime"))["spec"]["containers"]
    models = volume(folder, "models", files)
    arguments = [a.replace("{{.Name}}", "digits") for a in one["args"]]
    return Box(folder, arguments, {e["name"]: e["value"] for e in one["env"]}, {"/mnt/models": (models, "ro")}, **more), models


def assert_confined(box):
    told = box.status()
    assert set(told["Uid"].split()) == {str(box.user)} and box.user != 0
    assert all(int(told[f"Cap{kind}"], 16) == 0 for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"))
    assert told["NoNewPrivs"] == "1"
    for line in pathlib.Path(f"/proc/{box.process.pid}/mountinfo").read_text().splitlines():
        place, options = line.split()[4:6]
        if place == "/" or place.startswith(("/usr", "/models", "/secrets", "/mnt")):
            assert "ro" in options.split(","), line


@pytest.mark.parametrize("user", [None, 0], ids=["the manifest's user", "a random user"])
def test_the_deployment(tmp_path, user):
    """It answers, publishes metrics, takes weights with its token, keeps them, and ends without losing a request."""
    with start(tmp_path, "cpu", user=user) as box:
        box.wait_ready()
        assert_confined(box)
        assert box.json("http://127.0.0.1:8000/v1/models/digits:call", "-d", f"@{digits_body()}")["class"] == [9]
        status, metrics = box.ask("http://127.0.0.1:8002/metrics")
        assert status == 200 and 'sconce_model_ready{model="digits",version="1"} 1' in metrics
        place = "http://127.0.0.1:8003/v2/admin/models/digits/weights"
        push = ["-X", "POST", "-H", "Content-Type: application/octet-stream", "--data-binary", f"@{DIGITS / 'digits-v2.safetensors'}"]
        assert box.ask(place + "?commit=true", *push)[0] == 401
        told = box.json(place + "?commit=true", *push, "-H", f"Authorization: Bearer {TOKEN}")
        assert told["generation"] == 2
        assert (tmp_path / "weights-store/weights/digits/1/journal.json").exists()
        load = Load(box, "http://127.0.0.1:8000/v1/models/digits:call", digits_body())
        grace = pod(render("cpu"))["terminationGracePeriodSeconds"]
        box.process.terminate()
        # What a balancer sees, who asks as often as the probe: then it sends no more.
        box.until(lambda: box.ask("http://127.0.0.1:8002/v2/health/ready")[0] == 503, "not ready")
        counts = load.stop()
        assert set(counts) == {"200"} and counts["200"] > 0, counts
        assert box.process.wait(grace) == 0, box.log


def test_a_restart_serves_what_was_pushed(tmp_path):
    documents = render("cpu")
    volumes = volumes_of(tmp_path, documents, {"models": {"digits.pt2": PACKAGE}, "token": {"token": TOKEN.encode()}})
    for number in range(2):
        folder = tmp_path / f"start-{number}"
        folder.mkdir()
        with Box(folder, container(documents)["args"], settings(documents), volumes, user=10001) as box:
            box.wait_ready()
            authorised = ["-H", f"Authorization: Bearer {TOKEN}"]
            place = "http://127.0.0.1:8003/v2/admin/models/digits/weights"
            if number == 0:
                box.json(place + "?commit=true", *authorised, "-X", "POST", "-H", "Content-Type: application/octet-stream",
                         "--data-binary", f"@{DIGITS / 'digits-v2.safetensors'}")
            assert box.json(place, *authorised)["generation"] == 2


def test_the_job_pushes_to_all_pods_and_new_ones_take_over(tmp_path):
    """The names are those of the manifests: the headless service, which here are lines of /etc/hosts."""
    documents, job = render("cpu"), yaml.safe_load((ROOT / "examples/kubernetes/push-weights.yaml").read_text())
    headless = next(d["metadata"]["name"] for d in documents if d["kind"] == "Service" and d["spec"].get("clusterIP") == "None")
    place, authorised = "http://127.0.0.1:8003/v2/admin/models/digits/weights", ["-H", f"Authorization: Bearer {TOKEN}"]
    with Network(tmp_path, headless, 3) as network, contextlib.ExitStack() as stack:
        def begin(number):
            folder = tmp_path / f"pod-{number}"
            folder.mkdir()
            volumes = volumes_of(folder, documents, {"models": {"digits.pt2": PACKAGE}, "token": {"token": TOKEN.encode()}})
            where, names = network.place(number)
            box = stack.enter_context(Box(folder, container(documents)["args"], settings(documents), {**volumes, **names}, network=where))
            box.wait_ready()
            return box

        def push(number):
            """From an address of the network, as the job's pod does."""
            one, = job["spec"]["template"]["spec"]["containers"]
            folder = tmp_path / "job"
            folder.mkdir()
            files = {"weights": {"new.safetensors": NEW}, "token": {"token": TOKEN.encode()}}
            volumes = {m["mountPath"]: (volume(folder, m["name"], files[m["name"]]), "ro") for m in one["volumeMounts"]}
            where, names = network.place(number)
            with Box(folder, one["args"], {}, {**volumes, **names}, network=where, command=one["command"]) as coordinator:
                return coordinator.process.wait(180), coordinator.log

        # Of the three addresses one is not there yet: then nobody is changed.
        first, second = begin(0), begin(1)
        status, log = push(2)
        assert status != 0 and {box.json(place, *authorised)["generation"] for box in (first, second)} == {1}, log
        network.hosts.write_text("".join(f"{address} {headless}\n" for address in network.addresses[:2]))
        shutil.rmtree(tmp_path / "job")
        status, log = push(2)
        assert status == 0 and {box.json(place, *authorised)["generation"] for box in (first, second)} == {2}, log
        third = begin(2)
        told = [box.json(place + "?digest=true", *authorised) for box in (first, second, third)]
        assert [t["generation"] for t in told] == [2, 2, 2]
        assert len({s["digest"] for t in told for s in t["sets"] if s["state"] == "active"}) == 1


def test_weights_of_a_volume(tmp_path):
    with start(tmp_path, "cpu", "weights-volume", files={"weights": {"digits.safetensors": NEW}}) as box:
        box.wait_ready()
        authorised = ["-H", f"Authorization: Bearer {TOKEN}"]
        place = "http://127.0.0.1:8003/v2/admin/models/digits/weights"
        before = box.json(place, *authorised)["generation"]
        assert any("serves the weights of /weights/digits.safetensors" in line for line in box.log)
        told = box.json(place + "?commit=true", *authorised, "-H", "Content-Type: application/json", "-d", '{"file": "digits.safetensors"}')
        assert told["generation"] == before + 1


def test_many_models(tmp_path):
    """The pod is ready before any of its models is loaded, and each answers when it is asked."""
    with start(tmp_path, "many-models", files={"models": {f"m{number}.pt2": PACKAGE for number in range(40)}}) as box:
        box.wait_ready()
        index = {model["name"]: model["state"] for model in box.json("http://127.0.0.1:8000/v2/repository/index", "-X", "POST")}
        assert set(index) == {f"m{number}" for number in range(40)} and "READY" not in index.values()
        for number in (0, 7, 39):
            assert box.json(f"http://127.0.0.1:8000/v1/models/m{number}:call", "-d", f"@{digits_body()}")["class"] == [9]
        assert box.end(60) == 0


def test_mutual_tls(tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("the openssl program is not installed")
    made = tmp_path / "made"
    made.mkdir()
    servers, clients, admins = (Authority(made, name) for name in ("servers", "clients", "admins"))
    server, client, admin = servers.issue("server"), clients.issue("client"), admins.issue("admin")

    def pair(issued, authority):
        return {"tls.crt": issued[0].read_bytes(), "tls.key": issued[1].read_bytes(), "ca.crt": authority.ca.read_bytes()}

    files = {"tls": pair(server, servers), "clients": {"ca.crt": clients.ca.read_bytes()}, "admin-tls": pair(admin, admins)}
    with start(tmp_path, "cpu", "mtls", files=files) as box:
        trust = ["--cacert", str(servers.ca)]

        def shown(issued):
            return [*trust, "--cert", str(issued[0]), "--key", str(issued[1])]

        # Probes trust anybody and show nothing.
        box.wait_ready("https://127.0.0.1:8002/v2/health/ready", "-k")
        call = ["https://127.0.0.1:8000/v1/models/digits:call", "-d", f"@{digits_body()}"]
        assert box.json(*call, *shown(client))["class"] == [9]
        for wrong in (trust, shown(admin)):
            assert box.ask(*call, *wrong)[0] == 0
        place = "https://127.0.0.1:8003/v2/admin/models/digits/weights"
        assert box.ask(place, *shown(client), "-H", f"Authorization: Bearer {TOKEN}")[0] == 0
        assert box.json(place, *shown(admin), "-H", f"Authorization: Bearer {TOKEN}")["generation"] == 1
        assert box.ask(place, *shown(admin))[0] == 401


@pytest.mark.parametrize("name", ["one-namespace.yaml", "runtimes.yaml"])
def test_kserve(tmp_path, name):
    """Its storage layout, and the protocols that the runtime lists."""
    if name == "runtimes.yaml" and not GRPC.exists():
        pytest.skip(f"gRPC is not built: {GRPC}")
    box, _ = started_runtime(tmp_path, name, {"model.pt2": PACKAGE})
    with box:
        box.wait_ready("http://127.0.0.1:8080/v2/health/ready")
        assert_confined(box)
        image = json.loads(digits_body().read_text())["args"][0]
        assert box.json("http://127.0.0.1:8080/v1/models/digits").items() >= {"name": "digits", "ready": True}.items()
        tensor = {"name": "INPUT__0", "datatype": "FP32", "shape": [1, 8, 8], "data": image}
        told = box.json("http://127.0.0.1:8080/v2/models/digits/infer", "-d", json.dumps({"inputs": [tensor]}))
        assert next(o for o in told["outputs"] if o["name"] == "RESULT[class]")["data"] == [9]
        told = box.json("http://127.0.0.1:8080/v1/models/digits:predict", "-d", json.dumps({"instances": image}))
        assert len(told["predictions"]) == 1
        assert box.ask("http://127.0.0.1:8002/metrics")[0] == 200
        assert box.end(30) == 0


def test_kserves_agent(tmp_path):
    """It puts a model's folder and a mark beside it, asks to load, and removes the folder of one that is gone."""
    box, models = started_runtime(tmp_path, "many-models.yaml", {"stays/1/model.pt2": PACKAGE})
    with box:
        box.wait_ready()
        staging = volume(tmp_path, "staging", {"digits/1/model.pt2": PACKAGE})
        (staging / "digits/SUCCESS.0123abcd").write_text('{"storageUri": "s3://models/digits", "framework": "pt2", "memory": "64Mi"}')
        shutil.copytree(staging / "digits", models / "digits", copy_function=shutil.copyfile)
        base = "http://127.0.0.1:8080/v2"
        for action in ("load", "unload"):
            assert box.ask(f"{base}/repository/models/digits/{action}", "-d", "{}")[0] == 403
        box.until(lambda: box.ask(f"{base}/models/digits/ready")[0] == 200, "the model was pulled")
        assert box.json("http://127.0.0.1:8080/v1/models/digits:call", "-d", f"@{digits_body()}")["class"] == [9]
        shutil.rmtree(models / "digits")
        box.until(lambda: box.ask(f"{base}/models/digits/ready")[0] != 200, "the model was removed")
        assert box.ask("http://127.0.0.1:8002/v2/health/ready")[0] == 200, "".join(box.log)
        assert box.end(30) == 0
