"""The proof's result: for the package's metadata and for people."""
import dataclasses
import json

KEY = "sconce_rows"
VERSION = 1


@dataclasses.dataclass
class RowProof:
    """Whether row b of every output depends on row b of the inputs alone, for every size of the batch. If not: the reason, the
    operator, and where in the user's code it is called ("model.py:12 in forward: x.cumsum(0)"); both may be empty."""

    independent: bool
    reason: str = ""
    operator: str = ""
    at: str = ""

    def metadata(self):
        """The value of sconce_rows in the package's metadata."""
        found = {"version": VERSION, "independent": self.independent}
        if not self.independent:
            found.update({key: text for key, text in
                          (("reason", self.reason), ("operator", self.operator), ("at", self.at)) if text})
        return json.dumps(found)

    def __bool__(self):
        return self.independent

    def __str__(self):
        if self.independent:
            return "rows are independent: requests may share runs"
        place = f" at {self.at}" if self.at else ""
        why = f"{self.operator}{place}: {self.reason}" if self.operator else self.reason + place
        return f"rows are not independent: {why}"

