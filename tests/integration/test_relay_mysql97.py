"""The newest MySQL: tagged GTIDs in requests, in events and at the start of files."""

import json
from pathlib import Path

import pytest

from dmdelta.segments import list_segments
from dmdelta.source.relay.relay_task import StartAfter, StartAt
from tests.support.relaying import catch_up, files_differ, relay_task
from tests.support.servers import Server

pytestmark = pytest.mark.mysql97


def test_a_start_after_tagged_gtids(mysql97: Server, tmp_path: Path) -> None:
    """A start after a tagged set begins at the next transaction; a file's own tagged set is read."""
    database = mysql97.fresh_database("tagged")
    tag = "SET gtid_next = 'AUTOMATIC:orders'"
    insert = "INSERT INTO t VALUES ()"
    mysql97.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)", tag, *[insert] * 3, database=database)
    binlog_file, offset, gtids = mysql97.position()
    assert ":orders:" in gtids
    mysql97.execute(tag, *[insert] * 3, database=database)
    task = relay_task(mysql97, tmp_path / "gtid", start=StartAfter(gtids))
    catch_up(task)
    first = list_segments(task.folder, "src")[0]
    assert (first.binlog_file, first.start) == (binlog_file, offset)

    mysql97.execute("FLUSH BINARY LOGS", insert.replace(" t ", f" {database}.t "))
    binlog_file, offset, gtids = mysql97.position()
    mysql97.execute(tag, insert, database=database)
    task = relay_task(mysql97, tmp_path / "file", start=StartAt(binlog_file, offset))
    catch_up(task)
    begin = json.loads(next(task.folder.glob("*/begin.json")).read_text())
    name = gtids.split(":")[0]
    assert begin["gtid_set"] == gtids.replace(":orders", f",{name}:orders")

    everything = relay_task(mysql97, tmp_path / "all")
    catch_up(everything)
    assert files_differ(everything, mysql97) == []
