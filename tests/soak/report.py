"""The figures of a soak, as `make nightly` reads them."""

from collections import Counter
from statistics import median
from typing import Any

from tests.soak.phases import Soak

LEAST_ROWS = 300
"""Row changes per second on average: fewer are no load."""
LOADS = ("bursts", "online DDL", "statements on shards")
COMMANDS = ("snapshot", "pause", "resume", "replay", "maintain", "validate, silver")


def figures(soak: Soak, *, passed: int, failed: int, seconds: float) -> dict[str, Any]:
    """Phases that passed and failed, faults injected, rows written, and lines for the reader."""
    written = sum((source.counts for source in soak.sources), start=Counter[str]())
    settled = ", ".join(f"{one:.0f}" for one in soak.settled)
    counted = {
        "written": written,
        "faults": soak.faults.counts,
        "commands": soak.operations.counts,
        "dmdelta validate": soak.judges.validated,
    }
    codes = ", ".join(f"{code}: {n}" for code, n in sorted(soak.faults.runner.ended.items()))
    compared = f"{soak.judges.compared:,} tables compared"
    notes = [
        f"{passed + failed} phases in {seconds:.0f} s, {soak.rows / seconds:.0f} rows/s, {compared}",
        f"settled after {median(soak.settled):.0f} s (median), by phase: {settled} s" if settled else "never settled",
        *(f"{title}: {listed(counts) or 'none'}" for title, counts in counted.items()),
        *(f"not compared by dmdelta validate, {n} times: {why}" for why, n in sorted(soak.judges.not_compared.items())),
        f"the task ended and was started again, by exit code: {codes or 'never'}",
    ]
    return {"passed": passed, "failed": failed, "faults": soak.faults.met, "rows": soak.rows, "notes": notes}


def shortcomings(soak: Soak, seconds: float) -> list[str]:
    """What a whole soak must have done, and this one has not."""
    written = sum((source.counts for source in soak.sources), start=Counter[str]())
    commands, sinks = soak.operations.counts, soak.judges.task.target is not None
    needed = {name: written[name] for name in (*LOADS, *(() if sinks else ("DDL cases",)))}
    needed |= {name: commands[name] for name in (*COMMANDS, *(("validate, sink",) if sinks else ()))}
    found = [f"no {name}" for name, count in {**needed, "faults": soak.faults.met}.items() if not count]
    if soak.rows < LEAST_ROWS * seconds:
        found.append(f"{soak.rows / seconds:.0f} rows/s instead of {LEAST_ROWS}")
    return found


def listed(counts: "Counter[str]") -> str:
    """Counts in one line."""
    return ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items()))
