"""Shard DDL in the sink: the target's merged table is the union of the shards, whatever becomes of their structures."""

import pytest

from tests.support.sharding import ShardMerge, environment, read_cases

NOT_A_UNION = {"same_keys_in_all_shards", "moves_between_shards", "default_differs"}
"""The target has one row for a key, and one default for a column."""
BY_HAND = {"unlock_skip", "conflicting_orders_by_hand", "one_statement_or_two_by_hand", "types_conflict_by_hand"}
NEVER_ALL = {"rename_there_and_back", "a_shard_of_each_kind", "drop_and_add_again_at_once"}
"""Silver holds these at once because it distinguishes the rows of the shards; the target does not."""
MODES = ("pessimistic", "optimistic")
FEW = ("add_one_server_later", "add_one_server_later_at_once", "sequence_of_two")
PARTS = 5


def cases_of(mode):
    return [case for case in read_cases(mode) if case.name not in NOT_A_UNION | BY_HAND | NEVER_ALL]


def played(servers, folder, mode, cases, **more):
    """A task with a sink that has gone through scenarios."""
    merge = ShardMerge(servers, folder, mode, cases, **more)
    with environment(merge):
        merge.play()
        merge.assert_sunk()
    return merge


@pytest.fixture
def servers(mysql80, mysql80_too, spark):
    """The servers of the shards; Spark is up."""
    return mysql80, mysql80_too


@pytest.fixture
def target(request):
    """The server that is named."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("mode", ["pessimistic", pytest.param("optimistic", marks=pytest.mark.long)])
def test_some_scenarios(servers, mariadb, spark, tmp_path, mode):
    """Two shards wait for two others, for one statement and for two: then silver and the target have the columns."""
    cases = [case for case in cases_of(mode) if case.name in FEW]
    merge = played(servers, tmp_path, mode, cases, target=mariadb)
    with environment(merge):
        merge.assert_merged(spark)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("target", ["mysql80_target", "mariadb"], indirect=True)
@pytest.mark.parametrize("mode", MODES)
def test_scenarios(servers, target, tmp_path, mode, part):
    """Each scenario ends with the union of its shards."""
    played(servers, tmp_path, mode, cases_of(mode)[part::PARTS], target=target)


@pytest.mark.long
@pytest.mark.parametrize("target", ["mysql80_target", "mariadb"], indirect=True)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["sequence_of_two", "rename_in_turn", "drop_one_shard"])
def test_restart_at_each_step(servers, target, tmp_path, mode, name):
    """A new start after every single statement ends the same."""
    played(servers, tmp_path, mode, [case for case in cases_of(mode) if case.name == name], each=True, target=target)
