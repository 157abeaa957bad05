"""Columns are extracted from VARIANT images only where the table's filter holds."""

from pathlib import Path

from pyspark.sql import SparkSession


def test_the_same_column_name_may_have_another_type_in_another_table(spark: SparkSession, tmp_path: Path) -> None:
    """An extraction that fails on another table's rows in the same file is never tried on them."""
    place = str(tmp_path / "bronze")
    rows = """SELECT 'a' t, parse_json('{"e":1}') v UNION ALL SELECT 'b', parse_json('{"e":"x"}')"""
    spark.sql(rows).coalesce(1).write.format("delta").save(place)
    found = (
        spark.read.format("delta").load(place).where("t = 'a'").selectExpr("variant_get(v, '$.e', 'int') e").collect()
    )
    assert [row["e"] for row in found] == [1]
