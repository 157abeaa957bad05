"""Passes what this process and its children write to stderr on as lines, for a view that owns the terminal."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

END_SECONDS = 1.0
"""The longest wait for the last lines of children at the end of the block."""


@contextmanager
def stderr_lines(show: Callable[[str], None]) -> Iterator[None]:
    """Call `show` with each line that is written to stderr during the block, from a thread.

    What a child that outlives the block writes later reaches stderr itself.
    """
    sys.stderr.flush()
    lines = _Lines(show, os.dup(2))
    read, write = os.pipe()
    os.dup2(write, 2)
    os.close(write)
    thread = threading.Thread(target=lines.forward, args=(read,), name="stderr", daemon=True)
    thread.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(lines.original, 2)
        thread.join(END_SECONDS)
        lines.end()


class _Lines:
    """Passes lines on: to `show`, and to the original stderr after `end`."""

    def __init__(self, show: Callable[[str], None], original: int) -> None:
        self.original = original
        self._show = show
        self._has_ended = False
        self._lock = threading.Lock()

    def end(self) -> None:
        with self._lock:
            self._has_ended = True

    def forward(self, read: int) -> None:
        with os.fdopen(read, encoding="utf-8", errors="replace", newline="\n") as lines:
            for line in lines:
                with self._lock:
                    self._pass_on(line.removesuffix("\n"))
        os.close(self.original)

    def _pass_on(self, line: str) -> None:
        if not self._has_ended:
            try:
                self._show(line)
            except Exception:  # noqa: BLE001 - unless this thread continues, whoever writes to stderr blocks
                self._has_ended = True
        if self._has_ended:
            with suppress(OSError):  # the terminal is gone
                os.write(self.original, f"{line}\n".encode())
