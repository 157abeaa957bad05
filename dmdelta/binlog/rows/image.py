"""Row images of one table: selects the decoder of each image, with a general one that needs no generated code."""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dmdelta.binlog.rows.codegen import ImageShape, Runner, generate
from dmdelta.binlog.rows.column_codec import GEOMETRY_KEYS, ColumnCodec, column_codec
from dmdelta.binlog.values import variant
from dmdelta.binlog.values.column_types import WireColumn
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.binlog.wire import bitmap_size, packed_int
from dmdelta.errors import CorruptBinlog, UnsupportedEvent
from dmdelta.model import variant_types
from dmdelta.model.schema import Column, TableSchema

LARGE = variant.SIZE_LIMIT // 8
"""Bytes of rows as sent by a server above which images may exceed the limit: a character can become 4 bytes of UTF-8.
"""
MOST_PATTERNS = 64
"""Null patterns of one table with a generated decoder each; images with further patterns use the general decoder."""


@dataclass(frozen=True, slots=True)
class TableCodec:
    """The conversion of a table's values to VARIANT: codecs in column order, and the keys' ids.

    Attributes:
        order: column numbers in the lexicographic order of their names (UTF-8 bytes).
        key: column numbers of the primary key.
    """

    schema: TableSchema
    codecs: tuple[ColumnCodec, ...]
    keys: KeyDictionary
    order: tuple[int, ...]
    key: tuple[int, ...] = ()

    @property
    def all_columns(self) -> tuple[int, ...]:
        return tuple(range(len(self.codecs)))


@dataclass(frozen=True, slots=True)
class RowForm:
    """The format of rows around their values.

    Attributes:
        lead: bytes before the null bitmap.
        spare: unused bits at the start of the bitmap.
    """

    lead: int = 0
    spare: int = 0


LOGGED = RowForm()


def table_codec(schema: TableSchema, wires: Sequence[WireColumn]) -> TableCodec:
    """The codec of a table's row images.

    Raises:
        UnsupportedEvent: a column type or character set has no codec.
    """
    by_column = dict(zip(schema.columns, wires, strict=True))
    return make_codec(schema, lambda column, keys: column_codec(by_column[column], column, keys, str(schema)))


def make_codec(schema: TableSchema, codec_of: Callable[[Column, KeyDictionary], ColumnCodec]) -> TableCodec:
    """The codec of a table's rows, given that of its columns."""
    names = [column.name.encode() for column in schema.columns]
    extra = GEOMETRY_KEYS if any(column.type == "geometry" for column in schema.columns) else ()
    keys = KeyDictionary((*names, *extra))
    codecs = tuple(codec_of(column, keys) for column in schema.columns)
    order = tuple(sorted(range(len(names)), key=names.__getitem__))
    return TableCodec(schema, codecs, keys, order, tuple(names.index(name.encode()) for name in schema.primary_key))


def assemble(table: TableCodec, values: Mapping[int, bytes]) -> bytes:
    """The VARIANT object of values by column number."""
    return variant.object_piece([(number, values[number]) for number in table.order if number in values])


def convert(table: TableCodec, raws: Mapping[int, bytes | None]) -> dict[int, bytes]:
    """VARIANT values of raw ones by column number; a JSON column that is NULL has none."""
    codecs = table.codecs
    return {
        number: variant_types.NULL if raw is None else codecs[number].convert(raw)
        for number, raw in raws.items()
        if raw is not None or not codecs[number].is_json
    }


