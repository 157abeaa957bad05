"""Statements of the log for the target: by which structure the filters decide, and what may have been executed."""

from dataclasses import replace
from types import SimpleNamespace

from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import NO_RULES, Action, BlockAllowList, EventFilter
from dmdelta.rules.filters import Rule
from dmdelta.sink.plan.target_statement import TargetStatement
from dmdelta.sink.read.slices import Statement
from dmdelta.sink.statements import Statements

AT = Position(1, "binlog.000001", 400)
NARROWS = Statement(AT, "d", (("d", "t"),), "ALTER TABLE t MODIFY n INT")


def test_filters_decide_by_the_structure_at_the_statement():
    """The same MODIFY narrows one type and widens another."""
    events = EventFilter((Rule("r", "d", "t", ("value range decrease",), (), Action.IGNORE),))
    source = SimpleNamespace(rules=replace(NO_RULES, allow_list=BlockAllowList(do_dbs=("d",)), events=events))
    tables, log = SimpleNamespace(server=SimpleNamespace(tidb=False)), SimpleNamespace(tables_of=None)
    asked = []

    def planned(kind):
        def structure(name, at):
            asked.append((name, at))
            return TableSchema("d", "t", (Column("n", kind),))

        return Statements(source, log, tables, None, None, structure).plan(NARROWS)

    assert planned("bigint") == []
    assert [one.sql for one in planned("smallint")] == ["ALTER TABLE `d`.`t` MODIFY n INT"]
    assert asked == [(("d", "t"), AT)] * 2


def test_a_statement_on_a_merged_table_may_have_been_executed_for_another_shard():
    """The target's tables are told so."""
    changed = []
    tables = SimpleNamespace(has=lambda _: True, change=lambda sql, **more: changed.append((sql, more)))
    statements = Statements(None, None, tables, None, None)
    statements.repeat([TargetStatement("a", ("d", "t")), TargetStatement("b", ("d", "t"), merged=True)])
    assert changed == [("a", {"in_doubt": True, "shared": False}), ("b", {"in_doubt": True, "shared": True})]
