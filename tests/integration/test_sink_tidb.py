"""The sink on TiDB: the tangled workload ends with target = source."""

import pytest

from dmdelta.sink.settings import SinkSettings
from tests.integration.test_sink import assert_same, write
from tests.support.sinking import Sinking, target_of

pytestmark = pytest.mark.tidb


@pytest.mark.parametrize(
    ("seed", "workers", "compact"),
    [(1, 4, True), *(pytest.param(s, w, w != 16, marks=pytest.mark.long) for s in range(1, 6) for w in (1, 4, 16))],
)
def test_target_is_as_the_source(mysql80, tidb, spark, tmp_path, seed, workers, compact):
    """Whatever the workers, with statements that TiDB cannot do at once."""
    database = write(mysql80, seed, 80)
    server = target_of(tidb)
    settings = SinkSettings(server, f"dm_{database}", workers, 10, compact, compact, flush_interval=1.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    sinking.land()
    sinking.run()
    assert_same(mysql80, tidb, database)
