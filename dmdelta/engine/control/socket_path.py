"""Where the control socket of a task is, and which account is at its other end."""

import os
import socket
import struct
import tempfile
from hashlib import sha256
from pathlib import Path

from dmdelta.config import TaskSpec
from dmdelta.source.relay.volume import scratch_folder

NAME = "control.sock"
MAX_PATH_BYTES = 103
"""The limit of the operating system is 108 bytes on Linux and 104 bytes on macOS, with a final zero."""


def control_socket(spec: TaskSpec) -> Path:
    """The path of a task's control socket: in the relay folder of its first source.

    If that path is too long for a socket, or on a Volume of Databricks, it is in a folder of the account's temporary
    files whose name is derived from the path.
    """
    source = spec.sources[0]
    folder = (Path(spec.relay_dir(source)) / source.source_id).absolute()
    path = scratch_folder(folder) / NAME
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        return path
    digest = sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"dmdelta-{os.getuid()}-{digest}" / NAME


def peer_user(connection: socket.socket) -> int | None:
    """The account at the other end of a Unix socket; None where the operating system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return int(user)
