"""The rows that a reload replaces are deleted without a server: transactions, their fence, and a target that fails."""

import pytest

from dmdelta.errors import Fenced, TargetUnavailable
from dmdelta.sink.target import emptying
from dmdelta.sink.target.emptying import empty_table
from dmdelta.sink.target.metadata import Metadata
from dmdelta.sink.target.target_session import TargetSession
from tests.unit.sink.fake_target import SERVER, SOON, FakeTarget, lost


class Target(FakeTarget):
    """A target with some rows; `failing`: at how many connections and deletions it fails."""

    def __init__(self, monkeypatch):
        super().__init__(monkeypatch, self.respond)
        self.rows, self.owner, self.failing = 8, "mine", []
        self.connecting = lambda: self.fail("connect")

    def fail(self, what):
        if self.failing[:1] == [what]:
            self.failing.pop(0)
            if what == "connect":
                raise TargetUnavailable("down", hint="none")
            lost()

    def respond(self, connection, sql):
        if "FOR UPDATE" in sql:
            return ((self.owner,),)
        if sql.startswith("DELETE"):
            self.fail("delete")
            deleted = min(self.rows, emptying.ROWS)
            self.rows -= deleted
            return range(deleted)
        return ()


@pytest.fixture
def target(monkeypatch):
    monkeypatch.setattr(emptying, "ROWS", 3)
    with Target(monkeypatch) as made:
        yield made


def empty():
    empty_table(TargetSession(SERVER, retry=SOON), Metadata("dm_meta", "t", "s1", "mine"), "`d`.`t`", "")


def test_rows_are_deleted_in_transactions_of_their_own(target):
    """Each is fenced; the connection is closed afterwards."""
    empty()
    (connection,) = target.connections
    shown = [sql.split()[0] for sql in connection.statements]
    assert shown == ["SET", *["SELECT", "DELETE", "COMMIT"] * 3]
    assert (target.rows, connection.closed) == (0, True)


def test_a_target_that_fails_meanwhile(target):
    """A lost connection and refused ones do not end the reload: the remaining rows are deleted."""
    target.failing = ["delete", "connect", "connect", "delete"]
    empty()
    assert (target.rows, len(target.connections)) == (0, 3)


def test_another_run_has_taken_over(target):
    """Its rows stay."""
    target.owner = "next"
    with pytest.raises(Fenced):
        empty()
    assert (target.rows, target.connections[0].closed) == (8, True)
