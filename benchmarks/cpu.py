"""CPU seconds of processes, as Linux counts them."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


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
