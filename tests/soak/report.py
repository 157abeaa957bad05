"""The figures of a soak, as `make nightly` reads them."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from tests.soak.ends import by_cause
from tests.soak.phases import Soak
from tests.soak.scenes import special_scenes

LEAST_ROWS = 300
"""Row changes per second on average: fewer are no load."""
LOADS = ("bursts", "online DDL", "statements on shards")
COMMANDS = ("snapshot", "pause", "resume", "replay", "maintain")
"""Each has to succeed under load."""
EXTENDED = 1.5
"""The longest time of a whole soak that lacks something, as a multiple of the wanted time: a slow machine has fewer
phases in the same time."""


def figures(soak: Soak, *, passed: int, failed: int, seconds: float) -> dict[str, Any]:
    """Phases that passed and failed, faults injected, rows written, and lines for the reader."""
    written = sum((source.counts for source in soak.sources), start=Counter[str]())
    counted = {
        "written": written,
        "faults": soak.faults.counts,
        "commands": soak.operations.counts,
        "commands under load": soak.operations.under_load,
        "dmdelta validate": soak.judges.validated,
    }
    codes = ", ".join(f"{code}: {n}" for code, n in sorted(soak.faults.runner.ended.items()))
    compared = f"{soak.judges.compared:,} tables compared"
    notes = [
        f"{passed + failed} phases in {seconds:.0f} s, {soak.rows / seconds:.0f} rows/s, {compared}",
        f"settled {_seconds(soak.settled)}",
        f"all tables equal {_seconds(soak.equal)}, with the time of the comparison",
        *(f"{title}: {listed(counts) or 'none'}" for title, counts in counted.items()),
        *(f"not compared by dmdelta validate, {n} times: {why}" for why, n in sorted(soak.judges.not_compared.items())),
        f"the task ended and was started again, by exit code: {codes or 'never'}",
        f"by cause: {listed(by_cause(soak.faults.runner.causes)) or 'none'}",
    ]
    return {"passed": passed, "failed": failed, "faults": soak.faults.met, "rows": soak.rows, "notes": notes}


def shortcomings(soak: Soak, seconds: float) -> list[str]:
    """What a whole soak must have done, and this one has not."""
    written = sum((source.counts for source in soak.sources), start=Counter[str]())
    operations, sinks = soak.operations, soak.judges.task.target is not None
    needed = {name: written[name] for name in (*LOADS, *(() if sinks else ("DDL cases",)))}
    needed |= {f"{name} under load": operations.under_load[name] for name in COMMANDS}
    sides = ("silver", "sink") if sinks else ("silver",)
    needed |= {f"validate, {side}": operations.counts[f"validate, {side}"] for side in sides}
    needed |= {scene.value: soak.faults.counts[scene.value] for scene in special_scenes(sinks=sinks)}
    found = [f"no {name}" for name, count in {**needed, "faults": soak.faults.met}.items() if not count]
    if soak.rows < LEAST_ROWS * seconds:
        found.append(f"{soak.rows / seconds:.0f} rows/s instead of {LEAST_ROWS}")
    return found


def is_over(soak: Soak, seconds: float, wanted: float, *, whole: bool) -> bool:
    """Whether a soak that has taken some seconds begins no further phase.

    Args:
        whole: it continues after the wanted seconds while it lacks something.
    """
    if seconds < wanted:
        return False
    return not whole or seconds >= EXTENDED * wanted or not shortcomings(soak, seconds)


def _seconds(phases: Sequence[float]) -> str:
    """The median, and each phase's."""
    if not phases:
        return "never"
    return f"after {median(phases):.0f} s (median), by phase: {', '.join(f'{one:.0f}' for one in phases)} s"


def listed(counts: "Counter[str]") -> str:
    """Counts in one line."""
    return ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items()))
