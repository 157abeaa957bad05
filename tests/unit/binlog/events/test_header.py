"""Each kind of event, constructed by the test: decoded, skipped, or refused with a next step."""

import struct
import zlib
from dataclasses import replace

import pytest

from dmdelta.binlog.events.header import EventFlag, EventType
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.ddl.parse.session import without_session
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.errors import CorruptBinlog, UnsupportedEvent
from dmdelta.model.change import Op
from dmdelta.model.schema import SEQUENCE_COLUMNS, Column, TableSchema
from tests.support.changes import (
    Log,
    decode_bytes,
    event_bytes,
    names_field,
    payload_body,
    query_body,
    rows_body,
    rows_of,
    table_map_body,
)
from tests.support.replay import Change

INT, VARCHAR = (3, b""), (15, b"\x50\x00")
COLUMNS = (INT, VARCHAR)
NAMES = names_field(("id", "v"))


def image(number: int, text: bytes = b"x") -> bytes:
    return b"\x00" + struct.pack("<iB", number, len(text)) + text


def transaction(log: Log, *events: tuple[int, bytes]) -> Log:
    return log.transaction(COLUMNS, NAMES, *events)


def compressed(data: bytes) -> bytes:
    return b"\x82" + struct.pack(">H", len(data)) + zlib.compress(data)


@pytest.mark.parametrize("extra", [None, b"", b"\x00\x05hello", bytes(300)])
def test_rows_of_both_versions_and_with_extra_data(extra: bytes | None) -> None:
    """Version 1 has no extra data, version 2 any number of bytes of it."""
    write, delete = (
        (EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1)
        if extra is None
        else (EventType.WRITE_ROWS, EventType.DELETE_ROWS)
    )
    log = transaction(
        Log(),
        (write, rows_body(image(1) + image(2, b"two"), 2, extra=extra)),
        (delete, rows_body(image(2, b"two"), 2, extra=extra)),
    )
    first, second, third = rows_of(log.changes())
    assert (first.op, first.after, first.row) == (Op.INSERT, {"id": 1, "v": "x"}, 0)
    assert (second.after, second.row, second.seq) == ({"id": 2, "v": "two"}, 1, first.seq)
    assert (third.op, third.before, third.after) == (Op.DELETE, {"id": 2, "v": "two"}, None)


def test_update_images_alternate_for_any_null_pattern() -> None:
    """Before and after images are not swapped when the null pattern changes between them."""
    null = b"\x02" + struct.pack("<i", 5)
    images = image(1) + null + null + image(6) + image(7) + image(8)
    log = transaction(Log(), (EventType.UPDATE_ROWS, rows_body(images, 2, bitmaps=2)))
    found = [(change.before, change.after) for change in rows_of(log.changes())]
    assert found == [
        ({"id": 1, "v": "x"}, {"id": 5, "v": None}),
        ({"id": 5, "v": None}, {"id": 6, "v": "x"}),
        ({"id": 7, "v": "x"}, {"id": 8, "v": "x"}),
    ]


@pytest.mark.parametrize(
    ("kind", "op"),
    [
        (EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1, Op.INSERT),
        (EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1, Op.DELETE),
        (EventType.MARIADB_WRITE_ROWS_COMPRESSED, Op.INSERT),
        (EventType.MARIADB_DELETE_ROWS_COMPRESSED, Op.DELETE),
    ],
)
def test_compressed_rows_of_mariadb(kind: EventType, op: Op) -> None:
    """The images after the bitmaps are decompressed, in both versions."""
    extra = None if kind <= EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1 else b""
    plain = rows_body(b"", 2, extra=extra)
    log = transaction(Log("10.11.6-MariaDB"), (kind, plain + compressed(image(3) + image(4))))
    changes = rows_of(log.changes())
    assert [change.op for change in changes] == [op, op]
    assert [(change.after or change.before or {})["id"] for change in changes] == [3, 4]


def test_a_compressed_query_starts_a_transaction() -> None:
    """MariaDB also compresses statements."""
    body = query_body(b"", "s") + compressed(b"BEGIN")
    log = Log("10.11.6-MariaDB").add(EventType.MARIADB_QUERY_COMPRESSED, body)
    log.add(EventType.TABLE_MAP, table_map_body(COLUMNS, NAMES))
    log.add(EventType.WRITE_ROWS_V1, rows_body(image(1), 2, extra=None)).add(EventType.XID, bytes(8))
    assert [change.after for change in rows_of(log.changes())] == [{"id": 1, "v": "x"}]


