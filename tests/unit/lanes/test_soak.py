"""`make soak`: the seed determines its plan, and `make nightly` reads its figures."""

import random
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from dmdelta.failpoint import CrashPoint
from tests.nightly.state import Outcome, PartResult
from tests.soak import operations
from tests.soak.commands import Refused
from tests.soak.faults import POINTS, Faults
from tests.soak.judges import Judges
from tests.soak.operations import Operations
from tests.soak.phases import Soak
from tests.soak.report import COMMANDS, LEAST_ROWS, LOADS, figures, is_over, shortcomings
from tests.soak.scenes import SABOTAGE, Scene, plan_scene, special_scenes
from tests.soak.shards import ShardChanges
from tests.soak.snapshots import RequestedSnapshot, SnapshotState, is_complete
from tests.soak.task import Runner, SoakTask
from tests.support.lake import table_folder
from tests.support.sabotage import Guard, sabotaged_environment


@pytest.fixture
def soak(tmp_path):
    """A soak without sources."""
    task = SoakTask(tmp_path, None, "")
    commands = Operations(task)
    faults = Faults(None, Runner(task), (), ())
    return Soak((), faults, commands, Judges(None, task, commands), ShardChanges(7))


def test_nightly_reads_the_figures(soak):
    """Phases, faults and rows as numbers; the times until the marks arrive and until all tables are equal are lines."""
    soak.faults.counts = Counter({"connections cut": 2, "armed": 3, "armed and not met": 1})
    soak.settled, soak.equal = [4.0, 31.2, 5.0], [40.0, 52.4]
    soak.judges.not_compared["its snapshot is not complete yet"] += 2
    found = figures(soak, passed=2, failed=1, seconds=60.0)
    part = PartResult("soak", Outcome.PASSED, 60.0, "command", **{**found, "notes": tuple(found["notes"])})
    assert (part.passed, part.failed, part.faults, part.rows) == (2, 1, 4, 0)
    assert "settled after 5 s (median), by phase: 4, 31, 5 s" in part.notes
    assert "all tables equal after 46 s (median), by phase: 40, 52 s, with the time of the comparison" in part.notes
    assert "not compared by dmdelta validate, 2 times: its snapshot is not complete yet" in part.notes


def test_a_mark_is_read_once_per_version(soak):
    """Waiting for the task takes no processor time from it."""
    queries, newest = [], [None, 4]

    def sql(query):
        queries.append(query)
        return SimpleNamespace(collect=lambda: [SimpleNamespace(id=newest[len(queries) - 1])])

    soak.judges.spark, source = SimpleNamespace(sql=sql), SimpleNamespace(marks="soak_a_marks")
    log = table_folder(soak.judges.lakehouse.silver(source.marks, "m")) / "_delta_log"
    assert soak.judges.mark(source) == -1
    assert not queries
    log.mkdir(parents=True)
    for version, mark in enumerate([-1, 4]):
        (log / f"{version:020}.json").touch()
        (log / f"{version:020}.checkpoint.parquet").touch()
        assert [soak.judges.mark(source) for _ in range(3)] == [mark] * 3
        assert len(queries) == version + 1


@pytest.fixture
def whole(soak):
    """A soak without sources that has done everything."""
    soak.sources = (SimpleNamespace(counts=Counter(dict.fromkeys([*LOADS, "DDL cases"], 1)), rows=LEAST_ROWS * 60),)
    soak.operations.counts = Counter({"validate, silver": 1})
    soak.operations.under_load = Counter(dict.fromkeys(COMMANDS, 1))
    soak.faults.counts = Counter({"connections cut": 1} | {scene.value: 1 for scene in special_scenes(sinks=False)})
    return soak


def test_a_soak_without_a_load_or_a_command_is_no_test(whole):
    """Each is named, and too few rows."""
    assert shortcomings(whole, 60.0) == []
    del whole.sources[0].counts["online DDL"], whole.operations.counts["validate, silver"]
    lacks = ["no online DDL", "no validate, silver", "295 rows/s instead of 300"]
    assert shortcomings(whole, 61.0) == lacks
    whole.faults.counts.clear()
    assert "no faults" in shortcomings(whole, 60.0)


def test_a_soak_that_lacks_something_has_more_phases(whole):
    """For half of the wanted time at most; one that need not have everything ends in time."""
    assert not is_over(whole, 59.0, 60.0, whole=True)
    assert is_over(whole, 60.0, 60.0, whole=True)
    del whole.operations.under_load["pause"]
    assert not is_over(whole, 89.0, 60.0, whole=True)
    assert is_over(whole, 90.0, 60.0, whole=True)
    assert is_over(whole, 60.0, 60.0, whole=False)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_to_succeed_under_load(whole, command):
    """Successes while the sources are idle are not enough."""
    whole.operations.counts[command] = 3
    del whole.operations.under_load[command]
    assert shortcomings(whole, 60.0) == [f"no {command} under load"]


@pytest.mark.parametrize("scene", special_scenes(sinks=False))
def test_each_special_scene_has_to_happen(whole, scene):
    """It is named."""
    del whole.faults.counts[scene.value]
    assert shortcomings(whole, 60.0) == [f"no {scene.value}"]


def test_a_task_with_a_sink_needs_no_takeover_and_has_its_target_validated(whole):
    """Its sources execute no DDL cases."""
    whole.judges.task = SimpleNamespace(target=object())
    del whole.faults.counts[Scene.TAKEOVER.value], whole.sources[0].counts["DDL cases"]
    assert shortcomings(whole, 60.0) == ["no validate, sink"]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("sinks", [False, True])
