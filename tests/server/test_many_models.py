"""Documents about very many models: made beside the threads that read requests, and up to date all the same."""
import os

import pytest
from demand_serving import PLAIN, DemandServer, put

MANY = 900


def tasks(server):
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    put(PLAIN, folder / "m0.pt2")
    for i in range(1, MANY):
        os.link(folder / "m0.pt2", folder / f"m{i}.pt2")
    with DemandServer(folder) as running:
        yield running


def test_an_index_of_few_models_needs_no_further_thread(tmp_path):
    put(PLAIN, tmp_path / "a.pt2")
    with DemandServer(tmp_path) as server:
        before = tasks(server)
        assert len(server.index()) == 1 and len(server.get("/v1/models").json["models"]) == 1
        assert tasks(server) == before


@pytest.mark.parametrize("ask", [lambda s: s.post("/v2/repository/index", b""), lambda s: s.get("/v1/models"),
                                 lambda s: s.get("/v2/models"), lambda s: s.get("/"), lambda s: s.get("/v2/models/stats")],
                         ids=["index", "v1", "v2", "page", "stats"])
def test_one_of_many_is_made_elsewhere(tmp_path, ask):
    put(PLAIN, tmp_path / "m0.pt2")
    for i in range(1, 300):
        os.link(tmp_path / "m0.pt2", tmp_path / f"m{i}.pt2")
    with DemandServer(tmp_path) as server:
        before = tasks(server)
        assert ask(server).status == 200
        assert tasks(server) == before + 1


def test_the_index_of_many_models_follows_what_happens(server):
    index = server.post("/v2/repository/index", b"")
    assert len(index.body) > 64 * 1024 and len(index.json) == MANY  # so long that it is kept
    assert server.state("m7") == "known"
    server.check("m7")
    assert server.state("m7") == "loaded"
    assert server.control("m8", "load").status == 200
    assert server.loaded() == {"m7", "m8"}
    assert server.control("m7", "unload").status == 200
    assert server.control("m9", "unload").status == 200  # which was not loaded
    states = server.states()
    assert states["m7"][0] == states["m9"][0] == "unloaded" and states["m8"][0] == "loaded"
    names = server.get("/v2/models").json["models"]
    assert sorted(names) == sorted(server.get("/v1/models").json["models"]) == sorted(f"m{i}" for i in range(MANY))
    assert server.post("/v2/repository/index", {"ready": True}).json[0]["name"] == "m8"
