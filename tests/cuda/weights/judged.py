"""Sets that are judged before they count: shadow, golden requests, guarded commits."""
import json
import math

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch
from net import FEATURES, same
from served import Clients, Server, until, weights_command


def shadow(check, net, device):
    """What a shadow says of two sets is what PyTorch's answers differ by."""
    inputs = [np.random.default_rng(i).standard_normal((1 + i % 4, FEATURES), dtype=np.float32) for i in range(16)]
    with Server(net.package, "--set", "net.shadow=1") as server:
        server.admin("POST", "weights?label=v2", changed := bend(net))
        running = until(lambda: server.admin("GET", "weights/shadow")["state"] == "running")
        check(running, "shadow: a staged set gets a replica", server.admin("GET", "weights/shadow"))

        def ended():
            told = server.admin("GET", "weights/shadow")
            return told["compared"] + told["failed"] + told["skipped"]
        for i, x in enumerate(inputs):
            server.infer(x)
            until(lambda i=i: ended() > i)
        told = server.admin("GET", "weights/shadow")
        check(told["compared"] == 16 and told["failed"] == told["skipped"] == 0, "shadow: 16 requests compared", told)
        before = [net.expected(1, x).astype(np.float64) for x in inputs]
        after = [net.with_values(safetensors.torch.load(changed))(x).astype(np.float64) for x in inputs]
        apart = np.concatenate([abs(a - b).ravel() for a, b in zip(before, after, strict=True)])
        a, b = (np.concatenate([x.ravel() for x in all_of]) for all_of in (before, after))
        other = [np.argmax(x, 1) != np.argmax(y, 1) for x, y in zip(before, after, strict=True)]
        expected = {"largest": apart.max(), "mean": apart.mean(), "cosine": a @ b / np.linalg.norm(a) / np.linalg.norm(b),
                    "rows_changed_argmax": sum(int(o.sum()) for o in other), "changed_argmax": sum(bool(o.any()) for o in other),
                    "elements": apart.size, "rows": sum(map(len, inputs)), "new_nonfinite": 0}
        output = told["outputs"][0]
        for field, value in expected.items():
            check(math.isclose(output[field], value, rel_tol=1e-3), f"shadow: {field} as PyTorch's",
                  f"{output[field]}, expected {value}")
        check(told["seconds"]["active"]["p50"] > 0 and told["seconds"]["staged"]["p50"] > 0, "shadow: both sets were timed", told)
        with Clients(server, count=2) as clients:
            until(lambda: clients.count > 100, 20)
            server.admin("POST", "weights/abort", b"")
            server.admin("POST", "weights?label=nan", nan(net))
            until(lambda: server.admin("GET", "weights/shadow").get("compared", 0) > 5)
            told = server.admin("GET", "weights/shadow")
        check(told["outputs"][0]["new_nonfinite"] == told["compared"] > 5, "shadow under load: NaN of the staged set is seen", told)
        wrong = clients.wrong(lambda *_: net.expected(1))
        check(not clients.failures and wrong == 0, f"shadow under load: {clients.count} live answers are the active set's",
              (clients.failures[:3], wrong))


def bend(net):
    """Weights whose answers differ in kind and not only in scale."""
    values = net.values(1)
    values["b.weight"] = values["b.weight"] + 0.3 * torch.randn(values["b.weight"].shape, generator=torch.Generator().manual_seed(1))
    return safetensors.torch.save(values)


def nan(net):
    values = net.values(2)
    values["b.weight"][3, 5] = float("nan")
    return safetensors.torch.save(values)


