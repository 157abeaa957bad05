"""Kills a process group when the process that requested it has ended for any reason.

Started as `python watch.py PARENT GROUP` by PARENT itself; ends with the group. A test that is killed cannot clean up.
"""

import contextlib
import os
import signal
import sys
import time

POLL_SECONDS = 0.5


def main() -> None:
    parent, group = map(int, sys.argv[1:])
    with contextlib.suppress(ProcessLookupError):
        while os.getppid() == parent:
            os.killpg(group, 0)
            time.sleep(POLL_SECONDS)
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
