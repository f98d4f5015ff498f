"""examples/ray without Ray: all replicas or none, in whatever order things happen."""
import collections
import dataclasses
import pathlib
import random
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/ray"))

from follower import Follower, text_of, version_of  # noqa: E402
from two_phase import Refused, Rollout, Version  # noqa: E402

PACKAGE = "/models/digits.pt2"


class FakeModel:
    """What a Follower needs of sconce.Model. files: path -> values; what is not there cannot be staged."""

    def __init__(self, files):
        self.files, self.active, self.aside = files, (files[PACKAGE], ""), None
        self.commits_fail = False

    def stage(self, path, *, label, check_finite):
        assert check_finite and self.aside is None
        if path not in self.files:
            raise FileNotFoundError(path)
        self.aside = (self.files[path], label)

    def digest(self, which):
        assert which == "staged"
        return f"sha-256:{self.aside[0]}"

    def commit(self):
        if self.commits_fail:
            raise RuntimeError("no memory")
        self.active, self.aside = self.aside, None

    def abort(self):
        self.aside = None


class Fleet:
    """Replicas that poll a Rollout one step at a time."""

    def __init__(self, *names, files=None, current=Version(1)):
        self.files = files or {PACKAGE: "own", "v2": "two", "v3": "three"}
        self.journal = []
        self.rollout = Rollout(current, self._decide)
        self.models, self.followers = {}, {}
        self.full = False
        for name in names:
            self.start(name)

    def _decide(self, version, before):
        if self.full:
            raise OSError("no space left")
        self.journal.append((version, before))

    def start(self, name, files=None):
        """Polls until nothing is to be done, as a replica does before it serves."""
        self.models[name] = FakeModel(dict(files or self.files))
        self.followers[name] = Follower(self.models[name], PACKAGE)
        while self.step(name):
            pass

    def step(self, name):
        follower = self.followers[name]
        order = self.rollout.poll(name, follower.report())
        if order:
            follower.obey(order)
        return order and order.do

    def kill(self, name):
        del self.models[name], self.followers[name]
        self.rollout.gone(name)

    def run(self):
        """Until nobody has anything to do: a round without orders may still bring the report that makes one."""
        quiet = 0
        while quiet < 2:
            orders = [self.step(name) for name in list(self.followers)]
            quiet = 0 if any(orders) else quiet + 1

    def values(self):
        return {name: model.active[0] for name, model in self.models.items()}

    def restart(self):
        """The keeper's process is another one, which read the journal."""
        current, before = self.journal[-1] if self.journal else (Version(1), None)
        self.rollout = Rollout(current, self._decide, before)


def test_all_stage_then_all_commit():
    fleet = Fleet("a", "b", "c")
    fleet.rollout.propose("v2", "label of v2")
    assert [fleet.step(name) for name in "abc"] == ["stage"] * 3
    assert fleet.step("a") is None and fleet.step("b") is None  # c has not reported
    assert fleet.values() == dict.fromkeys("abc", "own") and not fleet.journal
    assert fleet.step("c") == "commit" and len(fleet.journal) == 1
    assert not fleet.rollout.settled()
    fleet.run()
    assert fleet.values() == dict.fromkeys("abc", "two") and fleet.rollout.settled()
    assert fleet.rollout.current.number == 2 and fleet.rollout.current.digest == "sha-256:two"
    assert {model.active[1] for model in fleet.models.values()} == {"2 label of v2"}


def test_one_that_cannot_stage_stops_all():
    fleet = Fleet("a", "b")
    del fleet.models["b"].files["v2"]
    fleet.rollout.propose("v2")
    fleet.run()
    assert "b: FileNotFoundError: v2" in fleet.rollout.refusal and fleet.rollout.current.number == 1
    assert fleet.values() == dict.fromkeys("ab", "own") and fleet.models["a"].aside is None
    fleet.rollout.propose("v3")
    fleet.run()
    assert fleet.values() == dict.fromkeys("ab", "three") and fleet.rollout.current.number == 2


def test_a_file_that_is_another_one_elsewhere_stops_all():
    fleet = Fleet("a", "b")
    fleet.models["b"].files["v2"] = "torn"
    fleet.rollout.propose("v2")
    fleet.run()
    assert "a has sha-256:two, b has sha-256:torn" in fleet.rollout.refusal and fleet.values() == dict.fromkeys("ab", "own")


def test_a_rollback_to_a_file_that_has_changed_stops_all():
    fleet = Fleet("a", "b")
    fleet.rollout.propose("v2", digest="sha-256:what it was")
    fleet.run()
    assert "is not sha-256:what it was any more" in fleet.rollout.refusal and fleet.values() == dict.fromkeys("ab", "own")


def test_a_decision_that_cannot_be_written_stops_all():
    fleet = Fleet("a", "b")
    fleet.full = True
    fleet.rollout.propose("v2")
    fleet.run()
    assert "no space left" in fleet.rollout.refusal and fleet.values() == dict.fromkeys("ab", "own")
    assert fleet.models["a"].aside is None and fleet.models["b"].aside is None


def test_a_deadline_stops_all():
    fleet = Fleet("a", "b")
    fleet.rollout.propose("v2")
    fleet.step("a"), fleet.step("a")
    fleet.rollout.expire()
    assert fleet.rollout.refusal == "not staged in time by b"
    assert fleet.step("a") == "abort"
    fleet.run()
    assert fleet.values() == dict.fromkeys("ab", "own")


