"""The tables of a log as described by its table maps."""

from functools import lru_cache

from dmdelta.binlog.events.header import HEADER_SIZE
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.binlog.rows.image import table_codec
from dmdelta.binlog.rows.rows import TableState
from dmdelta.binlog.rows.schema_resolution import describe, find_known, fitted
from dmdelta.binlog.rows.table_map import TABLE_ID_SIZE, TableMap, parse_table_map, table_names
from dmdelta.binlog.values.column_types import WireColumn
from dmdelta.errors import UnknownSchema
from dmdelta.model.recorded import RecordedStructures
from dmdelta.model.schema import TableSchema

ID_END = HEADER_SIZE + TABLE_ID_SIZE
Place = tuple[int, int]
"""Epoch and `seq` of an event."""

MOST_SHARED = 1024
"""Table states that segments share: the decoders of a table are generated once, not for each segment."""


class MappedTables:
    """The tables of the table maps in a segment so far.

    Attributes:
        by_id: by the table map's id, as logged; None for a table that is not replicated, or a sequence.
    """

    def __init__(self, options: DecodeOptions, recorded: RecordedStructures, *, mariadb: bool) -> None:
        self._options = options
        self._recorded = recorded
        self._mariadb = mariadb
        self._bodies: dict[bytes, TableState | None] = {}
        self.by_id: dict[bytes, TableState | None] = {}

    def add(self, event: bytes, place: Place) -> TableSchema | None:
        """Process a table map (header included); returns its structure if it has to be recorded.

        Raises:
            UnknownSchema: it has no column names, and no known structure matches.
            UnsupportedEvent: a column type or character set has no codec.
        """
        table_id, body = event[HEADER_SIZE:ID_END], event[ID_END:]
        if body in self._bodies:
            self.by_id[table_id] = self._bodies[body]
            return None
        state = self.by_id[table_id] = self._bodies[body] = self._state(event, place)
        if state is None or not self._recorded.record((state.schema, state.table), state.version):
            return None
        self._drop_others(state)
        return state.codec.schema

    def _drop_others(self, recorded: TableState) -> None:
        """Drop the table's other table maps: one that returns without a statement has to be recorded again."""
        name, version = (recorded.schema, recorded.table), recorded.version
        self._bodies = {
            body: state
            for body, state in self._bodies.items()
            if state is None or (state.schema, state.table) != name or state.version == version
        }

    def forget(self) -> None:
        """Forget table maps after a DDL statement: the next table map may be identical but have other columns."""
        self._bodies.clear()

    def _state(self, event: bytes, place: Place) -> TableState | None:
        schema_name, table_name = table_names(event)
        if not self._options.wanted(schema_name, table_name):
            return None
        table_map = parse_table_map(event, mariadb=self._mariadb)
        schema = describe(table_map) or self._known(table_map, place)
        if self._mariadb and schema.is_sequence:
            return None
        return _state_of(schema, table_map)

    def _known(self, table_map: TableMap, place: Place) -> TableSchema:
        """The structure of a table whose table map has no column names."""
        name = (table_map.schema, table_map.table)
        changes = [change for change in self._options.structures.get(name, ()) if change.since.key <= place]
        if changes:
            tracked = changes[-1].schema
            schema = fitted(table_map, tracked) if tracked is not None else None
        else:
            schema = find_known(table_map, self._options.known_schemas.get(name, ()))
        if schema is None:
            raise UnknownSchema(
                f"no column names for {'.'.join(name)}: not in the log, and no known structure matches",
                hint="set its structure at this position (dmdelta binlog-schema update SPEC --table "
                f"{'.'.join(name)}), or read it from information_schema again (binlog-schema delete); "
                "binlog_row_metadata=FULL (MySQL 8.0, MariaDB 10.5 and newer) logs column names",
            )
        return schema


def _state_of(schema: TableSchema, table_map: TableMap) -> TableState:
    """The state of a table, shared unless its JSON documents add keys to the dictionary of the rows."""
    shared = _shared_state(schema, table_map.columns, table_map.nullable)
    if shared.fixed_metadata is not None:
        return shared
    return TableState(table_codec(schema, table_map.columns), table_map.nullable)


@lru_cache(MOST_SHARED)
def _shared_state(schema: TableSchema, columns: tuple[WireColumn, ...], nullable: tuple[bool, ...]) -> TableState:
    return TableState(table_codec(schema, columns), nullable)
