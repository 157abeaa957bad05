"""Rows events: from an event and its table to the before and after images of its rows.

Format: mysql/binlog/event/rows_event.h (`Rows_event`, versions 1 and 2, `PARTIAL_UPDATE_ROWS_EVENT`); MariaDB,
"Rows_event_v1/v2" and "Compressed Rows Events".
"""

from dataclasses import dataclass, field

from dmdelta.binlog.batch import ChangeBatch
from dmdelta.binlog.events import HEADER_SIZE, EventType
from dmdelta.binlog.image import ImageDecoder, TableCodec, assemble, misaligned
from dmdelta.binlog.mariadb_compression import decompress
from dmdelta.binlog.partial_update import partial_after
from dmdelta.binlog.tablemap import TABLE_ID_SIZE
from dmdelta.binlog.wire import bitmap_size, packed_int, set_bits
from dmdelta.errors import UnsupportedEvent
from dmdelta.model.change import Op

EXTRA_AT = HEADER_SIZE + TABLE_ID_SIZE + 2
_OPS = {
    EventType.WRITE_ROWS_V1: Op.INSERT,
    EventType.WRITE_ROWS: Op.INSERT,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1: Op.INSERT,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED: Op.INSERT,
    EventType.UPDATE_ROWS_V1: Op.UPDATE,
    EventType.UPDATE_ROWS: Op.UPDATE,
    EventType.PARTIAL_UPDATE_ROWS: Op.UPDATE,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1: Op.UPDATE,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED: Op.UPDATE,
    EventType.DELETE_ROWS_V1: Op.DELETE,
    EventType.DELETE_ROWS: Op.DELETE,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1: Op.DELETE,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED: Op.DELETE,
}
_WITH_EXTRA = frozenset(
    {
        EventType.WRITE_ROWS,
        EventType.UPDATE_ROWS,
        EventType.DELETE_ROWS,
        EventType.PARTIAL_UPDATE_ROWS,
        EventType.MARIADB_WRITE_ROWS_COMPRESSED,
        EventType.MARIADB_UPDATE_ROWS_COMPRESSED,
        EventType.MARIADB_DELETE_ROWS_COMPRESSED,
    }
)
_COMPRESSED = frozenset(range(EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1, EventType.MARIADB_DELETE_ROWS_COMPRESSED + 1))


@dataclass(frozen=True, slots=True)
class RowsLayout:
    """How the images of one kind of rows event with one set of columns are read.

    Attributes:
        image: column names of the after image, None when it has every column.
        merges: after images lack columns that the before images have.
    """

    kind: int
    op: Op
    table: TableCodec
    first: ImageDecoder
    second: ImageDecoder
    image: tuple[str, ...] | None

    @property
    def merges(self) -> bool:
        return self.op is Op.UPDATE and not set(self.first.present) <= set(self.second.present)


@dataclass(slots=True)
class TableState:
    """A table as the current table map describes it, and the layouts met so far.

    `prefix` is bytes of column count and one bitmap: what an insert's or delete's images begin behind.
    """

    codec: TableCodec
    version: int
    layouts: dict[bytes, RowsLayout] = field(default_factory=dict)


def rows_place(event: bytes) -> int:
    """Where the column count of a rows event stands."""
    if event[4] in _WITH_EXTRA:
        return EXTRA_AT + (event[EXTRA_AT] | event[EXTRA_AT + 1] << 8)
    return EXTRA_AT


def add_rows(event: bytes, state: TableState, batch: ChangeBatch) -> tuple[int, RowsLayout]:
    """Decode a rows event (header included, checksum not) into `batch`; its number of rows and its layout.

    Raises:
        CorruptBinlog: the images do not fill the event.
        UnsupportedEvent: a value or a partial update that cannot be shown without loss.
    """
    kind = event[4]
    at = EXTRA_AT
    if kind in _WITH_EXTRA:
        at += event[at] | event[at + 1] << 8
    columns = len(state.codec.codecs)
    begin = at + (1 if columns < 0xFB else 3)
    begin += bitmap_size(columns) * (2 if _OPS[EventType(kind)] is Op.UPDATE else 1)
    key = event[4:5] + event[at:begin]
    layout = state.layouts.get(key) or _layout(state, key, kind, columns)
    if kind in _COMPRESSED:
        event = event[:begin] + decompress(event[begin:])
    return _add(event, begin, layout, batch), layout


def _layout(state: TableState, key: bytes, kind: int, columns: int) -> RowsLayout:
    op = _OPS[EventType(kind)]
    count, at = packed_int(key, 1)
    if count != columns:
        raise misaligned(state.codec)
    size = bitmap_size(columns)
    present = set_bits(key[at : at + size], columns)
    first = ImageDecoder(state.codec, present)
    second = first
    if op is Op.UPDATE:
        after = set_bits(key[at + size : at + 2 * size], columns)
        second = first if after == present else ImageDecoder(state.codec, after)
    held = set(second.present) | (set(first.present) if op is Op.UPDATE else set())
    names = tuple(column.name for number, column in enumerate(state.codec.schema.columns) if number in held)
    partial = op is not Op.DELETE and len(names) < columns
    made = state.layouts[key] = RowsLayout(kind, op, state.codec, first, second, names if partial else None)
    return made


def _add(event: bytes, at: int, layout: RowsLayout, batch: ChangeBatch) -> int:
    op, end = layout.op, len(event)
    had = len(batch.after)
    if op is Op.INSERT:
        layout.first.decode(event, at, end, batch.after.append)
        count = len(batch.after) - had
        batch.before += [b""] * count
    elif op is Op.DELETE:
        layout.first.decode(event, at, end, batch.before.append)
        count = len(batch.before) - had
        batch.after += [b""] * count
    else:
        count = _add_updates(event, at, layout, batch)
    keys = layout.table.keys
    batch.metadata += [keys.metadata] * count
    keys.trim()
    return count


def _add_updates(event: bytes, at: int, layout: RowsLayout, batch: ChangeBatch) -> int:
    if layout.kind == EventType.PARTIAL_UPDATE_ROWS or layout.merges:
        return _add_merged(event, at, layout, batch)
    had = len(batch.after)
    if layout.first is layout.second:
        images: list[bytes] = []
        layout.first.decode(event, at, len(event), images.append)
        if len(images) & 1:
            raise misaligned(layout.table)
        batch.before += images[::2]
        batch.after += images[1::2]
        return len(batch.after) - had
    end = len(event)
    while at < end:
        at = layout.first.one(event, at, end, batch.before.append)
        at = layout.second.one(event, at, end, batch.after.append)
    if at != end:
        raise misaligned(layout.table)
    return len(batch.after) - had


def _add_merged(event: bytes, at: int, layout: RowsLayout, batch: ChangeBatch) -> int:
    """Updates whose after image needs the before image: missing columns, or JSON as a diff."""
    count, end, table = 0, len(event), layout.table
    while at < end:
        before, middle = layout.first.values(event, at)
        if layout.kind == EventType.PARTIAL_UPDATE_ROWS:
            after, at_end = partial_after(event, at, middle, layout.first, layout.second)
        else:
            after, at_end = layout.second.values(event, middle)
        shown = set(layout.second.present)
        merged = {number: value for number, value in before.items() if number not in shown} | after
        batch.before.append(assemble(table, before))
        batch.after.append(assemble(table, merged))
        at = at_end
        count += 1
    if at != end:
        raise misaligned(table)
    return count


def unsupported(table: TableCodec, what: str, hint: str) -> UnsupportedEvent:
    return UnsupportedEvent(f"{table.schema}: {what}", hint=hint)
