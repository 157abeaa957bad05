"""The phases of a table: which transitions are allowed, and that only the scheduler makes them."""

import ast
from itertools import product
from pathlib import Path

import pytest

import dmdelta
from dmdelta.engine.apply.table_state import TRANSITIONS, ForbiddenTransition, Phase, TableState, TableStates
from dmdelta.errors import SchemaError
from dmdelta.model.position import Position

NAME = ("shop", "orders")
PATHS = {
    Phase.FOLLOWING: [],
    Phase.MAINTENANCE: [Phase.MAINTENANCE],
    Phase.SNAPSHOT: [Phase.SNAPSHOT],
    Phase.WAITING: [Phase.WAITING],
    Phase.STOPPED: [Phase.STOPPED],
}
ALLOWED = {
    (Phase.FOLLOWING, Phase.MAINTENANCE),
    (Phase.FOLLOWING, Phase.SNAPSHOT),
    (Phase.FOLLOWING, Phase.WAITING),
    (Phase.FOLLOWING, Phase.STOPPED),
    (Phase.MAINTENANCE, Phase.FOLLOWING),
    (Phase.MAINTENANCE, Phase.SNAPSHOT),
    (Phase.SNAPSHOT, Phase.FOLLOWING),
    (Phase.SNAPSHOT, Phase.STOPPED),
    (Phase.WAITING, Phase.FOLLOWING),
    (Phase.WAITING, Phase.SNAPSHOT),
    (Phase.WAITING, Phase.STOPPED),
    (Phase.STOPPED, Phase.FOLLOWING),
    (Phase.STOPPED, Phase.SNAPSHOT),
}


def in_phase(phase):
    state = TableState(NAME)
    for step in PATHS[phase]:
        state.move(step)
    return state


@pytest.mark.parametrize(("before", "after"), sorted(ALLOWED, key=str))
def test_an_allowed_transition_is_made(before, after):
    state = in_phase(before)
    state.move(after)
    assert state.phase is after


@pytest.mark.parametrize(("before", "after"), sorted({*product(Phase, Phase)} - ALLOWED, key=str))
def test_a_forbidden_transition_raises_and_changes_nothing(before, after):
    state = in_phase(before)
    with pytest.raises(ForbiddenTransition, match=rf"shop\.orders: {before.value} → {after.value}"):
        state.move(after)
    assert state.phase is before


def test_every_phase_can_be_left_and_returns_to_following():
    """No phase is final."""
    for phase in Phase:
        assert TRANSITIONS[phase]
        assert phase is Phase.FOLLOWING or Phase.FOLLOWING in TRANSITIONS[phase]


def test_the_details_of_a_phase_end_with_it():
    state, error = TableState(NAME), SchemaError("a column of unknown type", hint="take a snapshot")
    state.move(Phase.STOPPED, error=error, reload=lambda: None)
    assert (state.error, state.reload is None) == (error, False)
    state.move(Phase.FOLLOWING)
    assert (state.error, state.waits, state.reload) == (None, None, None)


def test_forgetting_keeps_where_the_log_continues():
    """The state from the silver table is discarded; the state from a snapshot or from ranges is kept."""
    read_at, safe_until = Position(1, "binlog.000001", 4), Position(1, "binlog.000001", 9)
    state = TableState(NAME, read_at=read_at, safe_until=safe_until, version=7)
    state.forget()
    assert (state.version, state.read_at, state.safe_until) == (None, read_at, safe_until)


def test_states_by_phase():
    states, error = TableStates(), SchemaError("a column of unknown type", hint="take a snapshot")
    states.of(("shop", "late")).behind_until = Position(1, "binlog.000001", 9)
    states.of(("shop", "worn")).move(Phase.MAINTENANCE)
    states.of(("shop", "bad")).move(Phase.STOPPED, error=error)
    states.read_exactly({("shop", "good"): Position(1, "binlog.000001", 4)})
    assert states.held == {("shop", "late"), ("shop", "worn"), ("shop", "bad")}
    assert states.in_phase(Phase.MAINTENANCE, Phase.STOPPED) == {("shop", "worn"), ("shop", "bad")}
    assert states.stopped == {("shop", "bad"): error}
    assert states.of(("shop", "good")).read_at == Position(1, "binlog.000001", 4)


def phase_moves(tree):
    """Calls of `….move(Phase.…)`, and assignments to a phase."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "move":
            yield node
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in ast.walk(target)]
            yield from (part for part in parts if isinstance(part, ast.Attribute) and part.attr in {"phase", "_phase"})


def test_only_the_scheduler_moves_phases():
    modules = Path(dmdelta.__file__).parent.rglob("*.py")
    movers = {path.stem for path in modules if any(phase_moves(ast.parse(path.read_text())))}
    assert movers == {"scheduler", "table_state"}
