"""New weights by any of the names that share one tensor: as a file says it, and as the package records it."""
import json
import struct
import zipfile

import pytest
from admin_server import FAKE, AdminServer
from serving import PACKAGES
from weights_files import fake_weights, repeated, safetensors

EXPECTED = json.loads((PACKAGES / "inlined.json").read_text())
STATE = (PACKAGES / "inlined.safetensors").read_bytes()
KEPT = "tied.kept"


def with_metadata(data, metadata):
    """The file, as safetensors.torch.save_model() writes it: {name that was left out: name that was kept}."""
    length = struct.unpack("<Q", data[:8])[0]
    text = json.dumps({"__metadata__": metadata, **json.loads(data[8:8 + length])}).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data[8 + length:]


def renamed(data, names, doubled=()):
    """Entries under other names; `doubled`: name -> one more entry with the same values."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    tensors = {name: (e["dtype"], e["shape"], data[8 + length:][slice(*e["data_offsets"])]) for name, e in header.items()}
    more = {doubled[name]: tensor for name, tensor in tensors.items() if name in doubled}
    return safetensors({**{names.get(name, name): tensor for name, tensor in tensors.items()}, **more})


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """inlined.pt2, whose model `kept` records other names of "wide" and "linear.weight"."""
    path = tmp_path_factory.mktemp("tied") / "tied.pt2"
    names = {"narrow": "wide", "head.weight": "linear.weight", "embed.weight": "linear.weight"}
    seen = 0
    with zipfile.ZipFile(PACKAGES / "inlined.pt2") as old, zipfile.ZipFile(path, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if "/kept/" in item.filename and item.filename.endswith("wrapper_metadata.json"):
                data = json.dumps({**json.loads(data), "sconce_tied": json.dumps({"version": 1, "names": names})}).encode()
                seen += 1
            new.writestr(zipfile.ZipInfo(item.filename, (1980, 1, 1, 0, 0, 0)), data)
    assert seen == 1
    return path


@pytest.fixture
def server(package, tmp_path):
    with AdminServer(package, flags=["--weights-dir", tmp_path]) as running:
        running.folder = tmp_path
        yield running


def assert_answers(server, which):
    got = server.post(f"/v1/models/{KEPT}:call", {"args": [EXPECTED["input"]]})
    assert got.status == 200, got.body
    for values, expected in zip(got.json, EXPECTED[which], strict=True):
        assert values == pytest.approx(expected, rel=1e-5, abs=1e-6), which


@pytest.mark.parametrize("data", [
    renamed(STATE, {"wide": "narrow", "linear.weight": "embed.weight"}),
    renamed(STATE, {}, {"wide": "narrow", "linear.weight": "head.weight"}),
    renamed(STATE, {"linear.weight": "head.weight"}, {"linear.weight": "embed.weight"}),
    with_metadata(renamed(STATE, {"wide": "first"}), {"wide": "first", "format": "pt"}),
    with_metadata(renamed(STATE, {"wide": "first"}), {"narrow": "first"}),
], ids=["other", "both", "others", "file", "file-and-package"])
def test_a_full_update_by_any_of_the_names(server, data):
    pushed = server.push(KEPT, data, "commit=true")
    assert pushed.status == 200, pushed.body
    assert_answers(server, "all")
    assert server.admin("POST", f"{KEPT}/weights/rollback").status == 200
    assert_answers(server, "stored")
    (server.folder / "tied.safetensors").write_bytes(data)
    staged = server.admin("POST", f"{KEPT}/weights?commit=true", {"file": "tied.safetensors"})
    assert staged.status == 200, staged.body
    assert_answers(server, "all")


def test_names_of_one_constant_whose_values_differ(server):
    wrong = bytearray(renamed(STATE, {}, {"wide": "narrow"}))
    wrong[-1] ^= 1
    for query in ("commit=true", "dry_run=true"):
        refused = server.push(KEPT, bytes(wrong), query)
        assert refused.status == 400
        assert "'narrow'" in refused.json["error"] and "'wide'" in refused.json["error"], refused.body
    assert_answers(server, "stored")
    assert server.push(KEPT, bytes(wrong), "commit=true&ignore=narrow").status == 200
    assert_answers(server, "all")


def test_a_file_of_save_model_for_a_package_that_records_nothing(tmp_path):
    good = with_metadata(safetensors({"kept": repeated(8, 4), "scale.b": repeated(8, 4)}), {"scale.w": "kept"})
    with AdminServer(f"fake={FAKE}", flags=["--weights-dir", tmp_path]) as server:
        assert server.push("fake", fake_weights(8), "commit=true").status == 200
        answer = server.ones()[0]
        assert server.admin("POST", "fake/weights/rollback").status == 200
        assert server.push("fake", good, "commit=true").status == 200
        assert server.ones()[0] == answer
        for metadata in ({"scale.w": "gone"}, {"scale.w": "other", "other": "scale.w"}, {"kept": "scale.w"}):
            refused = server.push("fake", with_metadata(safetensors({"kept": repeated(8, 4)}), metadata))
            assert refused.status == 404 and "no constant 'kept'" in refused.json["error"], refused.body
