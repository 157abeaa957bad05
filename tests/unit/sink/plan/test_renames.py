"""A RENAME among the actions of an ALTER TABLE means what RENAME TABLE means."""

import pytest

from dmdelta.config.routes import RouteRule
from dmdelta.errors import SchemaError
from dmdelta.rules import Action, BlockAllowList, EventFilter, OnlineDdl, Routes, SourceRules
from dmdelta.rules.filters import Rule
from dmdelta.sink.plan.ddl import plan_statement
from dmdelta.sink.plan.target_statement import StatementContext, TargetStatement

SHADOWS = OnlineDdl((r"^_(.+)_(?:new|gho)$",), (r"^_(.+)_(?:ghc|del|old)$",))
CREATED = "CREATE TABLE d._t_gho LIKE d.t"
CHANGED = "ALTER TABLE `d`.`_t_gho` ADD COLUMN c INT"
ON_T = "ALTER TABLE `d`.`t` ADD COLUMN c INT"


def rules_of(*, events=(), merged=""):
    route = RouteRule(schema_pattern="d", table_pattern=merged or "none", target_schema="all", target_table="t")
    filters = EventFilter(tuple(Rule("r", "d", table, (event,), (), action) for table, event, action in events))
    return SourceRules("s", BlockAllowList(do_dbs=("d",)), Routes.from_config({"r": route}), SHADOWS, filters)


def planned(sql, *, rules=None, earlier=(CREATED, CHANGED), tidb=False):
    context = StatementContext(rules or rules_of(), lambda _: earlier, lambda _: (), tidb)
    return plan_statement(sql, "d", context)


def texts(sql, **more):
    return [one.sql for one in planned(sql, **more)]


@pytest.mark.parametrize(
    ("to", "target"),
    [
        ("RENAME u", "RENAME `d`.`u`"),
        ("RENAME TO u", "RENAME TO `d`.`u`"),
        ("RENAME AS x.`u`", "RENAME AS `x`.`u`"),
        ("RENAME = u", "RENAME = `d`.`u`"),
        ("ADD c INT, RENAME u", "ADD c INT, RENAME `d`.`u`"),
        ("RENAME u, ADD c INT", "RENAME `d`.`u`, ADD c INT"),
        ("RENAME TO u PARTITION BY HASH (id)", "RENAME TO `d`.`u` PARTITION BY HASH (id)"),
    ],
)
def test_a_table_that_the_target_renames(to, target):
    """One statement, which is executed as a whole, and whose result is checked as that of RENAME TABLE."""
    new = ("x" if "x." in to else "d", "u")
    assert planned(f"ALTER TABLE t {to}") == [TargetStatement(f"ALTER TABLE `d`.`t` {target}", ("d", "t"), renamed=new)]


@pytest.mark.parametrize(
    "action",
    [
        "RENAME COLUMN a TO b",
        "RENAME INDEX a TO b",
        "RENAME KEY a TO b",
        "RENAME TO t",
        "RENAME d.t",
        "ADD `rename` INT",
    ],
)
def test_no_other_name_for_the_table(action):
    """Columns and indexes are renamed, or the table keeps its name."""
    (one,) = planned(f"ALTER TABLE t {action}")
    assert (one.needs, one.renamed) == (("d", "t"), None)


def test_tidb_renames_the_table_last():
    """Only the last part gives the table its new name."""
    found = planned("ALTER TABLE t RENAME TO u, ADD c INT, ADD d INT", tidb=True)
    assert found == [
        TargetStatement("ALTER TABLE `d`.`t` ADD c INT", ("d", "t")),
        TargetStatement("ALTER TABLE `d`.`t` ADD d INT", ("d", "t")),
        TargetStatement("ALTER TABLE `d`.`t` RENAME TO `d`.`u`", ("d", "t"), renamed=("d", "u")),
    ]
    assert planned("RENAME TABLE t TO u", tidb=True) == planned("RENAME TABLE t TO u")


