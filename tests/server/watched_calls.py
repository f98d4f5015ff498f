"""Counts the calls of a server that change files of a folder, and makes one of them fail or end the process."""
import mmap
import struct

from serving import PROGRAM

SHIM = PROGRAM.parent.parent / "tests/server/watched_calls.so"


class Calls:
    """Memory that the preloaded library shares: which call ends the process, or fails."""
    FIELDS = ("watching", "count", "kill_at", "halve", "fail_at", "error", "used")

    def __init__(self, path):
        path.write_bytes(bytes(8 * len(self.FIELDS) + 4096))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.path = path

    def __getitem__(self, name):
        return struct.unpack_from("<Q", self.memory, 8 * self.FIELDS.index(name))[0]

    def watch(self, **fields):
        """Starts counting calls from 1 and sets which of them fails or ends the process."""
        for name in self.FIELDS:
            struct.pack_into("<Q", self.memory, 8 * self.FIELDS.index(name), fields.get(name, 0))
        struct.pack_into("<Q", self.memory, 0, 1)

    def names(self):
        return self.memory[8 * len(self.FIELDS):][:self["used"]].decode().split()

    def environment(self, folder):
        """For a server whose calls below the folder count."""
        return {"LD_PRELOAD": str(SHIM), "CALLS_FILE": str(self.path), "CALLS_BELOW": str(folder)}