@pytest.mark.parametrize("compression", [0, 255])
def test_a_payload_counts_its_rows_as_one_event(compression: int) -> None:
    """Rows of all inner events have the payload's position and one counter; the structure comes before them."""
    inner = (
        event_bytes(EventType.QUERY, query_body(b"BEGIN", "s"), checksum=False)
        + event_bytes(EventType.TABLE_MAP, table_map_body(COLUMNS, NAMES), checksum=False)
        + event_bytes(EventType.WRITE_ROWS, rows_body(image(1) + image(2), 2), checksum=False)
        + event_bytes(EventType.DELETE_ROWS, rows_body(image(2), 2), checksum=False)
        + event_bytes(EventType.XID, bytes(8), checksum=False)
    )
    log = Log()
    offset = len(log.data)
    changes = log.add(EventType.TRANSACTION_PAYLOAD, payload_body(inner, compression=compression)).changes()
    assert [change.row for change in changes] == [-1, 0, 1, 2]
    assert {change.seq for change in changes} == {(7 << 40) + offset}
    assert [change.op for change in changes] == [Op.SCHEMA, Op.INSERT, Op.INSERT, Op.DELETE]


def test_a_payload_of_another_compression_is_refused() -> None:
    """An unknown algorithm is an error with the setting's name."""
    with pytest.raises(UnsupportedEvent, match="compression 7") as caught:
        Log().add(EventType.TRANSACTION_PAYLOAD, payload_body(b"", compression=7)).changes()
    assert "binlog_transaction_compression" in (caught.value.hint or "")


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_broken_payload_is_damage(cut: int) -> None:
    """Truncated inner bytes are an error."""
    inner = event_bytes(EventType.QUERY, query_body(b"BEGIN", "s"), checksum=False)
    body = payload_body(inner, compression=255)
    with pytest.raises(CorruptBinlog):
        Log().add(EventType.TRANSACTION_PAYLOAD, body[: len(body) - cut]).changes()


@pytest.mark.parametrize(
    "kind",
    [
        EventType.STOP,
        EventType.ROTATE,
        EventType.HEARTBEAT,
        EventType.HEARTBEAT_V2,
        EventType.PREVIOUS_GTIDS,
        EventType.IGNORABLE,
        EventType.ROWS_QUERY,
        EventType.TRANSACTION_CONTEXT,
        EventType.VIEW_CHANGE,
        EventType.MARIADB_ANNOTATE_ROWS,
        EventType.MARIADB_BINLOG_CHECKPOINT,
        EventType.MARIADB_GTID_LIST,
    ],
)
def test_events_without_changes_are_skipped(kind: EventType) -> None:
    """Events without row changes are skipped."""
    assert Log().add(kind, bytes(20)).changes() == []


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (EventType.INTVAR, "binlog_format=ROW"),
        (EventType.RAND, "binlog_format=ROW"),
        (EventType.USER_VAR, "binlog_format=ROW"),
        (EventType.LOAD, "binlog_format=ROW"),
        (EventType.BEGIN_LOAD_QUERY, "binlog_format=ROW"),
        (EventType.EXECUTE_LOAD_QUERY, "binlog_format=ROW"),
        (EventType.APPEND_BLOCK, "binlog_format=ROW"),
        (EventType.INCIDENT, "snapshot"),
        (EventType.MARIADB_START_ENCRYPTION, "encrypt_binlog"),
        (EventType.PRE_GA_WRITE_ROWS, "report"),
        (172, "report"),
    ],
)
def test_events_that_would_lose_changes_stop_the_task(kind: int, hint: str) -> None:
    """The error has the file, the position and the next step."""
    log = Log()
    offset = len(log.data)
    with pytest.raises(UnsupportedEvent) as caught:
        log.add(kind, bytes(20)).changes()
    assert hint in (caught.value.hint or "")
    assert caught.value.context == {"binlog_file": "binlog.000007", "offset": offset}


def test_an_unknown_event_marked_ignorable_is_skipped() -> None:
    """A newer server marks events that an older reader may skip."""
    assert Log().add(200, bytes(8), flags=EventFlag.IGNORABLE).changes() == []


