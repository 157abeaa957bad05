"""The statements of a segment before it lands."""

import struct
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from dmdelta.binlog.events.header import EventType
from dmdelta.bronze.segment_reader import read_group
from dmdelta.bronze.segment_scan import statements_of, tables_of
from dmdelta.model.position import Position, seq_of
from dmdelta.model.segment import segment_name
from dmdelta.segments import EpochBegin, begin_epoch
from tests.support.changes import Log

SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


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


@pytest.mark.parametrize(("until", "numbers"), [(None, [1, 2, 3]), (4, [1, 2, 3]), (5, [1, 3])])
def test_transactions_that_an_earlier_epoch_has(tmp_path: Path, until: int | None, numbers: list[int]) -> None:
    """They are neither scanned nor decoded in segments before the position at which the epoch stops to skip them."""
    log = Log()
    for number in (1, 2, 3):
        log.add(EventType.GTID, struct.pack("<B16sq", 0, UUID(SERVER).bytes, number))
        log.query(f"ALTER TABLE t ADD c{number} INT")
    name = log.segment().binlog_file
    skip_until = None if until is None else seq_of(name, until)
    folder = begin_epoch(tmp_path, EpochBegin(SERVER, 2, "mysql", name, 4, f"{SERVER}:2:7-9", skip_until)) / name
    folder.mkdir()
    file = folder / segment_name(4, len(log.data))
    file.write_bytes(log.data)
    segment = replace(log.segment(), path=str(file), epoch=2)
    wanted = [f"ALTER TABLE t ADD c{number} INT" for number in numbers]
    assert [statement.sql for statement in statements_of(segment)] == wanted
    assert [text for batch in read_group([segment], {}) for text in batch.column("ddl").to_pylist()] == wanted
