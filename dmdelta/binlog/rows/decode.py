"""Decodes a segment: events in, batches of changes out, in bounded memory.

One pass in log order. Tables that are not replicated are skipped at their table map. Everything that cannot be
converted to rows without loss raises: only events that are known to change no row are skipped.
"""

from collections.abc import Iterable, Iterator
from struct import error as StructError  # noqa: N812 - a class
from typing import BinaryIO, NoReturn

from dmdelta.binlog.events.compression import decompress
from dmdelta.binlog.events.framing import RawEvent, SegmentReader
from dmdelta.binlog.events.gtid import parse_gtid
from dmdelta.binlog.events.header import (
    GTID_EVENTS,
    HEADER,
    HEADER_SIZE,
    QUERY_EVENTS,
    ROWS_EVENTS,
    STATEMENT_FORMAT,
    WITHOUT_ROWS,
    EventFlag,
    EventType,
    event_name,
)
from dmdelta.binlog.events.payload import inner_events
from dmdelta.binlog.events.query import Query, parse_query
from dmdelta.binlog.events.skipping import without_skipped
from dmdelta.binlog.events.statement import Statement, StatementKind, classify
from dmdelta.binlog.events.xa import parse_xa_prepare
from dmdelta.binlog.rows.batch import ChangeBatch, Shared
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.binlog.rows.image import check_sizes, misaligned
from dmdelta.binlog.rows.mapped_tables import ID_END, MappedTables
from dmdelta.binlog.rows.rows import RowsLayout, TableState, add_rows
from dmdelta.errors import CorruptBinlog, DmdeltaError, UnsupportedEvent
from dmdelta.model.change import Op
from dmdelta.model.position import seq_of
from dmdelta.model.recorded import RecordedStructures
from dmdelta.model.segment import Segment
from dmdelta.model.statement import Session

_DUMMY_TABLE_ID = b"\xff\xff\xff\x00\x00\x00"
"""Ends a statement without a table map of its own."""
_SECOND = 1_000_000
_ROWS_EVENTS = frozenset(map(int, ROWS_EVENTS))
_TABLE_MAP, _PAYLOAD, _XID = (
    int(EventType.TABLE_MAP),
    int(EventType.TRANSACTION_PAYLOAD),
    int(EventType.XID),
)
_NO_TABLE = object()

_RELOAD = "load the tables again with `task-mode: all` and `dmdelta checkpoint reset`"
ROW_FORMAT_HINT = f"set binlog_format=ROW for every session that writes; {_RELOAD}"
UNDONE_HINT = f"do not mix such tables in one transaction, or convert them to InnoDB; {_RELOAD}"


def decode_segment(stream: BinaryIO, segment: Segment, options: DecodeOptions) -> Iterator[ChangeBatch]:
    """The changes of a segment in log order, in batches of about `batch_bytes` or `batch_rows`.

    Raises:
        CorruptBinlog: damage, or a transaction that the segment does not complete.
        UnsupportedEvent: an event that cannot be converted to rows without loss.
        UnknownSchema: a table map without column names that matches no known schema.
    """
    yield from _Decoder(stream, segment, options).batches()


