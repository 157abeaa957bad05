"""Which chunks land in one commit, are read by one Spark task, and are applied as one range."""

from dmdelta.bronze.progress import LandedRange
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.snapshot.chunk_source import group_chunks, share_chunks
from dmdelta.engine.snapshot.plan import BATCH_CHUNKS, BATCH_ROWS, by_table, plan_batches
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.source.snapshot.chunk import Chunk
from dmdelta.source.snapshot.key_ranges import CHUNK_ROWS

SMALL, BIG = TableSchema("s", "small", (), ()), TableSchema("s", "big", (), ("id",))


def chunks(*rows: int, schema: TableSchema = BIG) -> list[Chunk]:
    return [Chunk(number, schema, rows=count) for number, count in enumerate(rows, 1)]


def test_commits_have_about_the_target_size() -> None:
    """Chunks fill a commit in order; a large one has its own commit; the number of small ones is limited."""
    batches = plan_batches(chunks(BATCH_ROWS // 2, BATCH_ROWS // 2, 1, 2 * BATCH_ROWS, 0))
    assert [[chunk.number for chunk in batch] for batch in batches] == [[1, 2], [3], [4], [5]]
    assert [len(batch) for batch in plan_batches(chunks(*[0] * (BATCH_CHUNKS + 1)))] == [BATCH_CHUNKS, 1]
    assert plan_batches([]) == []


def test_small_chunks_share_a_task() -> None:
    """Each task reads about CHUNK_ROWS."""
    groups = group_chunks(chunks(CHUNK_ROWS, 1, 2, CHUNK_ROWS - 3, 1))
    assert [[chunk.number for chunk in group.chunks] for group in groups] == [[1], [2, 3, 4], [5]]


def test_chunks_are_distributed_over_the_readers_of_a_snapshot() -> None:
    """Each has about the same number of rows, at least one chunk, and its own number."""
    shares = share_chunks(chunks(5, 1, 3, 0, 1), 2)
    assert [share.number for share in shares] == [0, 1]
    assert [sum(chunk.rows for chunk in share.chunks) for share in shares] == [5, 5]
    assert sorted(chunk.number for share in shares for chunk in share.chunks) == [1, 2, 3, 4, 5]
    assert [len(share.chunks) for share in share_chunks(chunks(0, 0, 0), 3)] == [1, 1, 1]


def test_chunks_are_appended_to_silver_by_table() -> None:
    """Adjacent chunks of one table are one append."""
    mixed = [*chunks(1, 1), *chunks(1, schema=SMALL)]
    assert [[chunk.schema.table for chunk in group] for group in by_table(mixed)] == [["big", "big"], ["small"]]


def test_a_chunk_round_trips_through_json() -> None:
    """Including its structure."""
    chunk = Chunk(3, BIG, "`id` >= 7", transactional=False, rows=9)
    assert Chunk.from_json(chunk.to_json()) == chunk


def test_a_snapshot_is_not_joined_with_the_log_after_it() -> None:
    """The snapshot's rows are new, the log after it may already be in silver: they are never one range."""
    gtids = parse_gtid_set("", "mysql")
    log = Position(2, "binlog.000001", 4)
    mark = LandedRange(3, log, log, gtids, safe_until=Position(2, "binlog.000001", 900))
    read = LandedRange(2, Position.of_chunk(1, 1), Position.of_chunk(1, 4), gtids)
    first = LandedRange(4, log, Position(2, "binlog.000001", 500), gtids)
    queue = RangeQueue()
    for landed in (read, mark, first):
        queue.append(landed)
    assert queue.take(1 << 40, 0) == read
    joined = queue.take(1 << 40, 0)
    assert joined is not None
    assert (joined.begin, joined.end, joined.safe_until) == (log, first.end, mark.safe_until)


def test_a_chunk_has_a_position_before_the_log() -> None:
    """Positions of a snapshot are ordered by chunk, before the next epoch's log, and are recognised as chunks."""
    assert Position.of_chunk(1, 9) < Position.of_chunk(1, 10) < Position(2, "binlog.000001", 4)
    assert Position.of_chunk(1, 9).chunk == 9
    assert Position(2, "binlog.000001", 4).chunk is None
    assert Position(2, "snapshot.000001", 4).chunk is None, "a server's log of that name"
