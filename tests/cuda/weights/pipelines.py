"""A pipeline whose two steps are on the device, and whose weights change."""
import json

import numpy as np
from net import X, Head, Subject, same
from served import Clients, Server, until

PIPELINE = {"inputs": ["x"], "outputs": ["y"], "steps": [
    {"model": "net", "inputs": {"INPUT__0": "x"}, "outputs": {"OUTPUT__0": "mid"}},
    {"model": "head", "inputs": {"INPUT__0": "mid"}, "outputs": {"OUTPUT__0": "y"}}]}


def steps(check, net, device):
    head = Subject(Head(), device, Server.folder / "head.pt2")
    file = Server.folder / "both.pipeline.json"
    file.write_text(json.dumps(PIPELINE))

    def expected(first, second, x=X):
        return head.expected(second, net.expected(first, x))
    with Server(net.package, head.package, file, "--set", "both.devices=cpu") as server:
        def ask(x=X):
            body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": list(x.shape), "data": x.ravel().tolist()}]}
            status, content, _ = server.call("POST", "/v2/models/both/infer", body)
            if status != 200:
                raise RuntimeError(f"{status} {content[:300]}")
            answer = json.loads(content)
            return np.array(answer["outputs"][0]["data"], np.float32).reshape(answer["outputs"][0]["shape"]), \
                answer["parameters"]["weight_version"]
        places = {m: server.admin("GET", "replicas", model=m)["replicas"][0]["device"] for m in ("net", "head")}
        check(set(places.values()) == {"cuda:0" if device == "cuda" else "cpu"}, "both steps are on the device", places)
        values, version = ask()
        check(same(values, expected(1, 1)) and version == "net=1,head=1", "a pipeline's answer", version)
        check(same(ask(X[:1])[0], expected(1, 1, X[:1])), "its answer to one row")
        with Clients(server):  # the first step has other requests, too
            good = all(same(ask()[0], expected(1, 1)) for _ in range(30))
            check(good, "beside other requests to its first step")
            server.admin("POST", "weights?commit=true&label=n2", net.file(2))
            server.admin("POST", "weights?commit=true&label=h3", head.file(3), model="head")
            values, version = ask()
            check(same(values, expected(2, 3)) and version == "net=n2,head=h3", "after pushes to both steps", version)
            server.admin("POST", "weights/rollback", b"", model="head")
            check(until(lambda: same(ask()[0], expected(2, 1)), 5), "after a rollback of the second step")


CHECKS = (steps,)
