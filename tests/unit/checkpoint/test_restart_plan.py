"""Every branch of the restart decision: where a table resumes, and in which mode."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from dmdelta.checkpoint import (
    ORIGIN,
    FlushReason,
    Point,
    SafeModePolicy,
    SourceEvidence,
    StoredPoints,
    TableEvidence,
    TablePoint,
    inherited_exit,
    plan_restart,
)
from dmdelta.errors import LakehouseError
from dmdelta.model.position import Position

WINDOW = timedelta(seconds=60)
NONE = timedelta(0)

HISTORY = "the table's own history ends at"
SAME_VERSION = "at Delta version 7, as recorded in the checkpoint"
NEW_TASK = "nothing was applied before"
NEW_TABLE = "new table: it had no events before"
NO_RECORD = "neither checkpoint nor history found: safe mode for 0:01:00"
NORMAL_STOP = "orderly stop"
REACHED = "everything up to the exit point"
AHEAD = "may have been applied: safe mode until then"
NO_EXIT_POINT = "a crash left no exit point: safe mode for 0:01:00"


def at(offset):
    return Position(1, "binlog.000001", offset)


def stored(reason, exit_point=None, own=None, own_version=7, whole=100):
    tables = {} if own is None else {("shop", "t"): TablePoint("shop", "t", Point(at(own)), own_version)}
    return StoredPoints(1, reason, Point(at(whole)), tables, Point(at(exit_point)) if exit_point else None)


@dataclass(frozen=True)
class Case:
    """Evidence and the expected plan; positions as offsets.

    Attributes:
        reason: a part of it.
    """

    reason: str
    start: Position
    until: int | None = None
    window: timedelta = NONE
    history: int | None = None
    version: int | None = None
    landed: int | None = 500
    stored: StoredPoints | None = None


STOP, PAUSE, INTERVAL, DDL = FlushReason.STOP, FlushReason.PAUSE, FlushReason.INTERVAL, FlushReason.DDL
CASES = {
    "a new task": Case(NEW_TASK, ORIGIN, landed=None),
    "a new task that has landed": Case(NEW_TASK, ORIGIN),
    "a table without record or history": Case(NO_RECORD, ORIGIN, 500, WINDOW, version=3),
    "history alone": Case(HISTORY, at(300), history=300, version=9),
    "history beyond a crash's checkpoint": Case(
        HISTORY, at(300), history=300, version=9, stored=stored(INTERVAL, 250, own=150)
    ),
    "history behind the global point": Case(
        HISTORY, at(100), history=40, version=9, stored=stored(INTERVAL, 250, own=40)
    ),
    "the Delta version that a crash's checkpoint saw": Case(
        SAME_VERSION, at(150), version=7, stored=stored(INTERVAL, 250, own=150)
    ),
    "the same version, the global point ahead": Case(
        SAME_VERSION, at(100), version=7, stored=stored(INTERVAL, 250, own=40)
    ),
    "a table that is new to a known source": Case(NEW_TABLE, at(100), stored=stored(INTERVAL, 250)),
    "normal stop": Case(NORMAL_STOP, at(150), version=8, stored=stored(STOP, own=150)),
    "normal stop, only the global point": Case(NORMAL_STOP, at(100), version=8, stored=stored(STOP)),
    "normal stop amid an older doubt": Case(AHEAD, at(150), 250, version=8, stored=stored(STOP, 250, own=150)),
    "pause, exit point equal": Case(REACHED, at(150), version=8, stored=stored(PAUSE, 150, own=150)),
    "pause, behind the exit point": Case(AHEAD, at(150), 250, version=8, stored=stored(PAUSE, 250, own=150)),
    "pause, its exit point was not recorded": Case(
        NO_EXIT_POINT, at(150), 500, WINDOW, version=8, stored=stored(PAUSE, own=150)
    ),
    "crash, no exit point": Case(NO_EXIT_POINT, at(150), 500, WINDOW, version=8, stored=stored(INTERVAL, own=150)),
    "crash, the exit point of the last flush": Case(
        NO_EXIT_POINT, at(150), 500, WINDOW, version=8, stored=stored(INTERVAL, 250, own=150)
    ),
    "crash, the exit point of the last flush reached": Case(
        NO_EXIT_POINT, at(150), 500, WINDOW, version=8, stored=stored(DDL, 150, own=150)
    ),
    "crash, a checkpoint without Delta version": Case(
        NO_EXIT_POINT, at(150), 500, WINDOW, version=8, stored=stored(INTERVAL, own=150, own_version=None)
    ),
}


def plan(case, *, always=False):
    return plan_restart(
        TableEvidence("shop", "t", None if case.history is None else at(case.history), case.version),
        SourceEvidence(None if case.landed is None else at(case.landed), case.stored),
        SafeModePolicy(always, WINDOW),
    )


@pytest.mark.parametrize("name", CASES)
def test_the_evidence_decides(name):
    """Proof takes precedence over exit points; without proof DM's branches apply."""
    case = CASES[name]
    made = plan(case)
    assert (made.start, made.safe_until, made.safe_for, made.always) == (
        case.start,
        None if case.until is None else at(case.until),
        case.window,
        False,
    )
    assert case.reason in made.reason


