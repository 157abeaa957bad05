"""How much memory the Python processes below a process take."""

import threading
import time
from collections import defaultdict
from pathlib import Path

from tests.support.task import Task


def python_processes(root: int) -> dict[int, int]:
    """Resident bytes of every Python process below `root`, itself included, by process id."""
    return {pid: resident for pid, resident in processes_below(root).items() if _is_python(pid)}


def processes_below(root: int) -> dict[int, int]:
    """Resident bytes of every process below `root`, itself included, by process id."""
    children: dict[int, list[int]] = defaultdict(list)
    for place in Path("/proc").glob("[0-9]*"):
        parent = _field(place, "PPid")
        if parent is not None:
            children[parent].append(int(place.name))
    found, pending = {}, [root]
    while pending:
        pid = pending.pop()
        pending += children[pid]
        resident = _field(Path(f"/proc/{pid}"), "VmRSS")
        if resident is not None:
            found[pid] = resident * 1024
    return found


class PeakMemory:
    """Watches the processes below `root` in a thread; `bytes` is the most that one Python process took."""

    def __init__(self, root: int) -> None:
        self.bytes = 0
        self.samples = 0
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self.bytes = max(self.bytes, *python_processes(self._root).values(), 0)
            self.samples += 1
            time.sleep(0.2)


def catch_up_watched(task: Task, seconds: float = 540) -> int:
    """Run a task in a process of its own until it has caught up; the most bytes that one Python process took."""
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
