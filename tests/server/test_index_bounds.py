"""Indices out of bounds that a package's metadata names are refused before the run: 400, not a failed run."""
import json
import zipfile

import pytest
from serving import PACKAGES, Server

MODEL = "bounded.checked"
BOUNDS = {"version": 1, "bounds": [{"input": 1, "low": -3, "high": 2}]}  # the second argument indexes the first, of 3 elements


def with_metadata(path, added):
    """A copy of several.pt2 whose model `checked` has more metadata."""
    with zipfile.ZipFile(PACKAGES / "several.pt2") as old, zipfile.ZipFile(path, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if "/checked/" in item.filename and item.filename.endswith("wrapper_metadata.json"):
                data = json.dumps({**json.loads(data), **added}).encode()
            new.writestr(zipfile.ZipInfo(item.filename, (1980, 1, 1, 0, 0, 0)), data)
    return path


def ask(server, *indices):
    return server.infer(MODEL, {"ARGS[0]": ("FP32", [3], [1, 2, 3]), "ARGS[1]": ("INT64", [len(indices)], list(indices))})


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return with_metadata(tmp_path_factory.mktemp("bounds") / "bounded.pt2", {"sconce_index_bounds": json.dumps(BOUNDS)})


def test_an_index_out_of_bounds_is_the_clients_error(package):
    with Server(package) as server:
        right = ask(server, 0, 2)
        assert right.status == 200
        for wrong, place in ((3, 1), (-4, 1), (1 << 62, 1)):
            answer = ask(server, 0, wrong)
            assert answer.status == 400, answer.json
            assert f": index {wrong} at [{place}] is out of bounds: -3 to 2" in answer.json["error"]
            assert "input 'ARGS[1]'" in answer.json["error"]
        call = server.post(f"/v1/models/{MODEL}:call", {"args": [[1, 2, 3], [7, 0]]})
        assert call.status == 400 and "index 7 at [0] is out of bounds" in str(call.json)
        assert ask(server, 0, 2).json["outputs"] == right.json["outputs"]


def test_check_indices_turns_it_off(package):
    with Server(package, flags=["--set", f"{MODEL}.check_indices=false"]) as server:
        assert ask(server, 0, 3).status == 500
        assert ask(server, 0, 2).status == 200
