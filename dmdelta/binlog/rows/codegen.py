"""Generates the decoder for one table's row images with one set of columns and one null bitmap.

The generated function decodes a run of images: it unpacks the null bitmap and adjacent fixed-width columns with one
struct, and packs VARIANT header, field ids, offsets and fixed-width values with another; strings and blobs are copied.
A separate function per null pattern keeps every decision about NULL out of the loop. Its results equal, as values,
those of `ImageDecoder.values` and `assemble`; only the order of the values inside the object differs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from struct import Struct
from types import CodeType
from typing import Any

from dmdelta.binlog.rows.column_codec import ColumnCodec
from dmdelta.binlog.values import variant
from dmdelta.binlog.wire import packed_int
from dmdelta.model import variant_types

Runner = Callable[[bytes, int, int, list[bytes], list[bytes], list[Any]], int]
"""(event, position, end, list, other list, keys) → the position after the decoded images.

It decodes at least one image, and continues while the next one starts before `end` and has the same null bitmap. Images
are appended to the two lists alternately: before and after images of updates; the same list twice for inserts and
deletes. Each image's primary key, as logged, is appended to `keys` if the shape has one.
"""
_WIDTH_CODES = {1: "B", 2: "H", 4: "I"}
_PREFIX_CODES = {0: "B", 1: "B", 2: "H", 3: "HB", 4: "I"}
_MOST_CONCATENATED = 3


@dataclass(frozen=True, slots=True)
class ImageShape:
    """The images that a generated decoder handles.

    Attributes:
        columns: (field id, codec) of the image's columns that have a value, in column order.
        nulls: field ids of the columns that are NULL and represented as VARIANT null.
        order: field ids of both in the lexicographic order of their names.
        bitmap: the null bitmap of such an image, after `lead` other bytes.
        key: field ids of the primary key; none if it is not needed, the table has none or the image lacks part of it.
    """

    columns: tuple[tuple[int, ColumnCodec], ...]
    nulls: tuple[int, ...]
    order: tuple[int, ...]
    bitmap: bytes
    key: tuple[int, ...] = ()
    lead: int = 0


@lru_cache(maxsize=1024)
def _compiled(source: str) -> CodeType:
    return compile(source, "<row decoder>", "exec")


def generate(shape: ImageShape) -> Runner:
    """The decoder of images of this shape."""
    writer = _Writer(shape)
    source = writer.source()
    exec(_compiled(source), writer.names)  # noqa: S102 - the source consists of numbers and our own names only
    runner: Runner = writer.names["run"]
    return runner


@dataclass(slots=True)
class _Value:
    """A variable-size value under construction: expressions for its size and parts."""

    id: int
    size: str
    parts: tuple[str, ...]


@dataclass(slots=True)
class _Writer:
    shape: ImageShape
    lines: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    codes: str = ""
    targets: list[str] = field(default_factory=list)
    converted: list[str] = field(default_factory=list)
    """Lines to emit after the unpack."""
    variable: list[_Value] = field(default_factory=list)
    fixed: list[tuple[int, int, str, list[str]]] = field(default_factory=list)
    """(field id, size, pack codes, arguments) of values whose size is known."""
    raw: dict[int, str] = field(default_factory=dict)
    """Variables that hold a value as logged, by field id."""

    def source(self) -> str:
        bitmap = self.shape.bitmap
        self.names.update(HEADERS=variant.STRING_HEADERS, SIZES=variant.STRING_SIZES)
        self.names.update(LONG=Struct("<BI").pack, JOIN=b"".join, NULLS=bitmap)
        self.codes = f"{self.shape.lead + len(bitmap)}x"
        for number, codec in self.shape.columns:
            self._read(number, codec)
        self._flush()
        if self.shape.nulls:
            self._fix_nulls()
        self._write()
        if self.shape.key:
            self.lines.append(f"keys.append(({', '.join(self.raw[number] for number in self.shape.key)}))")
        at = f"pos + {self.shape.lead}" if self.shape.lead else "pos"
        same = f"event[{at}] == {bitmap[0]}" if len(bitmap) == 1 else f"NULLS == event[{at} : {at} + {len(bitmap)}]"
        self.lines += [f"if pos >= end or not ({same}): return pos", "sink, other = other, sink"]
        # Default arguments make the constants local variables.
        constants = ", ".join(f"{name}={name}" for name in self.names)
        body = "\n        ".join(self.lines)
        return f"def run(event, pos, end, sink, other, keys, {constants}):\n    while True:\n        {body}\n"

    def _const(self, value: Any) -> str:
        name = f"K{len(self.names)}"
        self.names[name] = value
        return name

    def _flush(self, place: str = "pos") -> None:
        """Unpack the columns collected so far at once; the variable `place` is then the end."""
        if not self.codes:
            return
        layout = Struct("<" + self.codes)
        if self.codes == "B":
            self.lines.append(f"{self.targets[0]} = event[pos]")
        elif self.targets:
            unpack = self._const(layout.unpack_from)
            self.lines.append(f"{', '.join(self.targets)}, = {unpack}(event, pos)")
        self.lines.append(f"{place} = pos + {layout.size}")
        self.lines += self.converted
        self.codes, self.targets, self.converted = "", [], []

    def _read(self, number: int, codec: ColumnCodec) -> None:
        if codec.packed is not None:
            parts = [f"a{number}_{part}" for part in range(len(codec.packed.unpack.lstrip("0123456789")))]
            self.codes += codec.packed.unpack
            self.targets += parts
            self.raw[number] = ", ".join(parts)
            size = Struct("<B" + codec.packed.pack).size
            self.fixed.append((number, size, "B" + codec.packed.pack, [str(codec.packed.tag), *parts]))
        elif codec.size:
            self.codes += f"{codec.size}s"
            self.targets.append(f"r{number}")
            self.raw[number] = f"r{number}"
            self.converted.append(self._convert(number, codec, f"r{number}"))
        else:
            self._read_prefixed(number, codec)

    def _convert(self, number: int, codec: ColumnCodec, raw: str) -> str:
        self.variable.append(_Value(number, f"len(p{number})", (f"p{number}",)))
        return f"p{number} = {self._const(codec.convert)}({raw})"

    def _read_prefixed(self, number: int, codec: ColumnCodec) -> None:
        size, raw = f"l{number}", f"v{number}"
        self.raw[number] = raw
        self.codes += _PREFIX_CODES[codec.prefix]
        self.targets += [size, f"{size}h"] if codec.prefix == 3 else [size]
        self._flush("at")
        if codec.prefix == 3:
            self.lines.append(f"{size} |= {size}h << 16")
        if codec.prefix == 0:
            self.names["LENGTH"] = packed_int
            self.lines.append(f"if {size} > 250: {size}, at = LENGTH(event, at - 1)")
        self.lines += [f"pos = at + {size}", f"{raw} = event[at:pos]"]
        if codec.utf8 is not None:
            to_utf8 = self._const(codec.utf8)
            self.lines.append(f"if not {raw}.isascii(): {raw} = {to_utf8}({raw}); {size} = len({raw})")
            header, whole = f"HEADERS[{size}]", f"SIZES[{size}]"
            if codec.prefix == 1:  # 255 bytes become 1020 bytes of UTF-8 at most
                self.variable.append(_Value(number, whole, (header, raw)))
            else:
                long = f"LONG({variant_types.STRING}, {size})"
                self.lines.append(
                    f"if {size} < {len(variant.STRING_HEADERS)}: h{number} = {header}; s{number} = {whole}"
                )
                self.lines.append(f"else: h{number} = {long}; s{number} = {size} + 5")
                self.variable.append(_Value(number, f"s{number}", (f"h{number}", raw)))
        elif codec.blob:
            self.lines.append(f"h{number} = LONG({variant_types.BINARY}, {size})")
            self.variable.append(_Value(number, f"5 + {size}", (f"h{number}", raw)))
        else:
            self.lines.append(self._convert(number, codec, raw))

    def _fix_nulls(self) -> None:
        for number in self.shape.nulls:
            self.fixed.append((number, 1, "", []))
        last = self.fixed[-1]
        count = len(self.shape.nulls)
        self.fixed[-1] = (last[0], 1, f"{count}s", [self._const(variant_types.NULL * count)])

    def _write(self) -> None:
        """The image: header, ids, offsets and fixed values by one pack, followed by the rest."""
        offsets, at = {}, 0
        for number, size, _, _ in self.fixed:
            offsets[number] = str(at)
            at += size
        previous = str(at)
        for value in self.variable:
            offsets[value.id] = previous
            name = f"o{value.id}"
            self.lines.append(f"{name} = {previous} + {value.size}")
            previous = name
        if not self.variable:
            self.lines.append(f"image = {self._pack(variant.width_of(at), offsets, str(at))}")
            self.lines.append("sink.append(image)")
            return
        total = previous
        # The fixed values alone may already need wider offsets.
        widths = [width for width in _WIDTH_CODES if width >= variant.width_of(at)]
        choices = [f"{self._pack(width, offsets, total)} if {total} < {1 << 8 * width} else " for width in widths[:-1]]
        self.lines.append(f"image = {''.join(choices)}{self._pack(widths[-1], offsets, total)}")
        parts = ["image", *(part for value in self.variable for part in value.parts)]
        joined = " + ".join(parts) if len(parts) <= _MOST_CONCATENATED else f"JOIN(({', '.join(parts)}))"
        self.lines.append(f"sink.append({joined})")

    def _pack(self, width: int, offsets: dict[int, str], total: str) -> str:
        order = self.shape.order
        id_width = variant.width_of(max(order, default=0))
        constant = variant.object_header(len(order), id_width, width) + variant.pack_numbers(order, id_width)
        codes = ""
        arguments: list[str] = []
        for offset in [*(offsets[number] for number in order), total]:
            if offset.isdigit():
                constant += int(offset).to_bytes(width, "little")
                continue
            if constant:
                codes, constant = codes + f"{len(constant)}s", self._spill(arguments, constant)
            codes += _WIDTH_CODES[width]
            arguments.append(offset)
        if constant:
            codes, constant = codes + f"{len(constant)}s", self._spill(arguments, constant)
        for _, _, pack, values in self.fixed:
            codes += pack
            arguments += values
        return f"{self._const(Struct('<' + codes).pack)}({', '.join(arguments)})"

    def _spill(self, arguments: list[str], constant: bytes) -> bytes:
        arguments.append(self._const(constant))
        return b""
