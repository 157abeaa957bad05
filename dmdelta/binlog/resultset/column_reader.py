"""Rows of a binary result set to columns: plain values for types with an unambiguous meaning, VARIANT values for
others.

Integers, floats, text and binaries need no conversion policy, so they skip the VARIANT that their consumers would have
to parse again. Everything else is the VARIANT value that the table's image would contain, byte for byte. Format: as in
`resultset`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from typing import Any

from dmdelta.binlog.resultset.row_reader import RESULT_ROW, result_codec
from dmdelta.binlog.rows.column_codec import ColumnCodec
from dmdelta.binlog.rows.image import misaligned
from dmdelta.binlog.wire import bitmap_size, packed_int
from dmdelta.model.schema import Column, TableSchema

_LEAD, _SPARE_BITS = RESULT_ROW.lead, RESULT_ROW.spare
_FLOATS = {"float": "f", "double": "d"}
"""In VARIANT they are copied as bytes."""


def is_plain(codec: ColumnCodec) -> bool:
    """Whether its values are returned as they are: int, float, UTF-8 text as bytes, or bytes."""
    return codec.packed is not None or codec.utf8 is not None or codec.blob


def _number_code(column: Column, codec: ColumnCodec) -> str:
    """The struct code of a number in a result set row, empty if its values are not plain numbers."""
    return _FLOATS.get(column.type, codec.packed.unpack) if codec.packed is not None else ""


class ColumnReader:
    """Reads the rows of one table's result set, whose columns are those of `schema`, in order.

    Attributes:
        plain: for each column, whether its values are plain.
        columns: the values read since the last `clear`, one list per column; None is NULL.
    """

    def __init__(self, schema: TableSchema) -> None:
        """Create the reader.

        Raises:
            UnsupportedEvent: a column type or character set without a decoder.
        """
        self._codec = result_codec(schema)
        codecs = list(zip(schema.columns, self._codec.codecs, strict=True))
        self.plain = tuple(is_plain(codec) for _, codec in codecs)
        self.columns: tuple[list[Any], ...] = tuple([] for _ in codecs)
        self._run = _generated(
            [
                _Source(number, codec, _number_code(column, codec), values)
                for number, ((column, codec), values) in enumerate(zip(codecs, self.columns, strict=True))
            ]
        )

    @property
    def rows(self) -> int:
        """Number of rows read since the last `clear`."""
        return len(self.columns[0])

    @property
    def metadata(self) -> bytes:
        """The dictionary that the VARIANT values read so far share."""
        return self._codec.keys.metadata

    def read(self, packets: bytes, end: int) -> None:
        """Read the row packets (header included) up to `end` into `columns`.

        Raises:
            CorruptBinlog: they are not rows of the table.
            UnsupportedEvent: a value that cannot be converted without loss.
        """
        if self._run(packets, 0, end) != end:
            raise misaligned(self._codec)

    def clear(self) -> None:
        """Discard the values read so far."""
        for values in self.columns:
            values.clear()
        self._codec.keys.trim()


@dataclass(frozen=True, slots=True)
class _Source:
    """A column, and the list that its values are appended to."""

    number: int
    codec: ColumnCodec
    code: str
    values: list[Any]


@dataclass(slots=True)
class _Lines:
    """The statements that read values in order; adjacent fixed-size values with one unpack."""

    names: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    codes: str = ""
    targets: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def read(self, source: _Source) -> None:
        number, codec = source.number, source.codec
        raw, add = f"v{number}", f"add{number}"
        if source.code or codec.size:
            self.codes += source.code or f"{codec.size}s"
            self.targets.append(raw)
            self.after.append(f"{add}({raw if source.code else f'convert{number}({raw})'})")
            return
        self.codes += "B"
        self.targets.append("size")
        self.flush()
        self.lines += [
            "if size > 250: size, pos = LENGTH(data, pos - 1)",
            f"{raw} = data[pos : pos + size]",
            "pos += size",
        ]
        if codec.utf8 is not None:
            self.lines.append(f"{add}({raw} if {raw}.isascii() else utf8{number}({raw}))")
        else:
            self.lines.append(f"{add}({raw if codec.blob else f'convert{number}({raw})'})")

    def flush(self) -> None:
        """Unpack the columns collected so far at once; `pos` moves past them."""
        if self.codes == "B":
            self.lines += [f"{self.targets[0]} = data[pos]", "pos += 1"]
        elif self.codes:
            layout = Struct("<" + self.codes)
            unpack = f"unpack{len(self.names)}"
            self.names[unpack] = layout.unpack_from
            self.lines += [f"{', '.join(self.targets)}, = {unpack}(data, pos)", f"pos += {layout.size}"]
        self.lines += self.after
        self.codes, self.targets, self.after = "", [], []


def _generated(sources: list[_Source]) -> Callable[[bytes, int, int], int]:
    """A function of (packets, begin, end) that reads rows until `end` and returns the position after the last one.

    Rows without NULLs, the most common ones, have their own code path without a test per column.
    """
    names: dict[str, Any] = {"LENGTH": packed_int}
    for source in sources:
        names[f"add{source.number}"] = source.values.append
        names[f"convert{source.number}"] = source.codec.convert
        names[f"utf8{source.number}"] = source.codec.utf8
    size = bitmap_size(_SPARE_BITS + len(sources))
    names["NO_NULLS"] = bytes(size)
    body = [
        f"bits = data[pos + {_LEAD} : pos + {_LEAD + size}]",
        f"pos += {_LEAD + size}",
        "if bits == NO_NULLS:",
        *_indented(_whole_row(sources, names)),
        "else:",
        *_indented(_row_with_nulls(sources, names)),
    ]
    constants = ", ".join(f"{name}={name}" for name in names)  # defaults are local variables
    lines = [f"def run(data, pos, end, {constants}):", "    while pos < end:", *_indented(_indented(body))]
    exec("\n".join([*lines, "    return pos"]), names)  # noqa: S102 - consists of numbers and our own names
    run: Callable[[bytes, int, int], int] = names["run"]
    return run


def _whole_row(sources: list[_Source], names: dict[str, Any]) -> list[str]:
    path = _Lines(names)
    for source in sources:
        path.read(source)
    path.flush()
    return path.lines


def _row_with_nulls(sources: list[_Source], names: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for source in sources:
        path = _Lines(names)
        path.read(source)
        path.flush()
        bit = source.number + _SPARE_BITS
        lines += [f"if bits[{bit >> 3}] & {1 << (bit & 7)}: add{source.number}(None)", "else:", *_indented(path.lines)]
    return lines


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
