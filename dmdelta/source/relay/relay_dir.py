"""A source's relay folder: its locks, and where the log on disk ends."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from dmdelta.binlog.events.boundary import scan_gtids, walk_events
from dmdelta.binlog.events.format_description import parse_format_description
from dmdelta.binlog.events.header import HEADER, HEADER_SIZE, EventType
from dmdelta.errors import CorruptBinlog, Fenced, HeldByCommand
from dmdelta.model.gtid import GtidSet, grown, joined, parse_gtid_set
from dmdelta.model.position import Position, file_number, numbered_file
from dmdelta.model.segment import FIRST_OFFSET, MAGIC, Segment
from dmdelta.segments import BEGIN_FILE, EpochBegin, epoch_begin, follows, list_segments
from dmdelta.source.relay.gtid_wire import BEGINNINGS, set_before_file
from dmdelta.source.relay.purge import Known, landed_at_purge
from dmdelta.source.relay.reconnect import RelayState
from dmdelta.source.relay.segment_writer import remove_parts
from dmdelta.source.relay.volume import scratch_folder

LOCK_SECONDS = 3.0
_LOCK = ".lock"
_RUN_LOCK = ".run.lock"
_COMMAND_LOCK = ".exclusive.lock"
_ENDS_OF_FILE = frozenset({EventType.ROTATE, EventType.STOP})


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the source's relay folder for this process, and remove what a killed relay left behind.

    The relay of a runner that was killed ends within moments, so this waits for it. On a Volume the lock only excludes
    processes of this machine; a run on another machine is fenced by its commits.

    Raises:
        HeldByCommand: a command holds the lock and does not release it. Fenced: another process does.
    """
    with _holding(folder, _LOCK, lambda holder: _fenced(folder, holder, "relay")):
        remove_parts(folder)
        yield


@contextmanager
def locked_for_run(folder: Path) -> Iterator[None]:
    """Exclude other runs of the source, and commands that exclude runs, while this process writes its tables.

    The relay's own lock is not sufficient: a relay that has caught up ends before silver has.

    Raises:
        HeldByCommand: a command holds the lock and does not release it. Fenced: another run does.
    """
    with _holding(folder, _RUN_LOCK, lambda holder: _fenced(folder, holder, "run")):
        yield


@contextmanager
def locked_for_command(folder: Path) -> Iterator[None]:
    """Exclude other commands that need the relay folder for themselves, before a running task is paused for one.

    Raises:
        HeldByCommand: another command is working.
    """
    with _holding(folder, _COMMAND_LOCK, lambda holder: _held_by_command(folder, holder)):
        yield


def _fenced(folder: Path, holder: str, what: str) -> Fenced:
    if holder == _working_command(folder):
        return _held_by_command(folder, holder)
    hint = f"stop process {holder or 'unknown'} first"
    return Fenced(f"another {what} writes to this folder", hint=hint, folder=str(folder))


def _held_by_command(folder: Path, holder: str) -> HeldByCommand:
    return HeldByCommand(
        "another command is working on the task's tables",
        hint=f"retry after process {holder or 'unknown'} has ended",
        folder=str(folder),
    )


@contextmanager
def _holding(folder: Path, name: str, refused: Callable[[str], Fenced]) -> Iterator[None]:
    """Hold a lock file, which then contains the process id. `refused`: the error if the process in it does not end."""
    place = scratch_folder(folder)
    for needed in (folder, place):
        needed.mkdir(parents=True, exist_ok=True)
    with (place / name).open("a+") as lock:
        end = time.monotonic() + LOCK_SECONDS
        while not _lock(lock, fcntl.LOCK_EX):
            if time.monotonic() > end:
                raise refused(_holder(lock))
            time.sleep(0.1)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _working_command(folder: Path) -> str | None:
    """The process id of the command that holds its lock; None if there is none."""
    place = scratch_folder(folder) / _COMMAND_LOCK
    if not place.exists():
        return None
    with place.open() as lock:
        return None if _lock(lock, fcntl.LOCK_SH) else _holder(lock)


def _holder(lock: TextIO) -> str:
    lock.seek(0)
    return lock.read().strip()


