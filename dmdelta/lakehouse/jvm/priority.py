"""The CPU priority of the JVM of a task: other processes of the machine come first.

Landing and applying use all cores for as long as there is work. A command, a query or the relay next to them needs a
core for a moment.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

YIELDS = 5
"""Niceness: at equal demand the JVM gets about a third of what a normal process gets; alone, it gets everything."""


def start_yielding(start: Callable[[], object]) -> None:
    """Call `start`, which starts a process; that process runs with the niceness YIELDS, this one keeps its own.

    On Linux, niceness belongs to a thread, and a process inherits that of the thread that starts it. It cannot be
    lowered again, so the thread ends with the call. On other systems the process has normal priority.

    Raises:
        Exception: what `start` raises.
    """
    if sys.platform != "linux":
        start()
        return

    def run() -> None:
        os.setpriority(os.PRIO_PROCESS, 0, min(19, os.getpriority(os.PRIO_PROCESS, 0) + YIELDS))
        start()

    with ThreadPoolExecutor(1, thread_name_prefix="jvm-start") as pool:
        pool.submit(run).result()