def test_a_statement_that_changes_rows_stops_the_task() -> None:
    """Statement format cannot be decoded."""
    with pytest.raises(UnsupportedEvent, match="statement format") as caught:
        Log().query("BEGIN").query("INSERT INTO t VALUES (1)").changes()
    assert "binlog_format=ROW" in (caught.value.hint or "")


def test_rows_that_were_rolled_back_stop_the_task() -> None:
    """A ROLLBACK after row events means a mix of engines: some rows were kept, some were not."""
    log = Log().query("BEGIN").add(EventType.TABLE_MAP, table_map_body(COLUMNS, NAMES))
    log.add(EventType.WRITE_ROWS, rows_body(image(1), 2)).query("ROLLBACK")
    with pytest.raises(UnsupportedEvent, match="ROLLBACK"):
        log.changes()


ROW = ""


def mixed(*steps: str) -> Log:
    """A transaction of these statements; `ROW` is an event of one row."""
    log = Log().query("BEGIN").add(EventType.TABLE_MAP, table_map_body(COLUMNS, NAMES))
    for step in steps:
        if step == ROW:
            log.add(EventType.WRITE_ROWS, rows_body(image(1), 2))
        else:
            log.query(step)
    return log


@pytest.mark.parametrize(
    "steps",
    [
        (ROW, "SAVEPOINT `s`", "ROLLBACK TO `s`"),
        (ROW, "SAVEPOINT `s`", "ROLLBACK TO `S`", ROW),
        (ROW, "SAVEPOINT `s`", ROW, "SAVEPOINT `s`", "ROLLBACK TO `s`"),
        (ROW, "SAVEPOINT `s`", "SAVEPOINT `t`", "ROLLBACK TO `s`", ROW, "SAVEPOINT `u`", "ROLLBACK TO `u`"),
        ("ROLLBACK TO `s`", ROW),
        ("SAVEPOINT `s`", ROW, "RELEASE SAVEPOINT `s`", ROW),
    ],
)
def test_a_savepoint_without_rows_after_it_undoes_nothing(steps: tuple[str, ...]) -> None:
    """Rows before the named savepoint and after the rollback remain; the statements change nothing."""
    log = mixed(*steps).add(EventType.XID, bytes(8))
    assert len(rows_of(log.changes())) == steps.count(ROW)


@pytest.mark.parametrize(
    "steps",
    [
        ("SAVEPOINT `s`", ROW, "ROLLBACK TO `s`"),
        (ROW, "SAVEPOINT `s`", ROW, "SAVEPOINT `t`", "ROLLBACK TO `s`"),
        (ROW, "SAVEPOINT `s`", ROW, "SAVEPOINT `t`", "ROLLBACK TO `t`", "ROLLBACK TO `s`"),
        (ROW, "ROLLBACK TO `unknown`"),
        (ROW, "SAVEPOINT `s`", "ROLLBACK TO `unknown`"),
    ],
)
def test_rows_that_a_savepoint_undoes_stop_the_task(steps: tuple[str, ...]) -> None:
    """They are in the log, but not in the source."""
    with pytest.raises(UnsupportedEvent, match="ROLLBACK TO SAVEPOINT undoes") as caught:
        mixed(*steps).changes()
    assert "checkpoint reset" in (caught.value.hint or "")


def test_savepoints_end_with_their_transaction() -> None:
    """The savepoint of an earlier transaction says nothing about the rows of this one."""
    log = mixed(ROW, "SAVEPOINT `s`").add(EventType.XID, bytes(8))
    log.query("BEGIN").query("SAVEPOINT `t`").add(EventType.WRITE_ROWS, rows_body(image(1), 2))
    with pytest.raises(UnsupportedEvent, match="ROLLBACK TO SAVEPOINT undoes"):
        log.query("ROLLBACK TO `t`").changes()


@pytest.mark.parametrize("end", ["ROLLBACK", "ROLLBACK TO `s`"])
def test_a_rollback_of_tables_that_are_not_replicated_is_ignored(end: str) -> None:
    """None of its rows would have been read."""
    log = mixed(ROW, "SAVEPOINT `s`", ROW, end)
    if end != "ROLLBACK":
        log.add(EventType.XID, bytes(8))
    assert log.changes(DecodeOptions(wanted=lambda *_: False)) == []


