"""What a run counts."""

from dmdelta.engine.progress import Progress, Tally


def test_a_load_that_goes_on_is_measured_by_this_run() -> None:
    """What had landed before counts as done, not as speed; the time left follows from the rate."""
    seen: list[Progress] = []
    tally = Tally(seen.append)
    chunks = [("s.big", 100), ("s.big", 100), ("s.big", 200), ("s.small", 5)]
    tally.loading(chunks, chunks[:1])
    big = seen[-1].loads["s.big"]
    assert (big.chunks, big.all_chunks, big.rows, big.all_rows) == (1, 3, 100, 400)
    assert (big.rows_per_second, big.seconds_left) == (None, None)
    tally.loaded(chunks[1:2])
    big = seen[-1].loads["s.big"]
    assert (big.chunks, big.rows) == (2, 200)
    assert big.rows_per_second is not None
    assert big.seconds_left is not None
    assert round(big.rows_per_second * big.seconds_left) == 200
    assert seen[-1].loads["s.small"].rows_per_second is None
