"""Runs a command with a terminal as its stderr, and records what it shows there, and when."""

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_STAGE = re.compile(r"[\u2800-\u28ff] (?P<stage>[^\u2800-\u28ff\r\n]*?) +\d+:\d\d:\d\d")
"""A frame of rich's spinner, its stage, and the time. A line may contain several."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The output of a command; times are in seconds since its start.

    Attributes:
        code: its exit code.
        stdout, stderr: as text; stderr without control sequences.
        first: when it first showed anything; None: never.
        stages: when it first showed each stage, in this order.
        ended: when it ended.
    """

    code: int
    stdout: str
    stderr: str
    first: float | None
    stages: Mapping[str, float]
    ended: float


def on_terminal(
    command: Sequence[str], environment: Mapping[str, str], enough: Callable[[Mapping[str, float]], bool] | None = None
) -> Shown:
    """Run a command to its end. Its stdout is a pipe with a capacity of 64 KiB.

    Args:
        enough: decides from the stages shown so far whether to terminate it.
    """
    shown, stages, began = b"", dict[str, float](), time.perf_counter()
    first: float | None = None
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={**environment, "TERM": "xterm", "COLUMNS": "200"},
            text=True,
        )
        while process.poll() is None or select.select([ours], [], [], 0)[0]:
            if not select.select([ours], [], [], 0.02)[0]:
                continue
            shown += os.read(ours, 1 << 16)
            now = time.perf_counter() - began
            first = now if first is None else first
            for stage in stages_of(_text(shown)):
                stages.setdefault(stage, now)
            if enough is not None and enough(stages):
                process.terminate()
        ended = time.perf_counter() - began
        return Shown(process.returncode, process.communicate()[0], _text(shown), first, stages, ended)
    finally:
        os.close(ours)
        os.close(theirs)


def stages_of(shown: str) -> Iterator[str]:
    """The stages in a terminal's output, each as often as it was shown."""
    for found in _STAGE.finditer(shown):
        yield found["stage"]


def _text(shown: bytes) -> str:
    return _CONTROL.sub("", shown.decode("utf-8", "replace"))
