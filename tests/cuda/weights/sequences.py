"""Sequences (docs/sequences.md) of a model that writes its buffers on the device, with and without CUDA graphs."""
import json
import time

import numpy as np
import safetensors.torch
import torch
from net import same
from served import Connection, Refused, Server

WIDTH, STEPS = 64, 24


class Cache(torch.nn.Module):
    """Attention of a step's row to all rows of its sequence so far, which are in a buffer, and a running sum."""

    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(WIDTH, WIDTH)
        # torch 2.11 compiles a buffer whose elements are all equal as a constant, also one that the model writes.
        self.register_buffer("rows", torch.randn(STEPS, WIDTH))
        self.register_buffer("count", torch.tensor([0, 1]))
        self.register_buffer("total", torch.randn(1, WIDTH))

    def forward(self, x):
        at = torch.arange(STEPS, device=x.device)
        rows = torch.where((at == self.count[0])[:, None], self.project(x), self.rows)
        weights = torch.softmax((x @ rows.T).masked_fill(at > self.count[0], float("-inf")), -1)
        total = self.total + x
        self.rows.copy_(rows)
        self.count.add_(1)
        self.total.copy_(total)
        return weights @ rows + total


class Stepper:
    """A connection whose requests are steps."""

    def __init__(self, server):
        self.connection = Connection(server)

    def step(self, name, x, **parameters):
        head = json.dumps({"inputs": [{"name": "INPUT__0", "datatype": "FP32", "shape": [1, WIDTH],
                                       "parameters": {"binary_data_size": x.nbytes}}],
                           "parameters": {"binary_data_output": True, "sequence_id": name, **parameters}}).encode()
        self.connection.connection.request("POST", "/v2/models/cache/infer", head + x.tobytes(),
                                           {"Inference-Header-Content-Length": str(len(head))})
        answer = self.connection.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise Refused(f"{answer.status} {content[:300]}")
        return np.frombuffer(content[int(answer.headers["Inference-Header-Content-Length"]):], np.float32).reshape(1, WIDTH)


def package_of(device):
    path = Server.folder / "cache.pt2"
    torch.manual_seed(1)
    module = Cache().to(device).eval()
    if not path.exists():
        program = torch.export.export(module, (torch.zeros(1, WIDTH, device=device),))
        torch._inductor.aoti_compile_and_package(program, package_path=str(path),
                                                 inductor_configs={"always_keep_tensor_constants": True})
    return module, path


def expected(module, device, rows):
    """What each step of a sequence answers in PyTorch."""
    own = Cache().to(device).eval()
    own.load_state_dict(module.state_dict())
    with torch.no_grad():
        return [own(torch.from_numpy(row).to(device)).cpu().numpy() for row in rows]


def memory_used():
    free, total = torch.cuda.mem_get_info()
    return total - free


def interleaved(check, device, graphs, sequences=48):
    """Each sequence has a state of its own; steps of all of them alternate at random."""
    module, path = package_of(device)
    numbers = np.random.default_rng(2)
    inputs = numbers.standard_normal((sequences, STEPS, 1, WIDTH), dtype=np.float32)
    wanted = [expected(module, device, rows) for rows in inputs]
    with Server(f"cache={path}", "--set", f"cache.sequences={sequences}", "--set", f"cache.cuda_graphs={graphs}") as server:
        stepper = Stepper(server)
        before = memory_used() if device == "cuda" else 0
        at, wrong = [0] * sequences, 0
        begin = time.monotonic()
        while min(at) < STEPS:
            name = int(numbers.choice([i for i in range(sequences) if at[i] < STEPS]))
            answer = stepper.step(name + 1, inputs[name][at[name]], sequence_start=at[name] == 0)
            wrong += not same(answer, wanted[name][at[name]])
            at[name] += 1
        seconds = time.monotonic() - begin
        check(wrong == 0, f"{sequences} sequences of {STEPS} steps in turns, {graphs} CUDA graphs a place", f"{wrong} differ")
        again = [stepper.step(1, row, sequence_start=i == 0) for i, row in enumerate(inputs[1])]
        check(all(map(same, again, wanted[1])), "a place that is used again begins with the package's buffers")
        try:
            stepper.step("one more", inputs[0][0], sequence_start=True)
            check(False, "a beginning without a place is refused")
        except Refused as problem:
            check(str(problem).startswith("429"), "a beginning without a place is refused", problem)
        replicas = server.admin("GET", "replicas", model="cache")["replicas"]
        runs = sum(r.get("graph_runs", 0) for r in replicas)
        if device == "cuda":
            check((runs > 0) == (graphs > 0), f"steps are repeated as graphs exactly if there are any: {runs} of them", replicas)
            print(f"     {(memory_used() - before) / sequences / 1024:.0f} KiB of device memory a sequence, "
                  f"{seconds / sequences / STEPS * 1e6:.0f} us a step of one client")


def with_graphs(check, subject, device):
    """Steps as CUDA graphs."""
    interleaved(check, device, 2)


def without_graphs(check, subject, device):
    """Steps without CUDA graphs."""
    interleaved(check, device, 0)


def new_weights(check, subject, device):
    """A sequence goes on with the weights it began with, and with sequence_weights=active takes new ones, with its buffers."""
    module, path = package_of(device)
    rows = np.random.default_rng(3).standard_normal((4, 1, WIDTH), dtype=np.float32)
    other = Cache().to(device).eval()
    other.load_state_dict(module.state_dict())
    with torch.no_grad():
        other.project.weight.mul_(-2)
        other.project.bias.mul_(-2)
    for rule in ("begun", "active"):
        with Server(f"cache={path}", "--set", "cache.sequences=4", "--set", f"cache.sequence_weights={rule}") as server:
            stepper = Stepper(server)
            answers = [stepper.step(1, rows[0], sequence_start=True), stepper.step(1, rows[1])]
            server.admin("POST", "weights?commit=true", model="cache",
                         body=safetensors.torch.save({n: p.detach().cpu().contiguous() for n, p in other.named_parameters()}))
            answers += [stepper.step(1, rows[2]), stepper.step(1, rows[3], sequence_end=True)]
            own = Cache().to(device).eval()
            own.load_state_dict(module.state_dict())
            wanted = []
            with torch.no_grad():
                for i, row in enumerate(rows):
                    if i == 2 and rule == "active":
                        for mine, new in zip(own.parameters(), other.parameters()):
                            mine.copy_(new)
                    wanted.append(own(torch.from_numpy(row).to(device)).cpu().numpy())
            check(all(map(same, answers, wanted)), f"new weights in the middle of a sequence, sequence_weights={rule}")
            fresh = stepper.step(2, rows[0], sequence_start=True)
            check(same(fresh, expected(other, device, rows[:1])[0]), f"a later sequence has the new weights ({rule})")


CHECKS = (with_graphs, without_graphs, new_weights)
