"""Commits read from the files of a Delta log, and their turns."""

import json
import os
from collections import Counter
from datetime import datetime, timedelta, timezone

from benchmarks.commit_log import Commit, applying, ends, read_commits, turns_of
from dmdelta.lakehouse.history import CommitTag
from dmdelta.model.position import Position

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def tag(begin: int, end: int, *, again: bool = False) -> CommitTag:
    places = (Position(1, "b.000001", offset) for offset in (begin, end))
    return CommitTag("app", end, "task", "source", "run", *places, again=again)


def commit(second: int, *own: int, operation: str = "WRITE", again: bool = False) -> Commit:
    return Commit(second, BEGIN + timedelta(seconds=second), operation, tag(*own, again=again) if own else None)


def test_commits_are_read_in_order_with_the_time_of_their_files(tmp_path):
    """Checkpoints and checksums are not commits; versions before the first requested one are not read."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    texts = {
        2: [{"commitInfo": {"operation": "OPTIMIZE"}}, {"add": {}}],
        1: [{"add": {}}, {"commitInfo": {"operation": "WRITE", "userMetadata": tag(100, 200).to_json()}}],
        0: [{"protocol": {}}],
    }
    for version, actions in texts.items():
        file = log / f"{version:020}.json"
        file.write_text("\n".join(map(json.dumps, actions)) + "\n")
        os.utime(file, (BEGIN.timestamp() + version,) * 2)
    (log / "00000000000000000002.checkpoint.parquet").write_bytes(b"no JSON")
    (log / "00000000000000000001.crc").write_text("{}")
    (log / "00000000000000000001.00000000000000000002.compacted.json").write_text("no commit")
    assert read_commits(tmp_path) == [
        commit(0, operation="unknown"),
        commit(1, 100, 200),
        commit(2, operation="OPTIMIZE"),
    ]
    assert read_commits(tmp_path, since=2) == [commit(2, operation="OPTIMIZE")]


def test_a_table_that_does_not_exist_has_no_commits(tmp_path):
    assert read_commits(tmp_path / "t") == []


def test_creation_keepalives_and_maintenance_belong_to_no_turn():
    own = [commit(1, 0, 10), commit(4, 10, 20)]
    created = commit(0, 0, 0, operation="CREATE TABLE")
    assert applying([created, own[0], commit(2, 0, 10, again=True), commit(3, operation="OPTIMIZE"), own[1]]) == own


def test_a_position_is_reached_by_the_first_commit_that_ends_there():
    some = [commit(1, 0, 10), commit(2, 10, 10), commit(3, operation="OPTIMIZE"), commit(4, 10, 20)]
    assert [(end.offset, (at - BEGIN).seconds) for end, at in ends(some)] == [(10, 1), (20, 4)]


def test_one_commit_per_turn():
    table = [commit(1, 0, 10), commit(2, 10, 20), commit(3, 20, 30)]
    found = turns_of([table, table], BEGIN, BEGIN + timedelta(minutes=1))
    assert (found.commits, found.turns) == (6, 6)


def test_two_commits_per_turn_are_seen():
    """A delete, then a replace: only the second one has a new end."""
    table = [
        commit(1, 0, 0, operation="DELETE"),
        commit(2, 0, 10),
        commit(3, 10, 10, operation="DELETE"),
        commit(4, 10, 20),
    ]
    found = turns_of([table], BEGIN, BEGIN + timedelta(minutes=1))
    assert (found.commits, found.turns) == (4, 2)


def test_only_commits_of_the_evaluated_time_count():
    table = [commit(1, 0, 10), commit(5, 10, 20), commit(6, operation="OPTIMIZE"), commit(9, 20, 30)]
    found = turns_of([table], BEGIN + timedelta(seconds=5), BEGIN + timedelta(seconds=9))
    assert (found.commits, found.turns, found.others) == (1, 1, Counter(OPTIMIZE=1))
