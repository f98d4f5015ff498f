"""`sconce weights` against admin ports that fail on request: all servers change, or none."""
import functools
import json
import re
import signal
import socket
import struct
import subprocess
import threading

import pytest
from admin_server import AdminServer
from fake_admin import FakeAdmin
from serving import PROGRAM, ROOT, threads, until


def run(*arguments, timeout=60):
    return subprocess.run([PROGRAM, "weights", *[str(a) for a in arguments]], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout)


def write_safetensors(path, tensors):
    """name -> bytes, as uint8."""
    header, data = {}, b""
    for name, value in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(value)], "data_offsets": [len(data), len(data) + len(value)]}
        data += value
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.fixture()
def weights(tmp_path):
    return write_safetensors(tmp_path / "w.safetensors", {"a": bytes(range(200)), "none": b"", "b": b"\7" * 3_000_001})


@pytest.fixture()
def admins():
    with FakeAdmin() as one, FakeAdmin() as two, FakeAdmin() as three:
        yield [one, two, three]


def urls(admins):
    return ",".join(a.url for a in admins)


def push(weights, admins, *more):
    return run("push", weights, "--model", "digits", "--to", urls(admins), *more)


def unchanged(admins):
    return all(a.weight_version == 1 and a.staged is None for a in admins)


def test_push_publishes_on_all(weights, admins):
    result = push(weights, admins, "--label", "step 1&200")
    assert result.returncode == 0, result.stdout
    for admin in admins:
        assert admin.weight_version == 2
        assert admin.actions() == ["weights", "prepare", "commit"]
        assert admin.tensors["a"] == ("U8", [200], bytes(range(200)))
        assert admin.tensors["b"] == ("U8", [3_000_001], b"\7" * 3_000_001)
        assert admin.tensors["none"] == ("U8", [0], b"")
        assert admin.query.startswith("mode=full&label=step%201%26200&push=")
        assert f"{admin.url}: serves" in result.stdout
        assert "weight version 2" in result.stdout
    assert "\x1b" not in result.stdout and "\r" not in result.stdout


def test_push_options(weights, admins):
    assert push(weights, admins, "--partial", "--check-finite", "--model-version", "3").returncode == 0
    assert admins[0].query.startswith("mode=partial&check_finite=true&push=")
    assert admins[0].calls[1][1].startswith("/v2/admin/models/digits/versions/3/weights?")


def test_dry_run_changes_nothing(weights, admins):
    result = push(weights, admins, "--dry-run")
    assert result.returncode == 0 and result.stdout.count("would be accepted") == 3
    assert unchanged(admins)
    assert all(a.actions() == ["weights"] and "dry_run=true" in a.query for a in admins)


@pytest.mark.parametrize("failure", ["early", "stage", "refuse", "hang up"])
def test_one_that_cannot_stage_keeps_all_as_they_are(weights, admins, failure):
    if failure == "refuse":
        admins[1].refuse_after = 100
    elif failure == "early":
        admins[1].fail["early"] = (409, {"error": "another update is under way"})
    else:
        admins[1].fail["stage"] = "hang up" if failure == "hang up" else (507, "no memory")
    result = push(weights, admins)
    assert result.returncode == 1
    assert "no server has changed" in result.stdout
    assert unchanged(admins), result.stdout
    assert all("commit" not in a.actions() for a in admins)
    said = {"early": "409: another update is under way", "refuse": "400: no constant of this name",
            "stage": "507: no memory", "hang up": "no answer"}[failure]
    assert f"{admins[1].url}: {said}" in result.stdout


def test_an_answer_that_is_lost_behind_staging_is_aborted(weights, admins):
    admins[2].fail["stage"] = "hang up after"
    result = push(weights, admins)
    assert result.returncode == 1
    assert unchanged(admins), result.stdout
    assert "abort" in admins[2].actions()


@pytest.mark.parametrize("failure", [(500, "folding failed"), "hang up"])
def test_if_the_first_cannot_commit_no_other_is_asked_to(weights, admins, failure):
    admins[0].fail["commit"] = failure
    result = push(weights, admins, "--label", "new")
    assert result.returncode == 1
    assert f"{admins[0].url}: did not commit" in result.stdout and "no server has changed" in result.stdout
    assert unchanged(admins)
    assert all(a.actions() == ["weights", "prepare", "abort"] for a in admins[1:])


