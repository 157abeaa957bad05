"""Rows are removed by their integer keys, whether these are dense or not."""

import numpy as np
import pytest

from dmdelta.silver.live.removed_keys import without_keys

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
EXISTING = (LEAST, -7_654_321, -65, -64, -1, 0, 1, 63, 64, 127, 128, 7_654_321, GREATEST)


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [-64],
        [GREATEST],
        [-65, -64, -2, -1, 0, 63, 64, 65],
        list(range(-70, 200)),
        [-7_654_321, 0, 7_654_321],
        [LEAST, -1, GREATEST],
    ],
    ids=["none", "one", "the greatest", "dense", "very dense", "sparse", "sparser than BIGINT"],
)
@pytest.mark.parametrize("kind", ["bigint", "int"])
def test_rows_without_keys(spark, keys, kind, capsys):
    """The other rows remain, and the plan shows no key."""
    existing = [key for key in EXISTING if kind == "bigint" or abs(key) < 1 << 31]
    rows = spark.createDataFrame([(key, f"row {key}") for key in existing], f"`a key` {kind}, text string")
    found = without_keys(rows, "a key", np.array(keys, np.int64))
    assert sorted(row.text for row in found.collect()) == sorted(f"row {key}" for key in existing if key not in keys)
    found.explain("extended")
    plan = capsys.readouterr().out
    assert "Physical Plan" in plan
    assert not [key for key in keys if abs(key) > 1000 and str(key) in plan]