def test_a_cut_over_in_two_steps():
    """gh-ost with --cut-over=two-step: the target's table keeps its rows, and gets the changes of the shadow table."""
    assert texts("alter /* gh-ost */ table `d`.`t` rename `_t_del`") == []
    assert texts("alter /* gh-ost */ table `d`.`_t_gho` rename `t`") == [ON_T]
    assert texts("ALTER TABLE _t_gho ADD e INT, RENAME TO t") == [ON_T, "ALTER TABLE `d`.`t` ADD e INT"]
    assert texts("ALTER TABLE _t_del RENAME t") == [], "a cut-over that is taken back"
    assert texts("ALTER TABLE _t_gho RENAME _t_del") == []
    assert texts("ALTER TABLE x._t_gho RENAME x.t") == []


def test_a_shadow_table_that_was_renamed_before():
    """A RENAME of the shadow table is no change of the real table."""
    for left in ("ALTER TABLE _t_gho RENAME t", "RENAME TABLE _t_gho TO t"):
        assert texts("ALTER TABLE _t_gho RENAME t", earlier=(CREATED, CHANGED, left)) == [ON_T]


def test_other_actions_on_a_table_whose_rows_stay():
    """They are executed, the RENAME is not."""
    assert texts("ALTER TABLE t ADD e INT, RENAME TO _t_del, DROP f") == ["ALTER TABLE `d`.`t` ADD e INT, DROP f"]
    assert planned("ALTER TABLE t1 RENAME bak, ADD e INT", rules=rules_of(merged="t?")) == [
        TargetStatement("ALTER TABLE `all`.`t` ADD e INT", ("all", "t"), merged=True)
    ]


@pytest.mark.parametrize(
    "sql", ["ALTER TABLE t RENAME _t_del PARTITION BY HASH (id)", "ALTER TABLE _t_gho RENAME t ORDER BY a"]
)
def test_actions_that_cannot_be_executed_without_the_rename(sql):
    """Commas may separate names: the sink stops, with the next step."""
    with pytest.raises(SchemaError, match=r"renames the table d\._?t(_gho)? and has actions") as stopped:
        planned(sql)
    assert "dmdelta binlog replace" in stopped.value.hint
    assert planned(sql.replace("TABLE ", "TABLE x.").replace("RENAME ", "RENAME x.")) == []


@pytest.mark.parametrize("to", ["bak", "t2", "x.t1"])
def test_a_renamed_shard(to):
    """The merged table keeps its name and the rows of all shards."""
    rules = rules_of(merged="t?")
    assert texts(f"ALTER TABLE t1 RENAME TO {to}", rules=rules) == []
    assert texts(f"RENAME TABLE t1 TO {to}", rules=rules) == []
    assert texts("ALTER TABLE other RENAME TO t1", rules=rules) == []


@pytest.mark.parametrize("text", ["RENAME TABLE {} TO {}", "ALTER TABLE {} RENAME {}"])
def test_patterns_that_do_not_fit_a_cut_over(text):
    """The sink stops, unless a filter ignores the statement."""
    for was, to, reason in (("__t_gho", "t", "captures d._t as its real table"), ("_u_gho", "t", "captures d.u")):
        sql = text.format(was, to)
        with pytest.raises(SchemaError, match=reason):
            planned(sql)
        assert planned(sql, rules=rules_of(events=[("*", "rename table", Action.IGNORE)])) == []


@pytest.mark.parametrize("text", ["RENAME TABLE {} TO {}", "ALTER TABLE {} RENAME {}"])
def test_filters_on_a_rename(text):
    """They apply to the table of the task, and to the real table of a cut-over."""
    for was, to, table in (("t", "u", "t"), ("_t_gho", "t", "t"), ("x.t", "d.t", "t")):
        sql = text.format(was, to)
        assert planned(sql, rules=rules_of(events=[(table, "rename table", Action.IGNORE)])) == []
        with pytest.raises(SchemaError, match=r"a filter of the spec stops a statement on d\.t"):
            planned(sql, rules=rules_of(events=[(table, "rename table", Action.ERROR)]))
