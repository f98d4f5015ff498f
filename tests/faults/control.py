"""The page shared with the interposer (interposer/control.h): what is to fail, and what failed."""
import contextlib
import ctypes
import enum
import mmap
import os
import pathlib
import tempfile
import threading

U64, I64 = ctypes.c_uint64, ctypes.c_int64


class Kind(enum.IntEnum):
    NOTHING, ALLOCATION, CALL = range(3)


class Mode(enum.IntEnum):
    ERROR, SHORT, END, KILL = range(4)


class Page(ctypes.Structure):
    _fields_ = [("process", U64), ("armed", U64), ("kind", U64), ("call", I64), ("nth", U64), ("times", U64),
                ("mode", U64), ("error", I64), ("seen", U64), ("fired", U64), ("realtime", I64), ("monotonic", I64),
                ("wants_trace", U64), ("frames", U64), ("trace", U64 * 48), ("end_frames", U64),
                ("end_trace", U64 * 48), ("allocations", U64), ("calls", U64 * 512)]


FOR_EVER = 1 << 62
ONCE = 1
RELIEF = 0.1  # seconds until an exhausted resource comes back


class Control:
    def __init__(self):
        handle, name = tempfile.mkstemp(prefix="sconce-faults-")
        self.path = pathlib.Path(name)
        os.ftruncate(handle, ctypes.sizeof(Page))
        self.memory = mmap.mmap(handle, ctypes.sizeof(Page))
        os.close(handle)
        self.page = Page.from_buffer(self.memory)

    @contextlib.contextmanager
    def armed(self, kind=Kind.NOTHING, nth=1, times=ONCE, call=-1, error=0, mode=Mode.ERROR):
        """Within the block, the nth call of this kind fails, and the times - 1 calls after it."""
        page = self.page
        page.armed = 0
        page.kind, page.nth, page.times, page.call, page.error, page.mode = kind, nth, times, call, error, mode
        page.seen = page.fired = page.allocations = page.frames = 0
        ctypes.memset(ctypes.addressof(page.calls), 0, ctypes.sizeof(page.calls))
        page.armed = 1
        # An exhausted resource comes back while the client still waits.
        relief = threading.Timer(RELIEF, self.disarm) if times == FOR_EVER and kind == Kind.CALL else None
        if relief:
            relief.start()
        try:
            yield page
        finally:
            if relief:
                relief.cancel()
                relief.join()
            page.armed = 0

    def disarm(self):
        self.page.armed = 0

    def counts(self):
        """System calls made while armed, by number."""
        return {number: count for number, count in enumerate(self.page.calls) if count}

    def trace(self):
        return list(self.page.trace[:self.page.frames])

    def end(self):
        return list(self.page.end_trace[:self.page.end_frames])

    def close(self):
        self.path.unlink(missing_ok=True)
