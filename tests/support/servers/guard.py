"""Runs a command and stops it when the process that requested it has ended for any reason.

Started as `python guard.py PARENT FOLDER COMMAND…`, FOLDER to be removed in that case, with a pipe from the parent as standard input; writes the command's process
id as a line. A separate process, because a parent killed with SIGKILL cannot clean up, and the kernel's parent-death
signal already fires when the thread that started the child ends.
"""

import os
import select
import shutil
import subprocess
import sys


def main() -> int:
    parent, folder, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(child.pid, flush=True)
    while child.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], 0.2)
        if readable or os.getppid() != parent:
            child.kill()
            ended = child.wait()
            shutil.rmtree(folder, ignore_errors=True)
            return ended
    return child.returncode


if __name__ == "__main__":
    sys.exit(main())
