"""Servers with sequences for the tests of them, and what the model "running" computes (make_sequence_packages.py)."""
import numpy as np
import pytest
from admin_server import AdminServer
from grpc_serving import Grpc
from serving import FAKE_MODELS, PACKAGES, PROGRAM, HeldServer, until

PACKAGE = PACKAGES / "sequences.pt2"
STATE = FAKE_MODELS / "fake_state.pt2"  # y = x * w + b + how many runs there were before
RUNNING, CACHE, CONTROLLED = "sequences.running", "sequences.cache", "sequences.controlled"
HAS_GRPC = bool(list(PROGRAM.parent.parent.glob("src/libsconcegrpc.so*")))
needs_grpc = pytest.mark.skipif(not HAS_GRPC, reason="libsconce_grpc is not built: libgrpc++-dev is missing")


class Sequences:
    """Of a class of servers."""

    def __init__(self, *packages, flags=(), **settings):
        settings = {"sequences": 64, **settings}
        more = [word for key, value in settings.items() for word in ("--set", f"*.{key}={value}")]
        super().__init__(*packages or (PACKAGE, f"state={STATE}"), flags=[*more, *flags])

    def step(self, number, x=0, model="state", start=False, end=False, **parameters):
        """A step of the fake model: x in all four columns."""
        named = {"sequence_id": number, "sequence_start": start, "sequence_end": end, **parameters}
        return self.infer(model, {"INPUT__0": ("FP32", [1, 4], [x] * 4)}, parameters=named)

    def value(self, *args, **more):
        answer = self.step(*args, **more)
        assert answer.status == 200, answer.body
        return answer.json["outputs"][0]["data"][0]

    def count(self, name, model="state"):
        return self.metrics()[f'sconce_{name}{{model="{model}",version="1"}}']

    def live(self):
        return self.count("sequences")

    def wait_for_request(self):
        """Until one is read, and has gone to the model."""
        until(lambda: self.metrics()["sconce_http_inflight_body_bytes"] > 0)
        until(lambda: self.pending() == 0)

    def pending(self):
        return self.metrics()['nv_inference_pending_request_count{model="state",version="1"}']


class SequenceServer(Sequences, AdminServer):
    pass


class HeldSequenceServer(Sequences, HeldServer):
    pass


class GrpcSequenceServer(Sequences, Grpc, AdminServer):
    pass


class Running:
    """What the model "running" computes for one sequence (make_sequence_packages.py)."""

    def __init__(self):
        self.weight = np.arange(1.0, 17.0)
        self.history = [np.full(16, float(i)) for i in range(1, 5)]
        self.sum = np.zeros(16)

    def step(self, x):
        y = self.weight * (x + sum(self.history) / 4) + self.sum
        self.history = [*self.history[1:], x.astype(np.float64)]
        self.sum = self.sum + x
        return y


def running_input(module, rng):
    x = rng.standard_normal(16).astype(np.float32)
    tensor = module.InferInput("INPUT__0", [16], "FP32")
    tensor.set_data_from_numpy(x)
    return x, tensor


def only(answer):
    """The answer's one output, from either of tritonclient's clients."""
    response = answer.get_response()
    return answer.as_numpy(response["outputs"][0]["name"] if isinstance(response, dict) else response.outputs[0].name)