@pytest.mark.parametrize("failure", [(500, "folding failed"), "hang up"])
def test_one_that_cannot_commit_rolls_the_others_back(weights, admins, failure):
    admins[1].fail["commit"] = failure
    result = push(weights, admins, "--label", "new")
    assert result.returncode == 1
    assert f"{admins[1].url}: did not commit" in result.stdout
    assert admins[1].weight_version == 1 and admins[1].staged is None
    for admin in (admins[0], admins[2]):
        assert admin.weight_version == 3 and admin.version[3] == "1"
        assert f"{admin.url}: rolled back" in result.stdout


def test_one_that_lost_what_was_staged_keeps_all_as_they_are(weights, admins):
    admins[2].fail["prepare"] = (404, "no push of this id")
    result = push(weights, admins)
    assert result.returncode == 1 and unchanged(admins)
    assert f"{admins[2].url}: lost what was staged: 404" in result.stdout
    assert all("commit" not in a.actions() for a in admins)


def test_a_commit_whose_answer_is_lost_counts_as_what_the_server_says(weights, admins):
    admins[1].fail["commit"] = "hang up after"
    result = push(weights, admins, "--label", "new")
    assert result.returncode == 0, result.stdout
    assert all(a.weight_version == 2 for a in admins)


def test_a_rollback_that_fails_is_said(weights, admins):
    admins[0].fail["commit"] = (500, "folding failed")
    admins[1].fail["rollback"] = (500, "gone")
    admins[0], admins[2] = admins[2], admins[0]
    result = push(weights, admins)
    assert result.returncode == 1
    assert f"{admins[1].url}: serves the new weights, and could not roll back: 500: gone" in result.stdout
    assert admins[0].weight_version == 3


def test_nothing_is_sent_unless_all_are_there(weights, admins):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{free.getsockname()[1]}"
        result = run("push", weights, "--model", "digits", "--to", urls(admins) + "," + closed)
        assert result.returncode == 1
        assert f"{closed}: cannot connect" in result.stdout and "nothing was sent" in result.stdout
    result = run("push", weights, "--model", "other", "--to", urls(admins))
    assert result.returncode == 1 and "404: no such model" in result.stdout
    assert all(a.actions() == [] for a in admins)


def test_token(weights, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    with FakeAdmin(token="s3cret") as admin:
        assert "401: a token is needed" in push(weights, [admin]).stdout
        assert push(weights, [admin], "--token-file", token).returncode == 0
        result = push(weights, [admin], "--token-file", tmp_path / "none")
        assert result.returncode == 2 and "cannot read the token" in result.stdout


def test_a_server_that_does_not_invite_gets_the_body_all_the_same(weights):
    with FakeAdmin(invites=False) as admin:
        assert push(weights, [admin]).returncode == 0
        assert admin.weight_version == 2


def test_a_server_that_says_nothing_is_given_up(weights):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        result = run("push", weights, "--model", "digits", "--to", f"127.0.0.1:{silent.getsockname()[1]}",
                     "--patience", "1")
        assert result.returncode == 1 and "nothing happened for too long" in result.stdout


def test_ctrl_c_leaves_nothing_staged(tmp_path):
    weights = write_safetensors(tmp_path / "w.safetensors", {"a": b"\1" * 50_000_000})
    with FakeAdmin() as quick, socket.socket() as slow:
        slow.bind(("127.0.0.1", 0))
        slow.listen()
        process = subprocess.Popen([PROGRAM, "weights", "push", weights, "--model", "digits", "--to",
                                    f"{quick.url},127.0.0.1:{slow.getsockname()[1]}", "--patience", "3"],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        look, _ = slow.accept()
        look.recv(10000)
        document = json.dumps(quick.pushes_document()).encode()
        look.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(document), document))
        upload, _ = slow.accept()
        upload.recv(1000)
        until(lambda: quick.staged is not None)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 1
        assert "interrupted: no server has changed" in output
        assert quick.staged is None and quick.weight_version == 1
        look.close()
        upload.close()


def test_other_files(admins, tmp_path):
    digits = ROOT / "examples/digits/digits.pt2"
    result = push(digits, admins)
    assert result.returncode == 0, result.stdout
    assert admins[0].tensors["features.0.weight"][0] == "F32"
    assert sum(len(value) for _, _, value in admins[0].tensors.values()) > 1000
    stored = ROOT / "tests/tensor_files/data/fortran.npy"
    assert push(stored, admins, "--partial").returncode == 0
    assert admins[2].tensors["fortran"][1] == [2, 3]
    assert struct.unpack("<6f", admins[2].tensors["fortran"][2]) == (0, 1, 2, 3, 4, 5)
    calls = [len(a.calls) for a in admins]
    for path, reason in [(tmp_path / "none", "cannot open file"),
                         (ROOT / "README.md", "not a .safetensors, .npz, .npy or .pt2 file"),
                         (ROOT / "tests/tensor_files/data/stored.npz", "has no type for this tensor")]:
        result = push(path, admins)
        assert result.returncode in (1, 2) and reason in result.stdout, result.stdout
    assert [len(a.calls) for a in admins] == calls


