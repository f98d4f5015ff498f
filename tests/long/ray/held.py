"""The example's deployment with staging that a test can hold up or make fail, by files in the folder HOLD_FOLDER."""
import os
import pathlib
import time

import deployment
from follower import Follower
from ray import serve


class HeldFollower(Follower):
    """With the file `hold`, all replicas but the first one that comes wait before they stage. With `fail`, that one fails.
    The file `staged` has the process that staged first."""

    folder = pathlib.Path("/nonexistent")

    def _put_aside(self, version):
        try:
            os.close(os.open(self.folder / "first", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            first = True
        except OSError:  # another one was first, or the test has no such folder
            first = False
        if first and (self.folder / "fail").exists():
            raise OSError("the test's failure")
        while not first and (self.folder / "hold").exists():
            time.sleep(0.02)
        super()._put_aside(version)
        if first:
            (self.folder / "staged.new").write_text(str(os.getpid()))
            (self.folder / "staged.new").rename(self.folder / "staged")


class Held(deployment.Sconce.func_or_class):
    def __init__(self, folder, *args):
        HeldFollower.folder = pathlib.Path(folder)
        deployment.Follower = HeldFollower
        super().__init__(*args)

    async def where(self):
        return self.replica, os.getpid()

    async def in_place(self, array):
        """Whether an array came in Ray's shared memory, which the process cannot write."""
        return not array.flags.writeable and not array.flags.owndata


def app(arguments):
    """For what a config file says."""
    return serve.deployment(name="Held")(Held).bind(arguments["folder"], arguments["package"], "digits", arguments["journal"])