def test_rows_before_a_savepoint_count_for_a_rollback() -> None:
    """The end of the transaction undoes all of it."""
    with pytest.raises(UnsupportedEvent, match="ends in ROLLBACK"):
        mixed(ROW, "SAVEPOINT `s`", "ROLLBACK").changes()


def test_a_segment_must_end_its_transaction() -> None:
    """Rows without their commit are not a segment."""
    log = Log().query("BEGIN").add(EventType.TABLE_MAP, table_map_body(COLUMNS, NAMES))
    with pytest.raises(CorruptBinlog, match="inside a transaction"):
        log.changes()


def test_row_images_need_their_table_map() -> None:
    """Only MySQL's end-of-statement mark needs none."""
    mark = rows_body(b"", 0, table_id=0xFFFFFF)
    assert Log().query("BEGIN").add(EventType.WRITE_ROWS, mark).add(EventType.XID, bytes(8)).changes() == []
    with pytest.raises(CorruptBinlog, match="without a table map"):
        Log().query("BEGIN").add(EventType.WRITE_ROWS, rows_body(image(1), 2)).changes()


@pytest.mark.parametrize("change", [b"\x00", image(2)[:-1]])
def test_images_that_do_not_fill_their_event_are_damage(change: bytes) -> None:
    """Excess or missing bytes at the end of a rows event are an error with the table's name."""
    with pytest.raises(CorruptBinlog, match=r"s\.t"):
        transaction(Log(), (EventType.WRITE_ROWS, rows_body(image(1) + change, 2))).changes()


def test_half_an_update_is_damage() -> None:
    """Every before image has an after image."""
    with pytest.raises(CorruptBinlog, match=r"s\.t"):
        transaction(Log(), (EventType.UPDATE_ROWS, rows_body(image(1) * 3, 2, bitmaps=2))).changes()


def inserted(images: bytes, present: bytes, *, nulls: bytes, kind: int = EventType.WRITE_ROWS) -> list[Change]:
    """The rows of an INSERT that logged the columns `present`, of a table whose columns `nulls` are nullable."""
    extra = None if kind == EventType.WRITE_ROWS_V1 else b""
    log = Log().query("BEGIN").add(EventType.TABLE_MAP, table_map_body(COLUMNS, NAMES, nulls=nulls))
    log.add(kind, rows_body(images, 2, extra=extra, present=present)).add(EventType.XID, bytes(8))
    return rows_of(log.changes())


ONLY_ID = b"\x00" + struct.pack("<i", 5)


@pytest.mark.parametrize("kind", [EventType.WRITE_ROWS, EventType.WRITE_ROWS_V1])
def test_an_insert_without_a_column_that_cannot_be_null_stops_the_task(kind: EventType) -> None:
    """In the source the row has the column's DEFAULT, which is not in the log."""
    with pytest.raises(UnsupportedEvent, match=r"s\.t: an INSERT is logged without v \(NOT NULL\)") as caught:
        inserted(ONLY_ID, b"\x01", nulls=b"\x00", kind=kind)
    assert "binlog_row_image=FULL" in (caught.value.hint or "")
    assert caught.value.context["binlog_file"] == "binlog.000007"


def test_nullability_comes_from_the_table_map() -> None:
    """A known structure, for a table map without names, may be older or newer."""
    columns = (Column("id", "int"), Column("v", "varchar", length=80, charset="utf8mb4"))
    options = DecodeOptions(wanted=lambda *_: True, known_schemas={("s", "t"): [TableSchema("s", "t", columns)]})
    log = Log().query("BEGIN").add(EventType.TABLE_MAP, table_map_body(COLUMNS, b"", nulls=b"\x01"))
    log.add(EventType.WRITE_ROWS, rows_body(ONLY_ID, 2, present=b"\x01")).add(EventType.XID, bytes(8))
    with pytest.raises(UnsupportedEvent, match=r"without v \(NOT NULL\)"):
        log.changes(options)


def test_an_insert_without_a_nullable_column_lists_its_columns() -> None:
    """A nullable column is assumed to be NULL: preflight warns of defaults."""
    (change,) = inserted(ONLY_ID, b"\x01", nulls=b"\x02")
    assert (change.after, change.image) == ({"id": 5}, ("id",))


