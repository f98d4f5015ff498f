"""New weights for all replicas or for none: who is to do what next. Plain Python, without Ray; weights.py has the actor.

A replica polls. It reports what it serves and what it has staged, and gets an order, or None:

    stage     puts a proposed version beside the one that serves, and reports its digest
    commit    the staged version is decided: serves it
    abort     the staged version is given up: drops it
    adopt     this version was decided without the replica: stages and serves it

A proposal is decided when every replica that polls has staged it and all digests are equal. `decide` writes it down before
the first replica is told to commit, so the decision outlives this process. One replica that cannot stage, or a deadline,
gives the proposal up for all. A replica that is gone has no say: the one that takes its place adopts what was decided.
All that is needed after a restart is the current version; the next polls say the rest.
"""
import dataclasses
import uuid


class Refused(Exception):
    """No replica has changed; the text says why."""


@dataclasses.dataclass(frozen=True)
class Version:
    """A set of weights. number: 1, 2, 3... in the order of decisions. source: a file that all nodes see; "" is the package
    itself. digest: of the set's values, "" while no replica has told it."""

    number: int
    source: str = ""
    label: str = ""
    digest: str = ""
    proposal: str = ""


@dataclasses.dataclass(frozen=True)
class Order:
    do: str
    version: Version


@dataclasses.dataclass(frozen=True)
class Report:
    """What a replica says of itself. serves: a number. staged: the proposal that it has staged, and its digest. failed:
    the proposal that it could not stage, and why."""

    serves: int
    staged: str = ""
    digest: str = ""
    failed: str = ""
    problem: str = ""


class Rollout:
    """current: the version that was decided last. decide(version, before): writes it down, or raises."""

    def __init__(self, current, decide, before=None):
        self.current, self.before = current, before
        self.proposed = None
        self.refusal = None  # of the last proposal
        self._decide = decide
        self._reports = {}  # replica -> its last Report

    @property
    def replicas(self):
        """replica -> the number that it serves"""
        return {name: report.serves for name, report in self._reports.items()}

    def propose(self, source, label="", digest=""):
        """digest: what it must be, "" for any."""
        if self.proposed:
            raise Refused(f"version {self.proposed.number} ('{self.proposed.source}') is under way")
        if not self._reports:
            raise Refused("no replica is there to stage it")
        self.refusal = None
        self.proposed = Version(self.current.number + 1, source, label, digest, uuid.uuid4().hex)

    def poll(self, name, report):
        """Takes a replica's report; returns its next order or None."""
        if report.serves > self.current.number:
            raise Refused(f"replica {name} serves version {report.serves}, but only {self.current.number} was decided: "
                          "the journal is another one, or an old copy")
        self._reports[name] = report
        self._judge()
        return self.order(name)

    def order(self, name):
        report = self._reports[name]
        if self.proposed and report.staged == self.proposed.proposal:
            return None
        if report.staged and report.staged == self.current.proposal and report.serves < self.current.number:
            return Order("commit", self.current)
        if report.staged:
            return Order("abort", Version(0, proposal=report.staged))
        if report.serves < self.current.number:
            return Order("adopt", self.current)
        return Order("stage", self.proposed) if self.proposed else None

    def gone(self, name):
        if self._reports.pop(name, None):
            self._judge()

    def expire(self):
        """The deadline: gives up what is proposed."""
        if self.proposed:
            late = [name for name, report in self._reports.items() if report.staged != self.proposed.proposal]
            self._refuse(f"not staged in time by {', '.join(sorted(late))}")

    def settled(self):
        """Whether every replica serves the current version."""
        return all(report.serves == self.current.number for report in self._reports.values())

    def _refuse(self, why):
        self.proposed, self.refusal = None, why

    def _judge(self):
        if not self.proposed:
            return
        problem = self._objection()
        if problem:
            self._refuse(problem)
        elif all(report.staged == self.proposed.proposal for report in self._reports.values()):
            self._conclude()

    def _objection(self):
        reports, proposed = sorted(self._reports.items()), self.proposed
        if not reports:
            return "every replica is gone"
        failed = [f"{name}: {report.problem}" for name, report in reports if report.failed == proposed.proposal]
        if failed:
            return "; ".join(failed)
        told = {name: report.digest for name, report in reports if report.staged == proposed.proposal}
        if len({*told.values(), proposed.digest} - {""}) > 1:
            return (f"'{proposed.source}' is not the same everywhere, or is not {proposed.digest or 'one set'} any more: "
                    + ", ".join(f"{name} has {digest}" for name, digest in told.items()))
        return ""

    def _conclude(self):
        digest = next(iter(self._reports.values())).digest
        decided = dataclasses.replace(self.proposed, digest=digest)
        try:
            self._decide(decided, self.current)
        except OSError as error:
            self._refuse(f"the decision cannot be written down: {error}")
            return
        self.before, self.current, self.proposed = self.current, decided, None
