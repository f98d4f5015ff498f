"""Servers of a push that work together where their administration needs tokens or certificates: guards, servers in doubt
and the watch over what the others serve; also after tokens were rotated, and after a restart."""
import contextlib
import time
import urllib.parse

import pytest
from admin_server import FAKE, GOOD, STORED
from certificates import authority  # noqa: F401
from fleet import AccessServer, Mutual, Open, Tokens, push_to
from serving import run_serve, until
from weights_files import fake_weights

NAN = fake_weights(float("nan"))


class OwnTokens(Tokens):
    """Servers without a token of their own: they have that of the push's last request."""

    def __init__(self, folder):
        super().__init__(folder)
        self.flags = self.flags[:2]


@pytest.fixture(params=["open", "tokens", "tokens of requests", "mutual TLS"])
def access(request, tmp_path):
    if request.param == "mutual TLS":
        return Mutual(request.getfixturevalue("authority"))
    return {"open": Open, "tokens of requests": OwnTokens}.get(request.param, lambda: Tokens(tmp_path))(
        *([tmp_path] if request.param == "tokens of requests" else []))


@contextlib.contextmanager
def servers(access, count=2, flags=lambda i: []):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(AccessServer(f"fake={FAKE}", access=access, flags=flags(i))) for i in range(count)]


def ask(server, times=1):
    for _ in range(times):
        server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1.0] * 4)})


def states(server):
    return [p["state"] for p in server.admin("GET", "fake/weights/pushes").json["pushes"]]


def no_secret_in(servers, access):
    for server in servers:
        told = "".join(server.log)
        for path in ("fake/weights", "fake/weights/pushes", "/v2/admin/audit", "/v2/admin/log", "fake/weights/guard"):
            told += server.admin("GET", path).body.decode()
        assert getattr(access, "token", "no token") not in told


def test_all_go_back_if_one_does(access):
    with servers(access, 3) as fleet:
        push_to(fleet, NAN, "p", "guard=60s")
        ask(fleet[1])
        until(lambda: all(s.sets()["active"]["weight_version"] == 3 for s in fleet), 20, lambda: [s.log for s in fleet])
        assert [s.ones() for s in fleet] == [(STORED, 3)] * 3
        assert [states(s) for s in fleet] == [["undone"]] * 3
        no_secret_in(fleet, access)


def test_all_go_back_after_tokens_were_rotated(tmp_path):
    access = Tokens(tmp_path)
    with servers(access) as fleet:
        push_to(fleet, NAN, "p", "guard=60s")
        rotate(access, fleet)
        ask(fleet[0])
        until(lambda: all(s.sets()["active"]["weight_version"] == 3 for s in fleet), 20, lambda: [s.log for s in fleet])
        assert [s.ones() for s in fleet] == [(STORED, 3)] * 2


def rotate(access, fleet):
    """Gives the servers a new token, and takes the old one from them."""
    before, access.token = access.token, access.token[::-1]
    access.write(access.token)

    def status(server, token):
        return server.admin("GET", "fake/weights", headers={"Authorization": f"Bearer {token}"}).status

    until(lambda: all(status(s, access.token) == 200 and status(s, before) == 403 for s in fleet))


def test_all_go_back_after_a_restart(tmp_path):
    access = Tokens(tmp_path)

    def flags(i):
        return ["--weights-store", str(tmp_path / f"kept{i}"), "--http", "127.0.0.1:0"]

    with AccessServer(f"fake={FAKE}", access=access, flags=flags(1)) as other:
        with AccessServer(f"fake={FAKE}", access=access, flags=flags(0)) as one:
            admin_port = one.admin_port
            push_to([one, other], GOOD, "before")
            push_to([one, other], NAN, "p", "guard=60s")
            one.stop(9)
        # The process has gone without its memory. What is stored has no secret.
        journal = (tmp_path / "kept0/fake/1/journal.json").read_text()
        assert access.token not in journal and "members" in journal
        with AccessServer(f"fake={FAKE}", access=access, flags=[*flags(0), "--admin", f"127.0.0.1:{admin_port}"]) as again:
            ask(again)
            until(lambda: all(states(s)[-1] == "undone" for s in (again, other)), 20, lambda: [again.log, other.log])
            assert [s.ones()[0] for s in (again, other)] == [[16.0] * 4] * 2


def test_a_server_that_has_no_right_is_told_of(tmp_path):
    """The log says which server may still serve the weights, why, and what to do."""
    access, others = OwnTokens(tmp_path), tmp_path / "others"
    others.mkdir()
    other_access = OwnTokens(others)
    with AccessServer(f"fake={FAKE}", access=access) as one, AccessServer(f"fake={FAKE}", access=other_access) as other:
        push_to([one, other], NAN, "p", "guard=60s")
        ask(one)
        until(lambda: "may still serve it" in "".join(one.log), 20, lambda: one.log)
        line = next(line for line in one.log if "may still serve it" in line)
        assert other.url in line and "403: not a token of this server" in line
        assert "set weights_peers_token_file" in line
        assert access.token not in "".join(one.log)


@pytest.mark.parametrize("rotated", [False, True])
def test_a_server_in_doubt_finds_out(access, rotated, tmp_path):
    if rotated and not isinstance(access, Tokens):
        pytest.skip("there are no tokens")
    with servers(access) as fleet:
        members = urllib.parse.quote(",".join(s.url for s in fleet), safe="")
        for i, server in enumerate(fleet):
            query = f"push=p&lease=2s&members={members}&member={i}"
            assert server.push("fake", GOOD, query).status == 200
        for server in fleet:
            assert server.admin("POST", "fake/weights/prepare?push=p", b"").status == 200
        if rotated:
            rotate(access, fleet)
            if isinstance(access, OwnTokens):  # the coordinator, which lives, has the new token
                fleet[1].admin("POST", "fake/weights/renew?push=p", b"")
        assert fleet[0].admin("POST", "fake/weights/commit?push=p", b"").status == 200
        until(lambda: states(fleet[1]) == ["committed"], 20, lambda: fleet[1].log)
        assert [s.ones()[0] for s in fleet] == [[16.0] * 4] * 2
        no_secret_in(fleet, access)


def test_others_that_serve_something_else_are_seen(access):
    with servers(access) as fleet:
        push_to(fleet, fake_weights(3), "three")
        assert fleet[1].push("fake", fake_weights(4), "label=four&commit=true").status == 200
        connection = access.connect(fleet[0].admin_port, 30)
        connection.request("GET", "/v2/admin/live", headers=access.headers())
        stream = connection.getresponse()
        wanted = f"fake version 1: {fleet[1].url} serves four (weight version 3), this server three (weight version 2)"
        end = time.time() + 30
        while wanted not in (line := stream.readline().decode()):
            assert line and time.time() < end
        connection.close()


def test_a_relay_has_the_token_of_its_request(tmp_path):
    access = Tokens(tmp_path)
    with servers(access, 3) as fleet:
        access.own.write_text("another-token-of-16\n")
        members = urllib.parse.quote(",".join(s.url for s in fleet), safe="")
        answer = fleet[0].push("fake", GOOD, f"push=p&relay=true&members={members}&member=0")
        assert answer.status == 200, answer.body
        assert [states(s) for s in fleet] == [["staged"]] * 3


@pytest.mark.parametrize("text", [None, "", " \n", "a b\n"])
def test_a_token_that_cannot_be_read(tmp_path, text):
    path = tmp_path / "own"
    if text is not None:
        path.write_text(text)
    status, log = run_serve(f"fake={FAKE}", "--weights-peers-token-file", path)
    assert status == 2 and "setting weights_peers_token_file: " in log and str(path) in log
