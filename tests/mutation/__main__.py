"""`make mutation MUTANTS=200 SEED=1`: which single changes of the code the unit tests do not detect.

A seeded sample of cosmic-ray's mutants of the pure packages and functions, in a copy of the checkout; each runs the
unit tests that execute its line. The lane passes if they kill 85 % of the mutants that a test can detect; for the
others, `accepted.yml` has the reason. The page lists all survivors.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "build" / "mutation"
sys.path.append(str(TOOLS))  # behind the pinned packages

from tests.mutation.accepted import accepted_reason, read_accepted  # noqa: E402
from tests.mutation.mutants import Mutant, pool, sample  # noqa: E402
from tests.mutation.running import check_unmutated, copied, import_foreign, is_killed, measured  # noqa: E402
from tests.mutation.selection import Contexts, plan_tests  # noqa: E402

LEAST_KILLED = 0.85
"""Of the mutants that a test can detect."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that no unit test detects.

    Attributes:
        code: the line, unmutated.
        tests: how many test functions ran on it.
        reason: why no test can detect it; None: no reason is given.
    """

    mutant: Mutant
    code: str
    tests: int
    reason: str | None

    def __str__(self) -> str:
        faced = f"{self.tests} tests" if self.tests else "no unit test executes it"
        return f"{self.mutant} ({faced}): {self.code}{f' - {self.reason}' if self.reason else ''}"


def survivors(copy: Path, mutants: Sequence[Mutant], contexts: Contexts) -> list[Survivor]:
    """Run the mutants and print a line for each."""
    accepted, found = read_accepted(), list[Survivor]()
    for number, mutant in enumerate(mutants, 1):
        began, tests = time.monotonic(), plan_tests(mutant, contexts)
        seconds = sum(contexts.seconds.get(test, 0.0) for test in tests)
        killed = bool(tests) and is_killed(copy, mutant, tests, seconds)
        took = time.monotonic() - began
        print(f"{number}/{len(mutants)} {'killed' if killed else 'SURVIVED'} {took:.1f} s {mutant}", flush=True)
        if not killed:
            code = (copy / mutant.path).read_text("utf-8").splitlines()[mutant.line - 1].strip()
            found.append(Survivor(mutant, code, len(tests), accepted_reason(accepted, mutant, code)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--only", default="", help="mutants of paths with this text alone")
    parser.add_argument("--json", type=Path, help="a file for the result")
    chosen = parser.parse_args()
    print(f"mutation: {chosen.mutants} mutants, SEED={chosen.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="dmdelta-mutation-") as place:
        copy = copied(Path(place) / "copy")
        positions = [mutants for mutants in pool(copy) if chosen.only in mutants[0].path]
        contexts = measured(copy, Path(place) / "contexts", TOOLS)
        import_foreign()
        mutants = sample(copy, positions, chosen.mutants, chosen.seed)
        check_unmutated(copy, sorted({test for mutant in mutants for test in plan_tests(mutant, contexts)}))
        found = survivors(copy, mutants, contexts)
    return _sum_up(len(positions), len(mutants), found, chosen.json)


def _sum_up(positions: int, count: int, found: Sequence[Survivor], file: Path | None) -> int:
    """Report the share of detected mutants among those that a test can detect."""
    killed, left = count - len(found), [survivor for survivor in found if survivor.reason is None]
    share = killed / (killed + len(left)) if count else 0.0
    summary = (
        f"{killed} of {count} mutants killed, {len(left)} survive, {len(found) - len(left)} cannot be noticed: "
        f"{share:.1%} of those that can; {positions:,} positions in the pool"
    )
    notes = [summary, *(f"survivor {survivor}" for survivor in found)]
    print("\n".join(notes), flush=True)
    passes = share >= LEAST_KILLED
    if file:
        figures = {"passed": killed, "failed": 0 if passes else len(left), "notes": notes}
        file.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if passes else 1


if __name__ == "__main__":
    sys.exit(main())
