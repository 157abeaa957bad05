"""Reads the slices of a range, each while the one before it is executed."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from dmdelta.sink.read.change_reader import TableChanges
from dmdelta.sink.read.slices import Slice, placed

SliceChanges = list[list[TableChanges]]


@dataclass(frozen=True, slots=True)
class Turn:
    """A slice with its changes.

    Attributes:
        flushes: a synchronous flush follows it.
        settles: something may precede what follows it: a statement, or rows of an ad-hoc snapshot.
    """

    part: Slice
    changes: SliceChanges
    flushes: bool
    settles: bool


def read_ahead(
    slices: Sequence[Slice], read: Callable[[Slice], SliceChanges], ends_with: Callable[[Slice], tuple[bool, bool]]
) -> Iterator[Turn]:
    """Yields each slice with its changes.

    The next slice is read ahead, but not across a statement, a reload, or a synchronous flush: DM blocks reading then,
    too.

    Args:
        ends_with: whether a slice `flushes`, and whether it `settles`; called when its changes have been read.

    Raises:
        DmdeltaError: as `read`, with the position of the slice.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="sink-slice") as pool:
        ahead: Future[SliceChanges] | None = None
        for number, part in enumerate(slices):
            with placed(part.begin):
                changes = ahead.result() if ahead is not None else read(part)
            flushes, settles = ends_with(part)
            following = slices[number + 1] if number + 1 < len(slices) else None
            continues = following is not None and not settles and not flushes
            ahead = pool.submit(read, following) if following and continues else None
            yield Turn(part, changes, flushes, settles)