def golden(check, net, device):
    """Recorded by PyTorch, and by the command from live requests."""
    file = Server.folder / "golden.safetensors"
    with Server(net.package) as server:
        _, content, _ = server.call("GET", "/v2/models/net")
        names = [json.loads(content)[side][0]["name"] for side in ("inputs", "outputs")]
        recorded = Server.folder / "recorded.safetensors"
        with Clients(server):
            status, told = weights_command("golden", "--requests", 30, "--out", recorded, servers=[server])
        check(status == 0 and recorded.exists(), "golden requests are recorded under load", told)
    tensors = {}
    for i in range(8):
        x = np.random.default_rng(i).standard_normal((1 + i % 3, FEATURES), dtype=np.float32)
        tensors[f"r{i}/inputs/{names[0]}"] = x
        tensors[f"r{i}/outputs/{names[1]}"] = net.expected(2, x)
    safetensors.numpy.save_file(tensors, file)
    with Server(net.package, "--set", f"net.golden={file}", "--set", "net.sets=2") as server:
        told = server.admin("POST", "weights?label=good", net.file(2))
        check(told["golden"]["verdict"] == "passed" and told["golden"]["passed"] == 8, "golden: PyTorch's answers pass", told)
        server.admin("POST", "weights/commit", b"")
        check(same(server.infer()[0], net.expected(2)), "golden: what passed is served")
        told = server.admin("POST", "weights?commit=true", net.file(2.1), status=422)
        check(same(server.infer()[0], net.expected(2)), "golden: other weights are refused", told)
        server.admin("POST", "weights?commit=true", nan(net), status=422)
        check(server.state("staged") is None, "golden: NaN is refused, and nothing stays staged")
        told = server.admin("POST", "weights?golden=report", net.file(2.1))
        check(told["golden"]["verdict"] == "failed" and told["golden"]["failed"] == 8, "golden=report keeps and tells", told)
        server.admin("POST", "weights/abort", b"")
        server.admin("POST", "sets/other", net.file(2.1))
        server.admin("POST", "sets/other/promote", b"", status=422)
        check(same(server.infer()[0], net.expected(2)), "golden: a named set that fails is not promoted")
    with Server(net.package, "--set", f"net.golden={recorded}") as server:
        told = server.admin("POST", "weights", net.file(1))
        check(told["golden"]["passed"] == 30, "golden: the recorded answers pass with the weights that gave them", told)
        server.admin("POST", "weights/abort", b"")
        server.admin("POST", "weights", net.file(1.01), status=422)
        check(True, "golden: the recorded answers refuse others")


def guard(check, net, device):
    """A commit that is watched goes back by itself: for NaN, for p99; on all servers of a push; and a good one stays."""
    file, good = Server.folder / "nan.safetensors", Server.folder / "good.safetensors"
    file.write_bytes(nan(net))
    good.write_bytes(net.file(3))
    with Server(net.package, "--set", "net.replicas=2") as one, Server(net.package) as two:
        expected = {1: 1.0}
        with Clients(one) as clients:
            until(lambda: clients.count > 20)
            one.admin("POST", "weights?commit=true&guard=60s", nan(net))
            gone = until(lambda: one.admin("GET", "weights/guard")["state"] == "rolled_back")
            told = one.admin("GET", "weights/guard")
            weight_version = one.state("active")["generation"]
            expected[weight_version] = 1.0
            there = clients.count
            until(lambda: clients.count > there + 50)
        check(gone and "NaN" in told.get("reason", ""), "guard: the first NaN rolls back", told)
        check(not clients.failures, "guard: no request failed for it", clients.failures[:3])
        wrong = sum(not (np.isnan(values).any() if weight_version not in expected else same(values, net.expected(1)))
                    for _, weight_version, values in clients.answers)
        check(wrong == 0, f"guard: {clients.count} answers are those of their weight version", f"{wrong} are not")
        one.admin("POST", "weights?commit=true&guard=1s&guard_p99=60s", net.file(3))
        with Clients(one):
            passed = until(lambda: one.admin("GET", "weights/guard")["state"] == "passed")
        check(passed and same(one.infer()[0], net.expected(3)), "guard: good weights stay", one.admin("GET", "weights/guard"))
        with Clients(one):
            one.admin("POST", "weights?commit=true&guard=60s&guard_p99=1us", net.file(4))
            gone = until(lambda: one.admin("GET", "weights/guard")["state"] == "rolled_back")
        check(gone and same(one.infer()[0], net.expected(3)), "guard: late answers roll back", one.admin("GET", "weights/guard"))
        two.admin("POST", "weights?commit=true", net.file(3))
        with Clients(two):
            status, told = weights_command("push", file, "--guard", "30s", servers=(one, two))
        check(status == 1 and all(same(s.infer()[0], net.expected(3)) for s in (one, two)),
              "guard: NaN on one server takes a push back on both", told)
        with Clients(one), Clients(two):
            status, told = weights_command("push", good, "--guard", "1s", servers=(one, two))
        check(status == 0, "guard: a good push stays on both", told)
        check(all(same(s.infer()[0], net.expected(3)) for s in (one, two)), "guard: and is served")


CHECKS = (shadow, golden, guard)
