"""Models on demand: more of them than the budget of the device's memory has room for."""
import json
import os

import torch
from net import FEATURES, OUTPUTS, X, Subject, same
from served import Clients, Server

MODELS, ROOM, WIDE = 6, 3, 1 << 17


class Large(torch.nn.Module):
    """50 MB of weights."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(FEATURES, WIDE)
        self.b = torch.nn.Linear(WIDE, OUTPUTS, bias=False)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def budget(check, net, device):
    large = Subject(Large(), device, Server.folder / "large.pt2")
    expected = large.expected(1)
    bytes_each = sum(value.numel() * value.element_size() for value in large.values(1).values())
    limit = int((ROOM + 0.5) * bytes_each)
    names = [f"m{i}" for i in range(MODELS)]
    folder = Server.folder / "many"
    folder.mkdir()
    for name in names:
        os.link(large.package, folder / f"{name}.pt2")
    setting = "--device-memory-budget" if device == "cuda" else "--memory-budget"
    with Server(folder, "--load", "demand", setting, str(limit)) as server:
        def loaded():
            status, content, _ = server.call("POST", "/v2/repository/index", {"ready": True}, admin=True)
            if status != 200:
                raise RuntimeError(f"{status} {content[:300]}")
            return {model["name"] for model in json.loads(content)} & set(names)

        def memory():
            return torch.cuda.mem_get_info()[0] if device == "cuda" else 0
        good = all(same(server.infer(model=name)[0], expected) for name in names)
        check(good, "each model's first answer")
        left = []
        for _ in range(8):
            for name in names * 2:
                good = good and same(server.infer(model=name)[0], expected)
            left.append(memory())
        check(good, "answers in turn, each of a model that was unloaded meanwhile")
        # What the driver and libraries keep is there after some rounds; what is lost in each is not.
        check(min(left[:4]) - left[-1] < bytes_each, "no memory of the device is lost", left)

        def choose(numbers):
            # Some models are asked for more often than others.
            return {"model": names[min(int(numbers.exponential(1.5)), MODELS - 1)]}
        with Clients(server, count=4, choose=choose) as clients:
            while clients.count < 400 and not clients.failures:
                for name in names[:2]:
                    good = good and same(server.infer(X[:1], model=name)[0], expected[:1])
        check(not clients.failures, "requests of four clients to all of them", clients.failures)
        check(good and clients.wrong(lambda chosen, weight_version: expected) == 0, "their answers")
        check(1 <= len(loaded()) <= ROOM, f"no more than {ROOM} are loaded", loaded())


CHECKS = (budget,)
