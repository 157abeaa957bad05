"""A worker without a server: what it repeats, and which row it names when the target refuses a transaction."""

import pymysql
import pytest

from dmdelta.errors import SinkError, TargetUnavailable
from dmdelta.model.position import Position
from dmdelta.sink.change import Act, Change, Shape
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.transaction import ChangeWork
from dmdelta.sink.execute.worker import Batch, Worker
from dmdelta.sink.read.literals import NAMELESS
from dmdelta.sink.target.metadata import Metadata
from tests.unit.sink.fake_target import SERVER, SOON, FakeTarget, lost

SHAPE = Shape("`d`.`t`", "(id,e)", "e=VALUES(e)", "id")
WARNING = ("Warning", 1265, "Data truncated for column 'e' at row 1")


def place(seq):
    return Position(1, "binlog.000001", seq)


def batch(*rows):
    """Inserts of (key, literal)."""
    changes = [
        (SHAPE, Change(Act.INSERT, str(key), None, f"({key},{value})", None, (f"{key}.t",), ((100 + key, 0),)))
        for key, value in rows
    ]
    return Batch(1, 1, ChangeWork(changes), Style(multiple_rows=False), 100, 300, place)


class Target(FakeTarget):
    """A strict server with a key and an ENUM: nameless values are refused in strict mode, other modes warn.

    Attributes:
        taken: a key that exists already.
        warnings: what it warns of after a nameless value, by key.
        recorded: it has the record of the transaction.
    """

    def __init__(self, monkeypatch):
        super().__init__(monkeypatch, self.respond)
        self.taken, self.warnings, self.recorded = None, {}, False
        self.strict, self.shown = {}, ()

    def respond(self, connection, sql):
        if sql.startswith("SET sql_mode"):
            self.strict[connection] = "STRICT" in sql
        elif "FOR UPDATE" in sql:
            return (("run",),)
        elif sql.startswith("SELECT 1 FROM"):
            return ((1,),) if self.recorded else ()
        elif sql == "SHOW WARNINGS":
            return self.shown
        elif sql == "SHOW COUNT(*) WARNINGS":
            return ((len(self.shown),),)
        elif sql.startswith("INSERT INTO `d`.`t`"):
            self.insert(connection, sql)
        return ()

    def insert(self, connection, sql):
        key = int(sql.partition("VALUES")[2].strip(" (").partition(",")[0])
        if key == self.taken:
            raise pymysql.err.IntegrityError(1062, f"Duplicate entry '{key}' for key 't.PRIMARY'")
        if NAMELESS in sql:
            if self.strict.get(connection, True):
                raise pymysql.err.DataError(*WARNING[1:])
            self.shown = self.warnings.get(key, (WARNING,))


@pytest.fixture
def target(monkeypatch):
    with Target(monkeypatch) as made:
        yield made


@pytest.fixture
def worker():
    return Worker(0, SERVER, Metadata("dm_meta", "t", "s1", "run"), None, None, retry=SOON)


def refusal(worker, *rows):
    with pytest.raises(SinkError) as caught:
        worker._execute(batch(*rows))
    assert worker.counts.rows == 0
    return caught.value


def test_the_refused_row_is_named(target, worker):
    """Its position and row; nothing of the attempts that find it is committed."""
    target.taken = 7
    error = refusal(worker, (5, "'a'"), (7, "'b'"), (9, "'c'"))
    assert error.message == "`d`.`t` refuses: Duplicate entry … for key 't.PRIMARY'"
    assert error.context == {"code": 1062, "position": str(place(107)), "row": 0}
    assert [connection.closed for connection in target.connections] == [True, True]
    assert not any("COMMIT" in statements for statements in target.statements)


def test_a_valid_enum_of_index_0_is_not_taken_for_the_refused_row(target, worker):
    """It needs the same mode as in the transaction."""
    target.taken = 7
    error = refusal(worker, (5, NAMELESS), (7, "'b'"))
    assert (error.context["code"], error.context["position"]) == (1062, str(place(107)))


def test_a_row_is_refused_outside_strict_mode(target, worker):
    """The row before it, on another connection, is executed in strict mode."""
    target.taken = 7
    error = refusal(worker, (5, "'a'"), (7, NAMELESS))
    assert (error.context["code"], error.context["position"]) == (1062, str(place(107)))
    assert all(target.strict[connection] is False for connection in target.connections)


def test_a_value_that_the_target_would_change_is_named(target, worker):
    """The server only warns: it is the sink that refuses it."""
    target.warnings = {7: (WARNING, ("Warning", 1366, "Incorrect string value"))}
    error = refusal(worker, (5, NAMELESS), (7, NAMELESS))
    assert error.message == "the target would change values"
    assert error.context == {"codes": [1366], "position": str(place(107)), "row": 0}


@pytest.mark.parametrize("fails", ["connection", "statement"])
def test_a_row_that_cannot_be_found(target, worker, fails):
    """The target does not answer any more: the first error is reported, with the batch's position."""
    target.taken, original = 7, target.respond

    def respond(connection, sql):
        if connection is not target.connections[0]:
            lost()
        return original(connection, sql)

    def connecting():
        if fails == "connection" and target.connections:
            raise TargetUnavailable("down", hint="none")

    target.answer, target.connecting = respond, connecting
    error = refusal(worker, (5, "'a'"), (7, "'b'"))
    assert not isinstance(error, TargetUnavailable)
    assert error.context == {"code": 1062, "position": str(place(100))}


@pytest.mark.parametrize("recorded", [True, False])
def test_a_commit_whose_answer_is_lost(target, worker, recorded):
    """The transaction is repeated only if the target does not have its record."""
    target.recorded, original = recorded, target.respond

    def respond(connection, sql):
        if sql == "COMMIT" and connection is target.connections[0]:
            lost()
        return original(connection, sql)

    target.answer = respond
    worker._execute(batch((5, "'a'")))
    assert (worker.counts.rows, worker.counts.retries) == (1, 1)
    assert sum(sql.startswith("INSERT INTO `d`.`t`") for sql in target.statements[1]) == (not recorded)
    worker._session.close()
