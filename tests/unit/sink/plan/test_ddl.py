"""Statements for the target: routed names, filters, online DDL, TiDB's dialect."""

import pytest

from dmdelta.config.routes import RouteRule
from dmdelta.ddl.parse.rewriting import Names, rewritten
from dmdelta.errors import SchemaError
from dmdelta.rules import BlockAllowList, EventFilter, OnlineDdl, Routes, SourceRules
from dmdelta.rules.filters import Action, Rule
from dmdelta.sink.plan.ddl import StatementContext, plan_statement

SHADOWS = OnlineDdl((r"^_(.+)_(?:new|gho)$",), (r"^_(.+)_(?:ghc|del|old)$",))


def names(default="d"):
    return Names(default, lambda name: (f"to_{name[0]}", f"to_{name[1]}"), lambda name: f"to_{name}")


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("CREATE TABLE t (id INT)", "CREATE TABLE `to_d`.`to_t` (id INT)"),
        ("create table if not exists x.`t` (a int)", "create table if not exists `to_x`.`to_t` (a int)"),
        ("CREATE TABLE t LIKE u", "CREATE TABLE `to_d`.`to_t` LIKE `to_d`.`to_u`"),
        ("CREATE TABLE t (LIKE x.u)", "CREATE TABLE `to_d`.`to_t` (LIKE `to_x`.`to_u`)"),
        (
            "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (id))",
            "CREATE TABLE `to_d`.`to_t` (a INT, FOREIGN KEY (a) REFERENCES `to_d`.`to_p` (id))",
        ),
        ("ALTER TABLE t ADD COLUMN t INT", "ALTER TABLE `to_d`.`to_t` ADD COLUMN t INT"),
        ("ALTER TABLE t ADD c INT, RENAME TO x.u", "ALTER TABLE `to_d`.`to_t` ADD c INT, RENAME TO `to_x`.`to_u`"),
        ("ALTER TABLE t RENAME COLUMN a TO b", "ALTER TABLE `to_d`.`to_t` RENAME COLUMN a TO b"),
        ("DROP TABLE IF EXISTS t, x.u", "DROP TABLE IF EXISTS `to_d`.`to_t`, `to_x`.`to_u`"),
        (
            "RENAME TABLE a TO b, `c` TO x.d",
            "RENAME TABLE `to_d`.`to_a` TO `to_d`.`to_b`, `to_d`.`to_c` TO `to_x`.`to_d`",
        ),
        ("TRUNCATE t", "TRUNCATE `to_d`.`to_t`"),
        ("CREATE UNIQUE INDEX i ON t (a)", "CREATE UNIQUE INDEX i ON `to_d`.`to_t` (a)"),
        ("DROP INDEX i ON x.t", "DROP INDEX i ON `to_x`.`to_t`"),
        ("CREATE DATABASE IF NOT EXISTS x", "CREATE DATABASE IF NOT EXISTS `to_x`"),
        (
            "/* t */ ALTER TABLE /* u */ `t` ADD v INT COMMENT 't'",
            "/* t */ ALTER TABLE /* u */ `to_d`.`to_t` ADD v INT COMMENT 't'",
        ),
        ("SET STATEMENT max_statement_time=1 FOR DROP TABLE t", "DROP TABLE `to_d`.`to_t`"),
        ("CREATE TABLE `t` (a INT) START TRANSACTION", "CREATE TABLE `to_d`.`to_t` (a INT)"),
    ],
)
def test_names_are_replaced_in_place(sql, wanted):
    """Every table and database gets its new name, all other text is unchanged."""
    assert rewritten(sql, names()) == wanted


def plan(sql, *, rules=None, earlier=(), tables=(), tidb=False):
    rules = rules or SourceRules("s", BlockAllowList(do_dbs=("d",)), online=SHADOWS)
    context = StatementContext(rules, lambda _: earlier, lambda schema: [(schema, table) for table in tables], tidb)
    found = plan_statement(sql, "d", context)
    return [one.sql for one in found]


def test_only_selected_tables():
    """A statement on several tables is reduced to those of the task; others are dropped."""
    assert plan("DROP TABLE t, x.u") == ["DROP TABLE IF EXISTS `d`.`t`"]
    assert plan("ALTER TABLE x.t ADD c INT") == []
    assert plan("CREATE VIEW v AS SELECT 1") == []
    assert plan("RENAME TABLE a TO b, x.c TO x.d") == ["RENAME TABLE `d`.`a` TO `d`.`b`"]


def test_table_from_outside():
    """A table renamed into the task from outside stops the sink: its rows are unknown."""
    with pytest.raises(SchemaError, match=r"d\.t is renamed from"):
        plan("RENAME TABLE x.t TO d.t")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("ALTER TABLE x.t RENAME TO d.t", r"between d\.t and x\.t"),
        ("ALTER TABLE x.t EXCHANGE PARTITION p WITH TABLE d.u", r"between d\.u and x\.t"),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE x.u", r"between d\.t and x\.u"),
        ("ALTER TABLE t CONVERT PARTITION p TO TABLE x.u", r"between d\.t and x\.u"),
    ],
)
def test_rows_from_outside(sql, message):
    """An ALTER TABLE that moves rows across the border of the task stops the sink, unless a filter ignores it."""
    with pytest.raises(SchemaError, match=message):
        plan(sql)
    rule = Rule("r", "*", "*", ("all ddl",), (), Action.IGNORE)
    rules = SourceRules("s", BlockAllowList(do_dbs=("d",)), events=EventFilter((rule,)))
    assert plan(sql, rules=rules) == []


