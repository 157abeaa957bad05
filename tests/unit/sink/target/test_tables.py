"""Statements on the target without a server: what is repeated after a failure, by whom, and what errors quote."""

import pymysql
import pytest

from dmdelta.errors import Fenced, SinkError, TargetUnavailable
from dmdelta.sink.target import tables as module
from dmdelta.sink.target.metadata import Metadata
from dmdelta.sink.target.tables import Tables
from tests.unit.sink.fake_target import SERVER, SOON, FakeTarget, error_of_cut_off, lost

TRUNCATE = "TRUNCATE `d`.`t`"


class Target(FakeTarget):
    """A target that a sink owns.

    Attributes:
        owner: the run that owns it.
        losing: how many answers to a statement are lost after it was executed.
        refusal: what it refuses every statement with.
    """

    def __init__(self, monkeypatch):
        super().__init__(monkeypatch, self.respond)
        self.owner, self.losing, self.refusal, self.executed = "mine", 0, None, []

    def respond(self, connection, sql):
        if "FOR UPDATE" in sql:
            return ((self.owner,),)
        if self.refusal is not None:
            raise self.refusal
        self.executed.append(sql)
        if self.losing:
            self.losing -= 1
            lost()
        return ()


@pytest.fixture
def target(monkeypatch):
    monkeypatch.setattr(module, "RETRY", SOON)
    with Target(monkeypatch) as made:
        yield made


METADATA = Metadata("dm_meta", "t", "s1", "mine")


def test_a_statement_whose_answer_is_lost_is_repeated_by_the_owner(target):
    """The owner row is read on the new connection, before the statement."""
    target.losing = 2
    Tables(SERVER, METADATA).change(TRUNCATE, in_doubt=False)
    assert target.executed == [TRUNCATE] * 3
    first, *others = target.statements
    assert first == [TRUNCATE]
    assert [("FOR UPDATE" in check, statement) for check, statement in others] == [(True, TRUNCATE)] * 2


def test_a_statement_is_not_repeated_after_a_takeover(target):
    """The next sink has executed it, and rows after it: they would be lost."""
    target.losing = 1
    original = target.respond

    def respond(connection, sql):
        try:
            return original(connection, sql)
        finally:
            target.owner = "next"

    target.answer = respond
    with pytest.raises(Fenced):
        Tables(SERVER, METADATA).change(TRUNCATE, in_doubt=False)
    assert target.executed == [TRUNCATE]


def test_a_statement_that_hangs_is_cut_off(target):
    """Its thread ends with an error that the loop retries, and neither repeats it nor executes another one."""
    tables, target.answer = Tables(SERVER, METADATA), lambda _, sql: target.executed.append(sql)
    assert error_of_cut_off(target, lambda: tables.change(TRUNCATE, in_doubt=False), tables.cut_off)
    for act in (lambda: tables.change(TRUNCATE, in_doubt=False), lambda: tables.has(("d", "t"))):
        with pytest.raises(TargetUnavailable):
            act()
    assert target.executed == [TRUNCATE]


def test_a_query_is_repeated(target):
    """A target that restarts between two slices does not end the run."""
    target.losing = 1
    assert not Tables(SERVER, METADATA).has(("d", "t"))
    assert len(target.connections) == 2


@pytest.mark.parametrize(
    ("code", "lost_before", "done"), [(1060, 0, True), (1146, 0, False), (1146, 1, True), (1064, 1, False)]
)
def test_a_state_that_the_target_already_has(target, code, lost_before, done):
    """After a lost answer the statement may have been executed: more errors mean that it was."""

    def respond(connection, sql):
        if "FOR UPDATE" in sql:
            return ((target.owner,),)
        if "information_schema" in sql:
            return ()
        if len(target.connections) <= lost_before:
            lost()
        raise pymysql.err.ProgrammingError(code, "message")

    target.answer = respond
    tables = Tables(SERVER, METADATA)
    if done:
        tables.change("ALTER TABLE `d`.`t` ADD c INT", in_doubt=False)
    else:
        with pytest.raises(SinkError, match=r"statement 'ALTER TABLE `d`\.`t` ADD c INT', refuses: message"):
            tables.change("ALTER TABLE `d`.`t` ADD c INT", in_doubt=False)


@pytest.mark.parametrize(
    ("code", "message", "shown"),
    [
        (1062, "Duplicate entry 'alice@example.com' for key 't.u'", "Duplicate entry … for key 't.u'"),
        (1292, "Truncated incorrect DOUBLE value: 'alice'", "Truncated incorrect DOUBLE value: …"),
        (1526, "Table has no partition for value alice", "Table has no partition for value …"),
        (1265, "Data truncated for column 'c', value is 'alice'", "Data truncated for column 'c', value is …"),
        (1072, "Key column 'alice' doesn't exist in table", "Key column 'alice' doesn't exist in table"),
        (1064, "You have an error near 'alice'", "You have an error near 'alice'"),
    ],
)
def test_a_refused_statement_shows_no_values(target, code, message, shown):
    """Values of the table's rows are left out, names and the statement's text are not."""
    target.refusal = pymysql.err.DataError(code, message)
    with pytest.raises(SinkError) as caught:
        Tables(SERVER).change("ALTER TABLE t ADD UNIQUE u (c)", in_doubt=True)
    assert caught.value.message.endswith(f"refuses: {shown}")


SWAP = "ALTER TABLE `d`.`t` RENAME COLUMN a TO b, RENAME COLUMN b TO a"


