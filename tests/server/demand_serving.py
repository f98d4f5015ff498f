"""Servers whose models are loaded on demand, for the tests of them."""
import os
import shutil
import struct

import pytest
from admin_server import AdminServer
from grpc_serving import Grpc
from serving import FAKE_MODELS, HeldServer, fake_expected, numbers
from weights_files import safetensors

PLAIN, FOLDED = FAKE_MODELS / "fake_model.so", FAKE_MODELS / "fake_folded.so"
BATCHED, STATE = FAKE_MODELS / "fake_batched.pt2", FAKE_MODELS / "fake_state.pt2"
ROW = [1.0, 2.0, 3.0, 4.0]
ANSWER = fake_expected(ROW)
ONES = {"INPUT__0": ("FP32", [1, 4], [1, 1, 1, 1])}


class Demand:
    """Of a class of servers: a repository whose models are loaded on demand."""

    def __init__(self, *serve, flags=(), **more):
        super().__init__(*serve, flags=["--load", "demand", *flags], **more)

    def states(self):
        """name -> (state on demand, reason)"""
        return {m["name"]: (m.get("on_demand"), m.get("reason", ""))
                for m in self.post("/v2/repository/index", b"").json}

    def state(self, model):
        return self.states()[model][0]

    def loaded(self):
        return {name for name, (state, _) in self.states().items() if state == "loaded"}

    def value(self, name, **labels):
        text = ",".join(f'{key}="{value}"' for key, value in labels.items())
        return self.metrics()[f"sconce_{name}" + (f"{{{text}}}" if text else "")]

    def loads(self):
        return self.value("demand_loads_total", result="loaded")

    def evictions(self):
        return self.value("demand_evictions_total")

    def bytes(self):
        return int(self.value("model_memory_bytes", device="host"))

    def ask(self, model, **more):
        return self.post(f"/v2/models/{model}/infer", numbers(ROW, **more))

    def check(self, model):
        answer = self.ask(model)
        assert answer.status == 200, answer.body
        assert answer.json["outputs"][0]["data"] == ANSWER

    def control(self, model, action):
        return self.post(f"/v2/repository/models/{model}/{action}", b"", port=self.admin_port)


class DemandServer(Demand, AdminServer):
    pass


class HeldDemandServer(Demand, HeldServer):
    pass


class GrpcDemandServer(Demand, Grpc, AdminServer):
    pass


def put(package, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(package, path.with_name(".new"))
    os.rename(path.with_name(".new"), path)


def fill(folder, count, package=PLAIN, stem="m"):
    names = [f"{stem}{i}" for i in range(count)]
    for name in names:
        put(package, folder / f"{name}.pt2")
    return names


def loads_that_run(folder):
    """Flags by which loads of fake models run a request, so that they are held while runs are."""
    path = folder.parent / "warm_up.safetensors"
    path.write_bytes(safetensors({"r/inputs/INPUT__0": ("F32", [1, 4], struct.pack("<4f", *ROW))}))
    return ["--set", f"*.warm_up_requests={path}"]


def budget_for(folder, count, package=PLAIN, flags=()):
    """The flags of a budget for so many models of the package."""
    alone = folder.parent / (folder.name + "-alone")
    put(package, alone / "only.pt2")
    with DemandServer(alone, flags=flags) as server:
        server.control("only", "load")
        bytes_of_one = server.bytes()
    assert bytes_of_one > 0
    return ["--memory-budget", str(bytes_of_one * count + bytes_of_one // 2)]


@pytest.fixture()
def folder(tmp_path):
    path = tmp_path / "models"
    path.mkdir()
    return path
