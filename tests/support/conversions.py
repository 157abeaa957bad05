"""The expression of each type change in CASES, as `tests/golden/ddl/conversions.txt` has it.

The integration test of type changes compares each expression with the values of real servers. After a change, run it,
then record again: `python -m tests.support.conversions > tests/golden/ddl/conversions.txt`.
"""

from collections.abc import Iterator

from dmdelta.ddl.type_changes import TypeChange
from dmdelta.ddl.types.conversion import plan_conversion
from tests.support.type_changes import CASES


def conversions() -> Iterator[str]:
    """A line for each change, and a second one if MariaDB differs."""
    for before, after in dict.fromkeys((before, after) for before, after, *_ in CASES):
        columns = TypeChange(before, after).columns
        plans = [plan_conversion(*columns, mariadb=mariadb) for mariadb in (False, True)]
        texts = dict.fromkeys(f"{plan.kind.value}: {plan.sql or plan.reason or '-'}" for plan in plans)
        yield from (f"{before} -> {after}{' (MariaDB)' * number}: {text}" for number, text in enumerate(texts))


if __name__ == "__main__":
    print("\n".join(conversions()))
