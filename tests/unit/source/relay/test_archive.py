"""Archives are relayed to segments with the same bytes; damage stops the relay."""

import io
import json
import os
import re
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmdelta.binlog.events.boundary import walk_events
from dmdelta.binlog.events.header import HEADER, EventType
from dmdelta.errors import CorruptBinlog, DmdeltaError
from dmdelta.model.segment import MAGIC, Segment
from dmdelta.source.relay.__main__ import run_relay
from dmdelta.source.relay.event_stream import BUFFER_SIZE, FilePieces, Piece
from dmdelta.source.relay.relay_task import RelayTask, StartAt
from dmdelta.source.relay.segmenter import Cutter
from dmdelta.source.relay.session import RelayRequests
from tests.support.changes import query_body
from tests.support.golden import GOLDEN
from tests.support.relaying import catch_up, relayed_bytes

NAME = "binlog.000001"
FILE = GOLDEN / "mysql80" / "binlog.000002"
DATA = FILE.read_bytes()


def archive_task(archive: Path, relay: Path, **changes) -> RelayTask:
    return RelayTask("src", str(relay), binlog_dir=str(archive), until_caught_up=True, **changes)


def cut_one_by_one(data: bytes, folder: Path) -> tuple[int, str]:
    """Cut a file event by event; returns the offset reached and the error."""
    cutter, at = Cutter(folder, NAME, len(MAGIC), b""), len(MAGIC)
    try:
        while at + 19 <= len(data):
            header = HEADER.unpack_from(data, at)
            if header[3] < 19 or at + header[3] > len(data):
                break
            cutter.take(Piece(header, memoryview(data)[at : at + header[3]], True, True))
            at += header[3]
    except DmdeltaError as error:
        return cutter.offset, str(error)
    finally:
        cutter.close()
    return cutter.offset, ""


def cut_at_once(data: bytes, folder: Path) -> tuple[int, str]:
    """Cut a file the way an archive is cut."""
    cutter, stream = Cutter(folder, NAME, len(MAGIC), b""), io.BytesIO(data)
    stream.seek(len(MAGIC))
    try:
        for read in FilePieces(stream):
            cutter.take(read) if isinstance(read, Piece) else cutter.take_events(read.data)
    except DmdeltaError as error:
        return cutter.offset, str(error)
    finally:
        cutter.close()
    return cutter.offset, ""


def contents(folder: Path) -> dict[str, bytes]:
    return {place.name: place.read_bytes() for place in folder.rglob("*") if place.is_file()}


@pytest.mark.parametrize("server", ["mysql80", "mysql57", "mysql97", "mariadb"])
def test_segments_of_an_archive_hold_the_same_bytes(server: str, tmp_path: Path) -> None:
    """For every file of a recording, the joined segments equal the file."""
    task = archive_task(GOLDEN / server, tmp_path)
    catch_up(task)
    for place in sorted((GOLDEN / server).glob("binlog.0*")):
        assert MAGIC + relayed_bytes(task, place.name) == place.read_bytes()


@settings(max_examples=100)
@given(file=st.sampled_from(sorted(GOLDEN.glob("*/binlog.0*"))), draw=st.data())
def test_batched_events_are_cut_like_single_events(
    file: Path, draw: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Damaged or not: the same segments, the same offset, the same message."""
    data = bytearray(file.read_bytes())
    for _ in range(draw.draw(st.integers(0, 2))):
        data[draw.draw(st.integers(len(MAGIC), len(data) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    one, other = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("other")
    assert cut_at_once(bytes(data), one) == cut_one_by_one(bytes(data), other)
    assert contents(one) == contents(other)


@settings(max_examples=40)
@given(place=st.integers(150, len(DATA) - 1), bit=st.integers(0, 7))
def test_a_flipped_bit_stops_the_relay(place: int, bit: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The error names the file and the offset of the event; all whole transactions before it are on disk."""
    folder = tmp_path_factory.mktemp("flipped")
    damaged = bytearray(DATA)
    damaged[place] ^= 1 << bit
    (folder / "a").mkdir()
    (folder / "a" / NAME).write_bytes(damaged)
    task = archive_task(folder / "a", folder / "relay")
    with pytest.raises(CorruptBinlog, match=r"checksum|bytes are missing|ends inside") as caught:
        catch_up(task)
    assert NAME in str(caught.value)
    kept = MAGIC + relayed_bytes(task, NAME)
    assert kept == DATA[: len(kept)]
    assert len(kept) <= place


def placed(data: bytes, kind: int, body: bytes) -> bytes:
    """The log with one more event, whose header states its end."""
    size = 19 + len(body) + 4
    event = HEADER.pack(100, kind, 1, size, len(data) + size, 0) + body
    return data + event + struct.pack("<I", crc32(event))


def test_a_large_incomplete_event_is_read_once(tmp_path: Path) -> None:
    """The file ends in the middle of an event of many buffers; the relay continues when the event is complete."""
    size = HEADER.unpack_from(DATA, 4)[3]
    data = DATA[: 4 + size]
    data = placed(data, EventType.QUERY, query_body(b"BEGIN", "s"))
    data = placed(data, EventType.WRITE_ROWS, bytes(4 * BUFFER_SIZE))
    data = placed(data, EventType.XID, bytes(8))
    (tmp_path / "a").mkdir()
    place = tmp_path / "a" / NAME
    place.write_bytes(data[: 3 * BUFFER_SIZE])
    task = replace(archive_task(tmp_path / "a", tmp_path / "relay"), until_caught_up=False)
    sizes = iter([len(data) - BUFFER_SIZE, len(data)])

    def grown() -> bool:
        """Called after each read: lets the file grow; true when all of it is relayed."""
        place.write_bytes(data[: next(sizes, len(data))])
        return MAGIC + relayed_bytes(task, NAME) == data

    run_relay(task, RelayRequests(grown))
    assert MAGIC + relayed_bytes(task, NAME) == data


def test_a_relay_starts_within_a_file(tmp_path: Path) -> None:
    """It relays the bytes from there on; the first segment still starts with the file's format description."""
    segment = Segment(str(FILE), "src", 1, FILE.name, 4, len(DATA))
    events = walk_events(io.BytesIO(DATA), segment)
    start = next(header.offset for header, _ in events if header.event_type == EventType.GTID)
    task = archive_task(FILE.parent, tmp_path, start=StartAt(FILE.name, start))
    catch_up(task)
    assert relayed_bytes(task, FILE.name) == DATA[start:]


def test_an_incomplete_last_event_is_reported(tmp_path: Path) -> None:
    """The error states how many bytes of the event exist, and how to fix it."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / NAME).write_bytes(DATA[:-20])
    with pytest.raises(CorruptBinlog, match=r"ends inside an event \(\d+ bytes of it\)") as caught:
        catch_up(archive_task(tmp_path / "a", tmp_path / "relay"))
    assert re.search("FLUSH BINARY LOGS", caught.value.hint or "")


def test_a_relay_process_logs_json_lines(tmp_path):
    """This includes its failure: as a program, its logger is not that of its module."""
    task = archive_task(tmp_path / "absent", tmp_path / "relay")
    done = subprocess.run(
        [sys.executable, "-m", "dmdelta.source.relay"],
        input=task.to_json() + "\n",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[4])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode not in (0, 1)
    line = json.loads(done.stderr.splitlines()[-1])
    assert (line["level"], line["logger"], line["msg"]) == ("ERROR", "dmdelta.source.relay", "relay failed")
    assert line["context"]["why"]