class ImageDecoder:
    """Decodes images that contain the columns `present` of a table.

    Attributes:
        keyed: the keys are needed: for images of updates, whose key may change.
        form: the format of the images; by default that of the log.
        bitmap_size: bytes of the null bitmap at the start of every image.
        runners: the generated decoders by null bitmap; `runner` adds a missing one.
    """

    def __init__(self, table: TableCodec, present: tuple[int, ...], *, keyed: bool, form: RowForm = LOGGED) -> None:
        self.table = table
        self.present = present
        self.keyed = keyed
        self.form = form
        self.bitmap_size = bitmap_size(form.spare + len(present))
        self.runners: dict[bytes, Runner] = {}

    def one(self, event: bytes, at: int, sink: list[bytes], keys: list[Any]) -> int:
        """Decode one image at `at`, with its key to `keys` if needed; returns the position after it."""
        begin = at + self.form.lead
        bitmap = event[begin : begin + self.bitmap_size]
        run = self.runners.get(bitmap) or self.runner(bitmap)
        return run(event, at, at, sink, sink, keys)

    def raws(self, event: bytes, at: int) -> tuple[dict[int, bytes | None], int]:
        """The bytes of one image's values by column number, None for NULL, and the position after the image."""
        at += self.form.lead
        bits = event[at : at + self.bitmap_size]
        at += self.bitmap_size
        values: dict[int, bytes | None] = {}
        for bit, number in enumerate(self.present, self.form.spare):
            if bits[bit >> 3] & 1 << (bit & 7):
                values[number] = None
                continue
            codec = self.table.codecs[number]
            size = codec.size
            if not size and not codec.prefix:
                size, at = packed_int(event, at)
            elif not size:
                size = int.from_bytes(event[at : at + codec.prefix], "little")
                at += codec.prefix
            values[number] = event[at : at + size]
            at += size
        if at > len(event):
            raise misaligned(self.table)
        return values, at

    def values(self, event: bytes, at: int) -> tuple[dict[int, bytes], int]:
        """The VARIANT values of one image by column number, by the general decoder, and the position after it."""
        raws, at = self.raws(event, at)
        return convert(self.table, raws), at

    def _general(
        self,
        event: bytes,
        at: int,
        end: int,  # noqa: ARG002 - a Runner
        sink: list[bytes],
        other: list[bytes],  # noqa: ARG002
        keys: list[Any],
    ) -> int:
        raws, at = self.raws(event, at)
        sink.append(assemble(self.table, convert(self.table, raws)))
        if self.keyed and self.table.key and all(raws.get(number) is not None for number in self.table.key):
            keys.append(_generated_key(self.table, raws))
        return at

    def runner(self, bitmap: bytes) -> Runner:
        """The decoder for a null bitmap that is not in `runners` yet."""
        if len(bitmap) < self.bitmap_size:
            raise misaligned(self.table)
        if len(self.runners) >= MOST_PATTERNS:
            return self._general
        runner = self.runners[bitmap] = generate(self._shape(bitmap))
        return runner

    def _shape(self, bitmap: bytes) -> ImageShape:
        bits = enumerate(self.present, self.form.spare)
        null = {number for bit, number in bits if bitmap[bit >> 3] & 1 << (bit & 7)}
        codecs = self.table.codecs
        columns = tuple((number, codecs[number]) for number in self.present if number not in null)
        shown = tuple(number for number in self.present if number in null and not codecs[number].is_json)
        held = {number for number, _ in columns} | set(shown)
        order = tuple(number for number in self.table.order if number in held)
        whole_key = {number for number, _ in columns}.issuperset(self.table.key)
        key = self.table.key if self.keyed and whole_key else ()
        return ImageShape(columns, shown, order, bitmap, key, self.form.lead)


def _generated_key(table: TableCodec, raws: Mapping[int, bytes | None]) -> Any:
    """The key of an image that has all of it, in the form that generated code returns: both decoders may compare."""
    parts = list[Any]()
    for number in table.key:
        codec, raw = table.codecs[number], raws[number]
        assert raw is not None
        if codec.packed is not None:
            parts += struct.unpack(f"<{codec.packed.unpack}", raw)
        elif not codec.size and codec.utf8 is not None and not raw.isascii():
            parts.append(codec.utf8(raw))
        else:
            parts.append(raw)
    return tuple(parts) if len(parts) > 1 else parts[0]


def misaligned(table: TableCodec) -> CorruptBinlog:
    """The error for row images that do not fill their event: the structure is wrong, or the event is damaged."""
    return CorruptBinlog(
        f"row images of {table.schema} do not fit its structure",
        hint="report this event to the project with the table's SHOW CREATE TABLE",
    )


def check_sizes(schema: TableSchema, images: Iterable[bytes]) -> int:
    """Check images against VARIANT's limit: beyond it they would fail in or after bronze, with a less specific error.

    Returns:
        The bytes of all images.

    Raises:
        UnsupportedEvent: an image exceeds the limit.
    """
    sizes = list(map(len, images))
    largest = max(sizes, default=0)
    if largest > variant.SIZE_LIMIT:
        raise UnsupportedEvent(
            f"a row of {schema} has {largest} bytes, more than a VARIANT's limit of {variant.SIZE_LIMIT}",
            hint="exclude the table with block-allow-list (if it is being loaded, with --remove-meta), or keep "
            "such values outside the database",
        )
    return sum(sizes)
