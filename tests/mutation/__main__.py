"""`make mutation MUTANTS=200 SEED=1`: which single changes of the code the unit tests do not detect.

A seeded sample of cosmic-ray's mutants of the pure packages and functions, in a copy of the checkout; each runs the
unit tests that execute its line. The lane passes if they kill 85 % of all mutants. A survivor needs a test, or a reason
in `accepted.yml` why no test can detect it; until then it counts as failed. The page lists all survivors.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "build" / "mutation"
sys.path.append(str(TOOLS))  # behind the pinned packages

from tests.mutation.accepted import accepted_reason, change_of, read_accepted  # noqa: E402
from tests.mutation.mutants import Mutant, mutated, pool, sample  # noqa: E402
from tests.mutation.running import (  # noqa: E402
    PROCESSES,
    Fate,
    check_unmutated,
    copied,
    import_foreign,
    measured,
    run_mutant,
)
from tests.mutation.score import Score, Survivor  # noqa: E402
from tests.mutation.selection import Contexts, plan_tests  # noqa: E402

Planned = tuple[Mutant, list[str], float]
"""A mutant, the tests that run on it, and the seconds that they take without it."""


def scored(copies: Sequence[Path], positions: int, planned: Sequence[Planned]) -> Score:
    """Run the mutants, a share of them in each copy, and print a line for each."""
    shares = [planned[number :: len(copies)] for number in range(len(copies))]
    # Each test runs in a fork of a process that has imported foreign packages.
    with ProcessPoolExecutor(len(copies), mp_context=get_context("fork")) as pool:
        fates = {mutant: fate for found in pool.map(fates_of, copies, shares) for mutant, fate in found}
    survivors = [(mutant, tests) for mutant, tests, _ in planned if fates[mutant] is Fate.SURVIVED]
    left = tuple(survivor_of(copies[0], mutant, len(tests)) for mutant, tests in survivors)
    timed_out = [*fates.values()].count(Fate.TIMED_OUT)
    return Score(positions, len(fates) - len(left), timed_out, left)


def fates_of(copy: Path, planned: Sequence[Planned]) -> list[tuple[Mutant, Fate]]:
    """Run mutants one after another in a copy of the checkout.

    Raises:
        RuntimeError: tests fail without a mutant, or pytest itself fails.
    """
    found = list[tuple[Mutant, Fate]]()
    check_unmutated(copy, sorted({test for _, tests, _ in planned for test in tests}))
    for mutant, tests, seconds in planned:
        began = time.monotonic()
        fate = run_mutant(copy, mutant, tests, seconds) if tests else Fate.SURVIVED
        found.append((mutant, fate))
        took = time.monotonic() - began
        print(f"{copy.name} {len(found)}/{len(planned)} {fate.value} {took:.1f} s {mutant}", flush=True)
    return found


def _planned(mutant: Mutant, contexts: Contexts) -> Planned:
    tests = plan_tests(mutant, contexts)
    return mutant, tests, sum(contexts.seconds.get(test, 0.0) for test in tests)


def survivor_of(copy: Path, mutant: Mutant, tests: int) -> Survivor:
    """A survivor, with the reason if it is accepted."""
    text = (copy / mutant.path).read_text("utf-8")
    change = change_of(mutant, text, mutated(text, mutant))
    return Survivor(mutant, change, tests, accepted_reason(read_accepted(), mutant, change))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--only", default="", help="mutants of paths with this text alone")
    parser.add_argument("--json", type=Path, help="a file for the result")
    chosen = parser.parse_args()
    print(f"mutation: {chosen.mutants} mutants, SEED={chosen.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="dmdelta-mutation-") as place:
        copies = [copied(Path(place) / f"copy-{number}") for number in range(PROCESSES)]
        copy = copies[0]
        positions = [mutants for mutants in pool(copy) if chosen.only in mutants[0].path]
        contexts = measured(copy, Path(place) / "contexts", TOOLS)
        import_foreign()
        mutants = sample(copy, positions, chosen.mutants, chosen.seed)
        score = scored(copies, len(positions), [_planned(mutant, contexts) for mutant in mutants])
    print("\n".join(score.notes()), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(score.figures(), indent=2) + "\n")
    return 0 if score.passes else 1


if __name__ == "__main__":
    sys.exit(main())
