"""RENAME TABLE: groups of tables, and the content of each afterwards."""

from datetime import datetime, timezone

import pytest

from dmdelta.lakehouse.history import CommitTag, OwnCommit
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.rules import NO_RULES, OnlineDdl, SourceRules
from dmdelta.silver.apply.renames import plan_groups, plan_renamings, plan_version_before
from dmdelta.silver.schema.evolution import UNMARK
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents

AT = Position(1, "b.000001", 20)
ONLINE = SourceRules(online=OnlineDdl((r"^_(.+)_(?:new|gho)$",), (r"^_(.+)_(?:ghc|del|old)$",)))


def events(name, *statements):
    schema, _, table = name.rpartition(".")
    structure = tuple(StructureEvent(AT, number, Op.DDL, text) for number, text in enumerate(statements))
    return TableEvents(schema or "db", table, {}, AT, AT, structure)


@pytest.mark.parametrize(
    ("sql", "sources"),
    [
        ("RENAME TABLE t TO u", {"u": "t", "t": None}),
        ("ALTER TABLE t ADD c INT, RENAME TO u", {"u": "t", "t": None}),
        ("RENAME TABLE t TO tmp, u TO t, tmp TO u", {"t": "u", "u": "t", "tmp": None}),
        ("RENAME TABLE t TO was, u TO t", {"was": "t", "t": "u", "u": None}),
        ("RENAME TABLE t TO x, x TO t", {"x": None}),
    ],
)
def test_content_after_a_rename(sql, sources):
    """Every name has the content of its source table, also through temporary names."""
    (renaming,) = plan_renamings([events("t", sql)], NO_RULES, mariadb=False)
    assert renaming.sources == {("db", to): source and ("db", source) for to, source in sources.items()}


@pytest.mark.parametrize(
    "sql", ["RENAME TABLE t TO _t_del, _t_gho TO t", "RENAME TABLE t TO _t_old, _t_new TO t", "ALTER TABLE t ADD c INT"]
)
def test_the_cut_over_of_an_online_ddl_moves_no_rows(sql):
    """The cut-over is an ALTER of the real table, not a RENAME."""
    assert plan_renamings([events("t", sql)], ONLINE, mariadb=False) == []


def test_a_cut_over_whose_trash_table_is_not_recognized():
    """It would leave the real table empty, so the plan says why silver refuses it."""
    (renaming,) = plan_renamings([events("t", "RENAME TABLE t TO t_bin, _t_gho TO t")], ONLINE, mariadb=False)
    assert renaming.refused == (
        "the shadow table db._t_gho replaces db.t, but db.t_bin matches no pattern of trash-table-rules"
    )
    (swap,) = plan_renamings([events("t", "RENAME TABLE t TO was, u TO t")], ONLINE, mariadb=False)
    assert swap.refused == ""


def test_rename_across_databases():
    """The bronze row with the statement's default schema resolves unqualified names."""
    sql = "RENAME TABLE t TO other.u"
    (renaming,) = plan_renamings([events("other.u", sql), events("t", sql)], NO_RULES, mariadb=False)
    assert renaming.sources == {("other", "u"): ("db", "t"), ("db", "t"): None}


def test_groups():
    """Tables that are renamed into each other are one group, also through a third table."""
    swap = "RENAME TABLE a TO tmp, b TO a, tmp TO b"
    tables = [events("a", swap), events("b", swap, "RENAME TABLE b TO c"), events("c"), events("d", "TRUNCATE d")]
    groups = plan_groups(tables)
    assert sorted(sorted(table.table for table in group) for group in groups) == [["a", "b", "c"], ["d"]]


BEFORE, AFTER = Position(1, "b.000001", 10), Position(1, "b.000001", 30)


def own(version, end, rest=None):
    tag = CommitTag("app", version, "t", "s1", "run", end, end, rest=rest)
    return OwnCommit(version, tag, datetime(2026, 1, 1, tzinfo=timezone.utc))


@pytest.mark.parametrize(
    ("commits", "newest", "version"),
    [
        ([own(5, BEFORE)], 5, 5),
        ([own(5, BEFORE)], 8, 8),
        ([own(5, AT)], 8, 8),
        ([own(9, AT, ()), own(5, BEFORE)], 12, 8),
        ([own(11, AFTER), own(10, AT, ()), own(9, AT, (UNMARK,)), own(5, AT), own(4, BEFORE)], 12, 8),
        ([own(9, AT, ())], 12, None),
        ([], None, None),
    ],
)
def test_the_rows_before_a_statement_include_later_repairs(commits, newest, version):
    """The version is the last one before the table's first commit of the statement, whoever has written it."""
    assert plan_version_before(commits, newest, AT) == version
