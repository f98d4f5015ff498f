"""Two nodes of Ray on this machine, and applications on them."""
import pathlib
import shutil
import socket
import threading
import time

import numpy as np
import pytest
import ray
import weights
from held import Held
from ray import serve
from ray.cluster_utils import Cluster
from ray.serve.context import _get_global_client
from ray.serve.schema import ServeDeploySchema

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "examples/digits/digits.pt2"
V2 = ROOT / "examples/digits/digits-v2.safetensors"
IMAGES = (np.arange(3 * 64, dtype=np.float32).reshape(3, 8, 8) * 7) % 17
PATIENCE = 120


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.1)
    return found


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="session")
def cluster():
    nodes = Cluster(initialize_head=True, head_node_args={
        "num_cpus": 1, "include_dashboard": False,
        "_system_config": {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000,
                           "health_check_timeout_ms": 5000, "health_check_failure_threshold": 5}})
    nodes.second = nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    nodes.port = free_port()
    serve.start(http_options={"host": "127.0.0.1", "port": nodes.port, "location": "HeadOnly"})
    yield nodes
    serve.shutdown()
    ray.shutdown()
    nodes.shutdown()


class Application:
    """A deployment of its own, with a journal and weights in a folder of its own."""

    def __init__(self, folder, name):
        self.folder, self.name, self.journal = folder, name, str(folder / "journal.json")
        self.v2 = folder / "v2.safetensors"
        shutil.copy(V2, self.v2)

    def run(self, **options):
        options = {"ray_actor_options": {"num_cpus": 0.1}, "max_ongoing_requests": 32, "health_check_period_s": 1,
                   "graceful_shutdown_timeout_s": 1, **options}
        bound = serve.deployment(name="Held", **options)(Held).bind(str(self.folder), str(PACKAGE), "digits", self.journal)
        self.handle = serve.run(bound, name=self.name, route_prefix=f"/{self.name}")
        return self

    def apply(self, **options):
        """As `serve deploy` does: what only the numbers and user_config of differ keeps its replicas."""
        options |= {"ray_actor_options": {"num_cpus": 0.1}, "health_check_period_s": 1, "graceful_shutdown_timeout_s": 1}
        document = {"name": self.name, "route_prefix": f"/{self.name}", "import_path": "held:app",
                    "args": {"folder": str(self.folder), "package": str(PACKAGE), "journal": self.journal},
                    "deployments": [{"name": "Held", **options}]}
        _get_global_client().deploy_apps(ServeDeploySchema.parse_obj({"applications": [document]}), _blocking=True)
        self.handle = serve.get_app_handle(self.name)
        until(lambda: serve.status().applications[self.name].status == "RUNNING", f"{self.name} runs")
        return self

    def ask(self):
        """(answer, info) of one request that is tried until it is answered, and the errors before that."""
        errors = []
        while True:
            try:
                return (*self.handle.call_with_info.remote(IMAGES).result(timeout_s=PATIENCE), errors)
            except Exception as error:
                errors.append(error)
                assert len(errors) < 100, errors
                time.sleep(0.05)

    def where(self):
        """replica -> process"""
        return dict(self.handle.broadcast("where").results(timeout_s=PATIENCE))

    def push(self, timeout=PATIENCE):
        return weights.push(self.v2, self.journal, "v2", timeout)

    def served(self):
        """replica -> number of the version that it serves; nothing while the actor that leads is started again"""
        try:
            return weights.status(self.journal)["replicas"]
        except ray.exceptions.RayActorError:
            return {}

    def all_serve(self, number, replicas):
        until(lambda: sorted(self.served().values()) == [number] * replicas, f"{replicas} replicas serve {number}")

    def hold(self, what="hold"):
        for name in ("first", "staged"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / what).touch()

    def release(self):
        for name in ("hold", "fail"):
            (self.folder / name).unlink(missing_ok=True)


@pytest.fixture
def application(cluster, tmp_path, request):
    made = Application(tmp_path, request.node.name.replace("_", "-"))
    yield made
    made.release()
    serve.delete(made.name)
    if made.journal:
        ray.kill(weights.keeper_of(made.journal))


class Load:
    """Clients that ask until the block ends. answers: lists of (info, answer), one for each client, in their order."""

    def __init__(self, application, clients=4):
        self.answers, self.errors = [[] for _ in range(clients)], []
        self._application, self._ended = application, threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(into,)) for into in self.answers]

    def _ask(self, into):
        while not self._ended.is_set():
            answer, info, errors = self._application.ask()
            into.append((info, answer))
            self.errors += errors

    def more(self, number=40):
        before = self.count
        until(lambda: self.count >= before + number, f"{number} more answers")

    @property
    def count(self):
        return sum(map(len, self.answers))

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a client waits for ever"