class _Decoder:
    """The state of one pass."""

    def __init__(self, stream: BinaryIO, segment: Segment, options: DecodeOptions) -> None:
        self._reader = SegmentReader(stream, segment)
        self._segment = segment
        self._options = options
        self._base = seq_of(segment.binlog_file, 0)
        self._batch = ChangeBatch()
        self._recorded = options.recorded if options.recorded is not None else RecordedStructures()
        self._recorded.begin_segment(segment.epoch)
        self._tables = MappedTables(options, self._recorded, mariadb=self._reader.format.is_mariadb)
        self._last_map = b""
        """The last table map, without its header: single-row statements repeat it."""
        self._offset = self._row = self._schema_row = self._number = -1
        """The rows restart at each offset; `_number` is set with `_sharing`."""
        self._end_transaction()

    def _end_transaction(self) -> None:
        self._gtid: str | None = None
        self._committed: int | None = None
        self._xid: str | None = None
        self._open = False
        self._standalone = True
        self._without_effect = False
        """The transaction's statement."""
        self._rows_seen = False
        """Since the last savepoint, or the transaction's begin; only rows of replicated tables count."""
        self._row_groups = 0
        """Rows before the last savepoint: how many of the transaction's savepoints directly follow rows."""
        self._savepoints: dict[str | None, int] = {}
        """By name, the value of `_row_groups` at the savepoint."""
        self._sharing: RowsLayout | None = None
        """Rows of this layout share entry `_number` of the batch."""

    def batches(self) -> Iterator[ChangeBatch]:
        try:
            events, skipped = self._reader.events(), self._options.skipped(self._segment)
            yield from self._take(without_skipped(events, skipped) if skipped else events)
            if self._open:
                raise CorruptBinlog(
                    "the segment ends inside a transaction", hint="cut segments at transaction boundaries"
                )
        except DmdeltaError as error:
            error.context.setdefault("binlog_file", self._segment.binlog_file)
            error.context.setdefault("offset", self._offset)
            raise
        if self._batch.runs:
            yield self._hand_out()

    def _hand_out(self) -> ChangeBatch:
        batch, self._batch, self._sharing = self._batch, ChangeBatch(), None
        return batch

    def _take(self, events: Iterable[RawEvent]) -> Iterator[ChangeBatch]:
        """Events of the segment, or of a payload in it. The loop is flat because it runs for every event of the log."""
        limit, most, tables, base = self._options.batch_bytes, self._options.batch_rows, self._tables.by_id, self._base
        # The bytes before the images of the last rows event: the next one of its statement has the same.
        alike, alike_kind, layout, begin = b"", -1, None, 0
        for kind, offset, timestamp, event, flags in events:
            if kind == _TABLE_MAP and event[HEADER_SIZE:] == self._last_map:
                continue
            if offset != self._offset:
                self._offset, self._row, self._schema_row = offset, 0, -1
            if kind in _ROWS_EVENTS:
                if layout is None or kind != alike_kind or not event.startswith(alike, HEADER_SIZE):
                    state = tables.get(event[HEADER_SIZE:ID_END], _NO_TABLE)
                    if state is None:
                        continue
                    if not isinstance(state, TableState):
                        self._check_dummy(event)
                        continue
                    try:
                        layout, begin = state.find_layout(event)
                    except IndexError as damage:
                        raise misaligned(state.codec) from damage
                    alike, alike_kind = event[HEADER_SIZE:begin], kind
                plain = event[:begin] + decompress(event[begin:]) if layout.compressed else event
                batch, row, size = self._batch, self._row, len(plain)
                try:
                    count = add_rows(plain, begin, layout, batch)
                except (StructError, IndexError) as damage:
                    raise misaligned(layout.table) from damage
                if size > layout.checked_above:
                    first = len(batch.after) - count
                    images = batch.before[first:] + batch.after[first:]
                    size = max(size, check_sizes(layout.table.schema, images))
                if layout is not self._sharing:
                    self._share(layout, timestamp)
                batch.runs.append((count, base + offset, row, self._number))
                self._row, self._rows_seen = row + count, True
                batch.size += size
                if batch.size >= limit or len(batch.after) >= most:
                    yield self._hand_out()
            elif kind == _TABLE_MAP:
                self._last_map, layout = event[HEADER_SIZE:], None
                schema = self._tables.add(event, (self._segment.epoch, base + offset))
                if schema is not None:
                    structure = schema.to_json()
                    self._note(Op.SCHEMA, schema.schema, schema.table, structure, timestamp, schema.version)
            elif kind == _PAYLOAD:
                layout = None
                yield from self._take(self._inner_events(offset))
                self._end_transaction()
            else:
                self._other(kind, timestamp, event, flags)

    def _share(self, layout: RowsLayout, timestamp: int) -> None:
        """Add the fields that the rows of the event share, also with adjacent similar events in the transaction."""
        state = layout.state
        known = self._committed is not None and state.fixed_metadata is not None
        self._sharing = layout if known else None
        self._number = self._batch.share(
            Shared(
                gtid=self._gtid,
                committed_at=self._moment(timestamp),
                schema=state.schema,
                table=state.table,
                op=layout.op,
                xid=self._xid,
                image=layout.image,
                version=state.version,
                metadata=state.take_metadata(),
            )
        )

    def _moment(self, timestamp: int) -> int:
        """The transaction's commit time in µs; if unknown, the event's time."""
        return self._committed if self._committed is not None else timestamp * _SECOND

    def _inner_events(self, offset: int) -> Iterator[RawEvent]:
        if self._reader.payload is None:
            raise AssertionError("a payload event without its bytes")
        for event in inner_events(self._reader.payload):
            timestamp, kind, _server_id, _size, _log_pos, flags = HEADER.unpack_from(event)
            yield kind, offset, timestamp, event, flags

    def _check_dummy(self, event: bytes) -> None:
        """MySQL ends some statements with a rows event without a table; any other one must have its table map."""
        if event[HEADER_SIZE:ID_END] != _DUMMY_TABLE_ID:
            raise CorruptBinlog("row images without a table map", hint="report this event to the project")

    def _other(self, kind: int, timestamp: int, event: bytes, flags: int) -> None:
        """Any event but rows, table maps and payloads."""
        if kind == _XID:
            self._end_transaction()
        elif kind in QUERY_EVENTS:
            self._query(parse_query(event), timestamp)
        elif kind in GTID_EVENTS:
            self._begin(event, timestamp)
        elif kind == EventType.XA_PREPARE:
            self._xa_prepare(event)
        elif kind not in WITHOUT_ROWS and not flags & EventFlag.IGNORABLE:
            self._refuse(kind)

    def _refuse(self, kind: int) -> NoReturn:
        name = event_name(kind)
        if kind in STATEMENT_FORMAT:
            raise UnsupportedEvent(f"{name}: a change in statement format", hint=ROW_FORMAT_HINT)
        if kind == EventType.INCIDENT:
            raise UnsupportedEvent(
                "the server logged an incident: changes may be missing from its log",
                hint="take a new snapshot, then start after the incident",
            )
        if kind == EventType.MARIADB_START_ENCRYPTION:
            raise UnsupportedEvent(
                "the binlog is encrypted", hint="read it through the server, or set encrypt_binlog=OFF"
            )
        raise UnsupportedEvent(f"{name} is unknown", hint="report it to the project with the server's version")

    def _begin(self, event: bytes, timestamp: int) -> None:
        if self._open:
            raise CorruptBinlog("a transaction begins inside another", hint="report this event to the project")
        gtid = parse_gtid(event)
        self._gtid = gtid.text
        self._committed = gtid.committed_us or timestamp * _SECOND
        self._xid = gtid.xid
        self._without_effect = gtid.without_effect
        self._sharing = None
        self._open = True
        self._standalone = not gtid.implicit_begin

    def _note(
        self, op: Op, schema: str | None, table: str | None, ddl: str | None, timestamp: int, version: int | None = None
    ) -> None:
        """A row without images; `schema` rows count downwards from -1."""
        if op is Op.SCHEMA:
            row, self._schema_row = self._schema_row, self._schema_row - 1
        else:
            row, self._row = self._row, self._row + 1
        shared = Shared(
            gtid=self._gtid,
            committed_at=self._moment(timestamp),
            schema=schema,
            table=table,
            op=op,
            # A structure is not part of a transaction: it also applies to the rows after an XA transaction.
            xid=self._xid if op is not Op.SCHEMA else None,
            ddl=ddl,
            version=version,
        )
        self._batch.add_note(self._base + self._offset, row, shared)
        self._batch.size += len(ddl or "")

    def _query(self, query: Query, timestamp: int) -> None:
        statement = classify(query.sql)
        kind = statement.kind
        if kind is StatementKind.BEGIN:
            self._open_explicitly(timestamp)
        elif kind is StatementKind.XA_START:
            self._open_explicitly(timestamp)
            self._xid = _identifier(statement)
        elif kind is StatementKind.COMMIT:
            self._end_transaction()
        elif kind is StatementKind.ROLLBACK:
            self._rollback()
        elif kind is StatementKind.SAVEPOINT:
            self._savepoint(statement)
        elif kind is StatementKind.ROLLBACK_TO:
            self._rollback_to(statement)
        elif kind in (StatementKind.XA_COMMIT, StatementKind.XA_ROLLBACK):
            self._xa_verdict(statement, timestamp)
        elif kind is StatementKind.DML:
            raise UnsupportedEvent("a change in statement format", hint=ROW_FORMAT_HINT)
        elif kind in (StatementKind.DDL, StatementKind.ADMIN):
            if kind is StatementKind.DDL and not self._without_effect:
                self._ddl(query, timestamp)
            if self._standalone:
                self._end_transaction()

    def _open_explicitly(self, timestamp: int) -> None:
        self._open, self._standalone, self._sharing = True, False, None
        if self._committed is None:
            self._committed = timestamp * _SECOND

    def _rollback(self) -> None:
        if self._rows_seen or self._row_groups:
            raise UnsupportedEvent(
                "a transaction with row changes ends in ROLLBACK: it mixes transactional and non-transactional tables",
                hint=UNDONE_HINT,
            )
        self._end_transaction()

    def _savepoint(self, statement: Statement) -> None:
        """A name that is used again replaces its savepoint."""
        self._row_groups += self._rows_seen
        self._rows_seen = False
        self._savepoints[statement.savepoint] = self._row_groups

    def _rollback_to(self, statement: Statement) -> None:
        """Servers log no undone rows, except MariaDB if a non-transactional or temporary table was changed."""
        if self._rows_seen or self._row_groups > self._savepoints.get(statement.savepoint, 0):
            raise UnsupportedEvent(
                "ROLLBACK TO SAVEPOINT undoes row changes that are in the log: the transaction also changes"
                " non-transactional or temporary tables",
                hint=UNDONE_HINT,
            )

    def _ddl(self, query: Query, timestamp: int) -> None:
        self._tables.forget()
        self._last_map = b""
        is_replicated = self._options.wanted_statements or self._options.wanted
        text = self._options.without_session(query.sql, Session(query.schema, query.explicit_timestamps))
        for target in self._options.statement_targets(query.sql, query.schema):
            self._recorded.forget(target.schema, target.table)
            if target.table is None or is_replicated(target.schema, target.table):
                op = Op.TRUNCATE if target.op.startswith("truncate") else Op.DDL
                self._note(op, target.schema, target.table, text, timestamp)

    def _xa_verdict(self, statement: Statement, timestamp: int) -> None:
        self._xid = _identifier(statement)
        committed = statement.kind is StatementKind.XA_COMMIT
        self._note(Op.XA_COMMIT if committed else Op.XA_ROLLBACK, None, None, None, timestamp)
        self._end_transaction()

    def _xa_prepare(self, event: bytes) -> None:
        prepared = parse_xa_prepare(event)
        if prepared.one_phase:
            self._xid = prepared.xid
            self._note(Op.XA_COMMIT, None, None, None, HEADER.unpack_from(event)[0])
        self._end_transaction()


def _identifier(statement: Statement) -> str:
    """Without it, rows of an XA transaction would take effect before its commit."""
    if statement.xid is None:
        raise UnsupportedEvent("an XA statement without an identifier", hint="report this event to the project")
    return statement.xid
