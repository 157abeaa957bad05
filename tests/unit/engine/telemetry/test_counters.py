"""The counters of a run."""

import pytest

from dmdelta.engine.telemetry.counters import Progress, RunCounters, RunSummary
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.silver.apply.request import ApplyResult, RowsPath
from dmdelta.silver.rows.strategy import Step


def test_the_rate_of_a_resumed_load_is_that_of_this_run() -> None:
    """Chunks that landed before count as done, not for the rate; the time left follows from the rate."""
    seen: list[Progress] = []
    counters = RunCounters(seen.append)
    chunks = [("s.big", 100), ("s.big", 100), ("s.big", 200), ("s.small", 5)]
    counters.loading(chunks, chunks[:1])
    big = seen[-1].loads["s.big"]
    assert (big.chunks, big.all_chunks, big.rows, big.all_rows) == (1, 3, 100, 400)
    assert (big.rows_per_second, big.seconds_left) == (None, None)
    counters.loaded(chunks[1:2])
    big = seen[-1].loads["s.big"]
    assert (big.chunks, big.rows) == (2, 200)
    assert big.rows_per_second is not None
    assert big.seconds_left is not None
    assert round(big.rows_per_second * big.seconds_left) == 200
    assert seen[-1].loads["s.small"].rows_per_second is None


def result(
    rows: dict[Op, int], *steps: Step, table: str = "t", clashes: int = 0, path: RowsPath | None = None
) -> ApplyResult:
    return ApplyResult("s", table, Position(1, "b.000001", 100), rows, steps, None, None, clashes=clashes, path=path)


def test_applied_rows_are_counted() -> None:
    """Sums by source, table and operation; the listener is called for each change."""
    seen: list[Progress] = []
    counters = RunCounters(seen.append)
    assert counters.now().landed_batches == counters.batches == 0
    counters.landed("s1", "1/b.000001:100")
    counters.landed("s2", "1/b.000001:50")
    counters.landed("s1", "1/b.000001:200")
    counters.applied("s1", result({Op.INSERT: 3, Op.DELETE: 1}, Step.APPEND, path=RowsPath.MEMORY))
    counters.applied("s1", result({Op.INSERT: 2}, Step.APPEND, Step.MERGE, path=RowsPath.BRONZE, clashes=4))
    counters.applied("s2", result({Op.UPDATE: 5}, table="u", path=RowsPath.MEMORY))
    counters.applied("s2", result({}, table="u"))
    counters.failed("s1", "s.t", {"positive": 2})
    counters.failed("s1", "s.t", {"positive": 1})
    counters.maintained("OPTIMIZE")
    assert len(seen) == 7
    newest = seen[-1]
    assert (newest.landed_batches, newest.landed_to) == (3, {"s1": "1/b.000001:200", "s2": "1/b.000001:50"})
    assert (newest.applied_rows, newest.tables, newest.clashes) == (11, {"s.t": 6, "s.u": 5}, {"s.t": 4})
    counts = counters.counts()
    assert counts.rows == {("s1", "s.t", "insert"): 5, ("s1", "s.t", "delete"): 1, ("s2", "s.u", "update"): 5}
    assert counts.commits == {("s1", "append"): 2, ("s1", "merge"): 1}
    assert counts.clashes == {("s1", "s.t"): 4}
    assert counts.failures == {("s1", "s.t", "positive"): 3}
    assert counts.ranges == {("s1", "memory"): 1, ("s1", "bronze"): 1, ("s2", "memory"): 1}
    assert counts.maintenance == {("OPTIMIZE",): 1}


def test_the_duration_of_phases() -> None:
    """Number and total since the start, and a recent average; a phase that fails is not counted."""
    counters = RunCounters(lambda _: None)
    assert counters.recent("s1", "land") == 0.0
    counters.spent("s1", "land", 2.0)
    assert counters.recent("s1", "land") == 2.0
    counters.spent("s1", "land", 4.0)
    counters.spent("s2", "land", 8.0)
    assert 2.0 < counters.recent("s1", "land") < 4.0
    with pytest.raises(ValueError, match="it fails"), counters.spending("s1", "apply"):
        raise ValueError("it fails")
    assert counters.counts().spent == {("s1", "land"): (2, 6.0), ("s2", "land"): (1, 8.0)}


@pytest.mark.parametrize(
    ("landed_batches", "applied_rows", "idle"), [(0, 0, True), (1, 0, False), (0, 5, False), (2, 5, False)]
)
def test_a_run_without_changes_is_idle(landed_batches: int, applied_rows: int, idle: bool) -> None:  # noqa: FBT001
    """Batches that landed are changes even if none of their rows is applied, and so are rows that had landed before."""
    progress = Progress(1.0, landed_batches, {}, applied_rows, {})
    assert RunSummary(progress, stopped=False).is_idle is idle
