"""Signed packages, weights and libraries of operators: what require_signature takes and what it refuses."""
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import zipfile

import pytest
from admin_server import FAKE, ONES, STORED, AdminServer, expected
from serving import FAKE_MODELS, PROGRAM, ROOT, run_serve, until
from signing_files import keys, verify  # noqa: F401  keys is a fixture
from weights_files import content_digest, fake_weights

PACKAGE = FAKE_MODELS / "fake_batched.pt2"
OPERATORS = PROGRAM.parent.parent / "examples/libgeometry.so"


@pytest.fixture()
def package(tmp_path):
    return shutil.copy(PACKAGE, tmp_path / "fake.pt2")


def require(*signers):
    return ["--require-signature", ",".join(str(key.public) for key in signers)]


def signed_server(package, key, *flags, **more):
    return AdminServer(f"fake={package}", flags=[*require(key), *flags], **more)


def refused_at_start(package, reason, *flags):
    status, log = run_serve(f"fake={package}", *flags)
    assert status != 0 and reason in log, log
    return log


# `sconce sign` and `sconce verify`.


@pytest.mark.parametrize("flags", [(), ("--inside",)])
def test_sign_and_verify(package, keys, flags):
    first, second, third = keys
    status, said = verify("--key", first.public, package)
    assert status == 1 and "neither beside it (.sig) nor inside" in said
    first.sign(package, *flags)
    assert verify("--key", first.public, package) == (0, verify("--key", second.public, "--key", first.public, package)[1])
    status, said = verify("--key", second.public, "--key", third.public, package)
    assert status == 1 and "not by a key that is asked for (2 keys)" in said
    content = bytearray(package.read_bytes())
    content[len(content) // 2] ^= 1
    package.write_bytes(content)
    status, said = verify("--key", first.public, package)
    assert status == 1 and "not those that were signed" in said and str(package) in said


def test_verify_several_files(tmp_path, package, keys):
    first = keys[0]
    weights = first.sign_bytes(tmp_path, fake_weights(5))
    first.sign(package)
    status, said = verify("--key", first.public, package, weights)
    assert status == 0 and len(said.splitlines()) == 2
    assert verify("--key", first.public, package, weights, PACKAGE)[0] == 1
    assert verify("--key", first.public, package, tmp_path / "absent")[0] == 2


def test_a_signature_elsewhere(tmp_path, package, keys):
    first, signature = keys[0], tmp_path / "elsewhere.json"
    first.sign(package, "--output", signature)
    assert not os.path.exists(f"{package}.sig")
    assert verify("--key", first.public, "--signature", signature, package)[0] == 0
    bundle = json.loads(signature.read_text())
    assert bundle["dsseEnvelope"]["payloadType"] == "application/vnd.in-toto+json"


@pytest.mark.parametrize("arguments, said", [
    (["sign", "x"], "--key is required"), (["sign", "--key", "/nowhere", "x"], "/nowhere"),
    (["sign", "--key", "k", "--inside", "--output", "s", "x"], "not with --inside"),
    (["verify", "x"], "verify needs --key"), (["verify", "--key", "k"], "FILE is required"),
    (["verify", "--key", "k", "--signature", "s", "x", "y"], "--signature is for one file"),
    (["verify", "--key", "/nowhere", "x"], "/nowhere")])
def test_wrong_usage(arguments, said):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr, done.stderr


BLOCKS = dict(re.findall(r"```sh (\w+)\n(.*?)```", (ROOT / "docs/signing.md").read_text(), re.DOTALL))


@pytest.mark.skipif(shutil.which("curl") is None, reason="the document uses curl")
def test_the_blocks_of_the_document(tmp_path, keys):
    shutil.copy(PACKAGE, tmp_path / "model.pt2")
    (tmp_path / "weights.safetensors").write_bytes(fake_weights(5))
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}

    def run(text):
        done = subprocess.run(["sh", "-ec", text], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "signed by" in run(BLOCKS["sign"])
    flag = re.search(r"(--require-signature) (\S+)", BLOCKS["require"])
    with AdminServer(tmp_path / "model.pt2", flags=[flag[1], str(tmp_path / flag[2])]) as server:
        assert server.ones("model") == (STORED, 1)
        run(BLOCKS["signed_upload"].replace("8003", str(server.admin_port)))
        assert server.ones("model") == (expected(5), 2)
    (tmp_path / "model.pt2.sig").unlink()
    run(BLOCKS["inside"])
    with AdminServer(tmp_path / "model.pt2", flags=[flag[1], str(tmp_path / flag[2])]) as server:
        assert server.ones("model")[0] == STORED


@pytest.mark.skipif("SCONCE_BENCH_PYTHON" not in os.environ, reason="SCONCE_BENCH_PYTHON names no Python with torch")
def test_pytorch_opens_a_package_with_its_signature_inside(tmp_path, keys):
    digits = keys[0].sign(shutil.copy(ROOT / "examples/digits/digits.pt2", tmp_path / "digits.pt2"), "--inside")
    program = ("import json, sys, torch\n"
               "image = json.load(open(sys.argv[2]))['args'][0]\n"
               "print(torch._inductor.aoti_load_package(sys.argv[1])(torch.tensor(image, dtype=torch.float32))['class'])")
    done = subprocess.run([os.environ["SCONCE_BENCH_PYTHON"], "-c", program, digits,
                           ROOT / "examples/digits/request.json"], capture_output=True, text=True)
    assert done.stdout == "tensor([9])\n", done.stderr


# Packages.


@pytest.mark.parametrize("flags", [(), ("--inside",)])
@pytest.mark.parametrize("signer", [0, 2])
def test_a_signed_package_serves(package, keys, flags, signer):
    key = keys[signer]
    with signed_server(key.sign(package, *flags), key) as server:
        assert server.ones()[0] == STORED


def test_a_library_of_a_model_serves(tmp_path, keys):
    with signed_server(keys[0].sign(shutil.copy(FAKE, tmp_path / "fake.so")), keys[0]) as server:
        assert server.ones()[0] == STORED


def test_packages_that_are_refused(tmp_path, package, keys):
    first, second, _ = keys
    refused_at_start(package, "neither beside it (.sig) nor inside", *require(first))
    second.sign(package)
    log = refused_at_start(package, "not by a key that is asked for", *require(first))
    assert str(package) in log
    first.sign(package)
    content = bytearray(package.read_bytes())
    content[100] ^= 1
    package.write_bytes(content)
    refused_at_start(package, "not those that were signed", *require(first))
    (tmp_path / "fake.pt2.sig").write_text("{}")
    refused_at_start(package, "no 'dsseEnvelope'", *require(first))
    folder = tmp_path / "unpacked"
    zipfile.ZipFile(PACKAGE).extractall(folder)
    refused_at_start(next(folder.iterdir()), "a directory cannot be signed", *require(first))


def test_keys_that_cannot_be_read(tmp_path, package, keys):
    refused_at_start(package, "/nowhere", "--require-signature", "/nowhere")
    refused_at_start(package, "expected public keys", "--require-signature", keys[0].private)


def test_a_package_and_its_signature_that_come_later(tmp_path, package, keys):
    """In a repository, the package is loaded once its signature is there too."""
    first, second, _ = keys
    repository = tmp_path / "repository"
    repository.mkdir()
    first.sign(shutil.copy(package, repository / "fake.pt2"))
    with AdminServer(repository, flags=[*require(first), "--watch", "100ms"]) as server:
        assert server.ones()[0] == STORED
        shutil.copy(package, repository / "next.pt2")
        until(lambda: any("model next" in line and "no signature" in line for line in server.log))
        first.sign(repository / "next.pt2")
        until(lambda: server.infer("next", ONES).status == 200)
        # What is not signed does not take the place of what is.
        second.sign(package, "--inside")
        os.replace(package, repository / "fake.pt2")
        until(lambda: any("model fake" in line and "were signed" in line for line in server.log))
        assert server.ones()[0] == STORED


def test_keys_rotate_while_requests_go_on(tmp_path, keys):
    first, second, _ = keys
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(first.public.read_bytes())
    repository = tmp_path / "repository"
    repository.mkdir()
    for name, key in (("fake", first), ("old", first), ("new", second)):
        key.sign(shutil.copy(PACKAGE, repository / f"{name}.pt2"))
    with AdminServer(repository, flags=["--require-signature", str(trusted), "--exit-on-error", "false",
                                        "--http-admin", "true"], wait=False) as server:
        until(lambda: server.infer("fake", ONES).status == 200)
        answers, over = [], threading.Event()

        def ask():
            while not over.is_set():
                answers.append(server.infer("fake", ONES).status)

        load = lambda name: server.post(f"/v2/repository/models/{name}/load", b"{}")
        clients = [threading.Thread(target=ask) for _ in range(2)]
        for client in clients:
            client.start()
        try:
            until(lambda: server.infer("old", ONES).status == 200)
            assert load("new").status == 403 or "not by a key" in load("new").json["error"]
            trusted.write_bytes(second.public.read_bytes())
            server.process.send_signal(signal.SIGHUP)
            until(lambda: any("keys of require_signature were read again" in line for line in server.log))
            assert load("new").status == 200
            assert "not by a key" in load("old").json["error"]
            trusted.write_text("no key")
            server.process.send_signal(signal.SIGHUP)
            until(lambda: any("keys of require_signature stay as they were" in line for line in server.log))
            assert load("new").status == 200
        finally:
            over.set()
            for client in clients:
                client.join()
        assert set(answers) == {200} and answers
        assert server.infer("old", ONES).status == 200  # what was loaded goes on


# Weights.


@pytest.fixture()
def server(tmp_path, package, keys):
    folder = tmp_path / "weights"
    folder.mkdir()
    with signed_server(keys[0].sign(package), keys[0], "--weights-dir", str(folder), "--set", "fake.sets=2") as running:
        running.folder = folder
        yield running


def push(server, tmp_path, key, data, sent=None, **fields):
    return server.push("fake", data if sent is None else sent, "commit=true", {**key.header(tmp_path, data), **fields})


def test_a_signed_upload(server, tmp_path, keys):
    data = fake_weights(5)
    answer = push(server, tmp_path, keys[0], data)
    assert answer.status == 200, answer.body
    assert server.ones() == (expected(5), 2)
    assert push(server, tmp_path, keys[0], data, **{"Content-Digest": content_digest(data)}).status == 200


def test_uploads_that_are_refused(server, tmp_path, keys):
    data, other = fake_weights(5), fake_weights(6)

    def refused(answer, reason, status=403):
        assert answer.status == status and reason in answer.json["error"], answer.body
        assert server.ones() == (STORED, 1) and "staged" not in server.sets()

    refused(server.push("fake", data, "commit=true"), "must come with a Sconce-Signature field")
    refused(server.push("fake", data, "commit=true", {"Sconce-Signature": "?"}), "not base64")
    refused(server.push("fake", data, "commit=true", {"Sconce-Signature": "e30="}), "no 'dsseEnvelope'")
    refused(push(server, tmp_path, keys[1], data), "not by a key that is asked for")
    # Its head is that of the signed body, and its values are others.
    refused(push(server, tmp_path, keys[0], data, other), "SHA-256 differs", 400)
    refused(push(server, tmp_path, keys[0], data, **{"Content-Digest": content_digest(other)}), "Content-Digest is not")
    for at in (0, 3, 8, 20):
        body = bytearray(data)
        body[at] ^= 1
        refused(push(server, tmp_path, keys[0], data, bytes(body)), "not what was signed")
    # Of a file that is no safetensors file.
    refused(push(server, tmp_path, keys[0], b"0123456789", data), "no digest of the head")


def test_signed_files_below_weights_dir(server, keys):
    path = server.folder / "w.safetensors"
    path.write_bytes(fake_weights(5))

    def take(name="w.safetensors"):
        return server.admin("POST", "fake/weights?commit=true", {"file": name})

    answer = take()
    assert answer.status == 403 and "neither beside it (.sig) nor inside" in answer.json["error"]
    assert "w.safetensors" in answer.json["error"] and "/proc" not in answer.json["error"]
    keys[0].sign(path)
    assert take().status == 200 and server.ones() == (expected(5), 2)
    path.write_bytes(fake_weights(6))
    answer = take()
    assert answer.status == 403 and "not those that were signed" in answer.json["error"]
    keys[1].sign(path)
    assert take().status == 403 and server.ones() == (expected(5), 2)
    shutil.copy(PACKAGE, server.folder / "package.pt2")
    keys[0].sign(server.folder / "package.pt2", "--inside")
    assert take("package.pt2").status == 200 and server.ones() == (STORED, 3)


def test_named_sets(server, tmp_path, keys):
    data = fake_weights(5)
    route = "fake/sets/five"
    headers = {"Content-Type": "application/octet-stream"}
    assert server.admin("POST", route, data, headers).status == 403
    assert server.admin("POST", route, data, {**headers, **keys[0].header(tmp_path, data)}).status == 200


def test_what_cannot_be_signed_is_refused(server):
    for path, body in (("update_weights_from_disk", {"model_path": "x"}),
                       ("update_weights_from_tensor", {"serialized_named_tensors": ["gAR9lC4="]}),
                       ("update_weights", {"update_info": {}}), ("start_weight_update", {})):
        answer = server.admin("POST", "/" + path, body)
        assert answer.status == 403 and "require_signature is set" in answer.body.decode(), (path, answer.body)
    tensors = {"tensors": [{"name": "scale.w", "dtype": "F32", "shape": [4], "shm": "/nowhere", "offset": 0}]}
    answer = server.admin("POST", "fake/weights", tensors)
    assert answer.status in (400, 403), answer.body
    assert server.ones() == (STORED, 1)


def test_pushed_by_the_program(server, tmp_path, keys):
    file = tmp_path / "new.safetensors"
    file.write_bytes(fake_weights(5))

    def weights_push(*flags):
        return subprocess.run([PROGRAM, "weights", "push", file, "--model", "fake", "--to",
                               f"http://127.0.0.1:{server.admin_port}", *flags], capture_output=True, text=True)

    done = weights_push()
    assert done.returncode == 1 and "Sconce-Signature" in done.stdout + done.stderr
    done = weights_push("--sign", str(keys[0].private))
    assert done.returncode == 0, done.stdout + done.stderr
    assert server.ones() == (expected(5), 2)


def test_the_weights_that_a_model_starts_with(tmp_path, package, keys):
    path = tmp_path / "start.safetensors"
    path.write_bytes(fake_weights(5))
    keys[0].sign(package)
    flags = ["--set", f"fake.weights={path}"]
    refused_at_start(package, "neither beside it (.sig) nor inside", *require(keys[0]), *flags)
    keys[0].sign(path)
    with signed_server(package, keys[0], *flags) as server:
        assert server.ones() == (expected(5), 2)


@pytest.mark.parametrize("flags, setting", [
    (["--set", "fake.weights_from=127.0.0.1:1"], "weights_from"),
    (["--set", "fake.sets=2", "--set", "fake.sets_folder=sets"], "sets_folder")])
def test_settings_that_bring_unsigned_weights(package, keys, flags, setting):
    keys[0].sign(package)
    refused_at_start(package, f"setting {setting}", *require(keys[0]), *flags)


# Libraries of operators.


def test_a_signed_library_of_operators(tmp_path, package, keys):
    copy = shutil.copy(OPERATORS, tmp_path / OPERATORS.name)
    keys[0].sign(package)
    flags = ["--op-library", str(copy)]
    log = refused_at_start(package, "neither beside it (.sig) nor inside", *require(keys[0]), *flags)
    assert str(copy) in log
    keys[1].sign(copy)
    refused_at_start(package, "not by a key", *require(keys[0]), *flags)
    keys[0].sign(copy)
    second = keys[0].sign(shutil.copy(PACKAGE, tmp_path / "other.pt2"))
    with AdminServer(f"fake={package}", f"other={second}", flags=[*require(keys[0]), *flags]) as server:
        assert server.ones()[0] == STORED and server.ones("other")[0] == STORED


# Kept sets.


@pytest.fixture()
def seal(tmp_path):
    key = tmp_path / "seal.key"
    key.write_bytes(subprocess.run(["openssl", "rand", "-hex", "32"], check=True, capture_output=True).stdout)
    return ["--weights-store", str(tmp_path / "kept"), "--weights-store-key", str(key)]


def test_stored_sets_need_a_seal(tmp_path, package, keys):
    keys[0].sign(package)
    refused_at_start(package, "together need weights_store_key", *require(keys[0]), "--weights-store", tmp_path / "kept")


def test_sealed_sets_serve_again(tmp_path, package, keys, seal):
    keys[0].sign(package)
    with signed_server(package, keys[0], *seal) as server:
        assert push(server, tmp_path, keys[0], fake_weights(5)).json["stored"] is True
    for _ in range(2):
        with signed_server(package, keys[0], *seal) as server:
            assert server.ones() == (expected(5), 2)


def replace_seal(folder):
    journal = folder / "journal.json"
    text = journal.read_text()
    journal.write_text(text.replace('"generation":3', '"generation":4', 1))


def remove_seal(folder):
    journal = folder / "journal.json"
    journal.write_text(journal.read_text().splitlines()[0] + "\n")


def change_values(folder):
    sets = json.loads((folder / "journal.json").read_text().splitlines()[0])["sets"]
    file = folder / sets[0]["file"]
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("tamper, stands_in", [(replace_seal, 5), (remove_seal, 5), (change_values, 5)])
def test_what_was_changed_does_not_serve(tmp_path, package, keys, seal, tamper, stands_in):
    """The set before it stands in."""
    keys[0].sign(package)
    with signed_server(package, keys[0], *seal) as server:
        for value in (5, 7):
            assert push(server, tmp_path, keys[0], fake_weights(value)).status == 200
    tamper(tmp_path / "kept/fake/1")
    with signed_server(package, keys[0], *seal) as server:
        assert server.ones()[0] == expected(stands_in)
        assert any("seal" in line or "not the file that was stored" in line for line in server.log)


def test_sets_of_another_place_or_key_do_not_serve(tmp_path, package, keys, seal):
    keys[0].sign(package)
    with signed_server(package, keys[0], *seal) as server:
        assert push(server, tmp_path, keys[0], fake_weights(5)).status == 200
    kept = tmp_path / "kept"
    shutil.copytree(kept / "fake", kept / "other")
    with AdminServer(f"other={package}", flags=[*require(keys[0]), *seal]) as server:
        assert server.ones("other")[0] == STORED
    (tmp_path / "seal.key").write_text("another secret of thirty-two bytes and more")
    with signed_server(package, keys[0], *seal) as server:
        assert server.ones()[0] == STORED


def test_sets_that_were_stored_before_there_was_a_seal(tmp_path, package, keys, seal):
    keys[0].sign(package)
    with AdminServer(f"fake={package}", flags=seal[:2]) as server:
        assert server.push("fake", fake_weights(5), "commit=true").status == 200
    with signed_server(package, keys[0], *seal) as server:
        assert server.ones()[0] == STORED
