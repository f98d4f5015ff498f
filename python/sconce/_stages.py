"""What a long call does just now, and for how long: a line on a terminal. Nobody knows how long a compiler will take, so there
is no time left to say."""
import shutil
import sys
import threading
import time


class Stages:
    """A context. progress: whether the line is drawn; None: if stderr is a terminal. Steps are numbered up to `count`."""
    EVERY = 0.2  # seconds between two drawings

    def __init__(self, what, count, progress=None):
        self.what, self.count = what, count
        self.wanted = sys.stderr.isatty() if progress is None else progress
        self.number, self.text, self.start = 0, "", time.monotonic()
        self.over = threading.Event()
        self.thread = None

    def __enter__(self):
        if self.wanted:
            self.thread = threading.Thread(target=self._draw, name="sconce-stages", daemon=True)
            self.thread.start()
        return self

    def begin(self, text):
        """The next step; it is drawn at once."""
        self.number, self.text, self.start = self.number + 1, text, time.monotonic()
        self._show()

    def __exit__(self, *_):
        if not self.wanted:
            return
        self.over.set()
        self.thread.join()
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()

    def line(self):
        seconds = int(time.monotonic() - self.start)
        since = f"{seconds} s" if seconds < 60 else f"{seconds // 60}:{seconds % 60:02d}"
        columns = shutil.get_terminal_size().columns
        return f"{self.what} {self.number} of {self.count}: {self.text}, {since}"[:max(columns - 1, 0)]

    def _show(self):
        if self.wanted and not self.over.is_set():
            sys.stderr.write(f"\r\x1b[K{self.line()}")
            sys.stderr.flush()

    def _draw(self):
        while not self.over.wait(self.EVERY):
            if self.text:
                self._show()
