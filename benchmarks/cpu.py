"""CPU seconds of processes, as Linux counts them."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far.

    Raises:
        OSError: the process has ended.
    """
    own, _ = parse_cpu(_stat(pid))
    return own


def reaped_cpu_seconds(pid: int) -> float:
    """User and system time of the ended descendants of a process, as far as their parents have waited for them.

    Raises:
        OSError: the process has ended.
    """
    _, reaped = parse_cpu(_stat(pid))
    return reaped


def parse_cpu(stat: str) -> tuple[float, float]:
    """CPU seconds of a process and of its ended descendants, from the text of `/proc/<pid>/stat`."""
    fields = stat.rpartition(")")[2].split()  # a program's name may contain blanks and brackets
    own, reaped = (sum(map(int, fields[first : first + 2])) / _TICKS for first in (11, 13))
    return own, reaped


_KINDS = (
    ("C1 ", "JIT"),
    ("C2 ", "JIT"),
    ("GC ", "GC"),
    ("G1 ", "GC"),
    ("Executor task", "tasks"),
    ("Thread-", "driver"),
)
"""Kinds of JVM threads by the start of their names. Threads for calls from Python have no name of their own."""


def thread_seconds(pid: int) -> dict[str, float]:
    """CPU seconds of a JVM's present threads by kind: JIT, GC, tasks, driver (planning and commits), other.

    Raises:
        OSError: the process has ended.
    """
    stats = []
    for thread in (Path("/proc") / str(pid) / "task").iterdir():
        with suppress(OSError):  # the thread has ended meanwhile
            stats.append((thread / "stat").read_text())
    return by_kind(stats)


def by_kind(stats: Iterable[str]) -> dict[str, float]:
    """CPU seconds by kind of thread, from the texts of `/proc/<pid>/task/<thread>/stat`."""
    found = dict.fromkeys((*(kind for _, kind in _KINDS), "other"), 0.0)
    for stat in stats:
        name = stat.partition("(")[2].rpartition(")")[0]
        kind = next((kind for begin, kind in _KINDS if name.startswith(begin)), "other")
        found[kind] += parse_cpu(stat)[0]
    return found


def children(name: str) -> list[int]:
    """The processes of a program that descend from this one."""
    found, todo = [], [os.getpid()]
    while todo:
        for pid in _children(todo.pop()):
            todo.append(pid)
            if (Path("/proc") / str(pid) / "comm").read_text().strip() == name:
                found.append(pid)
    return found


def _children(pid: int) -> Iterator[int]:
    for task in (Path("/proc") / str(pid) / "task").iterdir():
        with suppress(FileNotFoundError):  # the thread has ended meanwhile
            yield from map(int, (task / "children").read_text().split())


def _stat(pid: int) -> str:
    return (Path("/proc") / str(pid) / "stat").read_text()


def tree_cpu_seconds(*, except_for: str) -> float:
    """User and system time of this process and its living descendants so far, without the programs of one name."""
    total, todo = 0.0, [os.getpid()]
    while todo:
        pid = todo.pop()
        with suppress(FileNotFoundError, ProcessLookupError):
            if (Path("/proc") / str(pid) / "comm").read_text().strip() != except_for:
                total += cpu_seconds(pid)
                todo.extend(_children(pid))
    return total
