"""Copies the binlog files of a test server to an archive."""

import shutil
import struct
from pathlib import Path

from tests.support.servers import Server

_HEADER = 19


def record(server: Server, archive: Path) -> Path:
    """Close the server's current binlog file and copy all closed files that `archive` lacks; returns the archive."""
    server.execute("FLUSH BINARY LOGS")
    archive.mkdir(parents=True, exist_ok=True)
    for file in server.binlog_files()[:-1]:
        if not (archive / file.name).exists():
            shutil.copyfile(file, archive / file.name)
    return archive


def event_kinds(archive: Path) -> set[int]:
    """The type codes of all events of an archive, read without dmdelta's code."""
    kinds = set()
    for file in archive.glob("binlog.0*"):
        data = file.read_bytes()
        offset = 4
        while offset < len(data):
            _, kind, _, size = struct.unpack_from("<IBII", data, offset)
            kinds.add(kind)
            offset += size
    return kinds
