"""The statements of a segment before it lands."""

from dataclasses import replace
from pathlib import Path

from dmdelta.bronze.segment_scan import statements_of, tables_of
from dmdelta.model.position import Position
from tests.support.changes import Log


def test_a_segment_that_has_partly_landed_is_scanned_from_its_start(tmp_path: Path) -> None:
    """The part that another machine's relay had landed does not count: neither its statements nor its bytes."""
    log = Log().query("ALTER TABLE t ADD a INT")
    landed = len(log.data)
    log.query("ALTER TABLE t ADD b INT")
    file = tmp_path / "made.binlog"
    file.write_bytes(log.data)
    whole = replace(log.segment(), path=str(file))
    part = whole.behind(Position(whole.epoch, whole.binlog_file, landed))
    assert [len(statements_of(segment)) for segment in (whole, part)] == [2, 1]
    assert statements_of(part)[0].sql.startswith("ALTER TABLE t ADD b")
    assert tables_of([part]) == set()