def test_what_was_staged_for_an_earlier_proposal_counts_for_no_later_one():
    fleet = Fleet("a", "b")
    fleet.rollout.propose("v2")
    fleet.step("a")
    fleet.rollout.expire()
    fleet.rollout.propose("v3")
    assert fleet.step("b") == "stage" and fleet.step("b") is None
    assert fleet.step("a") == "abort" and fleet.step("a") == "stage"
    fleet.run()
    assert fleet.values() == dict.fromkeys("ab", "three")


def test_one_update_at_a_time_and_none_without_replicas():
    with pytest.raises(Refused, match="no replica is there"):
        Fleet().rollout.propose("v2")
    fleet = Fleet("a")
    fleet.rollout.propose("v2")
    with pytest.raises(Refused, match=r"version 2 \('v2'\) is under way"):
        fleet.rollout.propose("v3")


def test_a_replica_that_is_gone_has_no_say():
    fleet = Fleet("a", "b")
    fleet.rollout.propose("v2")
    fleet.step("a"), fleet.step("a")
    fleet.kill("b")
    fleet.start("c")
    fleet.run()
    assert fleet.values() == dict.fromkeys("ac", "two")
    fleet.rollout.propose("v3")
    fleet.kill("a")
    fleet.kill("c")
    assert fleet.rollout.refusal == "every replica is gone" and fleet.rollout.current.number == 2


def test_a_late_replica_begins_with_what_was_decided():
    fleet = Fleet("a")
    fleet.rollout.propose("v2")
    fleet.run()
    fleet.start("late")
    assert fleet.models["late"].active == ("two", text_of(2, ""))
    assert fleet.rollout.replicas == {"a": 2, "late": 2}


def test_a_replica_that_starts_during_a_proposal_takes_part():
    fleet = Fleet("a")
    fleet.rollout.propose("v2")
    fleet.start("b")  # stages before it serves, and does not wait
    assert fleet.models["b"].aside[0] == "two" and fleet.values() == dict.fromkeys("ab", "own")
    fleet.run()
    assert fleet.values() == dict.fromkeys("ab", "two")


def test_a_late_replica_refuses_a_file_that_has_changed():
    fleet = Fleet("a")
    fleet.rollout.propose("v2")
    fleet.run()
    with pytest.raises(ValueError, match="'v2' has changed since it was published: it was sha-256:two, is sha-256:else"):
        fleet.start("late", {PACKAGE: "own", "v2": "else"})
    assert "cannot be loaded" in fleet.followers["late"].problem and fleet.models["late"].active[0] == "own"


def test_a_replica_that_cannot_commit_says_so():
    fleet = Fleet("a")
    fleet.models["a"].commits_fail = True
    fleet.rollout.propose("v2")
    fleet.step("a")
    with pytest.raises(RuntimeError, match="no memory"):
        fleet.step("a")
    assert "version 2 was decided, and cannot be committed" in fleet.followers["a"].problem


def test_the_keeper_starts_again_at_any_moment():
    for steps in range(8):
        fleet = Fleet("a", "b")
        fleet.rollout.propose("v2")
        for turn in range(steps):
            fleet.step("ab"[turn % 2])
        fleet.restart()
        fleet.run()
        decided = bool(fleet.journal)
        assert fleet.values() == dict.fromkeys("ab", "two" if decided else "own"), steps
        assert all(model.aside is None for model in fleet.models.values())
        fleet.rollout.propose("v3")
        fleet.run()
        assert fleet.values() == dict.fromkeys("ab", "three")


def test_a_replica_of_another_journal_is_refused():
    fleet = Fleet("a")
    fleet.rollout.propose("v2")
    fleet.run()
    fleet.rollout = Rollout(Version(1), fleet._decide)
    with pytest.raises(Refused, match="replica a serves version 2, but only 1 was decided"):
        fleet.step("a")


@pytest.mark.parametrize("seed", range(200))
def test_drawn_orders_of_events(seed):
    """At no time do two replicas serve versions of which one was not decided, and in the end all serve the same."""
    draw = random.Random(seed)
    fleet = Fleet("r0", "r1", "r2")
    served, next_name = collections.defaultdict(list), 3
    for _ in range(120):
        match draw.choices(("step", "propose", "kill", "start", "expire", "restart", "full"), (60, 8, 3, 4, 1, 2, 1))[0]:
            case "step" if fleet.followers:
                fleet.step(draw.choice(sorted(fleet.followers)))
            case "propose" if fleet.followers and not fleet.rollout.proposed and fleet.rollout.replicas:
                fleet.rollout.propose(draw.choice(("v2", "v3", "missing", "")))
            case "kill" if fleet.followers:
                fleet.kill(draw.choice(sorted(fleet.followers)))
            case "start":
                fleet.start(f"r{next_name}")
                next_name += 1
            case "expire":
                fleet.rollout.expire()
            case "restart":
                fleet.restart()
            case "full":
                fleet.full = not fleet.full
        decided = {1: ""} | {version.number: version.source for version, _ in fleet.journal}
        assert sorted(decided) == list(range(1, len(decided) + 1))
        for name, follower in fleet.followers.items():
            number = follower.report().serves
            assert fleet.models[name].active[0] == fleet.files[decided[number] or PACKAGE]
            served[name].append(number)
    fleet.run()
    fleet.rollout.expire()
    fleet.run()
    assert {follower.report().serves for follower in fleet.followers.values()} <= {fleet.rollout.current.number}
    assert all(numbers == sorted(numbers) for numbers in served.values())


def test_labels_say_which_version():
    @dataclasses.dataclass
    class Info:
        label: str | None

    assert version_of(Info(None)) == version_of(Info("")) == (1, "")
    assert version_of(Info(text_of(7, "a label of words"))) == (7, "a label of words")
    assert version_of(Info(text_of(7, ""))) == (7, "")
