"""verify's decoding of events: places, checksums, and events that mysql-replication cannot read."""

import importlib
import struct
import sys
from dataclasses import replace

import pytest

from dmdelta.binlog.events.header import EventType
from dmdelta.cli.main import execute
from dmdelta.errors import ConfigError, CorruptBinlog
from dmdelta.model.schema import SEQUENCE_COLUMNS
from dmdelta.model.segment import Segment
from dmdelta.verification.decoder import NO_TABLE_MAP, Decoder
from dmdelta.verification.events import MAYBE_SEQUENCE
from dmdelta.verification.raw_events import RawEvent, _Stream, segment_events
from tests.support.changes import Log, event_bytes, names_field, rows_body
from tests.support.golden import SERVERS, boundaries, cut_at, recording
from tests.support.verifying import logged_events

WRITE_ROWS = 30


@pytest.fixture
def written(tmp_path):
    """A handmade log, as a segment on disk."""

    def write(log, **facts):
        file = tmp_path / "binlog.000007"
        file.write_bytes(log.data)
        return Segment(str(file), "s", 1, "binlog.000007", **{"start": 4, "end": len(log.data), **facts})

    return write


@pytest.mark.parametrize("checksum", [True, False])
def test_places_and_padding_do_not_depend_on_checksums(written, checksum):
    """Each event begins where the previous one ends, and is always followed by four bytes of checksum."""
    log = Log(checksum=checksum).query("BEGIN").add(EventType.XID, bytes(8))
    events = list(segment_events(written(log)))
    assert [event.kind for event in events] == [EventType.FORMAT_DESCRIPTION, EventType.QUERY, EventType.XID]
    assert [event.start for event in events] == [4, *(event.end for event in events[:-1])]
    assert events[-1].end == len(log.data)
    assert len(events[-1].data) == 19 + 8 + 4


def test_a_truncated_file_is_reported(written):
    """Truncated within a header or a body."""
    log = Log().query("BEGIN")
    for lost in (3, len(log.data) - 4 - 5):
        log.data, whole = log.data[:-lost], log.data
        segment = written(log, end=len(whole))
        with pytest.raises(CorruptBinlog, match="ends inside an event"):
            list(segment_events(segment))
        log.data = whole


@pytest.mark.parametrize("name", SERVERS)
def test_segments_have_the_events_of_the_whole_file(name, tmp_path):
    """Split anywhere between transactions, the same events are at the same places."""
    recorded = recording(name)
    whole = {event.place: event for event in logged_events(recorded)}
    found = {}
    for segment in recorded.segments():
        with open(segment.path, "rb") as stream:
            data = stream.read()
        ends = boundaries(data, segment)
        for number, (piece, content) in enumerate(cut_at(data, segment, ends[:: max(1, len(ends) // 3)] or ends)):
            file = tmp_path / f"{segment.binlog_file}.{number}"
            file.write_bytes(content)
            decoder = Decoder(mariadb=name == "mariadb")
            for raw in segment_events(Segment(str(file), "s", 1, piece.binlog_file, piece.start, piece.end)):
                event = decoder.feed(raw)
                if event is not None:
                    found[event.place] = event
    assert found.keys() <= whole.keys()
    assert len(found) > len(whole) // 2
    differing = [event for place, event in found.items() if alike(whole[place]) != alike(event)]
    assert differing == []


def alike(event):
    """A comparable form of an event: JSON diffs do not compare equal."""
    is_partial = event.table is not None and event.table[1] == "partial_json"
    return replace(event, rows=len(event.rows or ())) if is_partial else event


def test_rows_without_a_table_map_are_not_lost():
    """The event is reported with the reason; MySQL's dummy event without a table is ignored."""
    decoder = Decoder(mariadb=False)
    unknown, dummy = ((7).to_bytes(6, "little"), (0xFFFFFF).to_bytes(6, "little"))
    for number, found in ((unknown, NO_TABLE_MAP), (dummy, None)):
        data = event_bytes(WRITE_ROWS, number + bytes(8))
        event = decoder.feed(RawEvent("binlog.000001", 400, WRITE_ROWS, data))
        assert (event and event.unread) == found


@pytest.mark.parametrize(
    ("mariadb", "names", "unread"),
    [(True, SEQUENCE_COLUMNS, None), (True, (), MAYBE_SEQUENCE), (False, SEQUENCE_COLUMNS, None)],
)
def test_the_numbers_of_a_sequence_are_not_rows(written, mariadb, names, unread):
    """MariaDB logs them like a table's rows; without names in the log they may be either."""
    types = ((8, b""),) * 6 + ((1, b""), (8, b""))
    body = rows_body(bytes(1 + 6 * 8 + 1 + 8), 8, extra=None)
    log = Log("10.11.6-MariaDB" if mariadb else "8.0.31")
    log.transaction(types, b"\x01\x01\x06" + names_field(names)[3:] if names else b"", (EventType.WRITE_ROWS_V1, body))
    decoder = Decoder(mariadb=mariadb)
    # The handmade log describes no event: mysql-replication then assumes the usual sizes.
    events = [event for event in segment_events(written(log)) if event.kind != EventType.FORMAT_DESCRIPTION]
    found = [event for event in map(decoder.feed, events) if event is not None]
    assert [event.unread for event in found] == ([] if mariadb and names else [unread])


def test_positions_of_a_stream_exceed_32_bits():
    """Events have their end modulo 2^32; artificial events of the stream have no position."""
    stream = _Stream("binlog.000001", (1 << 32) - 100)

    def taken(end, kind=EventType.XID, flags=0, timestamp=1):
        head = struct.pack("<IBIIIH", timestamp, kind, 1, 60, end, flags)
        return stream.take(head + bytes(41))

    assert taken((1 << 32) - 40).start == (1 << 32) - 100
    assert taken(20).start == (1 << 32) - 40
    assert taken(80).start == (1 << 32) + 20
    assert taken(0, EventType.FORMAT_DESCRIPTION).start is None
    assert taken(90, EventType.HEARTBEAT) is None
    rotate = struct.pack("<IBIIIH", 0, EventType.ROTATE, 1, 40, 0, 0x20) + (4).to_bytes(8, "little") + b"binlog.000002"
    assert stream.take(rotate) is None
    assert (taken(64).file, stream.end) == ("binlog.000002", 64)
    stream.end = (2 << 32) - 60
    assert taken(0).start == (2 << 32) - 60, "an event may end at a multiple of 4 GiB"
    assert taken(60).start == 2 << 32


def test_without_the_package_the_error_says_what_to_install(monkeypatch, tmp_path, capsys):
    """The error is raised on import, and therefore by the command."""
    spec = tmp_path / "t.yml"
    spec.write_text(f"name: t\nsources: [{{source-id: s, binlog-dir: {tmp_path}}}]\nlakehouse: {{root: {tmp_path}}}\n")
    monkeypatch.setitem(sys.modules, "pymysqlreplication", None)
    for name in ("dmdelta.verification.decoder", "dmdelta.engine.verify.command"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ConfigError, match="mysql-replication") as caught:
        importlib.import_module("dmdelta.verification.decoder")
    assert "dmdelta[verify]" in (caught.value.hint or "")
    assert execute(["verify", str(spec)]) == 2
    assert "dmdelta[verify]" in capsys.readouterr().err
