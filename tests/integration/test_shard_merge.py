"""Shard merge: two servers with two shards each become one silver table, whatever becomes of their structures."""

import pytest

from dmdelta.errors import SchemaError
from tests.support.sharding import BEGIN, SHARDS, ShardMerge, environment, read_cases, wait_until

LATER_SHARD = 5
MODES = ("pessimistic", "optimistic")
FEW, PARTS = 1, 6
"""A scenario costs some seconds a run: the first is by itself, the others go side by side in parts."""
QUICK = ("optimistic", 0)
"""Every test run's; its pessimistic scenarios have a sink: test_shard_sink.py."""
SCENARIOS = [
    pytest.param(mode, part, marks=() if (mode, part) == QUICK else pytest.mark.long)
    for mode in MODES
    for part in range(PARTS)
]


@pytest.mark.parametrize(("mode", "part"), SCENARIOS)
def test_scenarios(mysql80, mysql80_too, spark, tmp_path, mode, part):
    """Silver is the union of the shards, and no lock is left, at the end of every scenario."""
    cases = read_cases(mode)
    merge = ShardMerge(
        (mysql80, mysql80_too), tmp_path, mode, cases[FEW:][part - 1 :: PARTS - 1] if part else cases[:FEW]
    )
    with environment(merge):
        merge.play()
        merge.assert_merged(spark)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["sequence_of_two", "rename_in_turn", "drop_one_shard"])
def test_restart_at_each_step(mysql80, mysql80_too, spark, tmp_path, mode, name):
    """A new start after every single statement ends the same."""
    cases = [case for case in read_cases(mode) if case.name == name]
    merge = ShardMerge((mysql80, mysql80_too), tmp_path, mode, cases, each=True)
    with environment(merge):
        merge.play()
        merge.assert_merged(spark)


@pytest.mark.long
def test_nobody_else_waits(mysql80, mysql80_too, spark, tmp_path):
    """While shards wait, under load, landing and the other shards go on; the last shard lets all go on."""
    (case,) = [case for case in read_cases("pessimistic") if case.name == "add_a_shard_lags"]
    merge = ShardMerge((mysql80, mysql80_too), tmp_path, "pessimistic", [case])
    bronze = merge.lake.bronze
    with environment(merge):
        merge.begin()
        with merge.process() as run:
            run.wait_for('"range applied"', seconds=240, times=2)
            with merge.under_load(case):
                merge.alter(case, "ALTER TABLE t ADD a INT DEFAULT 5", 1, 2)
                run.wait_for('"shard waits"', times=2, seconds=240)
                landed = spark.table(bronze).where("source_id = 's1'").count()
                rows = merge.rows_of(spark, case)
                waiting = [name for name in rows if name.startswith("s1-")]
                assert len(waiting) == 2
                others = rows.keys() - waiting
                wait_until(lambda: all(merge.rows_of(spark, case)[name] > rows[name] for name in others), seconds=240)
                wait_until(lambda: spark.table(bronze).where("source_id = 's1'").count() > landed, seconds=240)
                now = merge.rows_of(spark, case)
                assert {name: now[name] for name in waiting} == {name: rows[name] for name in waiting}
                assert "a" not in merge.silver(spark, case).columns
                (lock,) = merge.locks()
                assert (len(lock.ready), len(lock.remain)) == (2, 2)
                merge.alter(case, "ALTER TABLE t ADD a INT DEFAULT 5", 3, 4)
                run.wait_for('"shard resumed"', times=2, seconds=240)
        merge.run()
        merge.assert_merged(spark)


@pytest.mark.long
def test_a_shard_with_other_columns_joins_when_they_agree(mysql80, mysql80_too, spark, tmp_path):
    """A shard that the allow-list lets in later, with a column of its own, stops alone, until the column is gone."""
    (case,) = [case for case in read_cases("pessimistic") if case.name == "add_in_turn"]
    merge = ShardMerge((mysql80, mysql80_too), tmp_path, "pessimistic", [case])
    with environment(merge):
        merge.begin()
        merge.write_spec(**{"block-allow-list": {"do-dbs": [merge.database(case, shard) for shard in SHARDS]}})
        merge.run()
        merge.create(case, LATER_SHARD)
        merge.alter(case, f"{BEGIN[:-1]}, own INT)", LATER_SHARD)
        merge.write_spec()
        for shard in (*SHARDS, LATER_SHARD):
            merge.load(case, shard)
        merge.run(SchemaError.exit_code)
        rows = merge.rows_of(spark, case)
        assert [int(rows[name]) for name in sorted(rows)] == [merge.count(case, shard) for shard in SHARDS]
        merge.alter(case, "ALTER TABLE t DROP own", LATER_SHARD)
        merge.load(case, LATER_SHARD)
        merge.run()
        merge.assert_merged(spark)
