"""The plan of a snapshot: what it reads, its position relative to the log, and which chunks share a commit. Pure."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

from dmdelta.bronze.datasource import neighbours
from dmdelta.bronze.progress import LandedRange
from dmdelta.model.gtid import GtidSet
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.segments import EpochBegin
from dmdelta.source.snapshot.chunk import Chunk

_CHUNK_BITS = 32
LAST_CHUNK = (1 << _CHUNK_BITS) - 1
"""After every chunk: the end of a snapshot."""
BATCH_ROWS = 400_000
"""Size of one commit: the last one is applied while the next one is read."""
BATCH_CHUNKS = 256
PAST_SPEED = 3
"""This many rows that bypass bronze take as long as one row through bronze."""


@dataclass(frozen=True, slots=True)
class PlannedSnapshot:
    """The plan of a snapshot.

    Attributes:
        epoch: of the rows that it reads; below 0 if it is taken while the log is applied.
        log_begin: where the log is applied from: every change that a reader may miss is after it.
        gtid_set: all transactions before that, if the source has GTIDs.
        server_uuid: of the server whose log has that position; None: unknown, in a plan of an earlier release.
    """

    epoch: int
    log_begin: Position
    gtid_set: GtidSet | None
    chunks: tuple[Chunk, ...]
    server_uuid: str | None = None

    @property
    def begin(self) -> Position:
        return Position.of_chunk(self.epoch, 1)

    @property
    def is_ad_hoc(self) -> bool:
        """It is taken while the log is applied."""
        return self.epoch < 0

    @property
    def tables(self) -> frozenset[TableName]:
        return frozenset(chunk.schema.name for chunk in self.chunks)

    @property
    def cut_tables(self) -> frozenset[TableSchema]:
        """The tables with more than one chunk."""
        count = Counter(chunk.schema for chunk in self.chunks)
        return frozenset(schema for schema, chunks in count.items() if chunks > 1)

    def version(self, upto: int) -> int:
        """The Delta transaction version for everything up to a chunk."""
        return abs(self.epoch) << _CHUNK_BITS | upto

    def behind(self, chunk: Chunk) -> Position:
        """The position of the next chunk."""
        return Position.of_chunk(self.epoch, chunk.number + 1)


@dataclass(frozen=True, slots=True)
class ChunkBatch:
    """The chunks of one commit of bronze.

    Attributes:
        kept, past: the chunks whose rows land in bronze, and those of large tables that bypass it.
    """

    chunks: Sequence[Chunk]
    landed: LandedRange
    kept: Sequence[Chunk]
    past: Sequence[Chunk]


def log_changed(snapshot: PlannedSnapshot, server_uuid: str, relayed: EpochBegin | None) -> str | None:
    """Why a server's log is not the one for which a snapshot was planned; None if it is, as far as known.

    Args:
        server_uuid: of the server that answers now.
        relayed: how the relay's newest epoch began; None: it has begun none.
    """
    epoch = snapshot.log_begin.epoch
    if relayed is not None and relayed.epoch > epoch:
        return f"the log continues on the server {relayed.server_uuid} in epoch {relayed.epoch}"
    of_epoch = relayed.server_uuid if relayed is not None and relayed.epoch == epoch else None
    for planned in (snapshot.server_uuid, of_epoch):
        if planned not in (None, server_uuid):
            return f"it was planned on the server {planned}, the address leads to {server_uuid}"
    return None


def plan_batches(chunks: Sequence[Chunk], past: Collection[TableSchema] = ()) -> list[list[Chunk]]:
    """Commits of about BATCH_ROWS rows; small tables share one. A row that bypasses bronze (`past`) takes less time."""
    return neighbours(
        chunks, lambda chunk: chunk.rows // (PAST_SPEED if chunk.schema in past else 1), BATCH_ROWS, BATCH_CHUNKS
    )


def by_table(chunks: Sequence[Chunk]) -> list[tuple[Chunk, ...]]:
    """Group adjacent chunks of the same table."""
    return [tuple(group) for _, group in groupby(chunks, key=lambda chunk: chunk.schema)]


def shares_of(chunks: Sequence[Chunk]) -> list[tuple[str, int]]:
    """The table and the number of rows of each chunk."""
    return [(str(chunk.schema), chunk.rows) for chunk in chunks]
