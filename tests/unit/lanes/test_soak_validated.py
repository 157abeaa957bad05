"""`make soak`: what it requires of `dmdelta validate`, its second comparison."""

from types import SimpleNamespace

import pytest

from tests.soak.judges import Judges
from tests.soak.task import SoakTask
from tests.soak.validated import plan_objections

TABLES = frozenset(("s1", f"shop.t{number}") for number in range(20))
SHARD = ("s1", "shard.t")


def lines(tables, status="same"):
    """Results of one status."""
    return [{"source": source, "table": table, "status": status, "reason": status} for source, table in sorted(tables)]


def test_all_tables_of_the_full_diff_are_the_same():
    """A dropped table may be excluded, and one in ten may not be compared."""
    assert plan_objections(lines(TABLES), TABLES) == []
    assert plan_objections([*lines(TABLES), *lines([("s1", "shop.dropped")], "excluded")], TABLES) == []
    missed = frozenset(sorted(TABLES)[:2])
    assert plan_objections([*lines(TABLES - missed), *lines(missed, "not compared")], TABLES) == []


@pytest.mark.parametrize("status", ["differs", "partly compared", "excluded"])
def test_no_table_of_the_full_diff_has_another_status(status):
    """Columns without a comparison are no success."""
    one = frozenset(sorted(TABLES)[:1])
    (objection,) = plan_objections([*lines(TABLES - one), *lines(one, status)], TABLES)
    assert "shop.t0" in objection


def test_the_tables_are_those_of_the_full_diff():
    """Each once: no fewer, and no more."""
    one = frozenset(sorted(TABLES)[:1])
    assert plan_objections(lines(TABLES - one), TABLES) == [
        "('s1', 'shop.t0') is not among the tables that are the same"
    ]
    assert plan_objections(lines(TABLES), TABLES - one) == ["('s1', 'shop.t0') is the same, but not to be compared"]
    assert plan_objections([*lines(TABLES), *lines(one)], TABLES) == ["('s1', 'shop.t0') has 2 results"]


def test_only_documented_tables_are_excluded():
    """They are neither compared nor left out."""
    expected = TABLES | {SHARD}
    assert plan_objections([*lines(TABLES), *lines([SHARD], "excluded")], expected, frozenset({SHARD})) == []
    assert plan_objections(lines(expected), expected, frozenset({SHARD})) != []
    assert plan_objections(lines(TABLES), expected, frozenset({SHARD})) == ["('s1', 'shard.t') is not excluded"]


def test_a_command_that_no_longer_compares_is_a_failure():
    """More than one table in ten, or all of them."""
    missed = frozenset(sorted(TABLES)[:3])
    (objection,) = plan_objections([*lines(TABLES - missed), *lines(missed, "not compared")], TABLES)
    assert objection.startswith("3 of 20 tables are not compared")
    assert plan_objections([], frozenset()) == ["no table is the same"]


def test_the_judges_expect_the_tables_of_both_sources(tmp_path):
    """The shards of a source are compared with silver, and excluded from the comparison with the target."""
    source = SimpleNamespace(source_id="s1", tables=lambda: iter([("shop", "orders")]), shards=["shard"])
    task = SoakTask(tmp_path, None, "", sources=[source], target=object())
    found = {
        "silver": lines([("s1", "shop.orders"), SHARD]),
        "sink": [*lines([("s1", "shop.orders")]), *lines([SHARD], "excluded")],
    }
    judges = Judges(None, task, SimpleNamespace(validate=found.__getitem__))
    judges.validate()
    assert judges.validated == {"same": 3, "excluded": 1}
    found["silver"] = found["sink"]
    with pytest.raises(AssertionError, match=r"--against=silver:\n\('s1', 'shard.t'\) is not among"):
        judges.validate()
