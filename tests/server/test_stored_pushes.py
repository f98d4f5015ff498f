"""What became of a push is known after a restart: a late coordinator gets the answer that it would have got before."""
import json
import signal
import socket
import threading
import urllib.parse

import pytest
from admin_server import FAKE, AdminServer, expected, url
from serving import until
from weights_files import fake_weights


def storing_server(folder, *flags):
    return AdminServer(f"fake={FAKE}", flags=["--weights-store", str(folder), *flags])


def kill(server):
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()


def stage(server, push, value=5, query="label=five"):
    return server.push("fake", fake_weights(value), f"push={push}&{query}")


def act(server, action, push):
    return server.admin("POST", f"fake/weights/{action}?push={push}")


def pushes(server):
    return {p["push"]: p for p in server.admin("GET", "fake/weights/pushes").json["pushes"]}


@pytest.fixture()
def folder(tmp_path):
    return tmp_path / "kept"


def test_commit_and_abort_by_id_after_a_kill(folder):
    with storing_server(folder) as server:
        assert act(server, "abort", "never").status == 200  # it must not begin later
        assert stage(server, "gone").status == 200 and act(server, "abort", "gone").status == 200
        assert stage(server, "good").status == 200 and act(server, "commit", "good").status == 200
        assert stage(server, "open", 9).status == 200
        before = pushes(server)
        kill(server)
    with storing_server(folder) as server:
        assert server.ones() == (expected(5), 2)
        del before["open"]  # what it had staged went with the process
        assert pushes(server) == before
        assert before["good"] == {"push": "good", "state": "committed", "label": "five", "weight_version": 2, "active": True,
                                  "generation": 2}  # deprecated
        answer = act(server, "commit", "good")
        assert answer.status == 200 and answer.json["push"] == before["good"]
        assert act(server, "abort", "good").status == 409
        assert "was committed as weight version 2" in act(server, "abort", "good").json["error"]
        for push in ("gone", "never"):
            answer = act(server, "commit", push)
            assert answer.status == 409 and "it was aborted" in answer.json["error"]
            assert act(server, "abort", push).status == 200
            assert stage(server, push).status == 409 and act(server, "prepare", push).status == 409
        assert stage(server, "good").status == 409
        assert act(server, "commit", "open").status == 404
        # Nothing is there to go back to, and the answer says so.
        answer = act(server, "rollback", "good")
        assert answer.status == 400 or answer.status == 409
        assert "previous" in answer.json["error"]
        # The next set is another one.
        assert stage(server, "next", 7, "commit=true").status == 200
        assert pushes(server)["good"]["active"] is False and pushes(server)["next"]["active"] is True
        assert act(server, "rollback", "next").json["push"]["state"] == "undone"
        after = pushes(server)
        kill(server)
    with storing_server(folder) as server:
        assert server.ones() == (expected(5), 4)
        assert pushes(server) == after and after["next"]["active"] is True
        assert act(server, "rollback", "next").status == 200 and act(server, "commit", "next").status == 409


def test_the_last_64_are_known(folder):
    with storing_server(folder) as server:
        for i in range(70):
            assert act(server, "abort", f"p{i}").status == 200
        kill(server)
    assert len(json.loads((folder / "fake/1/journal.json").read_text())["pushes"]) == 64
    with storing_server(folder) as server:
        assert list(pushes(server)) == [f"p{i}" for i in range(6, 70)]
        assert stage(server, "p5").status == 200 and stage(server, "p6").status == 409


def test_what_was_not_stored_is_not_active(folder):
    """A number may be given again after a restart, if its set was not stored."""
    with storing_server(folder) as server:
        assert stage(server, "kept").status == 200 and act(server, "commit", "kept").status == 200
        assert stage(server, "try", 7).status == 200
        answer = server.admin("POST", "fake/weights/commit?push=try&store=false")
        record = {"push": "try", "state": "committed", "label": "five", "weight_version": 3, "active": True,
                  "generation": 3}  # deprecated
        assert answer.json["push"] == record
        kill(server)
    with storing_server(folder) as server:
        assert server.ones() == (expected(5), 2)
        assert pushes(server)["try"] == {**record, "active": False}
        assert pushes(server)["kept"]["active"] is True
        assert stage(server, "again", 9).status == 200 and act(server, "commit", "again").json["generation"] == 3
        kill(server)
    with storing_server(folder) as server:
        assert server.ones() == (expected(9), 3)
        assert [p for p, what in pushes(server).items() if what["active"]] == ["again"]


def test_a_reload_knows_them_too(folder):
    with storing_server(folder) as server:
        assert stage(server, "good").status == 200 and act(server, "commit", "good").status == 200
        before = pushes(server)
        assert server.admin("POST", "/v2/repository/models/fake/load", b"").status == 200
        assert pushes(server) == before and before["good"]["active"] is True


class Door:
    """An address of a server that stays when the server is started again on another port."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.port = None  # behind it; None: connections are closed
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                if self.port is None:
                    continue
                with socket.create_connection(("127.0.0.1", self.port)) as server:
                    server.sendall(client.recv(65536))  # a request without a body is one piece
                    while piece := server.recv(65536):
                        client.sendall(piece)


def test_the_first_server_is_restarted_after_its_commit(folder):
    """It says that it has committed, so the other one does too: without its memory, the other one would drop the set."""
    flags = ["--weights-peers", "127.0.0.1"]
    door = Door()
    with door.listener, AdminServer(f"fake={FAKE}", flags=flags) as second:
        members = [door.url, url(second)]
        with storing_server(folder, *flags) as first:
            for i, server in enumerate((first, second)):
                query = f"push=p&lease=2s&members={urllib.parse.quote(','.join(members), safe='')}&member={i}"
                assert server.push("fake", fake_weights(5), query).status == 200
                assert act(server, "prepare", "p").status == 200
            assert act(first, "commit", "p").status == 200
            kill(first)
        with storing_server(folder, *flags) as again:
            assert pushes(again)["p"]["members"] == members
            door.port = again.admin_port
            until(lambda: pushes(second)["p"]["state"] == "committed", 30, lambda: second.log)
            assert second.ones()[0] == again.ones()[0] == expected(5)


@pytest.mark.parametrize("change, readable", [({"state": "merged"}, True), ({"push": "a/b"}, True), ({"push": 7}, False),
                                              ({"generation": -1}, False), ({"members": "x"}, False), ([], False)])
def test_pushes_that_cannot_be_read(folder, change, readable):
    """What a later release may have written is passed over; what is no journal, is none."""
    with storing_server(folder) as server:
        assert stage(server, "good").status == 200 and act(server, "commit", "good").status == 200
        assert act(server, "abort", "other").status == 200
        kill(server)
    path = folder / "fake/1/journal.json"
    text = json.loads(path.read_text())
    text["pushes"][1] = {**text["pushes"][1], **change} if isinstance(change, dict) else change
    path.write_text(json.dumps(text))
    with storing_server(folder) as server:
        if readable:
            assert server.ones() == (expected(5), 2) and list(pushes(server)) == ["good"]
        else:
            assert "journal.json" in server.post("/v2/repository/index", b"").json[0]["reason"]
