"""Shard DDL with a sink: silver and the target's merged table are the union of the shards, whatever their structures.

The scenarios that a target cannot follow are in test_shard_merge.py.
"""

import pytest

from tests.support.sharding import MODES, WITHOUT_SINK, ShardMerge, environment, read_cases

FEW = ("add_one_server_later", "sequence_of_two")
STEPWISE = ("sequence_of_two", "rename_in_turn", "drop_one_shard")
TARGETS = ("mariadb", "mysql80_target")
PARTS = 4
NUMBERS = {
    name: number for number, name in enumerate(dict.fromkeys(case.name for mode in MODES for case in read_cases(mode)))
}
SCENARIOS = [(mode, part, TARGETS[(part + place) % 2]) for place, mode in enumerate(MODES) for part in range(PARTS)]
"""Each scenario with each of its modes. Both modes of a scenario are in the same part, so each has another target:

scenario and mode, scenario and target, mode and target are covered in pairs.
"""


def cases_of(mode):
    return [case for case in read_cases(mode) if case.name not in WITHOUT_SINK]


@pytest.fixture
def servers(mysql80, mysql80_too, spark):
    """The servers of the shards; Spark is running."""
    return mysql80, mysql80_too


@pytest.fixture
def target(request):
    """The server of that name."""
    return request.getfixturevalue(request.param)


def play(merge, spark):
    """Run scenarios on a task, and compare silver and the target."""
    with environment(merge):
        merge.play()
        merge.assert_sunk()
        merge.assert_merged(spark)


@pytest.mark.long
def test_some_scenarios(servers, mariadb, spark, tmp_path):
    """Two shards wait for two others, for one statement and for two: then silver and the target have the columns."""
    cases = [case for case in cases_of("pessimistic") if case.name in FEW]
    play(ShardMerge(servers, tmp_path, "pessimistic", cases, target=mariadb), spark)


@pytest.mark.long
@pytest.mark.parametrize(("mode", "part", "target"), SCENARIOS, indirect=["target"])
def test_scenarios(servers, target, spark, tmp_path, mode, part):
    """Each scenario ends with the union of its shards, without a lock."""
    cases = [case for case in cases_of(mode) if NUMBERS[case.name] % PARTS == part]
    play(ShardMerge(servers, tmp_path, mode, cases, target=target), spark)


@pytest.mark.long
@pytest.mark.parametrize(("mode", "target"), [*zip(MODES, TARGETS, strict=True)], indirect=["target"])
def test_restart_at_each_step(servers, target, spark, tmp_path, mode):
    """A restart after each statement of several scenarios gives the same result."""
    cases = [case for case in cases_of(mode) if case.name in STEPWISE]
    play(ShardMerge(servers, tmp_path, mode, cases, each=True, target=target), spark)
