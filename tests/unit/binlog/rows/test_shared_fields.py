"""What the rows of adjacent events share, and what they must not: dictionaries, times, tables."""

import io
import struct

from dmdelta.binlog.events.header import EventType
from dmdelta.binlog.rows.batch import ChangeBatch
from dmdelta.binlog.rows.decode import decode_segment
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.binlog.rows.mapped_tables import MappedTables
from dmdelta.model.change import Op
from dmdelta.model.recorded import RecordedStructures
from tests.support.changes import EVERYTHING, Log, event_bytes, names_field, rows_body, rows_of, table_map_body
from tests.support.jsonb_writer import write_jsonb
from tests.support.variant_reader import read_keys

INT, JSON = (3, b""), (245, b"\x04")
NAMES = names_field(("id",))
MAP = (EventType.TABLE_MAP, table_map_body([INT], NAMES))


def inserted(number: int) -> tuple[int, bytes]:
    return EventType.WRITE_ROWS, rows_body(b"\0" + struct.pack("<i", number), 1)


def document(value: object) -> tuple[int, bytes]:
    """An insert of a JSON document."""
    data = write_jsonb(value)
    return EventType.WRITE_ROWS, rows_body(b"\0" + struct.pack("<I", len(data)) + data, 1)


def timed(log: Log, timestamp: int, *events: tuple[int, bytes]) -> Log:
    """The log with events of that time; it has no checksums."""
    for kind, body in events:
        log.data += struct.pack("<I", timestamp) + event_bytes(kind, body, checksum=False)[4:]
    return log


def query(sql: str) -> tuple[int, bytes]:
    return EventType.QUERY, struct.pack("<IIBHH", 1, 0, 1, 0, 0) + b"s\0" + sql.encode()


def batches(log: Log) -> list[ChangeBatch]:
    return list(decode_segment(io.BytesIO(log.data), log.segment(), EVERYTHING))


def times(log: Log) -> list[int]:
    """The commit time in seconds of every inserted row."""
    return [
        batch.shared[index].committed_at // 1_000_000
        for batch in batches(log)
        for count, _, _, index in batch.runs
        for _ in range(count)
        if batch.shared[index].op is Op.INSERT
    ]


def test_events_of_one_table_and_transaction_share_their_fields() -> None:
    """One entry for adjacent events; another table, operation or transaction has its own."""
    other = (EventType.TABLE_MAP, table_map_body([INT], NAMES, 8, ("s", "u")))
    deleted = (EventType.DELETE_ROWS, inserted(1)[1])
    log = Log().transaction([INT], NAMES, inserted(1), inserted(2), other, MAP, inserted(3), deleted)
    (batch,) = batches(log.transaction([INT], NAMES, inserted(4)))
    runs = [batch.shared[index] for _, _, _, index in batch.runs if batch.shared[index].op is not Op.SCHEMA]
    assert runs[0] is runs[1] is runs[2]
    assert [(shared.op, shared.table) for shared in runs[2:]] == [(Op.INSERT, "t"), (Op.DELETE, "t"), (Op.INSERT, "t")]
    assert len({id(shared) for shared in runs}) == 3


def test_documents_of_one_statement_have_their_own_keys() -> None:
    """Each event's dictionary has the keys of its documents."""
    events = [document({"a": 1}), document({"b": {"c": 2}}), document({"a": 3, "d": 4})]
    log = Log().transaction([JSON], NAMES, *events)
    assert [change.after for change in rows_of(log.changes())] == [
        {"id": {"a": 1}},
        {"id": {"b": {"c": 2}}},
        {"id": {"a": 3, "d": 4}},
    ]


def test_a_dictionary_has_no_keys_of_another_log() -> None:
    """A table's documents in one segment do not enter the rows of the next."""
    keys = []
    for name in ("first", "second"):
        (batch,) = batches(Log().transaction([JSON], NAMES, document({name: 1})))
        keys += [read_keys(shared.metadata) for shared in batch.shared if shared.op is Op.INSERT]
    assert keys == [["id", "first"], ["id", "second"]]


def test_segments_share_a_tables_decoders() -> None:
    """They are generated once; a table with documents has a dictionary in each segment."""
    for columns, shared in (([INT], True), ([JSON], False), ([INT, JSON], False)):
        names = names_field([f"c{number}" for number in range(len(columns))])
        event = event_bytes(EventType.TABLE_MAP, table_map_body(columns, names), checksum=False)
        found = []
        for _ in range(2):
            tables = MappedTables(DecodeOptions(wanted=lambda *_: True), RecordedStructures(), mariadb=False)
            assert tables.add(event, (1, 4)) is not None
            found += tables.by_id.values()
        assert (found[0] is found[1]) == shared
        assert all(state.table == "t" for state in found)


def test_rows_outside_a_transaction_have_the_time_of_their_event() -> None:
    """Nothing else tells when they were committed."""
    log = timed(Log(checksum=False), 100, MAP, inserted(1))
    assert times(timed(log, 200, inserted(2), inserted(3))) == [100, 200, 200]


def test_rows_of_a_transaction_have_its_time() -> None:
    """A transaction without a GTID has the time of its BEGIN, until the next one."""
    log = timed(Log(checksum=False), 100, query("BEGIN"), MAP, inserted(1))
    log = timed(log, 200, inserted(2), (EventType.XID, bytes(8)))
    log = timed(log, 300, query("XA START X'61',X'',1"), MAP, inserted(3))
    log = timed(log, 400, inserted(4), query("XA END X'61',X'',1"), query("XA ROLLBACK X'61',X'',1"))
    assert times(timed(log, 500, MAP, inserted(5))) == [100, 100, 300, 300, 500]


def test_a_table_map_that_is_repeated_keeps_its_table() -> None:
    """Single-row statements repeat it; rows continue to be counted per event."""
    log = Log().query("BEGIN")
    places = []
    for number in range(3):
        log.add(*MAP)
        places.append((len(log.data), 0))
        log.add(*inserted(number))
    changes = rows_of(log.add(EventType.XID, bytes(8)).changes())
    assert [change.after for change in changes] == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert [(change.seq & (1 << 40) - 1, change.row) for change in changes] == places
