"""Pushes of named sets to several servers: all get the set under its name, or none."""
import json
import subprocess
import urllib.parse

import pytest
from admin_server import FAKE, ONES, STREAM, AdminServer, url
from fake_admin import FakeAdmin
from serving import PROGRAM, until
from weights_files import fake_weights

PEERS = ["--weights-peers", "127.0.0.1", "--set", "*.sets=100"]


@pytest.fixture(scope="module")
def shared():
    with AdminServer(f"fake={FAKE}", flags=PEERS) as one, AdminServer(f"fake={FAKE}", flags=PEERS) as two, \
            AdminServer(f"fake={FAKE}", flags=PEERS) as three:
        yield one, two, three


@pytest.fixture()
def three(shared):
    yield shared
    for server in shared:
        for record in pushes(server):
            if record["state"] in ("receiving", "staged", "prepared"):
                act(server, "abort", record["push"])
        for name in sets(server):
            assert server.admin("DELETE", f"fake/sets/{name}").status == 200
        memory = server.admin("GET", "fake/sets").json
        assert memory["bytes"] == 0, memory


@pytest.fixture()
def name(request):
    return "".join(c if c.isalnum() else "-" for c in request.node.name)[:60]


def pushes(server):
    return server.admin("GET", "fake/weights/pushes").json["pushes"]


def state(server, push):
    found = server.admin("GET", f"fake/weights/pushes?push={push}").json["pushes"]
    return found[0]["state"] if found else None


def sets(server):
    return {s["name"]: s for s in server.admin("GET", "fake/sets").json["sets"]}


def put(server, data, query="", named="t"):
    return server.admin("POST", f"fake/sets/{named}?{query}", data, STREAM)


def stage(servers, push, value, lease="30s", named="t"):
    members = urllib.parse.quote(",".join(url(s) for s in servers), safe="")
    return [put(s, fake_weights(value), f"push={push}&lease={lease}&members={members}&member={i}&label=v{value}", named).status
            for i, s in enumerate(servers)]


def act(server, action, push, more=""):
    return server.admin("POST", f"fake/weights/{action}?push={push}{more}")


def answer(server, named="t"):
    """What the set answers to ones, and its weight version; None: there is none."""
    got = server.infer(f"fake@{named}", ONES)
    if got.status == 404:
        return None
    assert got.status == 200, got.body
    return got.json["outputs"][0]["data"][0], int(got.headers["Sconce-Weight-Version"])


def value_of(server, named="t"):
    got = answer(server, named)
    return got and got[0] / 2


