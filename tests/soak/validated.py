"""What a soak requires of the results of `dmdelta validate`: the tables of its own full diff, all of them the same."""

from collections import Counter
from collections.abc import Mapping, Sequence

from dmdelta.engine.validation.results import Outcome

NOT_COMPARED_SHARE = 0.1
"""A fault may still keep `dmdelta validate` from a table; a command that no longer compares is a failure."""
Table = tuple[str, str]
"""A source's id, and `schema.table`."""


def table_of(line: Mapping[str, object]) -> Table:
    """The table of a result."""
    return str(line["source"]), str(line["table"])


def plan_objections(
    found: Sequence[Mapping[str, object]], compared: frozenset[Table], excluded: frozenset[Table] = frozenset()
) -> list[str]:
    """What is wrong with the results; empty: nothing.

    No column of a soak's tables is without a comparison, so that `partly compared` is wrong, too: JSON documents are
    compared in tables with a key, and only those have some. A table that the source no longer has may be excluded.

    Args:
        compared: the tables of the full diff.
        excluded: those of them that the command excludes, for a documented reason.
    """
    of = {status: {table_of(line) for line in found if line["status"] == status.value} for status in Outcome}
    wrong = (Outcome.DIFFERS.value, Outcome.PARTLY_COMPARED.value)
    lines = [str(line) for line in found if line["status"] in wrong]
    lines += [f"{table} has {n} results" for table, n in Counter(map(table_of, found)).items() if n > 1]
    expected = compared - excluded - of[Outcome.NOT_COMPARED] - of[Outcome.DIFFERS] - of[Outcome.PARTLY_COMPARED]
    lines += [f"{table} is not among the tables that are the same" for table in sorted(expected - of[Outcome.SAME])]
    lines += [f"{table} is the same, but not to be compared" for table in sorted(of[Outcome.SAME] - expected)]
    lines += [f"{table} is not excluded" for table in sorted(excluded - of[Outcome.EXCLUDED])]
    reasons = [str(line.get("reason")) for line in found if line["status"] == Outcome.NOT_COMPARED.value]
    if len(reasons) > NOT_COMPARED_SHARE * len(found):
        lines.append(f"{len(reasons)} of {len(found)} tables are not compared: {reasons}")
    return lines if of[Outcome.SAME] else [*lines, "no table is the same"]
