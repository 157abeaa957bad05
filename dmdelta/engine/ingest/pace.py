"""How often to land: as seldom as the target freshness allows, because a batch costs commits in bronze and silver."""


def plan_pause(freshness: float, land: float, apply: float) -> float:
    """Seconds between the starts of two batches; 0: one directly after the other.

    In the worst case a change waits for the next batch, is landed, waits for the range before it and is applied. Half
    of the remaining target freshness is spent on waiting, the other half is a reserve for slower batches.

    Args:
        freshness: maximum age of a change when it reaches silver, in seconds.
        land, apply: recent duration of a batch and of a range, in seconds.
    """
    if apply > freshness > 0:
        return apply / 2
    return max(0.0, (freshness - land - 2 * apply) / 2)
