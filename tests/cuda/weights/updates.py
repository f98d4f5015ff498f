"""Updates of the model's own weights: under load, kept, from a peer, on many servers, without a device that is named."""
import json

import safetensors.torch
import torch
from net import same
from served import Clients, Server, quoted, until, weights_command


def under_load(check, net, device):
    """Pushes and rollbacks while clients ask: no request fails, and each answer is that of its weight version's weights."""
    scales = {1: 1.0}
    with Server(net.package, "--set", "net.replicas=2") as server:
        def publish(action, scale, body=None):
            server.admin("POST", action, body or b"")
            scales[server.state("active")["generation"]] = scale
        publish("weights?commit=true", 1.5, net.file(1.5))
        used = None
        with Clients(server) as clients:
            for turn in range(12):
                scale = 2 + turn / 8
                before = scales[max(scales)]
                publish(f"weights?commit=true&label=r{turn}", scale, net.file(scale))
                if turn % 3 == 0:
                    publish("weights/rollback", before)
                if turn == 5 and device == "cuda":
                    server.admin("POST", "weights/release", b"")
                    used = memory_used()
                there = clients.count
                until(lambda there=there: clients.count > there + 20 or clients.failures, 30)
        if device == "cuda":
            server.admin("POST", "weights/release", b"")
            grown = memory_used() - used
            check(grown < 64 << 20, "memory of the GPU does not grow with updates", f"{grown} bytes")
        expected = {weight_version: net.expected(scale) for weight_version, scale in scales.items()}
        check(not clients.failures, "pushes and rollbacks under load: no request failed, no weight version went back",
              clients.failures[:3])
        seen = {weight_version for _, weight_version, _ in clients.answers}
        check(len(seen) > 10, "most of the weight versions answered", f"{len(seen)} of {len(scales)}")
        wrong = clients.wrong(lambda _, weight_version: expected[weight_version])
        check(wrong == 0, f"{clients.count} answers are those of their weight version's weights", f"{wrong} are not")


def memory_used():
    free, total = torch.cuda.mem_get_info()
    return total - free


def kept(check, net, device):
    """What was pushed outlives kill -9; a second server takes it from the first one."""
    keep = ("--weights-store", Server.folder / "kept")
    with Server(net.package, *keep) as server:
        server.admin("POST", "weights?commit=true&label=v3", net.file(3))
        values, pushed = server.infer()
        check(same(values, net.expected(3)), "pushed")
    with Server(net.package, *keep) as server:
        values, weight_version = server.infer()
        check(same(values, net.expected(3)) and weight_version == pushed, "served again after kill -9, with its weight version")
        _, body, fields = server.call("GET", "/v2/admin/models/net/weights/active", admin=True)
        check(torch.equal(safetensors.torch.load(body)["b.weight"], net.values(3)["b.weight"]) and
              fields["Sconce-Weights-Label"] == "v3", "the active set as a file")
        with Server(net.package, "--set", "net.weights_from=" + server.url) as other:
            values, weight_version = other.infer()
            check(same(values, net.expected(3)) and weight_version == pushed, "taken from a peer, with its weight version")
        server.admin("POST", "weights", safetensors.torch.save({**net.values(3), "b.weight": net.values(1)["b.weight"]}))
        told = server.admin("GET", "weights/diff")
        check(told["same"] == 3 and told["to"] == "staged" and abs(told["differences"][0]["relative"] - 2 / 3) < 1e-6,
              "how far the staged set is", told)


def two_servers(check, net, device):
    """`sconce weights push` to two servers on one device, by both ways, and one that refuses."""
    file = Server.folder / "five.safetensors"
    file.write_bytes(net.file(5))
    wrong = Server.folder / "wrong.safetensors"
    wrong.write_bytes(safetensors.torch.save({"b.weight": torch.zeros(3)}))
    with Server(net.package) as one, Server(net.package) as two:
        status, told = weights_command("push", file, "--label", "five", servers=(one, two))
        check(status == 0 and all(same(s.infer()[0], net.expected(5)) for s in (one, two)), "pushed to two servers", told)
        status, told = weights_command("rollback", servers=(one, two))
        check(status == 0 and all(same(s.infer()[0], net.expected(1)) for s in (one, two)), "both rolled back", told)
        status, told = weights_command("push", file, "--relay", servers=(one, two))
        check(status == 0 and all(same(s.infer()[0], net.expected(5)) for s in (one, two)), "pushed with --relay", told)
        status, told = weights_command("push", wrong, servers=(one, two))
        check(status == 1 and all(same(s.infer()[0], net.expected(5)) for s in (one, two)), "a wrong shape: none has changed",
              told)
        members = quoted(f"{one.url},{two.url}")
        for i, server in enumerate((one, two)):
            server.admin("POST", f"weights?push=late&lease=500ms&members={members}&member={i}", net.file(6))
            server.admin("POST", "weights/prepare?push=late", b"")
        one.admin("POST", "weights/commit?push=late", b"")
        check(until(lambda: same(two.infer()[0], net.expected(6)), 20),
              "a coordinator that dies after the first commit: the second server follows")


def devices_auto(check, net, device):
    """A package for the GPU goes there if no device is named."""
    with Server(net.package, devices="auto") as server:
        told = server.admin("GET", "replicas")
        places = {r["device"] for r in told["replicas"]}
        check(places == {"cuda:0" if device == "cuda" else "cpu"}, "devices=auto takes the package's device", json.dumps(told))
        check(same(server.infer()[0], net.expected(1)), "devices=auto: its answer")
        server.admin("POST", "weights?commit=true", net.file(2))
        check(same(server.infer()[0], net.expected(2)), "devices=auto: its answer after a push")


CHECKS = (under_load, kept, two_servers, devices_auto)
