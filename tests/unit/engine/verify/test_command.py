"""How `verify` reads a log: the result does not depend on the size of the windows."""

from dataclasses import dataclass

import pytest

from dmdelta.changelog.context import SourceContext
from dmdelta.engine.verify import command
from dmdelta.engine.verify.bronze_rows import plan_ranges
from dmdelta.engine.verify.command import _SourceCheck
from dmdelta.engine.verify.source_log import LogPart, Origin, SourceLog
from dmdelta.lakehouse.history import CommitTag
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import seq_of
from dmdelta.rules import NO_RULES
from tests.support.golden import SERVERS, recording
from tests.support.verifying import NOT_COVERED, bronze_rows, counted


@dataclass
class RowsInMemory:
    """Bronze's rows without Spark."""

    rows: list
    most: int = 0

    def read(self, begin, end, unread):
        places = {position.seq for position in unread}
        found = [row for row in self.rows if begin.seq <= seq_of(*row.place) < end.seq]
        self.most = max(self.most, len(found))
        apart = [row for row in found if seq_of(*row.place) not in places]
        return apart, counted([row for row in found if seq_of(*row.place) in places])

    def count(self, begin, end):
        return counted([row for row in self.rows if begin.seq <= seq_of(*row.place) < end.seq])


def checked(name, *, without=None, hole=None):
    """The check of a recording; the file `without` is missing in the archive, the file `hole` in bronze."""
    recorded = recording(name)
    parts = [
        LogPart(Origin.ARCHIVE, segment.begin_position, segment.end_position, segment)
        for segment in recorded.segments()
        if segment.binlog_file != without
    ]
    flavor = "mariadb" if name == "mariadb" else "mysql"
    landing = SourceContext(Lakehouse(root="/lake"), "t", "s1", "run", flavor, NO_RULES)
    bronze = RowsInMemory([row for row in bronze_rows(recorded) if row.place[0] != hole])
    facts = {"app": "a", "version": 1, "task": "t", "source": "s1", "run": "run"}
    landed = [
        CommitTag(**facts, begin=segment.begin_position, end=segment.end_position)
        for segment in recorded.segments()
        if segment.binlog_file != hole
    ]
    (ends,) = plan_ranges(landed, (), None)
    reported = []
    check = _SourceCheck(
        landing, SourceLog(landing.flavor, parts), bronze, "golden.*", ends, lambda *at: reported.append(at)
    )
    check.run(ends, ends[1])
    assert [at for _, at, _ in reported] == sorted(at for _, at, _ in reported)
    assert reported[-1][1:] == (ends[1], ends[1])
    return check, bronze


@pytest.mark.parametrize("name", SERVERS)
def test_the_result_does_not_depend_on_the_window_size(name, monkeypatch):
    """One window for all events, or one for each event; memory has one window at a time."""
    whole, _ = checked(name)
    monkeypatch.setattr(command, "STRETCH_BYTES", 1)
    single, bronze = checked(name)
    assert single.counters.tables() == whole.counters.tables()
    assert whole.counters.differences() == single.counters.differences() == []
    assert bronze.most <= 24
    missed = {
        (table.table.partition(".")[2], one.reason): (one.events, one.rows, one.values)
        for table in whole.counters.tables()
        for one in table.not_covered
    }
    assert missed == NOT_COVERED[name]
    (read,) = whole.ranges
    assert read.read_from is Origin.ARCHIVE


def test_a_missing_file_is_not_covered():
    """Its rows are counted with the reason, and the other files are compared."""
    whole, bronze = checked("mariadb")
    check, _ = checked("mariadb", without="binlog.000003")
    gone = sum(one.rows for table in check.counters.tables() for one in table.not_covered if "any more" in one.reason)
    assert gone == len([row for row in bronze.rows if row.place[0] == "binlog.000003"]) > 0
    assert (
        sum(table.rows for table in check.counters.tables())
        == sum(table.rows for table in whole.counters.tables()) - gone
    )
    assert check.counters.differences() == []
    assert [one.read_from for one in check.ranges] == [Origin.ARCHIVE, Origin.NONE, Origin.ARCHIVE]


def test_a_hole_between_commits_is_a_difference():
    """Every event of the log between two commits of an epoch is reported as missing in bronze."""
    whole, bronze = checked("mariadb")
    check, _ = checked("mariadb", hole="binlog.000003")
    lost = {row.place for row in bronze.rows if row.place[0] == "binlog.000003"}
    found = check.counters.differences()
    assert {one.position for one in found} == {f"1/{file}:{offset}" for file, offset in lost}
    assert all("not in bronze" in one.what for one in found)
    assert check.ranges == whole.ranges