def _lock(lock: TextIO, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def epoch_begins(folder: Path) -> list[EpochBegin]:
    """How the epochs in a relay folder started.

    Raises:
        CorruptBinlog: a file is damaged.
    """
    found = (epoch_begin(place.parent) for place in folder.glob(f"*/{BEGIN_FILE}"))
    return [begin for begin in found if begin is not None]


def newest_begin(folder: Path) -> EpochBegin | None:
    """How the newest epoch started; None if no relay has used the folder."""
    return max(epoch_begins(folder), key=lambda begin: begin.epoch, default=None)


def log_end_of(folder: Path, epoch: int) -> Position | None:
    """Where the server's log ended when an epoch started; None: unknown, or it does not continue after a GTID set.

    Raises:
        CorruptBinlog: as `epoch_begins`.
    """
    return next((begin.log_end for begin in epoch_begins(folder) if begin.epoch == epoch), None)


def load_state(folder: Path, source_id: str) -> RelayState | None:
    """Where the log on disk ends; None if there is none. Call `with_gtids` to add the GTID set.

    Raises:
        CorruptBinlog: segments are not contiguous, or the newest cannot be read.
    """
    begin = newest_begin(folder)
    if begin is None:
        return None
    segments = [segment for segment in list_segments(folder, source_id) if segment.epoch == begin.epoch]
    if not segments:
        return RelayState(begin.server_uuid, begin.epoch, begin.binlog_file, begin.offset, None)
    newest = segments[-1]
    description = format_description(Path(newest.path))
    return RelayState(
        begin.server_uuid,
        begin.epoch,
        newest.binlog_file,
        newest.end,
        created_at(description),
        _file_after(newest),
    )


def with_gtids(state: RelayState, folder: Path, source_id: str, known: Known | None) -> RelayState:
    """The state with the set of all transactions on disk and before.

    The set is accumulated from the newest point where a set is recorded: the start of an epoch, the first events of a
    file, what the engine knows, or what it knew when segments were purged. It is None if segments behind that point are
    missing.
    """
    begin = newest_begin(folder)
    if begin is None:
        return state
    gtids = None if begin.gtid_set is None else parse_gtid_set(begin.gtid_set, begin.flavor)
    after = Position(begin.epoch, begin.binlog_file, begin.offset)
    landed = max(filter(None, (known, landed_at_purge(folder))), key=lambda one: one.position, default=None)
    if gtids is not None and landed is not None and landed.position.epoch == begin.epoch:
        gtids, after = joined(gtids, parse_gtid_set(landed.gtid_set, begin.flavor)), landed.position
    for segment in list_segments(folder, source_id):
        if segment.end_position <= after:
            continue
        before = _set_before(segment) if segment.start == FIRST_OFFSET else None
        if before is not None:
            gtids = joined(gtids, before)
        elif segment.begin_position > after and not follows(after, segment):
            gtids = None
        after = segment.end_position
        if gtids is None:
            continue
        with open(segment.path, "rb") as stream:
            gtids = grown(gtids, scan_gtids(stream, segment))
    return replace(state, gtid_set=gtids)


def format_description(path: Path) -> bytes:
    """The whole format description event at the start of a binlog file or segment.

    Raises:
        CorruptBinlog: the file does not start with one.
    """
    with path.open("rb") as stream:
        magic, head = stream.read(len(MAGIC)), stream.read(HEADER_SIZE)
        if magic != MAGIC or len(head) < HEADER_SIZE:
            raise CorruptBinlog(f"{path} is not a binlog file", hint="a plain binlog file starts with fe 62 69 6e")
        event = head + stream.read(HEADER.unpack(head)[3] - HEADER_SIZE)
    parse_format_description(event, str(path))
    return event


def created_at(description: bytes) -> int:
    """When the server created the file, in seconds since 1970."""
    return int(HEADER.unpack_from(description)[0])


def following_file(name: str) -> str:
    """`binlog.000009` → `binlog.000010`."""
    return numbered_file(name, file_number(name) + 1)


def _file_after(segment: Segment) -> str | None:
    last: int | None = None
    with open(segment.path, "rb") as stream:
        for header, _body in walk_events(stream, segment):
            last = header.event_type
    return following_file(segment.binlog_file) if last in _ENDS_OF_FILE else None


def _set_before(segment: Segment) -> GtidSet | None:
    """The GTID set before the file, according to its first events."""
    with open(segment.path, "rb") as stream:
        for header, _body in walk_events(stream, segment):
            if header.event_type in BEGINNINGS:
                stream.seek(header.offset)
                trailer = parse_format_description(format_description(Path(segment.path))).trailer
                return set_before_file(stream.read(header.size - trailer))
            if header.event_type != EventType.FORMAT_DESCRIPTION:
                return None
    return None
