"""Shard merge: two servers with two shards each become one silver table, however their structures change."""

import pytest

from dmdelta.errors import SchemaError
from tests.support.sharding import BEGIN, MODES, SHARDS, WITHOUT_SINK, ShardMerge, environment, read_cases, wait_until

LATER_SHARD = 5


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("optimistic", {"add_in_turn"}),
        *(pytest.param(mode, WITHOUT_SINK, marks=pytest.mark.long, id=mode) for mode in MODES),
    ],
)
def test_scenarios(mysql80, mysql80_too, spark, tmp_path, mode, names):
    """Silver is the union of the shards, and no lock is left, at the end of every scenario that no sink follows.

    The others have a sink in test_shard_sink.py.
    """
    cases = [case for case in read_cases(mode) if case.name in names]
    merge = ShardMerge((mysql80, mysql80_too), tmp_path, mode, cases)
    with environment(merge):
        merge.play()
        merge.assert_merged(spark)


@pytest.mark.long
def test_other_tables_do_not_wait(mysql80, mysql80_too, spark, tmp_path):
    """While shards wait, under load, landing and the other shards continue; the last shard releases all."""
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
    """A shard that the allow-list adds later, with a column of its own, stops alone until the column is dropped."""
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
