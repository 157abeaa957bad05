"""The memory of a process and its descendants: RSS per Python process, an upper bound, and PSS, which is additive."""

import threading
import time
from collections import defaultdict
from pathlib import Path

from typing_extensions import Self

from tests.support.task import Task


def python_processes(root: int) -> dict[int, int]:
    """Resident bytes of `root` and every Python process below it, by process id."""
    found = {pid: _field(Path(f"/proc/{pid}"), "VmRSS") for pid in descendants(root) if _is_python(pid)}
    return {pid: resident * 1024 for pid, resident in found.items() if resident is not None}


def descendants(root: int) -> list[int]:
    """The ids of `root` and of all of its descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    for place in Path("/proc").glob("[0-9]*"):
        parent = _field(place, "PPid")
        if parent is not None:
            children[parent].append(int(place.name))
    found, pending = [], [root]
    while pending:
        pid = pending.pop()
        pending += children[pid]
        found.append(pid)
    return found


def command_of(pid: int) -> str:
    """The name of a process's program.

    Raises:
        OSError: the process has ended.
    """
    return Path(f"/proc/{pid}/comm").read_text().strip()


def pss(pid: int) -> int:
    """Proportional set size in bytes: each resident page divided by the number of processes that map it.

    Raises:
        OSError: the process has ended.
    """
    return parse_pss(Path(f"/proc/{pid}/smaps_rollup").read_text())


def parse_pss(rollup: str) -> int:
    """The PSS in bytes, from the text of `/proc/<pid>/smaps_rollup`; 0 for a process that has no memory left."""
    line = next((line for line in rollup.splitlines() if line.startswith("Pss:")), "Pss: 0 kB")
    return int(line.split()[1]) * 1024


class PeakMemory:
    """Watches the processes below `root` in a thread; `bytes` is the maximum of one Python process."""

    def __init__(self, root: int) -> None:
        self.bytes = 0
        self.samples = 0
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self.bytes = max(self.bytes, *python_processes(self._root).values(), 0)
            self.samples += 1
            time.sleep(0.2)


def catch_up_watched(task: Task, seconds: float = 540) -> int:
    """Run a task in its own process until it has caught up; the maximum bytes of one Python process."""
    began = time.monotonic()
    with task.process("--until-caught-up") as process, PeakMemory(process.pid) as peak:
        assert process.wait(seconds) == 0, process.log()
    print(f"caught up in {time.monotonic() - began:.0f} s, {peak.bytes:,} bytes")
    return peak.bytes


def _field(place: Path, name: str) -> int | None:
    try:
        text = (place / "status").read_text()
    except OSError:
        return None  # it has just ended
    line = next((line for line in text.splitlines() if line.startswith(f"{name}:")), None)
    return int(line.split()[1]) if line else None


def _is_python(pid: int) -> bool:
    try:
        return "python" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    except OSError:
        return False
