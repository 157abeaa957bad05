"""Table maps without column names: a scan for statements, and rows decoded by the structure at their position."""

import struct
from pathlib import Path

import pytest

from dmdelta.binlog.events.header import EventType
from dmdelta.binlog.rows.ddl_scan import scan_statements, scan_tables
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.ddl.tracking.structure_plan import LogAhead, plan_structures
from dmdelta.ddl.tracking.tracked_structures import Structures
from dmdelta.errors import CorruptBinlog, UnknownSchema
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, StructureFrom, TableSchema
from tests.support.changes import Log, decode_bytes, query_body, rows_body, rows_of, table_map_body
from tests.support.golden import recording

INT = (3, b"")
TEXT = (252, b"\x02")
VARCHAR = (15, b"\x50\x00")
COLLATION = b"\x02\x01\x2d"
"""MINIMAL metadata: text columns are utf8mb4_general_ci."""


def image(number: int) -> bytes:
    return b"\x00" + struct.pack("<i", number)


def row(log: Log, *types, data: bytes = image(1), optional: bytes = b"") -> Log:
    log.query("BEGIN").add(EventType.TABLE_MAP, table_map_body(types or (INT,), optional))
    return log.add(EventType.WRITE_ROWS, rows_body(data, len(types) or 1)).add(EventType.XID, bytes(8))


def structure(*columns: Column | str, since: int = 4) -> StructureFrom:
    found = tuple(Column(column, "int") if isinstance(column, str) else column for column in columns)
    return StructureFrom(("s", "t"), Position(1, "binlog.000007", since), TableSchema("s", "t", found))


def options(*structures: StructureFrom) -> DecodeOptions:
    return DecodeOptions(
        wanted=lambda *_: True, structures={("s", "t"): structures}, statement_targets=statement_targets
    )


def test_an_identical_table_map_has_other_columns_after_a_statement() -> None:
    """Renaming a column does not change the table map's bytes."""
    log = row(Log())
    at = len(log.data)
    log = row(log.query("ALTER TABLE t CHANGE a b INT"))
    changes = log.changes(options(structure("a"), structure("b", since=at)))
    assert [change.after for change in rows_of(changes) if change.op is Op.INSERT] == [{"a": 1}, {"b": 1}]
    logged = [TableSchema.from_json(change.ddl or "") for change in changes if change.op is Op.SCHEMA]
    assert [schema.columns[0].name for schema in logged] == ["a", "b"]


@pytest.mark.parametrize(
    "known",
    [
        (),
        (structure("a", "b"),),
        (structure(Column("a", "bigint")),),
        (structure("a"), StructureFrom(("s", "t"), Position(1, "binlog.000007", 5), None)),
        (structure("a", since=1 << 30),),
    ],
    ids=["none", "more columns", "another type", "not known any more", "of a later place"],
)
def test_a_table_map_that_matches_no_structure_stops_the_task(known) -> None:
    """The error has the table, the position, and the next step."""
    with pytest.raises(UnknownSchema, match=r"s\.t") as caught:
        row(Log()).changes(options(*known))
    assert "dmdelta binlog-schema update SPEC --table s.t" in (caught.value.hint or "")
    assert caught.value.context["binlog_file"] == "binlog.000007"
    assert caught.value.context["offset"] > 4


def test_the_table_map_completes_what_statements_left_open() -> None:
    """Character sets and collations from MINIMAL metadata, the size of a TEXT, nullability."""
    open_ = structure(Column("v", "varchar", length=20, nullable=False), Column("x", "tinytext", charset="utf8mb4"))
    data = b"\x00" + b"\x01v" + b"\x01\x00x"
    changes = row(Log(), VARCHAR, TEXT, data=data, optional=COLLATION).changes(options(open_))
    (logged,) = (TableSchema.from_json(change.ddl or "") for change in changes if change.op is Op.SCHEMA)
    assert logged.columns == (
        Column("v", "varchar", length=80, charset="utf8mb4", collation="utf8mb4_general_ci"),
        Column("x", "text", charset="utf8mb4", collation="utf8mb4_general_ci"),
    )
    with pytest.raises(UnknownSchema):
        row(Log(), VARCHAR, TEXT, data=data).changes(options(open_))


def test_a_vector_of_mariadb_is_read_as_bytes() -> None:
    """Its statement has a fixed length, its table map the type of a VARBINARY."""
    floats = struct.pack("<2f", 1.5, 0)
    log = row(Log("11.8.3-MariaDB"), (15, b"\x08\x00"), data=b"\x00\x08" + floats)
    changes = log.changes(options(structure(Column("v", "binary", length=8))))
    assert [change.after for change in rows_of(changes)] == [{"v": floats}]
    (logged,) = (TableSchema.from_json(change.ddl or "") for change in changes if change.op is Op.SCHEMA)
    assert logged.columns == (Column("v", "varbinary", length=8),)


def scanned(log: Log, folder: Path):
    """The result of scanning a file."""
    place = folder / "made.binlog"
    place.write_bytes(log.data)
    with place.open("rb") as stream:
        return scan_statements(stream, log.segment())


def payload(*events: bytes) -> bytes:
    """An uncompressed transaction payload of whole events without checksums."""
    body = b"".join(events)
    return b"\x02\x03" + b"\xfc\xff\x00" + b"\x03\x03" + b"\xfc" + struct.pack("<H", len(body)) + b"\x00" + body


