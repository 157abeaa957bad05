"""Records of executed events: stored with each transaction of a worker, in about three bytes per event."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dmdelta.sink.change import Event

Places: TypeAlias = npt.NDArray[np.int64]


def encode(events: Iterable[Event]) -> bytes:
    """Encode events, sorted: the difference of each `seq` to the previous one; after a new `seq` its first `row`, else
    the difference of the row. All numbers are varints with 7 bits per byte, low bits first.
    """
    places = np.array(list(events), np.int64).reshape(-1, 2)
    return encode_places(places[:, 0], places[:, 1])


def encode_places(seqs: Places, rows: Places) -> bytes:
    """The same for events given as two arrays, `seq` and `row`."""
    order = np.lexsort((rows, seqs))
    seqs, rows = seqs[order], rows[order]
    numbers = np.empty((len(seqs), 2), np.int64)
    numbers[:, 0] = steps = np.diff(seqs, prepend=0)
    # A row is never negative: the events of a batch are row changes.
    numbers[:, 1] = np.where(steps > 0, rows, np.diff(rows, prepend=0))
    return _groups(numbers.ravel())


def _groups(numbers: Places) -> bytes:
    """Numbers as varints: every byte of a number but its last has the highest bit set."""
    sizes = np.ones(len(numbers), np.int64)
    rest = numbers >> 7
    while rest.any():
        sizes += rest > 0
        rest >>= 7
    begins = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), np.uint8)
    for place in range(int(sizes.max(initial=0))):
        held = sizes > place
        more = np.where(sizes[held] > place + 1, 0x80, 0)
        out[begins[held] + place] = numbers[held] >> 7 * place & 0x7F | more
    return out.tobytes()


def decode(data: bytes) -> Iterator[Event]:
    """Decode what `encode` wrote."""
    seq, row = 0, 0
    numbers = _numbers(data)
    for step in numbers:
        distance = next(numbers)
        seq, row = (seq + step, distance) if step else (seq, row + distance)
        yield seq, row


def _numbers(data: bytes) -> Iterator[int]:
    number, shift = 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number, shift = 0, 0


class ExecutedEvents:
    """What was executed after the checkpoint, by epoch and `seq`: one bit per row."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], int] = defaultdict(int)
        self._last: dict[tuple[int, int], int] = {}

    def add(self, epoch: int, last: int, data: bytes) -> None:
        """Add a record whose events took effect at `last` or before: for XA, after their own `seq`."""
        for seq, row in decode(data):
            self._rows[epoch, seq] |= 1 << row
            self._last[epoch, seq] = max(last, self._last.get((epoch, seq), 0))

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __len__(self) -> int:
        return sum(bits.bit_count() for bits in self._rows.values())

    def has(self, epoch: int, event: Event) -> bool:
        seq, row = event
        return bool(self._rows.get((epoch, seq), 0) >> row & 1)

    def forget(self, epoch: int, below: int) -> None:
        """Forget what took effect before a `seq` of an epoch, and all earlier epochs: the sink has read past it."""
        for key in [key for key, last in self._last.items() if (key[0], last) < (epoch, below)]:
            del self._rows[key], self._last[key]
