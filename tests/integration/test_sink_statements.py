"""Statements that an operator has replaced, on a real target without Spark."""

from dataclasses import replace

import pytest

from dmdelta.errors import SinkError
from dmdelta.rules import NO_RULES, Action, EventFilter
from dmdelta.rules.filters import Rule
from dmdelta.rules.operators import Operator, Verb
from dmdelta.sink.read.slices import Statement
from dmdelta.sink.reload_feed import ReloadFeed
from tests.integration.test_sink_reload import Hand, at, finish


def run(hand, *statements):
    """Execute the log; an operator has replaced its statement."""
    sink = hand.open(ReloadFeed())
    replaced = replace(NO_RULES, operators={at(400): Operator(Verb.REPLACE, statements)})
    sink.statements.source = replace(sink.source, rules=replaced)
    return finish(sink, end=500)


def test_a_replacement_is_executed_from_its_first_part(mariadb, tmp_path):
    """The target has refused a later part of the replacement before; its checkpoint counts the parts of that one."""
    hand = Hand(mariadb, tmp_path)
    hand.log.log(100, "t", "insert", 1, 10)
    hand.log.statements.append(Statement(at(400), hand.database, (hand.name("t"),), "ALTER TABLE t ADD x INT"))
    added = "ALTER TABLE t ADD c INT"
    with pytest.raises(SinkError, match="NONSENSE"):
        run(hand, added, "ALTER TABLE t ADD d NONSENSE")
    assert run(hand, "ALTER TABLE t ADD d INT")
    assert mariadb.query("SELECT * FROM t", hand.database) == ((1, 10, None, None),)


def test_actions_that_a_filter_ignores(mariadb, tmp_path):
    """The others are executed."""
    hand = Hand(mariadb, tmp_path)
    hand.log.log(100, "t", "insert", 1, 10)
    sql = "ALTER TABLE t DROP COLUMN v, ADD COLUMN w INT DEFAULT 7"
    hand.log.statements.append(Statement(at(400), hand.database, (hand.name("t"),), sql))
    sink = hand.open(ReloadFeed())
    ignores = EventFilter((Rule("r", hand.database, "t", ("drop column",), (), Action.IGNORE),))
    sink.statements.source = replace(sink.source, rules=replace(NO_RULES, events=ignores))
    assert finish(sink, end=500)
    assert mariadb.query("SELECT * FROM t", hand.database) == ((1, 10, 7),)


def test_a_statement_that_drops_what_the_target_lacks(mariadb, tmp_path):
    """A table that the sink has created has no secondary index: the other action of the statement is executed."""
    hand = Hand(mariadb, tmp_path)
    hand.log.log(100, "t", "insert", 1, 10)
    sql = "ALTER TABLE t DROP INDEX by_v, ADD COLUMN w INT DEFAULT 7"
    hand.log.statements.append(Statement(at(400), hand.database, (hand.name("t"),), sql))
    assert finish(hand.open(ReloadFeed()), end=500)
    assert mariadb.query("SELECT * FROM t", hand.database) == ((1, 10, 7),)


def test_a_renamed_table_whose_new_name_is_in_use(mariadb, tmp_path):
    """The target has another table of that name: the sink stops, and continues once it is dropped."""
    hand = Hand(mariadb, tmp_path)
    hand.log.log(100, "t", "insert", 1, 10)
    mariadb.execute("CREATE TABLE u (id INT)", database=hand.database)
    renamed = "ALTER TABLE t ADD c INT, RENAME TO u"
    hand.log.statements.append(Statement(at(400), hand.database, (hand.name("t"), hand.name("u")), renamed))
    with pytest.raises(SinkError, match=r"cannot rename .*\.t: it has another table .*\.u"):
        finish(hand.open(ReloadFeed()), end=500)
    mariadb.execute("DROP TABLE u", database=hand.database)
    assert finish(hand.open(ReloadFeed()), end=500)
    assert mariadb.query("SELECT * FROM u", hand.database) == ((1, 10, None),)


def test_a_statement_in_doubt_that_would_undo_itself_stops_the_sink(mysql80_too, tmp_path, monkeypatch):
    """A run ends between the statement and its checkpoint. Skipping the statement lets the sink continue."""
    hand = Hand(mysql80_too, tmp_path)
    hand.log.log(100, "t", "insert", 1, 10)
    swap = "ALTER TABLE t RENAME COLUMN id TO v, RENAME COLUMN v TO id"
    hand.log.statements.append(Statement(at(400), hand.database, (hand.name("t"),), swap))
    sink = hand.open(ReloadFeed())
    written = sink.statements.write_point

    def ends_after_the_statement(position, about_to=None):
        if about_to is None and position > at(400):
            raise SinkError("the run ends", hint="")
        written(position, about_to)

    monkeypatch.setattr(type(sink.statements), "write_point", lambda _, *given: ends_after_the_statement(*given))
    with pytest.raises(SinkError, match="the run ends"):
        finish(sink, end=500)
    monkeypatch.undo()
    assert mysql80_too.query("SELECT id, v FROM t", hand.database) == ((10, 1),)
    with pytest.raises(SinkError, match="second execution would undo"):
        finish(hand.open(ReloadFeed()), end=500)
    assert run(hand)
    assert mysql80_too.query("SELECT id, v FROM t", hand.database) == ((10, 1),)