def inner(kind: int, body: bytes) -> bytes:
    return struct.pack("<IBIIIH", 100, kind, 1, 19 + len(body), 0, 0) + body


def test_statements_are_found_at_their_start(tmp_path: Path) -> None:
    """Transactions, and statements that change no structure, are skipped."""
    log = row(Log()).query("GRANT SELECT ON *.* TO x").query("CREATE NOBODY KNOWS")
    at = len(log.data)
    log = row(log.query("ALTER TABLE t ADD b INT")).query("COMMIT")
    (found,) = scanned(log, tmp_path)
    assert (found.position, found.schema, found.sql) == (
        Position(1, "binlog.000007", at),
        "s",
        "ALTER TABLE t ADD b INT",
    )
    assert found.server_charset is None


def test_an_alter_in_two_phases_is_found_where_it_takes_effect(tmp_path: Path) -> None:
    """MariaDB logs its statement twice; one that fails is not found."""
    log = Log("10.11.6-MariaDB", checksum=False).alter_phase(b"\x02", "ALTER TABLE t ADD b INT")
    log = row(log.alter_phase(b"\x02", "ALTER TABLE u ADD b INT")).alter_phase(b"\x08", "ALTER TABLE u ADD b INT")
    at = len(log.data)
    (found,) = scanned(log.alter_phase(b"\x04" + bytes(8), "ALTER TABLE t ADD b INT"), tmp_path)
    assert (found.position.offset > at, found.sql) == (True, "ALTER TABLE t ADD b INT")


def test_the_sessions_server_collation_is_returned(tmp_path: Path) -> None:
    """It is the default of CREATE DATABASE."""
    status = b"\x00" + bytes(4) + b"\x04" + struct.pack("<HHH", 45, 45, 8)
    body = struct.pack("<IIBHH", 1, 0, 1, 0, len(status)) + status + b"d\0CREATE DATABASE d"
    (found,) = scanned(Log().add(EventType.QUERY, body), tmp_path)
    assert found.server_charset == "latin1"


def test_a_compressed_transaction_can_start_with_a_statement(tmp_path: Path) -> None:
    """CREATE TABLE … SELECT is one transaction since MySQL 8.0.21."""
    begin, create = (inner(EventType.QUERY, query_body(sql, "s")) for sql in (b"BEGIN", b"CREATE TABLE u (id INT)"))
    long = inner(EventType.QUERY, query_body(b"CREATE TABLE w (id INT COMMENT '" + b"x" * 9000 + b"')", "s"))
    log = Log()
    for events in ((begin,), (create, begin), (long,)):
        log.add(EventType.TRANSACTION_PAYLOAD, payload(*events))
    assert [found.sql.split("(")[0] for found in scanned(log, tmp_path)] == ["CREATE TABLE u ", "CREATE TABLE w "]


def test_the_tables_of_a_log_are_found_without_decoding_rows(tmp_path: Path) -> None:
    """A compressed transaction is not decompressed: the result is then unknown."""
    log = row(row(Log()), INT, INT)
    place = tmp_path / "made.binlog"
    for added, tables in ((log, {("s", "t")}), (Log().query("BEGIN"), set()), (compressed(), None)):
        place.write_bytes(added.data)
        with place.open("rb") as stream:
            assert scan_tables(stream, added.segment()) == tables


def compressed() -> Log:
    begin = inner(EventType.QUERY, query_body(b"BEGIN", "s"))
    return Log().add(EventType.TRANSACTION_PAYLOAD, payload(begin))


def test_a_damaged_segment_is_an_error(tmp_path: Path) -> None:
    """Nothing is skipped because it cannot be read."""
    log = Log().query("ALTER TABLE t ADD b INT")
    log.data = log.data[:-3]
    with pytest.raises(CorruptBinlog):
        scanned(log, tmp_path)


@pytest.mark.parametrize("server", ["mysql80", "mysql57", "mysql97", "mariadb"])
def test_statements_of_real_servers_result_in_their_structures(server: str) -> None:
    """Applied from the start of a recording, every row gets the names that its table had."""
    recorded = recording(server)
    statements = []
    for segment in recorded.segments():
        with open(segment.path, "rb") as stream:
            statements += scan_statements(stream, segment)
    segments = list(recorded.segments())
    log = LogAhead(segments[0].begin_position, segments[-1].end_position, statements)
    plan = plan_structures(Structures(), log, None, mariadb=server == "mariadb")
    structures: dict[tuple[str, str], list[StructureFrom]] = {}
    for change in plan.changes:
        if change.table is not None:
            schema = change.tracked.schema if change.tracked else None
            structures.setdefault((change.schema, change.table), []).append(
                StructureFrom((change.schema, change.table), change.position, schema)
            )
    settings = DecodeOptions(wanted=lambda schema, _: schema == recorded.schema, structures=structures)
    found = [
        change for segment in segments for change in decode_bytes(Path(segment.path).read_bytes(), segment, settings)
    ]
    final = {name: tracked.schema for name, tracked in plan.after.tables.items() if name[0] == recorded.schema}
    logged = {name: schemas[0] for name, schemas in recorded.known.items()} if recorded.known else {}
    assert any(change.op is Op.INSERT for change in found)
    for name, schema in logged.items():
        assert [column.name for column in final[name].columns] == [column.name for column in schema.columns]
