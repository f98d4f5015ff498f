"""Pushes with an id: leases, what is decided and by whom, and the relay."""
import json
import subprocess
import urllib.parse

import pytest
from admin_server import FAKE, GOOD, LARGE, LARGE_FEATURES, AdminServer, url
from fake_admin import FakeAdmin
from serving import PROGRAM, until
from weights_files import fake_weights

PEERS = ["--weights-peers", "127.0.0.1"]


@pytest.fixture(scope="module")
def shared():
    with AdminServer(f"fake={FAKE}", f"large={LARGE}", flags=PEERS) as one, \
            AdminServer(f"fake={FAKE}", f"large={LARGE}", flags=PEERS) as two, \
            AdminServer(f"fake={FAKE}", f"large={LARGE}", flags=PEERS) as three:
        yield one, two, three


@pytest.fixture()
def three(shared, request):
    """The servers, and an id that nobody has used."""
    yield shared
    for server in shared:
        for record in pushes(server):
            if record["state"] in ("receiving", "staged", "prepared"):
                server.admin("POST", f"fake/weights/abort?push={record['push']}")
        assert "staged" not in server.sets()


@pytest.fixture()
def name(request):
    return "".join(c if c.isalnum() else "-" for c in request.node.name)[:60]


def pushes(server, model="fake"):
    return server.admin("GET", f"{model}/weights/pushes").json["pushes"]


def state(server, push):
    found = server.admin("GET", f"fake/weights/pushes?push={push}").json["pushes"]
    return found[0]["state"] if found else None


def stage(servers, push, lease="30s", value=8, **more):
    """Stages on these servers as members of one push. Returns the statuses."""
    members = urllib.parse.quote(",".join(url(s) for s in servers), safe="")
    return [s.push("fake", fake_weights(value), f"push={push}&lease={lease}&members={members}&member={i}").status
            for i, s in enumerate(servers)]


def act(server, action, push):
    return server.admin("POST", f"fake/weights/{action}?push={push}")


