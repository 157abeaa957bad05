"""Records of executed events: what each transaction of a worker proves, in about three bytes an event."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from dmdelta.sink.change import Event


def encode(events: Iterable[Event]) -> bytes:
    """Events, sorted: the distance of each `seq` from the one before; behind a new one its first `row`, else how much
    further the row is. All numbers in 7 bits a byte, the lowest first.
    """
    out = bytearray()
    seq_before, row_before = 0, 0
    for seq, row in sorted(events):
        step = seq - seq_before
        _put(out, step)
        # A row is never below 0: the events of a batch are row changes.
        _put(out, row if step else row - row_before)
        seq_before, row_before = seq, row
    return bytes(out)


def _put(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def decode(data: bytes) -> Iterator[Event]:
    """The events that `encode` wrote."""
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
    """What was executed behind the checkpoint, by epoch and `seq`: a bit for each row."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], int] = defaultdict(int)

    def add(self, epoch: int, data: bytes) -> None:
        """Take over a record."""
        for seq, row in decode(data):
            self._rows[epoch, seq] |= 1 << row

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __len__(self) -> int:
        return sum(bits.bit_count() for bits in self._rows.values())

    def has(self, epoch: int, event: Event) -> bool:
        seq, row = event
        return bool(self._rows.get((epoch, seq), 0) >> row & 1)

    def forget(self, epoch: int, below: int) -> None:
        """Drop what is below a `seq` of an epoch, and all of earlier epochs: it has been read past."""
        for key in [key for key in self._rows if key < (epoch, below)]:
            del self._rows[key]
