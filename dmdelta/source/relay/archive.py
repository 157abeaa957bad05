"""Relays a folder of whole binlog files: produces the same segments, without a server."""

import time
from itertools import pairwise
from pathlib import Path

from dmdelta.binlog.events.format_description import parse_format_description
from dmdelta.errors import CorruptBinlog, PositionLost, SourceError
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import file_number
from dmdelta.model.segment import FIRST_OFFSET, MAGIC, epoch_folder
from dmdelta.segments import EpochBegin, begin_epoch
from dmdelta.source.relay.event_stream import Events, FilePieces
from dmdelta.source.relay.reconnect import Continue, Lost, plan_connect
from dmdelta.source.relay.relay_dir import created_at, format_description, load_state
from dmdelta.source.relay.relay_task import RelayTask, Start, StartAfter, StartAt, StartEdge, StatusFile, first_start
from dmdelta.source.relay.segmenter import Cutter
from dmdelta.source.relay.session import Flag
from dmdelta.source.server import ServerLog

UUID = "archive"
"""Takes the place of a server's uuid in the name of the epoch's folder."""

POLL_SECONDS = 0.5
TORN_SECONDS = 30.0
"""How long an incomplete event at the end of the last file is tolerated: the file may still be being copied."""


def archive_files(folder: Path) -> dict[str, int]:
    """The binlog files of an archive and their sizes in bytes, in order.

    Raises:
        SourceError: the folder does not exist, holds no binlog file, or holds an encrypted one.
        CorruptBinlog: a file number is missing.
    """
    if not folder.is_dir():
        raise SourceError(f"the archive folder {folder} does not exist", hint="correct binlog-dir in the spec")
    files = sorted(
        (place for place in folder.iterdir() if _is_binlog(place)), key=lambda place: file_number(place.name)
    )
    if not files:
        raise SourceError(f"no binlog file in {folder}", hint="binlog files are named like binlog.000001")
    for before, after in pairwise(files):
        if file_number(after.name) != file_number(before.name) + 1:
            raise CorruptBinlog(
                f"{before.name} is followed by {after.name} in {folder}", hint="restore the missing files"
            )
    return {place.name: place.stat().st_size for place in files}


def _is_binlog(place: Path) -> bool:
    if not place.is_file() or not place.suffix[1:].isdigit():
        return False
    with place.open("rb") as stream:
        magic = stream.read(len(MAGIC))
    if magic == b"\xfdbin":
        raise SourceError(f"{place} is encrypted", hint="fetch it with mysqlbinlog --read-from-remote-server --raw")
    if magic != MAGIC:
        raise CorruptBinlog(f"{place} is not a binlog file", hint="remove it from the archive, or restore it")
    return True


def archive_flavor(folder: Path) -> Flavor:
    """Whose log an archive is, as its first file says.

    Raises:
        SourceError, CorruptBinlog: as `archive_files`.
    """
    return _flavor_of(folder / next(iter(archive_files(folder))))


def _flavor_of(path: Path) -> Flavor:
    description = parse_format_description(format_description(path), str(path))
    return "mariadb" if description.is_mariadb else "mysql"


def named_start(start: Start) -> StartAt | StartEdge:
    """The start position, if an archive supports it.

    Raises:
        SourceError: only a server can resolve this start position.
    """
    if isinstance(start, StartAfter) or start is StartEdge.CURRENT:
        raise SourceError("an archive starts at a file, not at a GTID set", hint="set meta.binlog-name")
    return start


