"""Converts row images to MySQL literals, column by column: Arrow arrays in, Arrow text arrays out, no row loop.

Every literal is exact, independent of the target's column: numbers keep all digits, a FLOAT has those of the double
that stores it, invalid dates are written as MySQL shows them, bytes as hex. Values without a flat VARIANT form (JSON,
geometries with SRID and WKB as MySQL stores them, vectors) are rendered by Spark (`written_by_spark`).
The session that executes them uses backslash escapes, UTC and utf8mb4 (`connection`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dmdelta.changelog.extraction import extracted, variant_path
from dmdelta.changelog.variant_arrays import TEXT, blobs, doubles, on_bytes, texts, word
from dmdelta.changelog.variant_documents import MOMENT, document_text
from dmdelta.changelog.variant_layout import Images
from dmdelta.errors import SchemaError
from dmdelta.model.mysql_sql import text
from dmdelta.model.schema import Column, ConstantColumn
from dmdelta.model.spark_sql import literal
from dmdelta.model.type_names import BYTES, CHARACTERS, NAMED, TEXTUAL, WHOLE

NAMELESS = "0/*dmdelta: enum without a name*/"
"""An ENUM value that strict servers accept only with a warning: see `worker`."""
_LONG = 3072
"""Bytes: longer than any index entry; such a value is compared once."""
NESTED = frozenset(("json", "geometry", "vector"))
"""Types whose literals Spark renders."""
_PLAIN = frozenset((*WHOLE, "decimal"))
_APPROXIMATE = frozenset(("float", "double"))
_TIMES = frozenset(("date", "time", "datetime", "timestamp"))
_CONTROLS = np.array([code < 0x20 or code == 0x7F for code in range(256)])
_HEX = np.frombuffer("".join(f"{byte:02X}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)
_EQUAL = np.frombuffer(bytes(range(256)).upper().translate(bytes.maketrans(b"VWJY", b"UUII")), np.uint8)
"""Maps ASCII letters that some collation treats as equal to one letter."""


@dataclass(frozen=True, slots=True)
class Literals:
    """The literals of a column of images; each array has one value per image.

    Attributes:
        written: the literals of nested values, by column name.
    """

    images: Images
    written: Mapping[str, Any] = field(default_factory=dict)
    _cache: dict[str, Any] = field(default_factory=dict)

    def of(self, column: Column) -> Any:
        """A column's literals; NULL for NULL.

        Raises:
            SchemaError: the column's type is unknown.
        """
        cached = self._cache.get(column.name)
        if cached is None:
            cached = self._cache[column.name] = self._literals(column)
        return cached

    def values(self, column: Column) -> Any:
        """A column's literals; 'NULL' for NULL."""
        return or_else(self.of(column), "NULL")

    def tuples(self, columns: Sequence[Column], ends: str = ")") -> Any:
        """The values of columns as `(1,'a',NULL)`."""
        return joined("(", *_between(",", [self.values(column) for column in columns]), ends)

    def identities(self, columns: Sequence[Column]) -> Any:
        """A key: one literal, or several in parentheses; NULL if a part of it is NULL."""
        parts = [self._compared(column) for column in columns]
        return parts[0] if len(parts) == 1 else joined("(", *_between(",", parts), ")")

    def conditions(self, columns: Sequence[tuple[str, Column]], as_text: Collection[str] = ()) -> Any:
        """Conditions that select a row by all its values; texts are compared by bytes, not by collation.

        Args:
            columns: with their names in the target, as SQL.
            as_text: the JSON columns that the target stores as text.
        """
        parts = [self._equals(name, column, as_text=column.name in as_text) for name, column in columns]
        return joined(*_between(" AND ", parts))

    def assignments(self, columns: Sequence[tuple[str, Column]], present: Mapping[str, Any]) -> Any:
        """`a`=1, `b`='x': of all columns, except that a column in `present` is assigned only where that is true."""
        parts = []
        for name, column in columns:
            part = joined(f"{name}=", self.values(column))
            held = present.get(column.name)
            parts.append(part if held is None else pc.if_else(held, part, pa.scalar(None, TEXT)))
        return pc.binary_join_element_wise(*parts, word(", "), null_handling="skip")

    def key_texts(self, column: Column, prefix: int | None) -> Any:
        """Key texts in which all values that a target might treat as equal are the same text; NULL for NULL.

        Text is normalised as for the least distinguishing collation: without case, control characters and trailing
        spaces, and with letters that some languages treat as equal mapped to one. This covers ASCII; for other text
        see `plan`.

        Args:
            prefix: characters or bytes in the index; None for the whole value.
        """
        name = column.name
        if isinstance(column, ConstantColumn):
            return self.of(column)
        if column.type in TEXTUAL:
            value = texts(self.images, name)
            value = pc.utf8_slice_codeunits(value, 0, prefix) if prefix else value
            if _CONTROLS[_bytes(value)].any():
                value = pc.replace_substring_regex(value, r"[\x00-\x1f\x7f]", "")
            return on_bytes(pc.ascii_rtrim(value, " "), lambda data: _EQUAL[data])
        if column.type in BYTES:
            value = blobs(self.images, name)
            return _hex(pc.binary_slice(value, 0, prefix) if prefix else value)
        if column.type in _APPROXIMATE:
            return pc.add(doubles(self.images, name), 0.0).cast(TEXT)
        return self.of(column)

    def _compared(self, column: Column) -> Any:
        """Literals that the value equals: a condition does not change an ENUM value without a name, so that no server
        protests. It equals '': MySQL and MariaDB do not find it as a number among names, `(id, e) IN ((1,'a'),(2,0))`.
        """
        value = self.of(column)
        if column.type != "enum" or "" in column.members:
            return value
        return pc.if_else(pc.equal(value, word(NAMELESS)), word("''"), value)

    def _literals(self, column: Column) -> Any:
        kind, name = column.type, column.name
        if isinstance(column, ConstantColumn):
            return pa.repeat(word(text(column.value)), self.images.count)
        if kind in _PLAIN:
            return texts(self.images, name)
        if kind in _APPROXIMATE:
            digits = doubles(self.images, name).cast(TEXT)
            return pc.if_else(pc.match_substring(digits, "e"), digits, joined(digits, "E0"))
        if kind in _TIMES:
            return joined("'", texts(self.images, name), "'")
        if kind in TEXTUAL:
            value = texts(self.images, name)
            quoted = joined("'", escaped(value), "'")
            # The ENUM value of index 0 has no name and arrives as ''.
            named = kind != "enum" or "" in column.members
            return quoted if named else pc.if_else(pc.equal(value, word("")), word(NAMELESS), quoted)
        if kind in BYTES:
            return joined("x'", _hex(blobs(self.images, name)), "'")
        if kind in NESTED:
            value = self.written[name]
            return joined("'", escaped(self._with_moments(name, value)), "'") if kind == "json" else value
        raise SchemaError(f"the type {kind!r} of column {name} is unknown", hint="report it with the table's DDL")

    def _with_moments(self, name: str, documents: Any) -> Any:
        """Spark's texts of documents, with MySQL's text of dates with a time: what a snapshot reads has no other."""
        found = np.flatnonzero(pc.fill_null(pc.match_substring_regex(documents, MOMENT), False).to_numpy(False))
        if not len(found):
            return documents
        data, starts = self.images.data.tobytes(), self.images.starts(name)
        written = [document_text(data, int(starts[row]), self.images.keys(row)) for row in found.tolist()]
        mask = np.zeros(len(documents), bool)
        mask[found] = True
        return pc.replace_with_mask(documents, pa.array(mask), pa.array(written, TEXT))

    def _equals(self, name: str, column: Column, *, as_text: bool) -> Any:
        value = self.of(column)
        exactly = f"BINARY CONVERT({name} USING utf8mb4) = BINARY "
        if column.type in CHARACTERS:
            # With `name = 'x '` TiDB would read every other `name` as 'x ', too, and find rows with 'x'.
            same = joined(f"{name} BETWEEN ", value, " AND ", value, f" AND {exactly}", value)
            if (long := pc.greater(pc.binary_length(value), _LONG)).true_count:
                same = pc.if_else(long, joined(exactly, value), same)
        elif column.type in NAMED:
            same = joined(f"{name} = ", value, f" AND {exactly}", value)
            nameless = pc.equal(value, word(NAMELESS))
            same = pc.if_else(nameless, word(f"{name} = 0"), same) if column.type == "enum" else same
        elif as_text:
            same = joined(exactly, value)
        elif column.type == "json":
            same = joined(f"{name} = CAST(", value, " AS JSON)")
        else:
            same = joined(f"{name} = ", value)
        return or_else(same, f"{name} IS NULL")


