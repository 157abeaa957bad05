"""`make soak`: the seed determines its plan, and `make nightly` reads its figures."""

import random
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from dmdelta.failpoint import CrashPoint
from tests.nightly.state import Outcome, PartResult
from tests.soak.faults import POINTS, Faults
from tests.soak.judges import Judges
from tests.soak.operations import Operations
from tests.soak.phases import Soak
from tests.soak.report import COMMANDS, LEAST_ROWS, LOADS, figures, shortcomings
from tests.soak.scenes import SABOTAGE, Scene
from tests.soak.shards import ShardChanges
from tests.soak.task import Runner, SoakTask
from tests.support.sabotage import Guard, sabotaged_environment


@pytest.fixture
def soak(tmp_path):
    """A soak without sources."""
    task = SoakTask(tmp_path, None, "")
    operations = Operations(task)
    faults = Faults(None, Runner(task), (), ())
    return Soak((), faults, operations, Judges(None, task, operations), ShardChanges(7))


def test_nightly_reads_the_figures(soak):
    """Phases, faults and rows as numbers; the time to settle of each phase is a line."""
    soak.faults.counts = Counter({"connections cut": 2, "armed": 3, "armed and not met": 1})
    soak.settled = [4.0, 31.2, 5.0]
    soak.judges.not_compared["its snapshot is not complete yet"] += 2
    found = figures(soak, passed=2, failed=1, seconds=60.0)
    part = PartResult("soak", Outcome.PASSED, 60.0, "command", **{**found, "notes": tuple(found["notes"])})
    assert (part.passed, part.failed, part.faults, part.rows) == (2, 1, 4, 0)
    assert "settled after 5 s (median), by phase: 4, 31, 5 s" in part.notes
    assert "not compared by dmdelta validate, 2 times: its snapshot is not complete yet" in part.notes


def test_a_soak_without_a_load_or_a_command_is_no_test(soak):
    """Each is named, and too few rows."""
    source = SimpleNamespace(counts=Counter(dict.fromkeys([*LOADS, "DDL cases"], 1)), rows=LEAST_ROWS * 60)
    soak.sources = (source,)
    soak.operations.counts = Counter(dict.fromkeys(COMMANDS, 1))
    soak.faults.counts["connections cut"] = 1
    assert shortcomings(soak, 60.0) == []
    del source.counts["online DDL"], soak.operations.counts["replay"], soak.faults.counts["connections cut"]
    assert shortcomings(soak, 61.0) == ["no online DDL", "no replay", "no faults", "295 rows/s instead of 300"]


def test_each_command_has_its_turn(soak):
    """In four phases, whatever the seed."""
    soak.task = SimpleNamespace(sources=[SimpleNamespace(shop="a", load="b", shards=["c"], source_id="s1")])
    soak.operations.task = soak.task
    soak.operations.places = [{"s1": f"b.000001:{n}"} for n in range(5)]
    chosen: list[str] = []
    soak.operations._submit = chosen.append
    for name in ("snapshot", "pause", "maintain", "replay"):
        setattr(soak.operations, name, partial(lambda one, _: chosen.append(one), name))
    for seed in range(4):
        soak.operations.plan(random.Random(seed), 15.0)
    assert set(chosen) == {"snapshot", "pause", "maintain", "replay"}


def test_the_seed_decides_the_faults(soak):
    """Also when they are injected."""
    plans = [
        [(at, fault.func.__name__) for at, fault in soak.faults.plan(random.Random(seed), 15.0)] for seed in (1, 1, 2)
    ]
    assert plans[0] == plans[1] != plans[2]


def test_the_seed_decides_the_statements_of_the_shards():
    """They are the same for every source."""
    of_shards = [[ShardChanges(seed).of(phase) for phase in range(1, 20)] for seed in (1, 1, 2)]
    assert of_shards[0] == of_shards[1] != of_shards[2]


def test_each_crash_point_of_a_following_task_may_be_armed():
    """The crash points of a full load are in no phase."""
    armed = {point for points in POINTS.values() for point in points}
    assert {point.name.split("_")[0] for point in set(CrashPoint) - armed} == {"SNAPSHOT", "MEMORY"}


def test_each_guard_has_a_sabotage():
    """With a scene in which the guard matters, and never beside itself."""
    assert SABOTAGE.keys() == set(Guard)
    assert all(guard not in sabotage.besides for guard, sabotage in SABOTAGE.items())
    assert all(sabotage.scene is not Scene.FAULTS for sabotage in SABOTAGE.values())


def test_a_process_imports_the_sabotage(monkeypatch):
    """Its folder precedes the existing entries of PYTHONPATH."""
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    found = sabotaged_environment([Guard.VERSION, Guard.BOUNDARY])
    first, *_, last = found["PYTHONPATH"].split(":")
    assert (Path(first).name, last) == ("sabotage", "/elsewhere")
    assert found["DMDELTA_SABOTAGE"] == "version-guard,transaction-boundary"