@pytest.mark.parametrize("losing", [0, 1])
def test_a_statement_that_a_second_execution_would_undo(target, losing):
    """It is executed once. If its answer is lost, or an earlier run may have executed it, the sink stops."""
    target.losing, tables = losing, Tables(SERVER, METADATA)
    if losing:
        with pytest.raises(SinkError, match="second execution would undo"):
            tables.change(SWAP, in_doubt=False)
    else:
        tables.change(SWAP, in_doubt=False)
    with pytest.raises(SinkError, match="second execution would undo"):
        tables.change(SWAP, in_doubt=True)
    assert target.executed == [SWAP]


class Atomic:
    """A target's server: it refuses a statement as a whole if it has the effect of one of its actions."""

    def __init__(self, target, refused):
        self.target, self.refused, self.losing = target, refused, 0
        target.answer = self.respond

    def respond(self, connection, sql):
        if "FOR UPDATE" in sql:
            return ((self.target.owner,),)
        if "information_schema" in sql:
            return ()
        code = next((code for action, code in self.refused.items() if action in sql), None)
        if code is not None:
            raise pymysql.err.OperationalError(code, "message")
        self.target.executed.append(sql)
        self.refused.update({"ADD c INT": 1060} if "ADD c INT" in sql else {})
        if self.losing:
            self.losing -= 1
            lost()
        return ()


@pytest.mark.parametrize("in_doubt", [False, True])
def test_actions_beside_one_that_the_target_already_has(target, in_doubt):
    """The others are executed, each once, also if an answer is lost."""
    server = Atomic(target, {"DROP FOREIGN KEY fk": 1091})
    server.losing = 1
    sql = "ALTER TABLE `d`.`t` DROP COLUMN p, DROP FOREIGN KEY fk, ADD c INT"
    Tables(SERVER, METADATA).change(sql, in_doubt=in_doubt)
    assert target.executed == ["ALTER TABLE `d`.`t` ADD c INT", "ALTER TABLE `d`.`t` DROP COLUMN p"]


def test_an_action_that_is_refused_for_another_reason(target):
    """The error is about the action."""
    Atomic(target, {"DROP INDEX i": 1091, "MODIFY v": 1292})
    with pytest.raises(SinkError, match=r"statement 'ALTER TABLE t MODIFY v DATE', refuses"):
        Tables(SERVER).change("ALTER TABLE t DROP INDEX i, ADD c INT, MODIFY v DATE", in_doubt=False)
    assert target.executed == ["ALTER TABLE t ADD c INT"]


def test_actions_that_cannot_be_executed_one_by_one(target):
    """The sink stops, and the table is unchanged."""
    Atomic(target, {"DROP INDEX i": 1091})
    with pytest.raises(SinkError, match="cannot be executed one by one"):
        Tables(SERVER).change("ALTER TABLE t DROP INDEX i, CHANGE a b INT, CHANGE b a INT", in_doubt=False)
    assert target.executed == []


def test_actions_and_a_timestamp_of_the_key(target, monkeypatch):
    """Both refusals of one statement are overcome: that of the whole, and that of NULL in a key."""
    monkeypatch.setattr(Tables, "_without_nulls", lambda _, sql: sql.replace(" NULL", ""))
    Atomic(target, {"TIMESTAMP NULL": 1171, "DROP INDEX i": 1091})
    Tables(SERVER).change("ALTER TABLE t MODIFY ts TIMESTAMP NULL, DROP INDEX i", in_doubt=False)
    assert target.executed == ["ALTER TABLE t MODIFY ts TIMESTAMP"]


def test_the_same_statement_of_another_shard(target, monkeypatch):
    """The columns show its effect: nothing remains."""
    Atomic(target, {"ADD c INT": 1060})
    sql, tables = "ALTER TABLE `d`.`t` ADD c INT, ORDER BY a, b", Tables(SERVER)
    monkeypatch.setattr(Tables, "columns", lambda _, name: ("a", "b", "c"))
    tables.change(sql, in_doubt=False, shared=True)
    with pytest.raises(SinkError, match="cannot be executed one by one"):
        tables.change(sql, in_doubt=False)


def test_what_another_shard_may_have_moved_past(target, monkeypatch):
    """The target keeps a column that the same statement of another shard has dropped, and that was added again."""
    Atomic(target, {"ADD INDEX i": 1061})
    sql, tables = "ALTER TABLE `d`.`t` DROP COLUMN v, ADD INDEX i (a), ADD UNIQUE u (a)", Tables(SERVER)
    monkeypatch.setattr(Tables, "columns", lambda _, name: ("a", "v"))
    tables.change(sql, in_doubt=False, shared=True)
    assert target.executed == ["ALTER TABLE `d`.`t` ADD UNIQUE u (a)"]
    tables.change(sql, in_doubt=False)
    assert target.executed[-1] == "ALTER TABLE `d`.`t` DROP COLUMN v"


def test_a_refusal_leaves_no_doubt(target):
    """A deadlock or a lock wait timeout is repeated: the server has not executed the statement."""
    refused = iter([pymysql.err.OperationalError(1213, "Deadlock found")])
    respond = target.respond

    def deadlock_once(connection, sql):
        target.refusal = next(refused, None) if sql == SWAP else None
        return respond(connection, sql)

    target.answer = deadlock_once
    Tables(SERVER, METADATA).change(SWAP, in_doubt=False)
    assert target.executed == [SWAP]
