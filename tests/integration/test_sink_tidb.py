"""The sink on TiDB: the tangled workload ends with target = source."""

import pytest

from dmdelta.sink.settings import SinkSettings
from tests.integration.test_sink import assert_same, write
from tests.support.sinking import Sinking, target_of

pytestmark = pytest.mark.tidb


MANY = [pytest.param((seed, workers), marks=pytest.mark.long) for seed in range(1, 6) for workers in (1, 4, 16)]


@pytest.mark.parametrize("how", [(1, 4), *MANY], ids=str)
def test_target_is_as_the_source(mysql80, tidb, spark, tmp_path, how):
    """Whatever the seed and the workers, with statements that TiDB cannot do at once."""
    seed, workers = how
    compact = workers != 16
    database = write(mysql80, seed, 80)
    server = target_of(tidb)
    settings = SinkSettings(server, f"dm_{database}", workers, 10, compact, compact, flush_interval=1.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    sinking.land()
    sinking.run()
    assert_same(mysql80, tidb, database)
