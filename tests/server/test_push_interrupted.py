"""Pushes to sixteen servers whose coordinator or servers are killed, stopped or cut off at any step: in the end all servers
serve one set, each client has seen its server's weight version grow only, and no request has failed.

SCONCE_PUSH_ROUNDS and SCONCE_PUSH_SEED repeat what failed, or try longer; ./dev test --long has a hundred rounds.
"""
import http.client
import os
import random
import signal
import socket
import subprocess
import time
import urllib.parse

import pytest
from certificates import authority  # noqa: F401
from fleet import Fleet, Mutual, Open, Tokens, variant
from serving import SANITIZED

ROUNDS = int(os.environ.get("SCONCE_PUSH_ROUNDS") or (3 if SANITIZED else 8))
SEED = int(os.environ.get("SCONCE_PUSH_SEED") or 17)
SERVERS = 16
LEASE_MS = 500


@pytest.fixture(scope="module", params=["active", "named", "tokens", "named, mutual TLS"])
def fleet(tmp_path_factory, request):
    """Pushes are of the active weights, or of a named set that is stored on the disk."""
    folder = tmp_path_factory.mktemp("pushed")
    access = Tokens(folder) if request.param == "tokens" else \
        Mutual(request.getfixturevalue("authority")) if "TLS" in request.param else Open()
    with Fleet(SERVERS, folder, named="tenant" if "named" in request.param else None, access=access) as running:
        yield running


class Trouble:
    """Kills or stops one or several servers, once."""

    def __init__(self, random, fleet):
        self.what = random.choice(["nothing", "kill", "kill", "stop"])
        self.victims = random.sample(fleet.members, random.choice([1, 1, 2, 5]))
        if random.random() < 0.4:
            self.victims[0] = fleet.members[0]  # the server that decides
        self.done = False

    def __call__(self):
        if self.done:
            return
        self.done = True
        for victim in set(self.victims):
            if self.what == "kill":
                victim.kill()
            elif self.what == "stop":
                victim.stop()

    def __str__(self):
        return f"{self.what} {len(set(self.victims))}"


class HandPush:
    """The steps of a push as docs/pushes.md has them, one after the other, so that its coordinator can die at each of them."""

    def __init__(self, fleet, number):
        self.fleet, self.number, self.id = fleet, number, f"hand-{number}"
        members = urllib.parse.quote(fleet.to(), safe="")
        self.query = f"?label=r{number}&push={self.id}&lease={LEASE_MS}ms&members={members}&member="
        count = len(fleet.members)
        self.steps = ([("stage", i) for i in range(count)] + [("prepare", i) for i in range(count)]
                      + [("commit", i) for i in range(count)])

    def run(self, last, ending, trouble_at, trouble):
        """Dies at the step `last` in one of these ways: before it, without the answer, or in the middle of it."""
        for index, (action, i) in enumerate(self.steps):
            if index == trouble_at:
                trouble()
            if index == last:
                return self.die(action, i, ending)
            try:
                status, _ = self.fleet.members[i].admin("POST", *self.request(action, i), timeout=1)
            except (OSError, http.client.HTTPException):
                status = 0
            if status != 200:
                # Until the first server has committed, the coordinator can abort the push everywhere.
                if action != "commit":
                    self.abort()
                return f"{action} {i}: {status}"
        return "done"

    def request(self, action, i):
        if action == "stage":
            return self.query + str(i), variant(self.number)
        return f"/{action}?push={self.id}", None

    def abort(self):
        for member in self.fleet.members:
            try:
                member.admin("POST", f"/abort?push={self.id}", timeout=0.3)
            except (OSError, http.client.HTTPException):
                pass  # the server's lease expires

    def die(self, action, i, ending):
        if ending != "before":
            target, body = self.request(action, i)
            body = body or b""
            sent = body[:len(body) // 2] if ending == "in the middle" else body
            try:
                access = self.fleet.access
                with access.wrap(socket.create_connection(("127.0.0.1", self.fleet.members[i].admin_port),
                                                          timeout=1)) as connection:
                    place = self.fleet.members[i].place if action == "stage" else "/v2/admin/models/digits/weights"
                    more = "".join(f"{key}: {value}\r\n" for key, value in access.headers().items())
                    connection.sendall(f"POST {place}{target} HTTP/1.1\r\nHost: localhost\r\n{more}"
                                       "Content-Type: application/octet-stream\r\n"
                                       f"Content-Length: {len(body)}\r\n\r\n".encode() + sent)
            except OSError:
                pass  # the server was killed
        return f"died at {action} {i}, {ending}"


def by_hand(fleet, random, number):
    push = HandPush(fleet, number)
    fleet.file(number)
    last = random.randrange(len(push.steps) + 1)
    trouble = Trouble(random, fleet)
    told = push.run(last, random.choice(["before", "without the answer", "in the middle"]),
                    random.randrange(len(push.steps)), trouble)
    return f"by hand: {told}; {trouble}"


def by_command(fleet, random, number):
    """The command itself is killed or stopped, or goes on, when a server has come so far."""
    label, path = fleet.file(number)
    relay = random.random() < 0.4
    trouble, watched = Trouble(random, fleet), random.choice(fleet.members)
    state = random.choice(["receiving", "staged", "prepared", "committed", None])
    ending = random.choice(["kill", "kill", "stop", "go on"])
    process = fleet.begin("push", path, "--label", label, "--lease", f"{LEASE_MS}ms", *(["--relay"] if relay else []))
    end = time.time() + random.random() * 0.2
    while process.poll() is None and (state or time.time() < end):
        _, told = watched.admin("GET", "/pushes")
        newest = told["pushes"][-1] if told["pushes"] else {}
        if state and newest.get("state") == state and newest["push"] != getattr(fleet, "newest", None):
            break
    first, second = (trouble, lambda: end_process(process, ending)) if random.random() < 0.5 else \
        (lambda: end_process(process, ending), trouble)
    first()
    second()
    if ending == "stop":
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
    try:
        said = process.communicate(timeout=30)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()[0]
    _, told = watched.admin("GET", "/pushes") if trouble.what == "nothing" else (0, {"pushes": []})
    fleet.newest = told["pushes"][-1]["push"] if told["pushes"] else None
    return f"command{' with relay' if relay else ''}: {ending} at {state}; {trouble}\n{said}"


def end_process(process, ending):
    if process.poll() is None and ending != "go on":
        process.send_signal(signal.SIGKILL if ending == "kill" else signal.SIGSTOP)


def test_in_the_end_all_servers_serve_one_set(fleet):
    told = []
    chance = random.Random(SEED)
    try:
        for number in range(1, ROUNDS + 1):
            told.append(f"round {number}: " + chance.choice([by_hand, by_command])(fleet, chance, number))
            told.append(fleet.heal())
            fleet.assert_whole()
            if number == ROUNDS // 2:
                fleet.rotate()
    except BaseException:
        print(f"SCONCE_PUSH_SEED={SEED}, {len(told)} steps:", *told[-6:], sep="\n")
        raise
    # Now an ordinary push succeeds.
    label, path = fleet.file(ROUNDS + 1)
    result = fleet.run("push", path, "--label", label)
    assert result.returncode == 0, result.stdout
    assert {member.active()[1] for member in fleet.members} == {label}
    fleet.assert_whole()
