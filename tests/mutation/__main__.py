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
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "build" / "mutation"
sys.path.append(str(TOOLS))  # behind the pinned packages

from tests.mutation.accepted import accepted_reason, change_of, read_accepted  # noqa: E402
from tests.mutation.mutants import Mutant, mutated, pool, sample  # noqa: E402
from tests.mutation.running import Fate, check_unmutated, copied, import_foreign, measured, run_mutant  # noqa: E402
from tests.mutation.score import Score, Survivor  # noqa: E402
from tests.mutation.selection import Contexts, plan_tests  # noqa: E402


def scored(copy: Path, positions: int, mutants: Sequence[Mutant], contexts: Contexts) -> Score:
    """Run the mutants and print a line for each."""
    accepted, left, fates = read_accepted(), list[Survivor](), Counter[Fate]()
    for number, mutant in enumerate(mutants, 1):
        began, tests = time.monotonic(), plan_tests(mutant, contexts)
        seconds = sum(contexts.seconds.get(test, 0.0) for test in tests)
        fate = run_mutant(copy, mutant, tests, seconds) if tests else Fate.SURVIVED
        fates[fate] += 1
        took = time.monotonic() - began
        print(f"{number}/{len(mutants)} {fate.value} {took:.1f} s {mutant}", flush=True)
        if fate is Fate.SURVIVED:
            text = (copy / mutant.path).read_text("utf-8")
            change = change_of(mutant, text, mutated(text, mutant))
            left.append(Survivor(mutant, change, len(tests), accepted_reason(accepted, mutant, change)))
    timed_out = fates[Fate.TIMED_OUT]
    return Score(positions, fates[Fate.KILLED] + timed_out, timed_out, tuple(left))


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
        score = scored(copy, len(positions), mutants, contexts)
    print("\n".join(score.notes()), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(score.figures(), indent=2) + "\n")
    return 0 if score.passes else 1


if __name__ == "__main__":
    sys.exit(main())