@pytest.mark.parametrize("name", CASES)
def test_safe_mode_in_the_spec_is_always_on(name):
    """`safe-mode: true` changes the mode and its reason, not the start."""
    made = plan(CASES[name], always=True)
    assert made.start == CASES[name].start
    assert made.is_safe(at(10_000), timedelta(days=1))
    assert made.reason.startswith("safe-mode is on")


@pytest.mark.parametrize(
    ("begin", "seconds", "safe"), [(150, 0, True), (150, 61, True), (499, 61, True), (500, 59, True), (500, 60, False)]
)
def test_after_a_crash_safe_mode_ends_after_window_and_exit_point(begin, seconds, safe):
    """After two flush intervals as in DM, and not before everything that had landed is applied again."""
    made = plan(CASES["crash, no exit point"])
    assert made.is_safe(at(begin), timedelta(seconds=seconds)) is safe


@pytest.mark.parametrize(("begin", "safe"), [(150, True), (249, True), (250, False)])
def test_safe_mode_ends_at_the_exit_point(begin, safe):
    """The range (table checkpoint, exit point] is applied in safe mode, however long it takes; the next one is not."""
    assert plan(CASES["pause, behind the exit point"]).is_safe(at(begin), timedelta(hours=1)) is safe


def test_a_proven_table_is_never_in_safe_mode():
    """History is proof: normal mode from the first range on."""
    assert not plan(CASES["history beyond a crash's checkpoint"]).is_safe(at(300), NONE)


@pytest.mark.parametrize("landed", [None, 99])
def test_bronze_that_ends_before_the_checkpoint_stops_the_task(landed):
    """A bronze table that was removed or replaced is an error."""
    with pytest.raises(LakehouseError, match="bronze ends before the checkpoint"):
        plan(Case(HISTORY, ORIGIN, landed=landed, stored=stored(STOP)))


def test_a_missing_table_stops_the_task():
    """The checkpoint has a Delta version of a table that does not exist: it was removed."""
    with pytest.raises(LakehouseError, match=r"silver table shop\.t does not exist") as caught:
        plan(Case(NEW_TABLE, ORIGIN, stored=stored(STOP, own=150)))
    assert "from bronze" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("record", "landed", "expected"),
    [
        (None, None, None),
        (None, 500, 500),
        (stored(STOP), 500, None),
        (stored(STOP, 250), 500, 250),
        (stored(PAUSE, 250), 500, 250),
        (stored(PAUSE), 500, 500),
        (stored(INTERVAL, 250), 500, 500),
        (stored(DDL), 500, 500),
        (stored(INTERVAL, 250), None, 250),
    ],
)
def test_a_run_inherits_the_exit_point_of_earlier_runs(record, landed, expected):
    """Exact after an ended run, bounded by bronze's end after a crash, None after an orderly stop."""
    source = SourceEvidence(None if landed is None else at(landed), record)
    assert inherited_exit(source) == (None if expected is None else at(expected))
