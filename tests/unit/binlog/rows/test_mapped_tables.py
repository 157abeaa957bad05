"""The tables of a segment's table maps."""

from dmdelta.binlog.events.header import EventType
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.binlog.rows.mapped_tables import MappedTables
from dmdelta.binlog.values.column_types import WireType
from dmdelta.model.recorded import RecordedStructures
from tests.support.changes import event_bytes, names_field, table_map_body


def table_map(table: str, column: str) -> bytes:
    body = table_map_body([(WireType.LONG, b"")], names_field([column]), name=("s", table))
    return event_bytes(EventType.TABLE_MAP, body, checksum=False)


def test_a_repeated_table_map_is_read_once() -> None:
    """A log repeats it in each transaction; only a former structure of the same table has to be recorded again."""
    read = list[str]()

    def wanted(_schema: str, table: str) -> bool:
        read.append(table)
        return True

    tables = MappedTables(DecodeOptions(wanted), RecordedStructures(), mariadb=False)
    for table in ("a", "b", "a", "b"):
        tables.add(table_map(table, "x"), (1, 4))
    assert read == ["a", "b"]
    recorded = [tables.add(table_map(*each), (1, 4)) for each in (("a", "y"), ("b", "x"), ("a", "x"))]
    assert [schema is not None for schema in recorded] == [True, False, True]
    assert read == ["a", "b", "a", "a"]