def reconcile(servers, *more):
    return subprocess.run([PROGRAM, "weights", "reconcile", *more, "--model", "fake", "--to", ",".join(map(url, servers)),
                           "--patience", "2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)


def test_commit_and_rollback_by_id_are_idempotent(three, name):
    one = three[0]
    assert one.push("fake", GOOD, f"push={name}&label=v8").status == 200
    before = one.ones()[1]
    for _ in range(3):
        answer = act(one, "commit", name)
        assert answer.status == 200
        assert answer.json["push"] == {"push": name, "state": "committed", "label": "v8", "weight_version": before + 1,
                                       "generation": before + 1,  # deprecated
                                       "active": True}
    for _ in range(3):
        answer = act(one, "rollback", name)
        assert answer.status == 200 and answer.json["generation"] == before + 2
        assert answer.json["push"]["state"] == "undone"
    answer = act(one, "commit", name)
    assert answer.status == 409 and answer.json["error"] == f"push {name} is over: it was undone by weight version {before + 2}"


def test_a_push_that_is_not_active_any_more_is_not_undone(three, name):
    one = three[0]
    for push in (name, name + "2"):
        assert one.push("fake", GOOD, f"push={push}&commit=true").status == 200
    answer = act(one, "rollback", name)
    assert answer.status == 409 and "cannot be undone" in answer.json["error"]
    assert act(one, "rollback", name + "2").status == 200


def test_late_messages_of_a_dead_coordinator_change_nothing(three, name):
    one = three[0]
    before = one.ones()
    assert act(one, "commit", name).status == 404
    for _ in range(2):
        assert act(one, "abort", name).status == 200
    assert one.push("fake", GOOD, f"push={name}").status == 409
    for action in ("commit", "prepare", "renew", "rollback"):
        answer = act(one, action, name)
        assert answer.status == 409 and answer.json["error"] == f"push {name} is over: it was aborted"
    assert one.ones() == before and "staged" not in one.sets()


def test_a_staged_set_expires_and_the_next_push_goes_through(three, name):
    one, two, _ = three
    assert one.push("fake", GOOD, f"push={name}&lease=1s").status == 200
    assert one.push("fake", GOOD).status == 409
    # The lease lasts as long as its coordinator renews it: twice as long as leases that nobody renews.
    for other in (name + "3", name + "4"):
        assert two.push("fake", GOOD, f"push={other}&lease=1s").status == 200
        until(lambda: act(one, "renew", name).status != 200 or state(two, other) == "expired")
    assert act(one, "renew", name).status == 200 and one.sets()["staged"]
    until(lambda: "staged" not in one.sets())
    assert state(one, name) == "expired" and any("expired, its staged weights were dropped" in line for line in one.log)
    assert act(one, "commit", name).json["error"] == f"push {name} is over: it expired"
    assert one.push("fake", GOOD, f"push={name}2&commit=true").status == 200


def test_the_former_route_of_a_renewal_answers_for_one_release(three, name):
    one = three[0]
    assert one.push("fake", GOOD, f"push={name}&lease=2s").status == 200
    answer = act(one, "prolong", f"{name}&lease=60s")  # deprecated
    assert answer.status == 200 and answer.json["expires_in"] > 50
    assert act(one, "abort", name).status == 200


def test_without_an_id_nothing_expires(three, name):
    one, two, _ = three
    assert one.push("fake", GOOD).status == 200
    assert two.push("fake", GOOD, f"push={name}&lease=300ms").status == 200
    until(lambda: state(two, name) == "expired")
    assert one.sets()["staged"] and one.admin("POST", "fake/weights/abort").status == 200


def test_an_upload_whose_coordinator_says_nothing_more_ends_with_its_lease(three, name):
    one = three[0]
    data = fake_weights(3, LARGE_FEATURES)
    with one.begin_push("large", data, 1000, f"push={name}&lease=1s") as connection:
        until(one.running)
        answer = connection.recv(10000)
        assert b" 409 " in answer and b"it expired" in answer
    until(lambda: not one.running())
    assert one.push("large", data, "dry_run=true").status == 200


def test_an_upload_that_is_aborted_ends_at_once(three, name):
    one = three[0]
    data = fake_weights(3, LARGE_FEATURES)
    with one.begin_push("large", data, 1000, f"push={name}") as connection:
        until(one.running)
        assert one.admin("POST", f"large/weights/abort?push={name}").status == 200
        assert b"it was aborted" in connection.recv(10000)
    until(lambda: not one.running())
    assert one.push("large", data, "dry_run=true").status == 200


def test_what_no_server_has_prepared_expires_everywhere(three, name):
    assert stage(three, name, "300ms") == [200] * 3
    until(lambda: all(state(s, name) == "expired" for s in three))


def test_servers_in_doubt_commit_what_the_first_has_committed(three, name):
    before = [s.ones()[1] for s in three]
    assert stage(three, name, "1s", 5) == [200] * 3
    assert all(act(s, "prepare", name).status == 200 for s in three)
    assert act(three[0], "commit", name).status == 200
    until(lambda: all(state(s, name) == "committed" for s in three))
    assert [s.ones() for s in three] == [([10] * 4, n + 1) for n in before]


def test_servers_in_doubt_end_what_the_first_has_let_expire(three, name):
    assert stage(three, name, "1s") == [200] * 3
    assert all(act(s, "prepare", name).status == 200 for s in three)
    until(lambda: state(three[0], name) == "expired")
    until(lambda: all(state(s, name) in ("aborted", "expired") for s in three))
    assert all(act(s, "commit", name).status == 409 for s in three)


@pytest.fixture()
def strangers():
    """Two servers that may not ask each other."""
    with AdminServer(f"fake={FAKE}") as one, AdminServer(f"fake={FAKE}") as two:
        yield [one, two]


def test_a_server_in_doubt_that_may_ask_nobody_waits_for_reconcile(strangers, name):
    one, two = strangers
    assert stage(strangers, name, "1s") == [200] * 2
    assert all(act(s, "prepare", name).status == 200 for s in strangers)
    assert act(one, "commit", name).status == 200
    until(lambda: pushes(two)[0]["in_doubt"])
    assert pushes(two)[0]["state"] == "prepared"
    assert two.ones()[1] == 1
    result = reconcile([two])  # the server that decides is not among them
    assert result.returncode == 1 and f"{url(one)} decides, and does not answer" in result.stdout
    # That took two seconds, and the server in doubt asks every second.
    assert len([line for line in two.log if "another server may have committed it" in line]) == 1
    result = reconcile(strangers)
    assert result.returncode == 0 and f"push {name} is committed: a server has committed it" in result.stdout
    assert [s.ones() for s in strangers] == [([16] * 4, 2)] * 2
    assert reconcile(strangers).returncode == 0


def test_a_server_that_decides_and_is_gone_for_good(strangers, name):
    one, two = strangers
    assert stage(strangers, name, "1s") == [200] * 2
    assert all(act(s, "prepare", name).status == 200 for s in strangers)
    one.stop(9)
    result = reconcile([two], "--gone", url(one))
    assert result.returncode == 0 and f"push {name} is aborted: no server has committed it" in result.stdout
    assert "staged" not in two.sets() and act(two, "commit", name).status == 409


def test_the_next_push_reconciles_first(strangers, name, tmp_path):
    assert stage(strangers, name, "1s") == [200] * 2
    assert all(act(s, "prepare", name).status == 200 for s in strangers)
    file = tmp_path / "w.safetensors"
    file.write_bytes(fake_weights(6))
    result = subprocess.run([PROGRAM, "weights", "push", file, "--model", "fake", "--to", ",".join(map(url, strangers))],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert result.returncode == 0 and f"push {name} is aborted: a server has ended it" in result.stdout, result.stdout
    assert [s.ones() for s in strangers] == [([12] * 4, 2)] * 2


def test_a_dry_run_reconciles_nothing(strangers, name, tmp_path):
    assert stage(strangers, name, "1s") == [200] * 2
    assert all(act(s, "prepare", name).status == 200 for s in strangers)
    until(lambda: state(strangers[0], name) == "expired")
    file = tmp_path / "w.safetensors"
    file.write_bytes(fake_weights(6))
    result = subprocess.run([PROGRAM, "weights", "push", file, "--dry-run", "--model", "fake", "--to", url(strangers[0])],
                            stdout=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 0 and state(strangers[1], name) == "prepared", result.stdout


def test_a_push_under_way_is_not_reconciled_by_another(three, name):
    assert stage(three, name, "2s") == [200] * 3
    process = subprocess.Popen([PROGRAM, "weights", "reconcile", "--model", "fake", "--to", ",".join(map(url, three))],
                               stdout=subprocess.PIPE, text=True)
    until(lambda: [act(s, "renew", name).status for s in three] != [200] * 3 or process.poll() is not None)
    assert [act(s, "renew", name).status for s in three] == [200] * 3
    assert f"push {name} is not decided: it is under way" in process.communicate(timeout=30)[0]
    assert process.returncode == 1 and all(state(s, name) == "staged" for s in three)


def test_reconcile_gives_a_server_that_lost_its_weights_those_of_the_others(strangers, name, tmp_path):
    one, two = strangers
    assert stage([one], name, value=7) == [200] and act(one, "commit", name).status == 200
    result = reconcile(strangers)
    if result.returncode:  # the server cannot be asked for its active set
        assert f"{url(two)}: needs the weights that {url(one)} serves" in result.stdout
        wrong = tmp_path / "wrong.safetensors"
        wrong.write_bytes(fake_weights(6))
        result = reconcile(strangers, wrong)
        assert result.returncode == 1 and "has other weights staged than wanted" in result.stdout and two.ones()[1] == 1
        right = tmp_path / "right.safetensors"
        right.write_bytes(fake_weights(7))
        result = reconcile(strangers, right)
    assert result.returncode == 0, result.stdout
    assert two.ones() == ([14] * 4, 2)


def test_reconcile_does_not_guess_which_weights_count(strangers):
    one, two = strangers
    assert two.push("fake", GOOD, "commit=true").status == 200
    result = reconcile(strangers)
    assert result.returncode == 1 and "no push says which weights count" in result.stdout


def test_reconcile_leaves_one_weight_version(strangers, name, tmp_path):
    """Also if the server that gets the set had a larger one than those that have it."""
    one, two = strangers
    for value in (2, 3, 4):
        assert two.push("fake", fake_weights(value), "commit=true").status == 200
    assert stage([one], name, value=7) == [200] and act(one, "commit", name).status == 200
    right = tmp_path / "right.safetensors"
    right.write_bytes(fake_weights(7))
    result = reconcile(strangers, right)
    assert result.returncode == 0, result.stdout
    assert one.ones() == two.ones() == ([14] * 4, 5)
    assert f"{url(one)}: serves 5 as weight version 5, sha-256:" in result.stdout
    assert pushes(one)[-1]["generation"] == 5 and pushes(one)[-1]["active"] is True
    again = reconcile(strangers)
    assert again.returncode == 0 and "serves 5 as weight version 5" in again.stdout


def test_reconcile_says_which_server_keeps_its_number(strangers):
    one, two = strangers
    for value in (2, 8):
        assert one.push("fake", fake_weights(value), "commit=true&store=true").status == 200
    assert two.push("fake", GOOD, "commit=true&guard=600s").status == 200
    result = reconcile(strangers)
    assert result.returncode == 1, result.stdout
    assert f"{url(two)}: serves these weights as weight version 2, and others as 3: 409: weight version 2 is watched" in result.stdout


def test_a_relayed_body_is_sent_once(three, name):
    data = fake_weights(4, LARGE_FEATURES)
    members = urllib.parse.quote(",".join(map(url, three)), safe="")
    answer = three[0].push("large", data, f"push={name}&members={members}&relay=true&label=r")
    assert answer.status == 200, answer.body
    for server in three:
        assert server.sets("large")["staged"]["label"] == "r"
        assert pushes(server, "large")[-1]["member"] == three.index(server)
    assert len({s.admin("GET", "large/weights?digest=true").json["sets"][1]["digest"] for s in three}) == 1
    for server in three:
        assert server.admin("POST", f"large/weights/abort?push={name}").status == 200


def test_a_relay_names_the_server_that_refused(three, name):
    members = urllib.parse.quote(",".join(map(url, three)), safe="")
    assert three[2].push("fake", GOOD).status == 200
    answer = three[0].push("fake", fake_weights(2), f"push={name}&members={members}&relay=true")
    assert answer.status == 409 and answer.json["error"].startswith(f"relay: {url(three[2])}: 409: weights "), answer.body
    assert [("staged" in s.sets()) for s in three] == [False, False, True]
    three[2].admin("POST", "fake/weights/abort")
    answer = three[0].push("fake", fake_weights(2, 5), f"push={name}2&members={members}&relay=true")
    assert answer.status == 400 and "scale" in answer.json["error"]
    assert not any("staged" in s.sets() for s in three)


def test_a_relay_goes_to_allowed_servers_only(strangers, three, name):
    with FakeAdmin() as outside:
        for server, peer in ((strangers[0], url(strangers[1])), (three[0], outside.url.replace("127.0.0.1", "localhost"))):
            members = urllib.parse.quote(f"{url(server)},{peer}", safe="")
            answer = server.push("fake", GOOD, f"push={name}&members={members}&relay=true")
            assert answer.status == 403 and answer.json["error"] == f"weights_peers does not allow {peer}"
            assert "staged" not in server.sets()
        assert outside.calls == []


def test_a_relay_sends_the_token_that_it_was_asked_with(tmp_path, name):
    token = tmp_path / "token"
    token.write_text("s3cret-and-long-enough\n")
    with FakeAdmin(model="fake", token="s3cret-and-long-enough") as next_one, \
            AdminServer(f"fake={FAKE}", flags=[*PEERS, "--admin-token-file", str(token)]) as server:
        members = urllib.parse.quote(f"{url(server)},{next_one.url}", safe="")
        answer = server.push("fake", GOOD, f"push={name}&members={members}&relay=true",
                             {"Authorization": "Bearer s3cret-and-long-enough"})
        assert answer.status == 400 and "digest" in answer.json["error"], answer.body  # this server demands a digest
        assert next_one.calls[0][0] == "POST" and "member=1" in next_one.calls[0][1]


def test_push_by_relay_with_the_command(three, tmp_path):
    file = tmp_path / "w.safetensors"
    file.write_bytes(fake_weights(9))
    before = [s.ones()[1] for s in three]
    result = subprocess.run([PROGRAM, "weights", "push", file, "--model", "fake", "--relay", "--label", "nine", "--to",
                             ",".join(map(url, three))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert result.returncode == 0 and result.stdout.count("serves nine") == 3, result.stdout
    assert [s.ones() for s in three] == [([18] * 4, n + 1) for n in before]


def test_a_reload_takes_what_was_staged_along(three, name):
    one = three[0]
    assert one.push("fake", GOOD, f"push={name}").status == 200
    assert one.admin("POST", "/v2/repository/models/fake/load", {}).status == 200
    assert state(one, name) in ("expired", "staged") and act(one, "commit", name).status in (200, 409)


def test_parameters_that_make_no_sense(three):
    one = three[0]
    for query, reason in [("push=a/b", "push must be"), ("lease=1s", "goes with push"), ("push=p&lease=1ms", "lease must be"),
                          ("push=p&relay=true", "relay needs members"), ("push=p&members=ftp://x", "http or https"),
                          ("push=p&members=a,b&commit=true", "exclude each other"), ("push=p&members=a,b&member=x", "member must")]:
        answer = one.push("fake", GOOD, query)
        assert answer.status == 400 and reason in answer.json["error"], (query, answer.body)
    for action in ("commit", "prepare", "renew", "abort", "rollback"):
        assert one.admin("POST", f"fake/weights/{action}?push=a%20b").status == 400
    assert one.admin("POST", "fake/weights/prepare").status == 400
    assert json.dumps(pushes(one)).count('"p"') == 0