def test_a_damaged_file_is_refused_before_anything_is_sent(weights, admins):
    weights.write_bytes(weights.read_bytes()[:-1])
    result = push(weights, admins)
    assert result.returncode == 2 and "safetensors" in result.stdout
    assert all(a.calls == [] for a in admins)


def test_status(admins):
    admins[1].publish("step-7")
    result = run("status", "--model", "digits", "--to", urls(admins))
    assert result.returncode == 0
    assert result.stdout.count("active") == 3 and result.stdout.count("previous") == 1 and "step-7" in result.stdout
    result = run("status", "--model", "digits", "--to", urls(admins) + ",127.0.0.1:1", "--json")
    assert result.returncode == 1
    documents = json.loads(result.stdout)
    assert documents[1]["weights"]["generation"] == 2 and documents[1]["server"] == admins[1].url
    assert "cannot connect" in documents[3]["error"]
    run("status", "--model", "digits", "--to", urls(admins), "--digest")
    assert admins[0].calls[-1][1].endswith("/weights?digest=true")


def test_every_address_of_a_name(weights):
    """The name of a headless service has one address per pod."""
    with FakeAdmin() as admin:
        port = admin.url.rsplit(":", 1)[1]
        result = push(weights, [admin], "--every-address")
        assert result.returncode == 0 and admin.weight_version == 2, result.stdout
        assert f"127.0.0.1:{port}" in result.stdout
    result = run("status", "--model", "m", "--every-address", "--to", "http://nobody.invalid:1")
    assert result.returncode == 2 and "nobody.invalid" in result.stdout


def test_rollback(admins):
    for admin in admins:
        admin.publish("step-7")
    result = run("rollback", "--model", "digits", "--to", urls(admins))
    assert result.returncode == 0, result.stdout
    assert all(a.weight_version == 3 and a.version[3] == "1" for a in admins)
    assert result.stdout.count("serves 1 as weight version 3") == 3


def test_rollback_needs_previous_weights_everywhere(admins):
    admins[0].publish("step-7")
    result = run("rollback", "--model", "digits", "--to", urls(admins))
    assert result.returncode == 1
    assert result.stdout.count("has no previous weights") == 2 and "no server has changed" in result.stdout
    assert all("rollback" not in a.actions() for a in admins)


def test_wrong_usage(weights, admins):
    assert run("push", weights, "--model", "digits").returncode == 2
    assert run().returncode == 2
    for address, reason in [("ftp://h:1", "http or https"), ("http://", "not the address"),
                            ("http://u@h:1", "no user"), (f"{admins[0].url},{admins[0].url}/", "named twice")]:
        result = run("push", weights, "--model", "digits", "--to", address)
        assert result.returncode == 2 and reason in result.stdout, result.stdout


@pytest.mark.parametrize("arguments, reason", [
    (["push", "FILE", "--set", "t", "--guard", "60s"], "--guard does not go with --set"),
    (["push", "FILE", "--set", "t", "--guard-p99", "5ms"], "--guard does not go with --set"),
    (["push", "FILE", "--lease", "soon"], "lease"),
    (["push", "FILE", "--key", "key.pem"], "--certificate and --key go together"),
    (["status", "--certificate", "certificate.pem"], "--certificate and --key go together"),
    (["reconcile", "--from", "ftp://h:1"], "http or https"),
    (["reconcile", "--gone", "ftp://h:1"], "http or https"),
    (["golden", "--out", "x.safetensors"], "--to names 3 servers"),
])
def test_options_that_do_not_go_together_are_wrong_usage(weights, admins, arguments, reason):
    result = run(*[weights if a == "FILE" else a for a in arguments], "--model", "digits", "--to", urls(admins))
    assert result.returncode == 2 and reason in result.stdout, result.stdout
    assert all(a.calls == [] for a in admins)


