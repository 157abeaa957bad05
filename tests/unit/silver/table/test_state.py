"""Whether silver may be ahead of a statement in the log, from the commits of the table."""

from datetime import datetime, timezone

import pytest

from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit
from dmdelta.model.position import Position
from dmdelta.silver.table.state import is_ahead


def at(offset, epoch=2):
    return Position(epoch, "binlog.000001", offset)


AT = at(300)
TIME = datetime(2026, 11, 28, tzinfo=timezone.utc)


def commit(version, end, *, source="s1", rest=None):
    return OwnCommit(version, CommitTag("app", version, "task", source, "run", end, end, rest=rest), TIME)


CREATED, INSERTED = commit(0, at(100), rest=()), commit(1, at(200))


@pytest.mark.parametrize(
    "commits",
    [
        [CREATED],
        [INSERTED, CREATED],
        [commit(7, at(200)), INSERTED, CREATED],  # other writers have committed in between
        [commit(2, AT), INSERTED, CREATED],  # the rows before the statement
    ],
)
def test_a_table_that_the_log_has_created_is_not_ahead(commits):
    assert not is_ahead(commits, "s1", AT, completed=True)


@pytest.mark.parametrize(
    "commits",
    [
        [],
        [INSERTED],  # the history no longer has the first commit
        [INSERTED, commit(0, Position.of_chunk(1, 0))],  # a full load
        [INSERTED, commit(1, at(900, epoch=1)), commit(0, at(100, epoch=1))],  # a log that is read again
        [commit(2, at(200)), commit(1, at(400)), CREATED],
        [commit(2, AT, rest=()), INSERTED, CREATED],  # the statement is complete
        [INSERTED, commit(0, at(100), source="s2")],  # of another server's log, whose positions mean nothing here
    ],
)
def test_a_table_with_a_longer_or_an_unknown_history_may_be_ahead(commits):
    assert is_ahead(commits, "s1", AT, completed=True)


def test_a_statement_that_has_begun_counts_if_asked():
    commits = [commit(2, AT, rest=()), INSERTED, CREATED]
    assert is_ahead(commits, "s1", AT, completed=True)
    assert not is_ahead(commits, "s1", AT, completed=False)
