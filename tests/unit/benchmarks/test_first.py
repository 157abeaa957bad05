"""When a table is loaded and when its first change is visible, from its commits; phases from a run's log."""

from datetime import datetime, timedelta, timezone

from benchmarks.commit_log import Commit
from benchmarks.first import Phase, changed_at, loaded_at, messages_of, phases
from dmdelta.lakehouse.history import CommitTag
from dmdelta.model.position import Position

BEGAN = datetime(2026, 1, 1, tzinfo=timezone.utc)
LOG, LATER = Position(1, "b.000001", 4), Position(1, "b.000001", 900)
CHUNKS = [Position.of_chunk(0, number) for number in (1, 2, 3)]


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def commit(second: int, begin: Position | None, end: Position | None) -> Commit:
    tag = CommitTag("app", second, "task", "source", "run", begin, end) if begin and end else None
    return Commit(second, at(second), "WRITE", tag)


LOADED = [
    commit(20, None, None),
    commit(25, CHUNKS[0], CHUNKS[1]),
    commit(30, CHUNKS[1], CHUNKS[2]),
    commit(33, None, None),
]


def test_a_table_is_loaded_with_the_last_commit_before_the_first_change():
    """Maintenance and the table's creation do not count."""
    commits = [*LOADED, commit(60, CHUNKS[2], LATER), commit(70, LATER, Position(1, "b.000002", 4))]
    assert loaded_at(commits) == at(30)
    assert changed_at(commits) == at(60)


def test_a_commit_that_only_marks_the_start_of_the_log_is_not_a_change():
    """The first commit of a turn, and that of a table that joins the log, end where they begin."""
    commits = [*LOADED, commit(40, LOG, LOG), commit(60, LOG, LATER)]
    assert changed_at(commits) == at(60)


def test_before_its_first_change_a_table_has_no_times():
    assert changed_at(LOADED) is None
    assert loaded_at(LOADED) is None


LOG_TEXT = """WARNING: Using incubator modules: jdk.incubator.vector
{"ts": "2026-01-01T00:00:12.500+00:00", "level": "INFO", "msg": "source opened", "context": {"landed": null}}
{"ts": "2026-01-01T00:00:20.000+00:00", "level": "INFO", "msg": "batch landed", "context": {}}
{"ts": "2026-01-01T00:00:23.000+00:00", "level": "INFO", "msg": "batch landed", "context": {}}
{"summary": {"progress": {}}, "idle": false}
"""


def test_messages_are_read_from_dmdeltas_lines():
    found = list(messages_of(LOG_TEXT))
    assert [message.text for message in found] == ["source opened", "batch landed", "batch landed"]
    assert found[0].at == at(12.5)


def test_phases_are_in_the_order_of_their_first_occurrence():
    found = phases(
        BEGAN, list(messages_of(LOG_TEXT)), {"t0": [commit(15, LOG, LATER), commit(40, LOG, LATER)], "t1": []}
    )
    assert found == [
        Phase("source opened", 12.5, 12.5, 1),
        Phase("commits of t0", 15, 40, 2),
        Phase("batch landed", 20, 23, 2),
    ]
    assert str(found[1]) == "| commits of t0 | 15.0 s | 40.0 s | 2 |"