@pytest.mark.parametrize("more", [[], ["--help"], ["--model", "digits", "--to", "http://127.0.0.1:1"]])
def test_a_former_command_is_an_error_that_names_the_present_one(more):
    former = "settle"  # deprecated
    result = run(former, *more)
    assert result.returncode == 2 and f"'{former}' is now called 'sconce weights reconcile'" in result.stdout, result.stdout
    assert former not in run("--help").stdout


# Real servers.

DIGITS = ROOT / "examples/digits"
REQUEST = json.loads((DIGITS / "request.json").read_text())


@pytest.fixture(scope="module")
def servers():
    with AdminServer(DIGITS / "digits.pt2") as one, AdminServer(DIGITS / "digits.pt2") as two:
        yield [one, two]


def admin_urls(servers):
    return ",".join(f"http://127.0.0.1:{s.ports['administration']}" for s in servers)


def ask(server):
    answer = server.post("/v1/models/digits:call", REQUEST)
    assert answer.status == 200, answer.body
    return answer.body, int(answer.headers["Sconce-Weight-Version"])


def scores(body):
    """Every number of an answer."""
    return [float(number) for number in re.findall(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?", body)]


def test_push_and_rollback_on_real_servers(servers):
    first = [ask(s)[0] for s in servers]
    assert first[0] == first[1]
    stop = threading.Event()

    def client(server):
        weight_version = 0
        while not stop.is_set():
            body, now = ask(server)
            # A request that shares its run may be rounded differently.
            assert now >= weight_version and (now != 1 or body == first[0] or scores(body) == pytest.approx(scores(first[0]), rel=1e-5))
            weight_version = now

    with threads(*[functools.partial(client, s) for s in servers], stop=stop):
        result = run("push", DIGITS / "digits-v2.safetensors", "--model", "digits", "--to", admin_urls(servers),
                     "--label", "v2")
        assert result.returncode == 0, result.stdout
        assert result.stdout.count("serves v2 as weight version 2") == 2
    second = [ask(s) for s in servers]
    assert second[0] == second[1] and second[0][1] == 2 and second[0][0] != first[0]

    result = run("status", "--model", "digits", "--to", admin_urls(servers), "--json", "--digest")
    one, two = [s["weights"] for s in json.loads(result.stdout)]
    assert [s["state"] for s in one["sets"]] == ["active", "previous"] and one["weight_version"] == "v2"
    assert [s["digest"] for s in one["sets"]] == [s["digest"] for s in two["sets"]]

    result = run("rollback", "--model", "digits", "--to", admin_urls(servers))
    assert result.returncode == 0, result.stdout
    assert [ask(s) for s in servers] == [(first[0], 3)] * 2


def test_a_package_is_pushed_as_its_weights(servers):
    before = [ask(s) for s in servers]
    assert run("push", DIGITS / "digits-v2.safetensors", "--model", "digits", "--to",
               admin_urls(servers)).returncode == 0
    changed = [ask(s) for s in servers]
    assert changed[0][0] != before[0][0]
    result = run("push", DIGITS / "digits.pt2", "--model", "digits", "--to", admin_urls(servers))
    assert result.returncode == 0, result.stdout
    assert [(body, n - 2) for body, n in (ask(s) for s in servers)] == before


def test_what_one_real_server_refuses_changes_none(servers, tmp_path):
    before = [ask(s) for s in servers]
    wrong = write_safetensors(tmp_path / "wrong.safetensors", {"no.such.weight": b"1234"})
    result = run("push", wrong, "--model", "digits", "--to", admin_urls(servers), "--partial")
    assert result.returncode == 1 and "no.such.weight" in result.stdout and "no server has changed" in result.stdout
    # An upload that another client has begun and not ended.
    data = (DIGITS / "digits-v2.safetensors").read_bytes()
    with servers[1].begin_push("digits", data, len(data) // 2):
        until(servers[1].running)
        result = run("push", DIGITS / "digits-v2.safetensors", "--model", "digits", "--to", admin_urls(servers))
        assert result.returncode == 1 and "409" in result.stdout
        assert "staged" not in servers[0].sets("digits")
    assert [ask(s) for s in servers] == before


def test_dry_run_on_real_servers(servers):
    before = [ask(s) for s in servers]
    result = run("push", DIGITS / "digits-v2.safetensors", "--model", "digits", "--to", admin_urls(servers), "--dry-run",
                 "--check-finite")
    assert result.returncode == 0 and result.stdout.count("would be accepted") == 2, result.stdout
    assert [ask(s) for s in servers] == before
    assert "staged" not in servers[0].sets("digits")
