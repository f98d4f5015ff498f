"""Small records that calls return."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class RunInfo:
    """How a call was answered.

    weight_version: the number of the weights that answered; label: theirs, or None.
    replica: the index of the replica that ran. queue, compute: seconds from the call to its start, and of the run.
    """

    weight_version: int
    label: str | None
    replica: int
    queue: float
    compute: float

    @property
    def generation(self):  # deprecated
        """The former name of weight_version, deprecated."""
        return self.weight_version


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """Whether the models of a package would run here. True in conditions if all would.

    models: for each name of a model the reasons why it would not run, "" if it would.
    """

    models: dict[str, str]

    @property
    def ok(self):
        return not any(self.models.values())

    @property
    def reasons(self):
        """Every reason, as one text for each model that would not run."""
        return [reason for reason in self.models.values() if reason]

    def __bool__(self):
        return self.ok

    def __str__(self):
        return "\n".join(f"{name}: {reason or 'ok'}" for name, reason in self.models.items())
