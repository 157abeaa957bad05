"""The counters of a run."""

from dmdelta.engine.telemetry.counters import Progress, RunCounters


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
