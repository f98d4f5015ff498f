"""A server that trainers push to, and what they send."""
import json
import pathlib

import pytest
import trainer_pickles as pickles
from admin_server import AdminServer
from serving import FAKE_MODELS, until
from test_device_memory import DEVICES, DeviceMemory
from trainer_pickles import Counters, CudaTensor, dumps
from weights_files import fake_weights

FIXTURES = json.loads(pathlib.Path(__file__).with_name("trainer_pickles.json").read_text())
ONES = {"INPUT__0": ("FP32", [1, 4], [1, 1, 1, 1])}
NAMES = ["scale.w", "scale.b"]


class TrainerServer(AdminServer):
    def trainer(self, path, body=None, method="POST", query="", **more):
        return self.admin(method, f"/{path}?{query}", body, **more)

    def value(self, model="m"):
        """The model's answer to ones, whose elements are equal, and the version of the weights."""
        answer = self.infer(model, ONES)
        assert answer.status == 200, answer.body
        values = answer.json["outputs"][0]["data"]
        assert len(set(values)) == 1, values
        return values[0], answer.json["parameters"]["weight_version"]

    def copies(self):
        return self.log_of_copies.read_text().splitlines() if self.log_of_copies.exists() else []


@pytest.fixture(scope="module")
def shared_gpu(tmp_path_factory):
    log = tmp_path_factory.mktemp("cuda") / "copies"
    with TrainerServer(f"m={FAKE_MODELS / 'fake_cuda.pt2'}",
                       flags=["--set", "m.devices=cuda:0", "--trainer-timeout", "1s"],
                       environment={"LD_LIBRARY_PATH": str(DEVICES), "FAKE_CUDA_LOG": str(log)}) as running:
        running.log_of_copies = log
        # So that each test finds weights whose answer to ones is one value, whichever of them runs first.
        assert running.push("m", fake_weights(1), "commit=true").status == 200
        yield running


def idle(server):
    until(lambda: not server.running())
    server.trainer("continue_generation")
    server.trainer("finish_weight_update")


@pytest.fixture
def gpu(shared_gpu):
    yield shared_gpu
    idle(shared_gpu)


@pytest.fixture(scope="module")
def shared_cpu(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    with TrainerServer(f"m={FAKE_MODELS / 'fake_model.so'}", flags=["--weights-dir", str(folder)],
                       environment={"LD_LIBRARY_PATH": str(DEVICES)}) as running:
        running.folder = folder
        yield running


@pytest.fixture
def cpu(shared_cpu):
    yield shared_cpu
    idle(shared_cpu)


@pytest.fixture
def memory():
    with DeviceMemory(4096) as memory:
        yield memory


@pytest.fixture
def counters():
    with Counters() as counters:
        yield counters


def from_tensor(server, pickle, load_format=None, query="", **more):
    return server.trainer("update_weights_from_tensor",
                          {"serialized_named_tensors": [pickle], "load_format": load_format, "flush_cache": True, **more},
                          query=query)


def both(memory, w, b, counters=None, **more):
    """Both weights in the memory, with a gap between them that PyTorch's allocator could have left."""
    memory.put([w] * 4, 0)
    memory.put([b] * 4, 64)
    return [(name, CudaTensor(memory, (4,), offset=at, counters=counters, **more)) for name, at in zip(NAMES, (0, 16))]


def handles(named, device=pickles.UUIDS[0]):
    return dumps([{device: tensor.reduced()} for _, tensor in named])


def update_info(named, pickled=None):
    return {"update_info": {"names": [n for n, _ in named], "dtype_names": ["float32"] * len(named),
                            "shapes": [[4]] * len(named), "ipc_handles": None,
                            "ipc_handles_pickled": pickled or handles(named)}}


def refused(answer, text, status=400):
    assert answer.status == status and text in answer.json["error"], answer.body
    return answer