@pytest.mark.parametrize("nulls", [b"\x03", b"\x00"])
def test_an_insert_that_logs_no_column_stops_the_task(nulls: bytes) -> None:
    """Its image has no bytes: the source has a row that the log does not show."""
    with pytest.raises(UnsupportedEvent, match=r"s\.t: an INSERT .* no column"):
        inserted(b"", b"\x00", nulls=nulls)


def test_an_update_need_not_log_unchanged_columns() -> None:
    """NOT NULL or not, a column that an after image omits keeps its value."""
    log = Log().query("BEGIN").add(EventType.TABLE_MAP, table_map_body(COLUMNS, NAMES, nulls=b"\x00"))
    log.add(EventType.UPDATE_ROWS, rows_body(ONLY_ID * 2, 2, bitmaps=2, present=b"\x01")).add(EventType.XID, bytes(8))
    (change,) = rows_of(log.changes())
    assert (change.op, change.after, change.image) == (Op.UPDATE, {"id": 5}, ("id",))


def test_bytes_outside_the_character_set_stop_the_task() -> None:
    """The error has table, column and position, and no value."""
    with pytest.raises(UnsupportedEvent, match=r"s\.t\.v contains bytes that are not valid utf8mb4") as caught:
        transaction(Log(), (EventType.WRITE_ROWS, rows_body(image(1, b"secret\xff"), 2))).changes()
    assert caught.value.context["binlog_file"] == "binlog.000007"
    assert "secret" not in str(caught.value)


def test_a_multi_table_statement_maps_rows_to_their_tables() -> None:
    """Table ids determine whose images follow; two ids may refer to one structure."""
    log = Log().query("BEGIN")
    log.add(EventType.TABLE_MAP, table_map_body(COLUMNS, NAMES, 7, ("s", "left")))
    log.add(EventType.TABLE_MAP, table_map_body(COLUMNS, NAMES, 8, ("s", "right")))
    log.add(EventType.WRITE_ROWS, rows_body(image(1), 2, table_id=8))
    log.add(EventType.WRITE_ROWS, rows_body(image(2), 2, table_id=7)).add(EventType.XID, bytes(8))
    assert [(change.table, (change.after or {})["id"]) for change in rows_of(log.changes())] == [
        ("right", 1),
        ("left", 2),
    ]


def test_a_one_phase_commit_is_prepared_and_committed_at_once() -> None:
    """Rows carry the xid, and the commit row is at the XA_PREPARE event itself."""
    log = Log().query("XA START X'6162',X'',1").add(EventType.TABLE_MAP, table_map_body(COLUMNS, NAMES))
    log.add(EventType.WRITE_ROWS, rows_body(image(1), 2)).query("XA END X'6162',X'',1")
    offset = len(log.data)
    log.add(EventType.XA_PREPARE, struct.pack("<BIII", 1, 1, 2, 0) + b"ab")
    row, verdict = rows_of(log.changes())
    assert row.xid == verdict.xid == "X'6162',X'',1"
    assert (verdict.op, verdict.seq) == (Op.XA_COMMIT, (7 << 40) + offset)


def test_events_without_checksums() -> None:
    """`binlog_checksum=NONE` omits the four bytes everywhere but in the first event."""
    log = transaction(Log(checksum=False), (EventType.WRITE_ROWS, rows_body(image(1), 2)))
    assert [change.after for change in rows_of(log.changes())] == [{"id": 1, "v": "x"}]


def test_wide_tables_have_wide_field_ids() -> None:
    """More than 255 columns: two-byte ids, and the field count as four bytes."""
    names = [f"c{number:03d}" for number in range(300)]
    log = Log().query("BEGIN").add(EventType.TABLE_MAP, table_map_body([INT] * 300, names_field(names)))
    values = bytes(38) + b"".join(struct.pack("<i", number) for number in range(300))
    nulls = b"\x01" + bytes(37) + b"".join(struct.pack("<i", number) for number in range(1, 300))
    log.add(EventType.WRITE_ROWS, rows_body(values + nulls, 300)).add(EventType.XID, bytes(8))
    first, second = rows_of(log.changes())
    assert first.after == {name: number for number, name in enumerate(names)}
    assert second.after == {**(first.after or {}), "c000": None}


def test_tables_are_selected_by_schema_and_name() -> None:
    """The options receive both names."""
    asked = []
    options = DecodeOptions(wanted=lambda schema, table: bool(asked.append((schema, table))))
    assert transaction(Log(), (EventType.WRITE_ROWS, rows_body(image(1), 2))).changes(options) == []
    assert asked == [("s", "t")]


