"""Rows events: converts an event and its table to the before and after images of its rows.

Format: mysql/binlog/event/rows_event.h (`Rows_event`, versions 1 and 2, `PARTIAL_UPDATE_ROWS_EVENT`); MariaDB,
"Rows_event_v1/v2" and "Compressed Rows Events".
"""

from dataclasses import dataclass
from typing import Any

from dmdelta.binlog.events.header import HEADER_SIZE, EventType
from dmdelta.binlog.rows.batch import ChangeBatch
from dmdelta.binlog.rows.image import LARGE, ImageDecoder, TableCodec, assemble, convert, misaligned
from dmdelta.binlog.rows.partial_update import partial_after
from dmdelta.binlog.rows.table_map import TABLE_ID_SIZE
from dmdelta.binlog.wire import bitmap_size, packed_int, set_bits
from dmdelta.errors import UnsupportedEvent
from dmdelta.model.change import Op

EXTRA_AT = HEADER_SIZE + TABLE_ID_SIZE + 2
_OPS: dict[int, Op] = {
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
_INSERT, _DELETE = Op.INSERT, Op.DELETE
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
_DEFAULTS_HINT = (
    "set binlog_row_image=FULL for every session that writes, or name the columns in its INSERTs; reload the table"
)


@dataclass(frozen=True, slots=True)
class RowsLayout:
    """How the images of one kind of rows event with one set of columns are read.

    Attributes:
        state: the table.
        image: column names of the after image, None if it has every column.
        plain: every image of the event has the same columns, and is stored as is.
        compressed: MariaDB: the images are compressed.
        checked_above: bytes of an event above which its images may exceed the limit of their size.
    """

    kind: int
    op: Op
    state: "TableState"
    first: ImageDecoder
    second: ImageDecoder
    image: tuple[str, ...] | None
    plain: bool
    compressed: bool
    checked_above: int

    @property
    def table(self) -> TableCodec:
        return self.state.codec


class TableState:
    """A table as described by a table map, and the layouts of rows events seen so far.

    Attributes:
        nullable: of each column, from the table map: a known structure may be older or newer.
        sizes: bytes of column count and bitmaps by kind of event: the part before the images.
        layouts: by kind of event and those bytes; `make_layout` adds a missing one.
        fixed_metadata: the VARIANT dictionary of every row; None if JSON documents add their own keys.
    """

    def __init__(self, codec: TableCodec, nullable: tuple[bool, ...]) -> None:
        self.codec = codec
        self.nullable = nullable
        self.schema = codec.schema.schema
        self.table = codec.schema.table
        self.version = codec.schema.version
        columns = len(codec.codecs)
        self._count_size = 1 if columns < 0xFB else 3
        self._bitmap_size = bitmap_size(columns)
        self.layouts: dict[int, dict[bytes, RowsLayout]] = {kind: {} for kind in _OPS}
        self.sizes = {
            int(kind): self._count_size + self._bitmap_size * (2 if op is Op.UPDATE else 1) for kind, op in _OPS.items()
        }
        keyed = any(column.is_json for column in codec.codecs)
        self.fixed_metadata = None if keyed else codec.keys.metadata
        # Compressed values can be a thousand times as long as in the event.
        self._checked_above = 0 if any(column.compressed for column in codec.codecs) else LARGE

    def take_metadata(self) -> bytes:
        """The VARIANT dictionary of the images since the last call."""
        if self.fixed_metadata is not None:
            return self.fixed_metadata
        metadata = self.codec.keys.metadata
        self.codec.keys.trim()
        return metadata

    def find_layout(self, event: bytes) -> tuple[RowsLayout, int]:
        """The layout of a rows event (header included), and the start of its images.

        Raises:
            UnsupportedEvent: as `make_layout`.
        """
        kind, at = event[4], EXTRA_AT
        if kind in _WITH_EXTRA:
            at += event[at] | event[at + 1] << 8
        begin = at + self.sizes[kind]
        key = event[at:begin]
        return self.layouts[kind].get(key) or self.make_layout(kind, key), begin

    def make_layout(self, kind: int, key: bytes) -> RowsLayout:
        """The layout for a column count and bitmaps that are not in `layouts` yet.

        Raises:
            UnsupportedEvent: inserts whose images lack values that the server has.
        """
        op, codec = _OPS[kind], self.codec
        columns = len(codec.codecs)
        count, at = packed_int(key, 0)
        if count != columns:
            raise misaligned(codec)
        present = set_bits(key[at : at + self._bitmap_size], columns)
        if op is Op.INSERT and len(present) < columns:
            self._check_insert(present)
        if not present:
            # Images of zero bytes would never end. A server logs at least the key, or every column.
            raise misaligned(codec)
        first = second = ImageDecoder(codec, present, keyed=op is Op.UPDATE)
        held = set(present)
        if op is Op.UPDATE:
            after = set_bits(key[at + self._bitmap_size :], columns)
            second = first if after == present else ImageDecoder(codec, after, keyed=True)
            held.update(after)
        names = tuple(column.name for number, column in enumerate(codec.schema.columns) if number in held)
        partial = op is not Op.DELETE and len(names) < columns
        plain = first is second and kind != EventType.PARTIAL_UPDATE_ROWS
        image = names if partial else None
        layout = RowsLayout(
            kind=kind,
            op=op,
            state=self,
            first=first,
            second=second,
            image=image,
            plain=plain,
            compressed=kind in _COMPRESSED,
            checked_above=self._checked_above,
        )
        self.layouts[kind][key] = layout
        return layout

    def _check_insert(self, present: tuple[int, ...]) -> None:
        """Check an insert: a partial image omits columns that received a constant DEFAULT, which the log does not
        contain.
        """
        schema = self.codec.schema
        if not present:
            # With images of zero bytes not even their number is known.
            raise UnsupportedEvent(f"{schema}: an INSERT of defaults only, with no column logged", hint=_DEFAULTS_HINT)
        lost = [
            column.name
            for number, column in enumerate(schema.columns)
            if number not in present and not self.nullable[number]
        ]
        if lost:
            raise UnsupportedEvent(
                f"{schema}: an INSERT is logged without {', '.join(lost)} (NOT NULL): the DEFAULT is not in the log",
                hint=_DEFAULTS_HINT,
            )


def add_rows(event: bytes, at: int, layout: RowsLayout, batch: ChangeBatch) -> int:
    """Decode the images of a rows event (without checksum, decompressed), which start at `at`, into `batch`; returns
    the number of rows.

    Raises:
        CorruptBinlog: the images do not fill the event.
        UnsupportedEvent: a value or a partial update that cannot be converted without loss.
    """
    before, after, op, decoder = batch.before, batch.after, layout.op, layout.first
    start = len(before)
    keys: list[Any] = []
    if op is _INSERT:
        _add_images(event, at, decoder, (after, after), keys)
        count = len(after) - start
        before += [b""] * count
        return count
    if op is _DELETE:
        _add_images(event, at, decoder, (before, before), keys)
        count = len(before) - start
        after += [b""] * count
        return count
    if layout.plain:
        run = decoder.runners.get(event[at : at + decoder.bitmap_size])
        if run is not None:
            at = run(event, at, len(event), before, after, keys)
            if at == len(event) and len(keys) == 2:  # by far the most common case: one row per statement
                if keys[0] != keys[1]:
                    batch.moved.append(start)
                return 1
        _add_images(event, at, decoder, (before, after), keys)
    else:
        _add_unlike(event, at, layout, batch, keys)
    count = len(after) - start
    if len(before) - start != count:
        raise misaligned(layout.table)
    if len(keys) == 2 * count and keys[::2] != keys[1::2]:
        batch.moved += [start + row for row in range(count) if keys[2 * row] != keys[2 * row + 1]]
    return count


def _add_images(
    event: bytes, at: int, decoder: ImageDecoder, sinks: tuple[list[bytes], list[bytes]], keys: list[Any]
) -> None:
    """All images from `at`, appended alternately to the two `sinks`, starting with the shorter one; the same list twice
    collects all.
    """
    end, size, runners = len(event), decoder.bitmap_size, decoder.runners
    first, second = sinks
    while at < end:
        bitmap = event[at : at + size]
        run = runners.get(bitmap) or decoder.runner(bitmap)
        if len(first) > len(second):
            at = run(event, at, end, second, first, keys)
        else:
            at = run(event, at, end, first, second, keys)
    if at != end:
        raise misaligned(decoder.table)


def _add_unlike(event: bytes, at: int, layout: RowsLayout, batch: ChangeBatch, keys: list[Any]) -> None:
    """Updates whose before and after images have different columns, or JSON as a diff."""
    end, table = len(event), layout.table
    partial = layout.kind == EventType.PARTIAL_UPDATE_ROWS
    shown = set(layout.second.present)
    if not partial and set(layout.first.present) <= shown:
        while at < end:
            at = layout.first.one(event, at, batch.before, keys)
            at = layout.second.one(event, at, batch.after, keys)
    while at < end:
        raws, at = layout.first.raws(event, at)
        before = convert(table, raws)
        if partial:
            after, at = partial_after(event, at, raws, layout.second)
        else:
            after, at = layout.second.values(event, at)
        merged = {number: value for number, value in before.items() if number not in shown} | after
        batch.before.append(assemble(table, before))
        batch.after.append(assemble(table, merged))
        keys += [[values.get(number) for number in table.key] for values in (before, merged)]
    if at != end:
        raise misaligned(table)