def command(*arguments, servers):
    to = ",".join(s.url if isinstance(s, FakeAdmin) else url(s) for s in servers)
    return subprocess.run([PROGRAM, "weights", *map(str, arguments), "--model", "fake", "--to", to, "--patience", "2"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)


def file(tmp_path, value):
    path = tmp_path / f"v{value}.safetensors"
    path.write_bytes(fake_weights(value))
    return path


def test_commit_and_rollback_by_id_are_idempotent(three, name):
    one = three[0]
    before = one.ones()
    assert put(one, fake_weights(3), f"push={name}&label=v3").json["result"] == "staged"
    assert answer(one) is None and sets(one) == {} and "staged" not in one.sets()
    record = pushes(one)[-1]
    assert (record["push"], record["set"], record["state"]) == (name, "t", "staged")
    for _ in range(3):
        told = act(one, "commit", name)
        assert told.status == 200, told.body
        push = told.json["push"]
        assert push == {"push": name, "set": "t", "state": "committed", "label": "v3",
                        "weight_version": push["weight_version"], "active": True,
                        "generation": push["weight_version"]}  # deprecated
        assert answer(one) == (6, push["weight_version"])
    assert sets(one)["t"]["label"] == "v3"
    # Another one takes its place, and gives it back.
    assert put(one, fake_weights(4), f"push={name}-2").status == 200
    assert value_of(one) == 3
    second = act(one, "commit", f"{name}-2").json["push"]["weight_version"]
    assert answer(one) == (8, second)
    assert [r["active"] for r in pushes(one)[-2:]] == [False, True]
    undone = act(one, "rollback", name)
    assert undone.status == 409 and "cannot be undone" in undone.json["error"]
    for _ in range(3):
        told = act(one, "rollback", f"{name}-2")
        assert told.status == 200 and told.json["push"]["state"] == "undone", told.body
        assert answer(one) == (6, told.json["push"]["weight_version"]) and told.json["push"]["weight_version"] > second
    late = act(one, "commit", f"{name}-2")
    assert late.status == 409 and "it was undone" in late.json["error"]
    # The model's own weights have not been touched.
    assert one.ones() == before


def test_a_name_that_was_new_goes_with_its_push(three, name):
    one = three[0]
    assert put(one, fake_weights(3), f"push={name}").status == 200
    assert act(one, "commit", name).status == 200 and value_of(one) == 3
    told = act(one, "rollback", name)
    assert told.status == 200 and told.json["push"]["active"] is True, told.body
    assert answer(one) is None and sets(one) == {}


def test_what_is_aborted_or_expires_changes_nothing(three, name):
    one = three[0]
    assert put(one, fake_weights(3)).status == 200
    assert put(one, fake_weights(4), f"push={name}").status == 200
    for _ in range(2):
        assert act(one, "abort", name).status == 200
    assert put(one, fake_weights(4), f"push={name}-2&lease=1s").status == 200
    busy = put(one, fake_weights(5))
    assert busy.status == 409 and "a set waits for the name 't'" in busy.json["error"]
    until(lambda: state(one, f"{name}-2") == "expired")
    assert value_of(one) == 3
    assert put(one, fake_weights(5)).status == 200 and value_of(one) == 5


def test_beside_a_push_of_the_models_own_weights(three, name):
    """Each ends by its own id, in any order; requests without an id mean the model's own."""
    one = three[0]
    assert put(one, fake_weights(3), f"push={name}").status == 200
    assert one.push("fake", fake_weights(8), f"push={name}-own").status == 200
    assert one.admin("POST", "fake/weights/abort").status == 200
    assert (state(one, name), state(one, f"{name}-own")) == ("staged", "aborted")
    assert one.push("fake", fake_weights(9), "commit=true").status == 200
    assert put(one, fake_weights(6), f"push={name}-u", "u").status == 200
    assert act(one, "commit", f"{name}-u").status == 200 and act(one, "commit", name).status == 200
    assert (value_of(one), value_of(one, "u"), one.ones()[0]) == (3, 6, [18] * 4)
    assert one.admin("POST", "fake/weights/rollback").status == 200
    assert (value_of(one), value_of(one, "u")) == (3, 6)


def test_servers_in_doubt_do_as_the_first(three, name):
    assert stage(three, name, 3, "1s") == [200] * 3
    assert all(act(s, "prepare", name).status == 200 for s in three)
    assert act(three[0], "commit", name).status == 200
    until(lambda: all(state(s, name) == "committed" for s in three))
    assert [value_of(s) for s in three] == [3] * 3
    assert stage(three, f"{name}-2", 4, "1s") == [200] * 3
    assert all(act(s, "prepare", f"{name}-2").status == 200 for s in three)
    until(lambda: all(state(s, f"{name}-2") in ("expired", "aborted") for s in three))
    assert [value_of(s) for s in three] == [3] * 3


@pytest.mark.parametrize("relay", [[], ["--relay"]], ids=["direct", "relay"])
def test_the_command(three, tmp_path, relay):
    result = command("push", file(tmp_path, 3), "--set", "t", "--label", "three", *relay, servers=three)
    assert result.returncode == 0, result.stdout
    assert all(f"{url(s)}: has the weights as set 't'" in result.stdout for s in three)
    assert [value_of(s) for s in three] == [3] * 3 and [sets(s)["t"]["label"] for s in three] == ["three"] * 3
    # One server does not take it, so none does.
    with FakeAdmin("fake") as full:
        full.fail["stage"] = (507, "no room")
        result = command("push", file(tmp_path, 4), "--set", "t", *relay, servers=[*three, full])
    assert result.returncode == 1 and "no room" in result.stdout, result.stdout
    assert [value_of(s) for s in three] == [3] * 3 and {pushes(s)[-1]["state"] for s in three} == {"aborted"}
    result = command("push", file(tmp_path, 4), "--set", "t", "--dry-run", servers=three)
    assert result.returncode == 0 and [value_of(s) for s in three] == [3] * 3, result.stdout
    result = command("push", file(tmp_path, 4), "--set", "t", "--guard", "1s", servers=three)
    assert result.returncode == 2 and "a named set is not watched" in result.stdout


def test_a_server_that_cannot_commit_takes_all_back(three, tmp_path, name):
    one = three[0]
    assert put(one, fake_weights(3)).status == 200
    with FakeAdmin("fake") as other:
        other.fail["commit"] = (500, "no")
        result = command("push", file(tmp_path, 4), "--set", "t", servers=[one, other])
    assert result.returncode == 1 and f"{url(one)}: rolled back" in result.stdout, result.stdout
    assert value_of(one) == 3 and pushes(one)[-1]["state"] == "undone"
    assert "/v2/admin/models/fake/sets/t" in {path.partition("?")[0] for _, path in other.calls}


def test_reconcile_brings_all_to_one_set(three, tmp_path, name):
    one, two, last = three
    assert stage([one], name, 7) == [200] and act(one, "commit", name).status == 200
    assert put(two, fake_weights(6)).status == 200
    result = command("reconcile", "--set", "t", servers=three)
    assert result.returncode == 0, result.stdout
    assert [value_of(s) for s in three] == [7] * 3
    assert [sets(s)["t"]["label"] for s in three] == ["v7"] * 3
    weight_version = {answer(s)[1] for s in three}
    assert len(weight_version) == 1 and f"has set 't' as weight version {weight_version.pop()}, " in result.stdout
    digests = {s.admin("GET", "fake/sets/t?digest=true").json["digest"] for s in three}
    assert len(digests) == 1 and all(d in result.stdout for d in digests)
    # None has it: that is one answer, too.
    result = command("reconcile", "--set", "absent", servers=three)
    assert result.returncode == 0 and f"{url(last)}: has no set 'absent'" in result.stdout
    # They differ, and nothing says which counts.
    assert put(two, fake_weights(6), named="u").status == 200
    result = command("reconcile", "--set", "u", servers=three)
    assert result.returncode == 1 and "no push says which weights count" in result.stdout
    result = command("reconcile", "--set", "u", "--from", url(one), servers=three)
    assert result.returncode == 1 and "has no such set" in result.stdout
    result = command("reconcile", "--set", "u", "--from", url(two), servers=three)
    assert result.returncode == 0 and [value_of(s, "u") for s in three] == [6] * 3, result.stdout


def test_after_a_kill_a_committed_push_is_known(tmp_path, name):
    flags = [*PEERS, "--set", f"*.sets_folder={tmp_path}"]
    with AdminServer(f"fake={FAKE}", flags=flags) as server:
        for value in (3, 4):
            assert put(server, fake_weights(value), f"push={name}-{value}&label=v{value}").status == 200
            assert act(server, "commit", f"{name}-{value}").status == 200
        assert put(server, fake_weights(5), f"push={name}-5").status == 200
        assert act(server, "prepare", f"{name}-5").status == 200
        server.stop(9)
    with AdminServer(f"fake={FAKE}", flags=flags) as server:
        assert value_of(server) == 4 and sets(server)["t"]["label"] == "v4"
        assert [(p["push"], p["state"], p["active"]) for p in pushes(server)] == [(f"{name}-4", "committed", True)]
        assert act(server, "commit", f"{name}-4").status == 200
        assert act(server, "commit", f"{name}-5").status == 404
        assert sorted(p.name for p in (tmp_path / "fake/1").iterdir()) == ["t.safetensors"]
        # A reload keeps it, too.
        assert server.post("/v2/repository/models/fake/load", b"", port=server.admin_port).status == 200
        assert pushes(server)[-1]["active"] is True and value_of(server) == 4


def test_the_first_server_is_restarted_after_its_commit(tmp_path, name):
    """It still says that it has committed, so the servers in doubt do so, too."""
    flags = [*PEERS, "--set", f"*.sets_folder={tmp_path / 'one'}"]
    one = AdminServer(f"fake={FAKE}", flags=flags)
    with AdminServer(f"fake={FAKE}", flags=PEERS) as two:
        with one:
            again = ["--admin", url(one).removeprefix("http://")]
            assert stage([one, two], name, 3, "1s") == [200] * 2
            assert all(act(s, "prepare", name).status == 200 for s in (one, two))
            assert act(one, "commit", name).status == 200
            one.stop(9)
        with AdminServer(f"fake={FAKE}", flags=[*flags, *again]) as one:
            until(lambda: state(two, name) == "committed")
            assert value_of(one) == value_of(two) == 3


def test_the_file_of_a_set(three):
    one = three[0]
    assert put(one, fake_weights(3), "label=three").status == 200
    got = one.admin("GET", "fake/sets/t/weights")
    assert got.status == 200 and got.headers["Sconce-Weights-Label"] == "three"
    assert got.headers["Sconce-Weights-Digest"] == one.admin("GET", "fake/sets/t?digest=true").json["digest"]
    assert put(one, got.body, named="u").status == 200 and value_of(one, "u") == 3
    assert one.admin("GET", "fake/sets/absent/weights").status == 404


def test_a_long_upload_ends_when_its_push_does(three, name):
    one = three[0]
    data = fake_weights(4)
    with one.connect_admin() as connection:
        connection.sendall((f"POST /v2/admin/models/fake/sets/t?push={name}&lease=300ms HTTP/1.1\r\nHost: localhost\r\n"
                            "Content-Type: application/octet-stream\r\n"
                            f"Content-Length: {len(data)}\r\n\r\n").encode() + data[:len(data) // 2])
        until(lambda: state(one, name) == "expired")
        assert b"it expired" in connection.recv(10000)
    assert answer(one) is None
    until(lambda: not one.running())
    assert put(one, data).status == 200


def test_refused(three, name):
    one = three[0]
    for query, words in (("push=a/b", "push must be"), ("lease=3s", "goes with push"),
                         (f"push={name}&commit=true", "a named set is not committed")):
        got = put(one, fake_weights(3), query)
        assert got.status == 400 and words in got.json["error"], json.dumps(got.json)
    assert put(one, fake_weights(3), f"push={name}").status == 200
    got = act(one, "commit", name, "&guard=1s")
    assert got.status == 400 and "a named set is not watched" in got.json["error"]
    assert act(one, "abort", name).status == 200
