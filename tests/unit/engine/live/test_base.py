"""Which version of silver a live read starts from, and what it adds."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from dmdelta.engine.live.base import Base, TailRange, plan_base, plan_tail, unknown_until
from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit
from dmdelta.lakehouse.changes import Change, Verb
from dmdelta.model.position import Position
from dmdelta.silver.apply.request import LAST_STEP
from dmdelta.silver.history.lineage import LogBeginning
from dmdelta.silver.rows.strategy import Mode

NOW = datetime(2026, 1, 20, tzinfo=timezone.utc)
ALTER = (Change(Verb.ALTER, "ADD COLUMNS (c INT)"),)


def at(offset, epoch=1):
    return Position(epoch, "binlog.000003", offset)


def commit(version, begin, end, *, step=LAST_STEP, rest=None, safe_until=None, age=timedelta(0), repaired=False):
    number, where = (version << 16) | step, (at(begin), at(end))
    tag = CommitTag("app", number, "task", "shop", "run", *where, None, safe_until, rest, repaired=repaired)
    return OwnCommit(version, tag, NOW - age)


def base(commits, position, newest=None, reloads=(), applied=None):
    newest = commits[0].version if newest is None else newest

    def is_kept(replaced_at):
        return NOW - replaced_at < timedelta(days=7)

    return plan_base(commits, newest, position, applied, is_kept=is_kept, is_reload=lambda one: one in reloads)


def committed(version, position, ddl_applied_to=None, safe_until=None, applied=None):
    return Base(version, applied or position, position, ddl_applied_to, safe_until)


def older(version, position):
    return replace(committed(version, position), is_newest=False)


def test_the_newest_version_at_the_position():
    """A later compaction is newer, and has the same rows."""
    commits = [commit(7, 200, 300), commit(5, 100, 200)]
    assert base(commits, at(300), newest=9) == committed(9, at(300))
    assert base(commits, at(299), newest=9) == older(6, at(200))
    assert base(commits, at(200), newest=9) == older(6, at(200))
    assert base(commits, at(199)) is None


def test_a_version_newer_than_the_one_looked_up_first():
    """The commit was made between the two reads of the history."""
    assert base([commit(7, 200, 300)], at(300), newest=6) == committed(7, at(300))


def test_a_part_of_a_range_is_not_a_state_of_the_source():
    """Its commit has the beginning of the range as its end; the commit of a reload looks the same."""
    commits = [commit(7, 200, 200, step=1), commit(5, 100, 200)]
    assert base(commits, at(250)) == older(6, at(200))
    assert base(commits, at(250), reloads=[at(200)]) == committed(7, at(200))


def test_a_repair_is_a_state_of_the_source():
    """It keeps the table's position; rows from before the repair are not read any more."""
    commits = [commit(8, 200, 200, step=0, safe_until=at(210), repaired=True), commit(7, 100, 200), commit(6, 50, 100)]
    assert base(commits, at(250)) == committed(8, at(200), safe_until=at(210))
    assert base(commits, at(200)) == committed(8, at(200), safe_until=at(210))
    assert base(commits, at(199)) == older(6, at(100))


def test_a_statement_in_progress_is_not_a_state_either():
    """After its last commit, the version is the table after the statement at its position."""
    commits = [commit(7, 100, 200, step=2, rest=()), commit(6, 100, 200, step=1, rest=ALTER), commit(5, 50, 100)]
    assert base(commits, at(201)) == committed(7, at(200), ddl_applied_to=at(200))
    assert base(commits, at(200)) == older(5, at(100))
    assert base(commits[1:], at(201)) == older(5, at(100))


def test_files_of_a_version_that_was_replaced_long_ago_may_be_gone():
    """However old the version itself is."""
    old = commit(5, 100, 200, age=timedelta(days=300))
    assert base([old], at(250)) == committed(5, at(200))
    assert base([commit(7, 200, 300, age=timedelta(days=6)), old], at(250)) == older(6, at(200))
    assert base([commit(7, 200, 300, age=timedelta(days=7)), old], at(250)) is None


def test_a_table_without_newer_changes_is_at_the_checkpoint():
    """This applies to its newest version only: there may be changes between older versions."""
    commits = [commit(7, 200, 300, rest=()), commit(5, 100, 200)]
    assert base(commits, at(900), applied=at(800)) == committed(7, at(300), applied=at(800))
    assert base(commits, at(700), applied=at(800)) == committed(7, at(300), ddl_applied_to=at(300))
    assert base(commits, at(250), applied=at(240)) == older(6, at(200))
    assert base(commits, at(900), applied=at(100)) == committed(7, at(300), ddl_applied_to=at(300))


@pytest.mark.parametrize(("safe_until", "mode"), [(None, Mode.NORMAL), (at(150), Mode.SAFE)])
def test_the_tail_of_one_epoch_is_one_range(safe_until, mode):
    """Changes that silver may have already replace its rows."""
    start = committed(5, at(100), at(100), safe_until)
    assert plan_tail(start, at(200), LogBeginning()) == (TailRange(at(100), at(200), mode, at(100)),)


def test_the_log_of_a_new_epoch_begins_where_a_snapshot_read_the_table():
    """Earlier events of it are in the snapshot."""
    start, end = committed(5, at(0, epoch=1)), at(200, epoch=2)
    assert plan_tail(start, end, LogBeginning()) == (TailRange(at(0), end, Mode.SAFE),)
    epoch_begin, exact = Position(2, "binlog.000000", 0), LogBeginning(exact=at(150, epoch=2))
    assert plan_tail(start, end, exact) == (
        TailRange(at(0), epoch_begin, Mode.SAFE),
        TailRange(at(150, epoch=2), end, Mode.SAFE),
    )
    before, after = (committed(5, at(0, epoch=1), applied=at(offset, epoch=2)) for offset in (100, 160))
    assert plan_tail(before, end, exact) == (TailRange(at(150, epoch=2), end, Mode.SAFE),)
    assert plan_tail(after, end, exact) == (TailRange(at(160, epoch=2), end, Mode.SAFE),)


def test_rows_that_a_snapshot_read_while_they_changed_are_unknown():
    """They are unknown until the overlapping log has been read, unless the snapshot read them at one position."""
    assert unknown_until(committed(5, at(100), safe_until=at(150)), at(149), LogBeginning()) == at(150)
    assert unknown_until(committed(5, at(100), safe_until=at(150)), at(150), LogBeginning()) is None
    beginning = LogBeginning(overlap_until=at(90, epoch=2))
    assert unknown_until(committed(5, at(100)), at(50, epoch=2), beginning) == at(90, epoch=2)
    assert unknown_until(committed(5, at(100)), at(90, epoch=2), beginning) is None
    exact = LogBeginning(exact=at(10, epoch=2), overlap_until=at(90, epoch=2))
    assert unknown_until(committed(5, at(100)), at(50, epoch=2), exact) is None
    assert unknown_until(committed(5, at(100)), at(9, epoch=2), exact) == at(10, epoch=2)