def test_six_phases_have_each_special_scene(seed, sinks):
    """The first one has none, and the same seed plans the same scenes."""
    scenes = [plan_scene(seed, number, sinks=sinks) for number in range(1, 7)]
    assert scenes == [plan_scene(seed, number, sinks=sinks) for number in range(1, 7)]
    assert scenes[0] is Scene.FAULTS
    assert set(scenes) == {Scene.FAULTS, *special_scenes(sinks=sinks)}
    assert (Scene.TAKEOVER in scenes) != sinks


@pytest.fixture
def kinds(soak):
    """The names of the commands that a soak plans and submits."""
    source = SimpleNamespace(shop="a", load="b", shards=["c"], source_id="s1")
    soak.operations.task = SimpleNamespace(sources=[source])
    chosen: list[str] = []
    soak.operations._submit = chosen.append
    for name in ("snapshot", "pause", "maintain", "replay"):
        setattr(soak.operations, name, partial(lambda one, _: one, name))
    return chosen


@pytest.mark.parametrize("commanded", [(1, 3, 5, 6, 7), (1, 2, 3, 5, 7), (1, 3, 4, 5, 7)])
def test_each_command_has_its_turn(soak, kinds, commanded):
    """In the five of seven phases that have commands, whichever they are; each phase begins two of them.

    In the first four of these, each command has its turn as the first one, which has load.
    """
    firsts = []
    for number in range(1, 8):
        soak.operations.places.append({"s1": f"b.000001:{number}"})
        if number in commanded:
            planned = soak.operations.plan(random.Random(number), 15.0)
            assert [at for at, _ in planned] == sorted(at for at, _ in planned)
            for _, begin in planned:
                begin()
            firsts.append(kinds[-len(planned)])
    assert set(kinds) == {"snapshot", "pause", "maintain", "replay"}
    assert firsts[:4] == ["snapshot", "pause", "maintain", "replay"]
    assert len(kinds) == 9  # the first phase has one


def test_a_refused_command_is_repeated_while_the_sources_are_written(soak, monkeypatch):
    """It is kept for the time after the load only if it does not succeed before."""
    monkeypatch.setattr(operations, "AGAIN_SECONDS", 0.0)
    tries: list[bool] = []

    def act() -> None:
        tries.append(soak.operations.has_load)
        if len(tries) == 3:
            soak.operations.has_load = False
        raise Refused

    soak.operations.has_load = True
    soak.operations._try(act)
    assert tries == [True] * 3
    assert soak.operations._again == [act]


def test_a_command_is_counted_under_load_by_its_beginning(soak, monkeypatch):
    """One that begins while the sources are idle counts only as a success; commands that hold the tables are counted."""

    def ask(*_: str) -> list[dict[str, object]]:
        soak.operations.has_load = False
        return []

    monkeypatch.setattr(operations, "ask", ask)
    soak.operations.has_load = True
    soak.operations._do("maintain")
    soak.operations._do("pause")
    assert soak.operations.counts == {"maintain": 1, "pause": 1}
    assert soak.operations.under_load == Counter({"maintain": 1})
    assert soak.operations.holds == 1


TABLE = ("shop", "orders")


@pytest.mark.parametrize(
    ("before", "now", "complete"),
    [
        (SnapshotState({}, frozenset()), SnapshotState({}, frozenset({TABLE})), False),
        (SnapshotState({}, frozenset()), SnapshotState({}, frozenset()), False),
        (SnapshotState({}, frozenset()), SnapshotState({TABLE: -1}, frozenset()), True),
        (SnapshotState({TABLE: -1}, frozenset()), SnapshotState({TABLE: -1}, frozenset()), False),
        (SnapshotState({TABLE: -1}, frozenset()), SnapshotState({TABLE: -3}, frozenset()), True),
        (SnapshotState({}, frozenset({TABLE})), SnapshotState({TABLE: -1}, frozenset({TABLE})), False),
    ],
    ids=["requested", "lost", "first", "older", "newer", "of an earlier request"],
)
def test_a_snapshot_is_complete_once_its_tables_are_in_silver(before, now, complete):
    """And no other request of them is left."""
    assert is_complete(RequestedSnapshot("s1", frozenset({TABLE}), before, True), now) is complete


@pytest.mark.parametrize(("caught_up", "counted"), [(False, 1), (True, 0)])
def test_a_snapshot_is_counted_when_it_is_complete(soak, monkeypatch, caught_up, counted):
    """Under load only if the task has not caught up before."""
    states = iter([SnapshotState({}, frozenset({TABLE})), SnapshotState({TABLE: -1}, frozenset())])
    monkeypatch.setattr(operations, "read_snapshots", lambda *_: next(states))
    requested = RequestedSnapshot("s1", frozenset({TABLE}), SnapshotState({}, frozenset()), True)
    soak.operations.snapshots = [requested]
    soak.operations.record_snapshots(caught_up=caught_up)
    assert (soak.operations.snapshots, soak.operations.counts) == ([requested], {})
    soak.operations.record_snapshots(caught_up=caught_up)
    assert (soak.operations.snapshots, soak.operations.counts) == ([], {"snapshot": 1})
    assert soak.operations.under_load["snapshot"] == counted


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