def test_rows_move_inside_of_the_task():
    """The target moves them, too; a renamed table may leave the task."""
    assert plan("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u") == [
        "ALTER TABLE `d`.`t` EXCHANGE PARTITION p WITH TABLE `d`.`u`"
    ]
    assert plan("ALTER TABLE t RENAME TO x.u") == ["ALTER TABLE `d`.`t` RENAME TO `x`.`u`"]
    assert plan("ALTER TABLE x.t EXCHANGE PARTITION p WITH TABLE x.u") == []


def test_online_ddl():
    """The shadow table's changes are applied to the real table at the cut-over; the tool's tables are never created."""
    earlier = ["CREATE TABLE d._t_gho LIKE d.t", "ALTER TABLE `d`.`_t_gho` ADD COLUMN c INT"]
    assert plan(earlier[0]) == []
    assert plan(earlier[1]) == []
    assert plan("RENAME TABLE d.t TO d._t_del, d._t_gho TO d.t", earlier=earlier) == [
        "ALTER TABLE `d`.`t` ADD COLUMN c INT"
    ]
    assert plan("DROP TABLE _t_del") == []


@pytest.mark.parametrize(
    ("cut_over", "reason"),
    [
        ("RENAME TABLE t TO t_bin, _t_new TO t", "t_bin matches no pattern of trash-table-rules"),
        ("RENAME TABLE t TO _t_old, __t_new TO t", "shadow-table-rules captures d._t as its real table"),
    ],
)
def test_patterns_that_do_not_fit_a_cut_over(cut_over, reason):
    """The target's table would lose its rows or the schema change: the sink stops, unless a filter ignores it."""
    with pytest.raises(SchemaError, match=reason):
        plan(cut_over)
    rule = Rule("r", "*", "*", ("rename table",), (), Action.IGNORE)
    rules = SourceRules("s", BlockAllowList(do_dbs=("d",)), events=EventFilter((rule,)), online=SHADOWS)
    assert plan(cut_over, rules=rules) == []


def test_filters():
    """A statement that a filter ignores is not executed; one with action Error is an error."""
    for action in (Action.IGNORE, Action.ERROR):
        rule = Rule("r", "d", "t", ("truncate table",), (), action)
        rules = SourceRules("s", BlockAllowList(do_dbs=("d",)), events=EventFilter((rule,)))
        if action is Action.IGNORE:
            assert plan("TRUNCATE TABLE t", rules=rules) == []
        else:
            with pytest.raises(SchemaError):
                plan("TRUNCATE TABLE t", rules=rules)
        assert plan("ALTER TABLE t ADD c INT", rules=rules) == ["ALTER TABLE `d`.`t` ADD c INT"]


def test_routes():
    """Names are routed; a merged table is neither truncated nor dropped by one of its shards."""
    route = RouteRule(schema_pattern="d", table_pattern="t*", target_schema="all", target_table="t")
    rules = SourceRules("s", BlockAllowList(do_dbs=("d",)), Routes.from_config({"r": route}))
    assert plan("ALTER TABLE t1 ADD c INT", rules=rules) == ["ALTER TABLE `all`.`t` ADD c INT"]
    assert plan("TRUNCATE TABLE t1", rules=rules) == []
    assert plan("DROP TABLE t1", rules=rules) == []


def test_dialect_of_tidb():
    """TiDB gets one action at a time."""
    assert plan("ALTER TABLE t ADD c INT, ADD INDEX (c)", tidb=True) == [
        "ALTER TABLE `d`.`t` ADD c INT",
        "ALTER TABLE `d`.`t` ADD INDEX (c)",
    ]


DROP = "DROP DATABASE IF EXISTS d"
TO_X = RouteRule(schema_pattern="d", target_schema="x")


@pytest.mark.parametrize(
    ("route", "wanted"),
    [
        (None, ["DROP DATABASE IF EXISTS `d`"]),
        (TO_X, ["DROP DATABASE IF EXISTS `x`"]),
        (RouteRule(schema_pattern="d?", target_schema="x"), ["DROP DATABASE IF EXISTS `d`"]),
        (RouteRule(schema_pattern="e*", target_schema="D"), ["DROP TABLE IF EXISTS `d`.`t`"]),
        (RouteRule(schema_pattern="d*", target_schema="x"), []),
        (RouteRule(schema_pattern="d", table_pattern="t", target_schema="x"), ["DROP TABLE IF EXISTS `x`.`t`"]),
    ],
)
def test_a_dropped_database_may_have_others_tables_at_the_target(route, wanted):
    """The target's database is dropped if all tables of the source's, and no others, are routed to it; otherwise their
    tables are, but not those that others are merged into.
    """
    routes = Routes.from_config({"r": route} if route else {})
    rules = SourceRules("s", BlockAllowList(do_dbs=("d",)), routes)
    assert plan(DROP, rules=rules, tables=("t",)) == wanted


def test_a_database_whose_target_another_one_keeps():
    """A route leads to the name of another selected database."""
    routes = Routes.from_config({"r": TO_X})
    for selected, wanted in ((("d",), ["DROP DATABASE IF EXISTS `x`"]), (("d", "x"), ["DROP TABLE IF EXISTS `x`.`t`"])):
        rules = SourceRules("s", BlockAllowList(do_dbs=selected), routes)
        assert plan(DROP, rules=rules, tables=("t",)) == wanted


def test_a_database_that_several_sources_may_have():
    """Only the tables of the source that drops it are dropped; tables outside the task stay."""
    rules = SourceRules("s", BlockAllowList(do_tables=(("d", "t"),)), only_source=False)
    assert plan(DROP, rules=rules, tables=("t", "u")) == ["DROP TABLE IF EXISTS `d`.`t`"]