class ArchiveSession:
    """Relays a folder of binlog files to its end, or until it is stopped."""

    def __init__(self, task: RelayTask, stop: Flag, status: StatusFile) -> None:
        assert task.binlog_dir is not None
        self._task = task
        self._archive = Path(task.binlog_dir)
        self._stop = stop
        self._status = status

    def run(self) -> bool:
        """Relay; True when the end of the archive is reached and `until_caught_up` is set.

        Raises:
            CorruptBinlog: a file is damaged, incomplete or missing.
            PositionLost: the archive does not contain the next position.
        """
        epoch, binlog_file, offset = self._begin()
        place = self._archive / binlog_file
        description = b"" if offset == FIRST_OFFSET else format_description(place)
        cutter = Cutter(self._task.folder / epoch_folder(UUID, epoch), binlog_file, offset, description)
        self._status.update(state="streaming", epoch=epoch)
        try:
            return self._read(cutter)
        finally:
            cutter.close()
            self._report(cutter)
            self._status.write()

    def _begin(self) -> tuple[int, str, int]:
        files = archive_files(self._archive)
        state = load_state(self._task.folder, self._task.source_id)
        if state is None or state.epoch < self._task.epoch:
            return self._first(files)
        created = None
        if state.binlog_file in files:
            created = created_at(format_description(self._archive / state.binlog_file))
        plan = plan_connect(state, ServerLog(UUID, self._flavor(files), files), created)
        if isinstance(plan, Continue):
            return state.epoch, plan.binlog_file, plan.offset
        reason = plan.reason if isinstance(plan, Lost) else "its history is different"
        raise PositionLost(
            f"the archive {self._archive} cannot be resumed at {state.binlog_file}:{state.offset}: {reason}",
            hint="restore its files, or use another source-id",
        )

    def _first(self, files: dict[str, int]) -> tuple[int, str, int]:
        begin = first_start(named_start(self._task.start), files, f"the archive {self._archive}")
        flavor = self._flavor(files)
        record = EpochBegin(UUID, begin.epoch, flavor, begin.binlog_file, begin.offset, None)
        begin_epoch(self._task.folder, record)
        return begin.epoch, begin.binlog_file, begin.offset

    def _flavor(self, files: dict[str, int]) -> Flavor:
        flavor = _flavor_of(self._archive / next(iter(files)))
        self._status.update(flavor=flavor)
        return flavor

    def _read(self, cutter: Cutter) -> bool:
        quiet_since = time.monotonic()
        while True:
            before = cutter.offset
            torn = self._read_file(cutter)
            if self._stop():
                return False
            later = [
                name for name in archive_files(self._archive) if file_number(name) > file_number(cutter.binlog_file)
            ]
            if cutter.offset > before:
                quiet_since = time.monotonic()
            elif later and not self._unfinished(cutter, torn):
                cutter.next_file(later[0])
                continue
            broken = self._unfinished(cutter, torn)
            if broken and (later or self._task.until_caught_up or time.monotonic() - quiet_since > TORN_SECONDS):
                raise self._torn(cutter, torn)
            if self._task.until_caught_up and not later and cutter.offset == before:
                return True
            cutter.tick()
            self._report(cutter)
            if cutter.offset == before:
                time.sleep(POLL_SECONDS)

    def _read_file(self, cutter: Cutter) -> int:
        """Read from the cutter's offset to the end of its file; returns the bytes of an incomplete last event."""
        with (self._archive / cutter.binlog_file).open("rb", buffering=1 << 20) as stream:
            stream.seek(cutter.offset)
            pieces = FilePieces(stream)
            for read in pieces:
                if isinstance(read, Events):
                    cutter.take_events(read.data)
                else:
                    cutter.take(read)
                self._report(cutter)
                if self._stop():
                    break
            return pieces.torn

    def _unfinished(self, cutter: Cutter, torn: int) -> bool:
        return torn > 0 or cutter.offset != cutter.boundary

    def _torn(self, cutter: Cutter, torn: int) -> CorruptBinlog:
        what = f"inside an event ({torn} bytes of it)" if torn else "inside a transaction"
        return CorruptBinlog(
            f"{self._archive / cutter.binlog_file} ends {what}",
            hint="copy the file again once the server has closed it (FLUSH BINARY LOGS)",
            offset=cutter.offset,
        )

    def _report(self, cutter: Cutter) -> None:
        binlog_file, offset = cutter.on_disk
        self._status.update(binlog_file=binlog_file, offset=offset)
