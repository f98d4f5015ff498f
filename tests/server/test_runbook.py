"""docs/runbook.md: its blocks, as they stand, against three servers that have the trouble they are about."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading

import pytest
from ports import reserve_port
from serving import PROGRAM, ROOT, Server, until

TEXT = (ROOT / "docs/runbook.md").read_text()
BLOCKS = dict(re.findall(r"```sh ([\w-]+)\n(.*?)```", TEXT, re.DOTALL))
DIGITS = ROOT / "examples/digits"
REQUEST = (DIGITS / "request.json").read_bytes()
TO = ["--model", "digits", "--to"]

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the runbook uses curl")


class Node:
    """A server that can be started again on its ports, with its stored weights."""

    def __init__(self, folder, name):
        self.name, self.kept = name, folder / name
        self.ports = {what: reserve_port() for what in ("http", "metrics", "admin")}
        self.server = None

    def start(self, flags=(), package=DIGITS / "digits.pt2", prefix=(), wait=True):
        given = [word for what, port in self.ports.items() for word in (f"--{what}", f"127.0.0.1:{port}")]
        self.server = Server(f"digits={package}", flags=[*given, "--weights-store", str(self.kept), "--weights-peers", "127.0.0.1", *flags],
                             prefix=prefix, wait=wait)
        return self.server

    def active(self):
        """Weight version and digest of what it serves."""
        told = json.loads(self.server.request("GET", "/v2/admin/models/digits/weights?digest=true", port=self.ports["admin"]).body)
        return told["generation"], next(s["digest"] for s in told["sets"] if s["state"] == "active")


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.nodes = {name: Node(folder, name) for name in "abc"}
        for file in ("digits.pt2", "digits-v2.safetensors"):
            shutil.copy(DIGITS / file, folder / file)

    def __enter__(self):
        for node in self.nodes.values():
            node.start()
        return self

    def __exit__(self, *failure):
        for node in self.nodes.values():
            if node.server:
                node.server.__exit__(True)

    def address(self, name):
        return f"http://127.0.0.1:{self.nodes[name].ports['admin']}"

    def script(self, text):
        """A block with the addresses of these servers in place of the document's."""
        numbers = {"8000": "http", "8002": "metrics", "8003": "admin"}
        text = re.sub(r"http://([abc]):(800\d)", lambda m: f"http://127.0.0.1:{self.nodes[m[1]].ports[numbers[m[2]]]}", text)
        # The loop over all servers looks a name's port up in a variable, $PORT_a.
        return text.replace("http://$server:8002", "http://127.0.0.1:$(eval echo \\$PORT_$server)")

    def run(self, block, status=0, **environment):
        ports = {f"PORT_{name}": str(node.ports["metrics"]) for name, node in self.nodes.items()}
        told = subprocess.run(["sh", "-c", self.script(BLOCKS[block] if block in BLOCKS else block)], cwd=self.folder, text=True,
                              capture_output=True, timeout=60,
                              env={**os.environ, **ports, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", **environment})
        assert told.returncode == status, (block, told.returncode, told.stdout, told.stderr)
        return told.stdout

    def drain(self, name):
        """The block's last line waits for an end that only this process, the server's parent, can collect."""
        process = self.nodes[name].server.process
        reaper = threading.Thread(target=process.wait)
        reaper.start()
        self.run("drain", A=str(process.pid))
        reaper.join()
        assert process.returncode == 0

    def push(self, names, file="digits-v2.safetensors", label="v2"):
        return self.run(f"sconce weights push {file} --model digits --label {label} --to {','.join(map(self.address, names))}")

    def served(self):
        return {name: node.active() for name, node in self.nodes.items() if node.server.process.poll() is None}

    def same(self):
        return len(set(self.served().values())) == 1


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path) as running:
        yield running


class Client:
    """Asks a server all the time, as a balancer lets it: until the server is not ready."""

    def __init__(self, node):
        self.node, self.statuses, self.ended = node, [], threading.Event()
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()
        until(lambda: len(self.statuses) > 5)

    def ask(self):
        while not self.ended.is_set():
            try:
                self.statuses.append(self.node.server.request("POST", "/v1/models/digits:call", REQUEST).status)
            except OSError as problem:
                self.statuses.append(repr(problem))

    def stop(self):
        self.ended.set()
        self.thread.join()
        return set(self.statuses)


def test_every_block_and_every_alert_is_here():
    here = pathlib.Path(__file__).read_text()
    for name in BLOCKS:
        assert f'run("{name}"' in here, name
    alerts = set(re.findall(r"- alert: (\w+)", (ROOT / "conf/prometheus/alerts.yml").read_text()))
    assert alerts and alerts == set(re.findall(r"\bSconce[A-Z]\w+", TEXT))


def test_look(cluster):
    told = cluster.run("look")
    assert told.count(" is ready\n") == 3 and "NOT" not in told and told.count("sha-256:") == 3
    cluster.nodes["c"].server.__exit__(True)
    told = cluster.run("look", status=1)
    assert "c is NOT ready" in told


def test_upgrade(cluster):
    """Each server in turn, while the others serve what was pushed."""
    assert cluster.run("check") == "digits.pt2: ok\n"
    cluster.push("abc")
    before = cluster.served()
    assert cluster.same()
    cluster.drain("a")
    cluster.nodes["a"].start()
    cluster.run("upgraded")
    assert cluster.served() == before
    assert "v2" in cluster.run("look")


def test_rollback(cluster):
    before = cluster.served()["a"][1]
    cluster.push("abc")
    assert cluster.served()["a"][1] != before
    told = cluster.run("roll-back")
    assert '"rolled_back"' in told and '"committed"' in told
    assert {digest for _, digest in cluster.served().values()} == {before} and cluster.same()


def test_drain(tmp_path):
    node = Node(tmp_path, "a")
    cluster = Cluster(tmp_path)
    cluster.nodes = {"a": node}
    with cluster:
        node.server.__exit__(True)
        node.start(flags=["--drain-grace", "5s"])
        client = Client(node)
        balancer = threading.Thread(target=lambda: (until(lambda: node.server.get("/v2/health/ready").status == 503), client.ended.set()))
        balancer.start()
        cluster.drain("a")
        balancer.join()
        assert client.stop() == {200}


def test_a_lost_node(cluster):
    lost = cluster.nodes["a"]
    lost.server.process.send_signal(signal.SIGKILL)
    lost.server.process.wait()
    assert "nothing was sent" in cluster.run(f"sconce weights push digits-v2.safetensors --model digits --patience 2 --to "
                                             f"{','.join(map(cluster.address, 'abc'))} 2>&1", status=1)
    cluster.run("push-without-a")
    assert set(cluster.served()) == {"b", "c"} and cluster.same()
    lost.start()
    assert not cluster.same()
    cluster.run("back")
    assert cluster.same() and "v2" in cluster.run("look")


def test_a_node_that_is_lost_in_the_middle_of_a_push(cluster):
    """The first server goes when all have prepared: the others do not decide before a human does."""
    urls = ",".join(map(cluster.address, "abc"))
    weights = (DIGITS / "digits-v2.safetensors").read_bytes()
    for number, node in enumerate(cluster.nodes.values()):
        for action, body in ((f"?push=p1&lease=1s&members={urls}&member={number}", weights), ("/prepare?push=p1", None)):
            answer = node.server.request("POST", "/v2/admin/models/digits/weights" + action, body,
                                         {"Content-Type": "application/octet-stream"} if body else {}, port=node.ports["admin"])
            assert answer.status == 200, answer.body
    first = cluster.nodes["a"]
    first.server.process.send_signal(signal.SIGKILL)
    first.server.process.wait()

    def pushes(name):
        node = cluster.nodes[name]
        told = node.server.request("GET", "/v2/admin/models/digits/weights/pushes?push=p1", port=node.ports["admin"])
        return json.loads(told.body)["pushes"][0]

    until(lambda: pushes("b")["in_doubt"] and pushes("c")["in_doubt"])
    cluster.run("gone")
    assert {pushes(name)["state"] for name in "bc"} == {"aborted"}
    assert cluster.same() and cluster.served()["b"][0] == 1


def test_split_weights(cluster):
    before = cluster.served()["b"][1]
    cluster.push("a")
    told = cluster.run("split")
    assert len(set(re.findall(r"active .*(sha-256:\w+)", told))) == 2
    cluster.run("right")
    assert cluster.same() and cluster.served()["a"][1] == before


def test_a_load_that_is_stuck(tmp_path):
    cluster = Cluster(tmp_path)
    cluster.nodes = {"a": cluster.nodes["a"]}
    package = tmp_path / "served.pt2"
    package.write_bytes((DIGITS / "digits.pt2").read_bytes()[:-1000])
    with pytest.raises(RuntimeError):
        cluster.nodes["a"].start(package=package)
    cluster.nodes["a"].start(package=package, flags=["--exit-on-error", "false"], wait=False)
    with_server = cluster.nodes["a"].server
    try:
        until(lambda: "served.pt2" in "".join(with_server.log))
        model, = json.loads(cluster.run("index"))
        assert model["name"] == "digits" and model["state"] == "UNAVAILABLE" and model["reason"]
        assert with_server.get("/v2/health/ready").status == 503
        shutil.copy(DIGITS / "digits.pt2", tmp_path / "good")
        os.rename(tmp_path / "good", package)
        cluster.run("load")
        assert with_server.get("/v2/health/ready").status == 200
    finally:
        with_server.__exit__(True)


def test_a_full_disk(tmp_path):
    """A file system with room for one set, and later for more."""
    told = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True)
    if told.returncode != 0:
        pytest.skip(f"this user may make no namespaces: {told.stderr.strip()}")
    cluster = Cluster(tmp_path)
    node = cluster.nodes["a"]
    cluster.nodes = {"a": node}
    node.kept.mkdir()
    mount = f"mount -t tmpfs -o size=40k tmpfs {node.kept} && exec \"$@\""
    node.start(prefix=["unshare", "--mount", "sh", "-c", mount, "sh"])
    with node.server:
        cluster.push("a")
        told = cluster.run("not-kept")
        assert re.search(r'^sconce_model_stored_weights_problem\{model="digits",version="1"\} 1$', told, re.MULTILINE)
        assert '"generation":2' in told.replace(" ", "")
        inside = ["nsenter", f"--mount=/proc/{node.server.process.pid}/ns/mnt"]
        subprocess.run([*inside, "mount", "-o", "remount,size=10m", node.kept], check=True)
        told = cluster.run("keep-again")
        assert re.search(r'^sconce_model_stored_weights_problem\{model="digits",version="1"\} 0$', told, re.MULTILINE)
        node.server.process.send_signal(signal.SIGKILL)
        node.server.process.wait()
