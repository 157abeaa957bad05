"""Row images in columnar form: locates each field in a column of VARIANTs without a loop over rows.

Format: as `model.variant_types`. Rows whose objects have the same fields share a layout; a table usually has only one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dmdelta.errors import LakehouseError
from dmdelta.model.variant_types import NULL

Bytes: TypeAlias = npt.NDArray[np.uint8]
Places: TypeAlias = npt.NDArray[np.int64]
_OBJECT = 2


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout that a subset of the images shares.

    Attributes:
        rows: the images that have it.
        fields: the index of each field.
        offsets: position of the first field's offset, from the start of the image.
        width: bytes of an offset.
        values: start of the values, from the start of the image.
    """

    rows: Places
    fields: dict[str, int]
    offsets: int
    width: int
    values: int


class Images:
    """The images of a column.

    Attributes:
        data: the bytes of all images, concatenated.
        count: number of rows; some may have no image.
    """

    def __init__(self, column: Any) -> None:
        """`column`: VARIANTs as Spark converts them to Arrow, chunked or not; absent images may be VARIANT null."""
        values, metadata = (_whole(part) for part in _whole(column).flatten())
        self.count = len(values)
        _, ends, data = values.buffers()
        self.data: Bytes = np.frombuffer(data if data is not None else b"", np.uint8)
        self._begins: Places = np.frombuffer(ends, np.int32)[values.offset :][: self.count].astype(np.int64)
        present = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        present = present[self.data[self._begins[present]] != NULL[0]]
        self._metadata = metadata
        self._layouts = tuple(self._find_layouts(present, metadata))

    def keys(self, row: int) -> list[str]:
        """The dictionary of the image of a row."""
        return _keys(self._metadata[row].as_py())

    def starts(self, name: str) -> Places:
        """The start of field `name` in `data`, for each row; -1 if the image does not have the field."""
        starts = np.full(self.count, -1, np.int64)
        for layout in self._layouts:
            place = layout.fields.get(name)
            if place is not None:
                begins = self._begins[layout.rows]
                offsets = self.numbers(begins + layout.offsets + place * layout.width, layout.width)
                starts[layout.rows] = begins + layout.values + offsets
        return starts

    def lack(self, names: frozenset[str]) -> bool:
        """Whether an image lacks one of these fields; a field that is NULL is not lacking."""
        return any(not names <= layout.fields.keys() for layout in self._layouts)

    def numbers(self, at: Places, width: int) -> Places:
        """The unsigned numbers of `width` bytes, 1 to 4, at offsets in `data`."""
        if width == 3:
            return self.numbers(at, 2) | self.numbers(at + 2, 1) << 16
        return self.fixed(at, {1: "<u1", 2: "<u2", 4: "<u4"}[width]).astype(np.int64)

    def fixed(self, at: Places, kind: str) -> npt.NDArray[Any]:
        """The numbers of a NumPy type at offsets in `data`, aligned or not."""
        size = np.dtype(kind).itemsize
        every: npt.NDArray[Any] = np.ndarray((max(0, len(self.data) - size + 1),), kind, self.data, strides=(1,))
        return every[at]

    def _find_layouts(self, rows: Places, metadata: Any) -> Iterator[_Layout]:
        dictionary = metadata.dictionary_encode()
        codes = dictionary.indices.fill_null(-1).to_numpy(zero_copy_only=False)[rows]
        for code in np.unique(codes):
            keys = _keys(dictionary.dictionary[int(code)].as_py())
            some = rows[codes == code]
            heads = self.data[self._begins[some]]
            for head in np.unique(heads):
                yield from self._objects(some[heads == head], int(head), keys)

    def _objects(self, rows: Places, head: int, keys: list[str]) -> Iterator[_Layout]:
        if head & 3 != _OBJECT:
            raise LakehouseError("a row image in bronze is not an object", hint="report this to the project", head=head)
        width, id_width, count_width = (head >> 2 & 3) + 1, (head >> 4 & 3) + 1, 4 if head >> 6 & 1 else 1
        counts = self.numbers(self._begins[rows] + 1, count_width)
        for count in map(int, np.unique(counts)):
            left = rows[counts == count]
            first = 1 + count_width
            places = self._begins[left][:, None] + first + np.arange(count * id_width)
            ids = self.data[places]
            offsets = first + count * id_width
            while len(left):
                same = (ids == ids[0]).all(axis=1)
                numbers = [int.from_bytes(ids[0, n : n + id_width], "little") for n in range(0, ids.shape[1], id_width)]
                fields = {keys[number]: place for place, number in enumerate(numbers)}
                yield _Layout(left[same], fields, offsets, width, offsets + (count + 1) * width)
                left, ids = left[~same], ids[~same]


def _whole(column: Any) -> Any:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _keys(metadata: bytes) -> list[str]:
    """The names in a VARIANT's dictionary."""
    width = (metadata[0] >> 6) + 1
    numbers = [int.from_bytes(metadata[at : at + width], "little") for at in range(1, 1 + 2 * width, width)]
    count, first = numbers[0], 1 + width * (numbers[0] + 2)
    ends = [int.from_bytes(metadata[at : at + width], "little") for at in range(1 + width, first, width)]
    return [metadata[first + ends[n] : first + ends[n + 1]].decode() for n in range(count)]
