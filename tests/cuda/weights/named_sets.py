"""Named sets: chosen by requests, moved to the disk and back, pushed to two servers in two phases."""
from net import same
from served import STREAM, Clients, Refused, Server, until, weights_command

MANY = range(2, 22)


def fill(server, net, scales):
    for i in scales:
        server.admin("POST", f"sets/s{i}?mode=partial", net.part(i))


def chosen(check, net, device):
    """Twenty sets on two replicas, chosen by name and header by clients at the same time."""
    with Server(net.package, "--set", "net.sets=50", "--set", "net.replicas=2") as server:
        fill(server, net, MANY)
        expected = {i: net.expected_part(i) for i in MANY}
        for i in MANY:
            good = same(server.infer(model=f"net@s{i}")[0], expected[i]) and \
                same(server.infer(headers={"Sconce-Weights": f"s{i}"})[0], expected[i])
            if not good:
                check(False, f"set s{i} by the model's name and by the header")
        check(same(server.infer()[0], net.expected(1)), "a request that names no set gets the active one")

        def choose(numbers):
            i = numbers.choice(MANY)
            return {"model": f"net@s{i}"} if i % 2 else {"headers": {"Sconce-Weights": f"s{i}"}}

        def number(chosen):
            return int((chosen.get("model") or chosen["headers"]["Sconce-Weights"]).rpartition("s")[2])
        with Clients(server, choose=choose) as clients:
            until(lambda: clients.count > 400 or clients.failures, 30)
        wrong = clients.wrong(lambda chosen, _: expected[number(chosen)])
        check(not clients.failures and wrong == 0, f"{clients.count} requests for sets in random order: none mixed",
              (clients.failures[:3], wrong))
        server.admin("POST", "sets/s5/promote", b"")
        check(same(server.infer()[0], expected[5]), "the promoted set answers")
        server.admin("POST", "weights/rollback", b"")
        check(same(server.infer()[0], net.expected(1)), "after a rollback, the first one")
        server.admin("PUT", "routes", {"active": 50, "s7": 50})
        got = [server.infer()[0] for _ in range(40)]
        count = sum(same(values, expected[7]) for values in got)
        check(15 <= count <= 25 and count + sum(same(values, net.expected(1)) for values in got) == 40, "routes share requests",
              count)


def disk(check, net, device):
    """More sets than sets_memory: the rest is on the disk and comes back when a request asks."""
    folder = Server.folder / "sets"
    arguments = (net.package, "--set", "net.sets=50", "--set", "net.sets_memory=250K", "--set", f"net.sets_folder={folder}")
    expected = {i: net.expected(i) for i in MANY}
    with Server(*arguments) as server:
        for i in MANY:  # 100 KiB each, since every parameter differs; twice that where kernels keep weights in their order
            server.admin("POST", f"sets/s{i}", net.file(i))
        told = server.admin("GET", "sets")
        check(told["on_disk"] >= 18 and told["bytes"] <= told["limit_bytes"], "sets beyond the budget are on the disk",
              {k: v for k, v in told.items() if k != "sets"})
        good = [same(server.infer(model=f"net@s{i}")[0], expected[i]) for _ in range(2) for i in MANY]
        check(all(good), "each comes back from the disk with its answers", good)
        with Clients(server, choose=lambda numbers: {"model": f"net@s{numbers.choice(MANY)}"}) as clients:
            until(lambda: clients.count > 200 or clients.failures, 30)
        wrong = clients.wrong(lambda chosen, _: expected[int(chosen["model"].rpartition("s")[2])])
        check(not clients.failures and wrong == 0, f"{clients.count} requests in random order, sets going and coming",
              (clients.failures[:3], wrong))
        told = server.admin("GET", "sets")
        check(told["bytes"] <= told["limit_bytes"], "the budget is kept", told["bytes"])
    with Server(*arguments) as server:
        check(all(same(server.infer(model=f"net@s{i}")[0], expected[i]) for i in MANY), "all are there after kill -9")
    with Server(net.package, "--set", "net.sets=50", "--set", "net.sets_memory=250K") as server:
        status = [server.call("POST", f"/v2/admin/models/net/sets/s{i}", net.file(i), STREAM, admin=True)[0] for i in (2, 3, 4)]
        check(status[0] == 200 and status[-1] == 507 and same(server.infer(model="net@s2")[0], expected[2]),
              "without a folder, one too many is refused with 507", status)


def two_phases(check, net, device):
    """A named set is pushed to two servers, or to none."""
    files = {i: Server.folder / f"set-{i}.safetensors" for i in (6, 7, 8)}
    for i, file in files.items():
        file.write_bytes(net.file(i))
    options = ("--set", "net.sets=4")
    with Server(net.package, *options) as one, Server(net.package, *options) as two, Server(net.package) as none:
        def serve(scale, *servers):
            return all(same(s.infer(model="net@t")[0], net.expected(scale)) for s in servers)
        status, told = weights_command("push", files[6], "--set", "t", "--label", "six", servers=(one, two))
        check(status == 0 and serve(6, one, two), "a named set is pushed to two servers", told)
        status, told = weights_command("push", files[7], "--set", "t", servers=(one, two, none))
        check(status == 1 and serve(6, one, two), "one server refuses: no server has changed", told)
        for server in (one, two):
            server.admin("POST", "sets/t?push=by-id", net.file(7))
            server.admin("POST", "weights/prepare?push=by-id", b"")
        check(serve(6, one, two), "while it waits for its name, requests get what the name had")
        for server in (one, two):
            server.admin("POST", "weights/commit?push=by-id", b"")
        check(serve(7, one, two), "committed by id")
        for server in (one, two):
            server.admin("POST", "weights/rollback?push=by-id", b"")
        check(serve(6, one, two), "rolled back by id")
        one.admin("POST", "sets/t", net.file(8))
        status, told = weights_command("reconcile", "--set", "t", "--from", one.url, servers=(one, two))
        check(status == 0 and serve(8, one, two), "reconcile brings a set to both", told)
        one.admin("DELETE", "sets/t")
        try:
            one.infer(model="net@t")
            gone = False
        except Refused as problem:
            gone = str(problem).startswith("404")
        check(gone, "a removed set is not found")


CHECKS = (chosen, disk, two_phases)