SEQUENCE_TYPES = ((8, b""),) * 6 + ((1, b""), (8, b""))
NUMBERS = b"\x00" + bytes(6 * 8 + 1 + 8)


@pytest.mark.parametrize(("version", "rows"), [("10.11.6-MariaDB", 0), ("8.0.31", 1)])
@pytest.mark.parametrize("named", [True, False])
def test_the_numbers_of_a_sequence_are_not_rows(version: str, rows: int, named: bool) -> None:  # noqa: FBT001
    """MariaDB logs them like a table's rows; the columns' names tell, in the log or in the known structure."""
    columns = (Column(name, "tinyint" if name == "cycle_option" else "bigint") for name in SEQUENCE_COLUMNS)
    known = {("s", "t"): [TableSchema("s", "t", tuple(columns))]}
    log = Log(version).transaction(
        SEQUENCE_TYPES,
        names_field(SEQUENCE_COLUMNS) if named else b"",
        (EventType.WRITE_ROWS_V1, rows_body(NUMBERS, 8, extra=None)),
    )
    assert len(rows_of(log.changes(DecodeOptions(wanted=lambda *_: True, known_schemas=known)))) == rows


def test_the_tables_of_a_statement_are_numbered() -> None:
    """A statement on several tables is a row for each; (seq, row) stays unique, and the next transaction begins at 0."""
    options = DecodeOptions(wanted=lambda _schema, _table: True, statement_targets=statement_targets)
    log = Log().query("DROP TABLE a, b, c").query("TRUNCATE TABLE d")
    found = [(change.table, change.row) for change in rows_of(log.changes(options))]
    assert found == [("a", 0), ("b", 1), ("c", 2), ("d", 0)]


START, COMMITTED, ROLLED_BACK = b"\x02", b"\x04" + bytes(8), b"\x08" + bytes(8)


def test_an_alter_in_two_phases_counts_where_it_takes_effect() -> None:
    """MariaDB logs the statement when it starts and again when it ends; one that fails counts nowhere."""
    options = DecodeOptions(wanted=lambda _schema, _table: True, statement_targets=statement_targets)
    log = Log("10.11.6-MariaDB")
    log.alter_phase(START, "ALTER TABLE t ADD w INT").alter_phase(START, "ALTER TABLE u ADD UNIQUE (v)")
    transaction(log, (EventType.WRITE_ROWS_V1, rows_body(image(1), 2, extra=None)))
    log.alter_phase(ROLLED_BACK, "ALTER TABLE u ADD UNIQUE (v)")
    at = len(log.data)
    log.alter_phase(COMMITTED, "ALTER TABLE t ADD w INT").alter_phase(START, "CREATE INDEX i ON t (w)")
    row, alter = rows_of(log.query("DROP TABLE u").changes(options)[:-1])
    assert (row.op, row.after) == (Op.INSERT, {"id": 1, "v": "x"})
    assert (alter.op, alter.table, alter.seq > (7 << 40) + at) == (Op.DDL, "t", True)


def test_a_statement_is_recorded_without_its_session() -> None:
    """The rows of a statement on tables of several schemas have the same text, in which each name has its schema."""
    options = DecodeOptions(
        wanted=lambda schema, _table: schema == "prod",
        statement_targets=statement_targets,
        without_session=without_session,
    )
    log = Log().query("RENAME TABLE t TO prod.t", schema="staging").query("ALTER TABLE t ADD a INT", schema="prod")
    found = [(change.schema, change.ddl) for change in rows_of(log.changes(options))]
    assert found == [("prod", "RENAME TABLE `staging`.`t` TO prod.t"), ("prod", "ALTER TABLE t ADD a INT")]


@pytest.mark.parametrize(("more", "missing"), [(5, 5), (0, 7), (18, 1)])
def test_bytes_after_the_last_event_are_located(more: int, missing: int) -> None:
    """A segment that does not end with an event: the error names where its file ends, and where it should."""
    log = Log().query("BEGIN")
    end = len(log.data) + more + missing
    with pytest.raises(CorruptBinlog, match=f"ends at {len(log.data) + more}, not at {end}"):
        decode_bytes(log.data + bytes(more), replace(log.segment(), end=end))
