"""What a snapshot reads, where it stands beside the log, and which chunks share a commit. Pure."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

from dmdelta.bronze.datasource import neighbours
from dmdelta.bronze.landing import Landed
from dmdelta.model.gtid import GtidSet
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.source.chunk import Chunk

_CHUNK_BITS = 32
LAST_CHUNK = (1 << _CHUNK_BITS) - 1
"""Behind every chunk: what ends a snapshot."""
BATCH_ROWS = 400_000
"""One commit's share: applying the last one goes on while the next one is read."""
BATCH_CHUNKS = 256
PAST_SPEED = 3
"""So many rows past bronze take as long as one by bronze."""


@dataclass(frozen=True, slots=True)
class PlannedSnapshot:
    """What a snapshot reads.

    Attributes:
        epoch: of the rows that it reads; below 0 for one that is taken while the log is followed.
        log_begin: from where the log is followed: every change that a reader may not see is behind it.
        gtid_set: all transactions below that, if the source has GTIDs.
    """

    epoch: int
    log_begin: Position
    gtid_set: GtidSet | None
    chunks: tuple[Chunk, ...]

    @property
    def begin(self) -> Position:
        return Position.of_chunk(self.epoch, 1)

    @property
    def is_ad_hoc(self) -> bool:
        """It is taken while the log is followed."""
        return self.epoch < 0

    @property
    def tables(self) -> frozenset[TableName]:
        return frozenset(chunk.schema.name for chunk in self.chunks)

    @property
    def cut_tables(self) -> frozenset[TableSchema]:
        """Those of more than one chunk."""
        count = Counter(chunk.schema for chunk in self.chunks)
        return frozenset(schema for schema, chunks in count.items() if chunks > 1)

    def version(self, upto: int) -> int:
        """The Delta transaction version of what is up to a chunk."""
        return abs(self.epoch) << _CHUNK_BITS | upto

    def behind(self, chunk: Chunk) -> Position:
        """The position of the chunk that follows."""
        return Position.of_chunk(self.epoch, chunk.number + 1)


@dataclass(frozen=True, slots=True)
class Share:
    """The chunks of one commit of bronze, and what it says.

    Attributes:
        kept, past: those whose rows land in bronze, and those of big tables that go past it.
    """

    chunks: Sequence[Chunk]
    landed: Landed
    kept: Sequence[Chunk]
    past: Sequence[Chunk]


def plan_batches(chunks: Sequence[Chunk], past: Collection[TableSchema] = ()) -> list[list[Chunk]]:
    """Commits of about BATCH_ROWS rows; small tables share one. A row `past` bronze takes less time."""
    return neighbours(
        chunks, lambda chunk: chunk.rows // (PAST_SPEED if chunk.schema in past else 1), BATCH_ROWS, BATCH_CHUNKS
    )


def by_table(chunks: Sequence[Chunk]) -> list[tuple[Chunk, ...]]:
    """Neighbouring chunks of the same table together."""
    return [tuple(group) for _, group in groupby(chunks, key=lambda chunk: chunk.schema)]


def shares_of(chunks: Sequence[Chunk]) -> list[tuple[str, int]]:
    """Each chunk's table and rows."""
    return [(str(chunk.schema), chunk.rows) for chunk in chunks]