def joined(*parts: Any) -> Any:
    """Concatenate texts and text arrays; NULL where one of them is NULL."""
    arrays = [word(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*arrays, word(""))


def or_else(values: Any, other: str) -> Any:
    """Values, with a text in place of NULL."""
    return pc.fill_null(values, word(other)) if values.null_count else values


def escaped(values: Any) -> Any:
    r"""Strings escaped for a MySQL literal: \ and ' doubled, NUL as \0."""
    held = _bytes(values)
    for character, instead in (("\\", "\\\\"), ("'", "''"), ("\0", "\\0")):
        if (held == ord(character)).any():
            values = pc.replace_substring(values, character, instead)
    return values


def written_by_spark(image: str, column: Column) -> str:
    """The SQL expression with which Spark renders a nested value of the VARIANT `image`."""
    value = extracted(image, column)
    if column.type == "json":
        path = variant_path(column.name)
        if path is None:
            return f"to_json(CAST({image} AS MAP<STRING, VARIANT>)[{literal(column.name)}])"
        return f"to_json(variant_get({image}, {literal(path)}, 'VARIANT'))"
    if column.type == "geometry":
        srid = f"lpad(hex({value}.srid), 8, '0')"
        little = ", ".join(f"substr({srid}, {at}, 2)" for at in (7, 5, 3, 1))
        return f"concat('x\\'', {little}, hex({value}.wkb), '\\'')"
    numbers = f"array_join(transform({value}, x -> CAST(CAST(x AS DOUBLE) AS STRING)), ',')"
    return f"concat('STRING_TO_VECTOR(\\'[', {numbers}, ']\\')')"


def _between(separator: str, parts: Sequence[Any]) -> list[Any]:
    return [one for part in parts for one in (separator, part)][1:]


def _hex(values: Any) -> Any:
    """Bytes as hexadecimal digits."""
    _, ends, data = values.buffers()
    size = len(values)
    ends = np.frombuffer(ends, np.int64)[values.offset :][: size + 1]
    held = np.frombuffer(data if data is not None else b"", np.uint8)[ends[0] : ends[-1]]
    digits = pa.py_buffer(_HEX[held].tobytes())
    mask = None if not values.null_count else pa.array(values.is_valid()).buffers()[1]
    return pa.Array.from_buffers(TEXT, size, [mask, pa.py_buffer((ends - ends[0]) * 2), digits])


def _bytes(values: Any) -> Any:
    """All bytes of a text array, including those of NULL entries."""
    _, ends, data = values.buffers()
    ends = np.frombuffer(ends, np.int64)[values.offset :][: len(values) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8)[ends[0] : ends[-1]]
