"""How often to land: as seldom as the wanted freshness allows, for each batch costs commits, here and in silver."""


def plan_pause(freshness: float, land: float, apply: float) -> float:
    """Seconds between the beginnings of two batches; 0: one after the other.

    A change waits for the next batch, is landed, waits for the range before it and is applied, at the worst. Half of
    what is left of the wanted freshness is spent on waiting, the other half is for what takes longer than lately.

    Args:
        freshness: how old a change may be when it is in silver, in seconds.
        land, apply: what a batch and a range have lately taken, in seconds.
    """
    if apply > freshness > 0:
        return apply / 2
    return max(0.0, (freshness - land - 2 * apply) / 2)
