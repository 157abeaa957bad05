"""The values of one field of many row images as Arrow arrays: texts, numbers and bytes, built column by column."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dmdelta.changelog.variant_layout import Images, Places
from dmdelta.errors import LakehouseError
from dmdelta.model import variant_types

TEXT = pa.large_string()
BINARY = pa.large_binary()
_INTEGERS = {
    variant_types.INT8: "<i1",
    variant_types.INT16: "<i2",
    variant_types.INT32: "<i4",
    variant_types.INT64: "<i8",
}
_DECIMALS = {variant_types.DECIMAL4: "<i4", variant_types.DECIMAL8: "<i8"}
_APPROXIMATE = {variant_types.FLOAT: "<f4", variant_types.DOUBLE: "<f8"}
_TIMES = {variant_types.TIMESTAMP, variant_types.TIMESTAMP_NTZ}
_WIDEST = 38
_SHORT = 1
Part = tuple[Places, Any]
"""Rows and their values."""


def texts(images: Images, name: str) -> Any:
    """Numbers with all their digits, dates and times in MySQL's format (UTC), texts unchanged; NULL for NULL.

    Raises:
        LakehouseError: a value's type has no text form.
    """
    starts = images.starts(name)
    return _spread(list(_text_parts(images, starts, name)), images.count, TEXT)


def doubles(images: Images, name: str) -> Any:
    """FLOAT and DOUBLE as doubles."""
    starts = images.starts(name)
    parts = []
    for tag, rows in _by_tag(images, starts):
        if tag not in _APPROXIMATE:
            raise _unknown(name, tag)
        numbers = images.fixed(starts[rows] + 1, _APPROXIMATE[tag]).astype(np.float64)
        parts.append((rows, pa.array(numbers)))
    return _spread(parts, images.count, pa.float64())


def integers(
    images: Images, name: str, kind: type[np.int64] | type[np.uint64]
) -> npt.NDArray[np.int64 | np.uint64] | None:
    """Integers, also as decimals without fraction; None if an image has none, or NULL.

    Raises:
        LakehouseError: a value is not an integer.
    """
    starts = images.starts(name)
    numbers: npt.NDArray[Any] = np.zeros(images.count, kind)
    found = 0
    for tag, rows in _by_tag(images, starts):
        at = starts[rows]
        found += len(rows)
        if tag in _INTEGERS:
            numbers[rows] = images.fixed(at + 1, _INTEGERS[tag]).astype(kind)
        elif (tag in _DECIMALS or tag == variant_types.DECIMAL16) and not images.data[at + 1].any():
            # BIGINT UNSIGNED: its 64 bits are the first of the 128.
            numbers[rows] = images.fixed(at + 2, _DECIMALS.get(tag, "<u8")).astype(kind)
        else:
            raise _unknown(name, tag)
    return numbers if found == images.count else None


def blobs(images: Images, name: str) -> Any:
    """Binary values."""
    starts = images.starts(name)
    parts = []
    for tag, rows in _by_tag(images, starts):
        if tag != variant_types.BINARY:
            raise _unknown(name, tag)
        at = starts[rows]
        parts.append((rows, _bytes(images, at + 5, images.numbers(at + 1, 4), BINARY)))
    return _spread(parts, images.count, BINARY)


def _by_tag(images: Images, starts: Places) -> Iterator[tuple[int, Places]]:
    """The type bytes that occur, with their rows; all strings count as one type, NULL and absent values are omitted."""
    rows = np.flatnonzero(starts >= 0)
    tags = images.data[starts[rows]]
    tags = np.where(tags & 3 == _SHORT, variant_types.STRING, tags)
    for tag in np.unique(tags):
        if tag != variant_types.NULL[0]:
            yield int(tag), rows[tags == tag]


def _text_parts(images: Images, starts: Places, name: str) -> Iterator[Part]:
    for tag, rows in _by_tag(images, starts):
        at = starts[rows]
        if tag == variant_types.STRING:
            heads = images.data[at].astype(np.int64)
            short = heads & 3 == _SHORT
            long = at[~short]
            sizes, begins = heads >> 2, at + 1
            sizes[~short] = images.numbers(long + 1, 4)
            begins[~short] = long + 5
            yield rows, _bytes(images, begins, sizes, TEXT)
        elif tag in _INTEGERS:
            yield rows, pa.array(images.fixed(at + 1, _INTEGERS[tag])).cast(TEXT)
        elif tag in _DECIMALS or tag == variant_types.DECIMAL16:
            yield from _decimals(images, rows, at, tag)
        elif tag == variant_types.DATE:
            yield rows, pa.array(images.fixed(at + 1, "<i4")).cast(pa.date32()).cast(TEXT)
        elif tag in _TIMES:
            yield rows, pa.array(images.fixed(at + 1, "<i8")).cast(pa.timestamp("us")).cast(TEXT)
        else:
            raise _unknown(name, tag)


def _decimals(images: Images, rows: Places, at: Places, tag: int) -> Iterator[Part]:
    """By scale: a column usually has only one."""
    scales = images.data[at + 1]
    for scale in map(int, np.unique(scales)):
        some = scales == scale
        begins = at[some] + 2
        if tag in _DECIMALS:
            digits = pa.array(images.fixed(begins, _DECIMALS[tag])).cast(TEXT)
        else:
            words = np.stack([images.fixed(begins, "<i8"), images.fixed(begins + 8, "<i8")], axis=1)
            whole = pa.decimal128(_WIDEST, 0)
            digits = pa.Array.from_buffers(whole, len(words), [None, pa.py_buffer(words.tobytes())]).cast(TEXT)
        yield rows[some], pointed(digits, scale) if scale else digits


def pointed(digits: Any, scale: int) -> Any:
    """Integers as text with a decimal point before the last `scale` digits."""
    negative = pc.starts_with(digits, "-")
    bare = pc.ascii_lpad(pc.replace_substring(digits, "-", ""), scale + 1, "0")
    whole, rest = pc.utf8_slice_codeunits(bare, 0, -scale), pc.utf8_slice_codeunits(bare, -scale)
    return pc.binary_join_element_wise(pc.if_else(negative, word("-"), word("")), whole, word("."), rest, word(""))


def word(text: str) -> Any:
    """A text as an Arrow scalar."""
    return pa.scalar(text, TEXT)


def _bytes(images: Images, begins: Places, sizes: Places, kind: Any) -> Any:
    """Slices of the data as an array. Their order in the data is that of the rows."""
    # Without a loop: one array alternates gaps and slices over the data without copying, and every second element is
    # taken.
    ends = np.zeros(2 * len(begins) + 1, np.int64)
    ends[1::2], ends[2::2] = begins, begins + sizes
    both = pa.Array.from_buffers(kind, 2 * len(begins), [None, pa.py_buffer(ends), pa.py_buffer(images.data)])
    return both.take(pa.array(np.arange(1, 2 * len(begins), 2)))


def _spread(parts: Sequence[Part], count: int, kind: Any) -> Any:
    """One array of `count` values from those of subsets of the rows; NULL for other rows."""
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]
    if not parts:
        return pa.nulls(count, kind)
    places = np.full(count, -1, np.int64)
    first = 0
    for rows, _ in parts:
        places[rows] = np.arange(first, first + len(rows))
        first += len(rows)
    return pa.concat_arrays([values for _, values in parts]).take(pa.array(places, mask=places < 0))


def _unknown(name: str, tag: int) -> LakehouseError:
    return LakehouseError(
        f"column {name} has a value of unknown VARIANT type {tag} in bronze", hint="report this to the project"
    )


def on_bytes(array: Any, act: Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.uint8]]) -> Any:
    """An array of texts or bytes with `act` applied to its bytes."""
    valid, ends, data = array.buffers()
    if data is None:
        return array
    changed = pa.py_buffer(act(np.frombuffer(data, np.uint8)))
    return pa.Array.from_buffers(array.type, len(array), [valid, ends, changed], offset=array.offset)
