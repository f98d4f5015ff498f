"""A replica's part of an update: does the orders of two_phase.py with a sconce.Model. Without Ray."""
from two_phase import Report


def text_of(number, label):
    """The label that the model carries: with it, each run says which version computed it."""
    return f"{number} {label}"


def version_of(info):
    """(number, label) of a run: info is a sconce.RunInfo. The package's own weights are version 1."""
    if not info.label:
        return 1, ""
    number, _, label = info.label.partition(" ")
    return int(number), label


class Follower:
    """problem: why this replica cannot go on, "" while it can. Orders come one at a time."""

    def __init__(self, model, package):
        self._model, self._package = model, package
        self._report = Report(serves=1)
        self.problem = ""

    def report(self):
        return self._report

    def obey(self, order):
        getattr(self, f"_{order.do}")(order.version)

    def _stage(self, version):
        serves = self._report.serves
        try:
            self._put_aside(version)
            self._report = Report(serves, staged=version.proposal, digest=self._model.digest("staged"))
        except Exception as error:
            self._report = Report(serves, failed=version.proposal, problem=f"{type(error).__name__}: {error}")

    def _put_aside(self, version):
        self._model.stage(version.source or self._package, label=text_of(version.number, version.label), check_finite=True)

    def _commit(self, version):
        # What was decided cannot be refused any more: a replica that cannot commit gives up its place to another one.
        try:
            self._model.commit()
            self._report = Report(serves=version.number)
        except Exception as error:
            self.problem = f"version {version.number} was decided, and cannot be committed: {error}"
            raise

    def _abort(self, version):
        self._model.abort()
        self._report = Report(self._report.serves)

    def _adopt(self, version):
        try:
            self._put_aside(version)
            digest = self._model.digest("staged")
            if version.digest and digest != version.digest:
                self._model.abort()
                raise ValueError(f"'{version.source}' has changed since it was published: it was {version.digest}, is {digest}")
        except Exception as error:
            self.problem = f"version {version.number} was decided, and cannot be loaded: {error}"
            raise
        self._commit(version)
