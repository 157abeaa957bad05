"""A Delta table whose history is gone, as the log's retention has it: the log begins at its present state."""

from pathlib import Path

from pyspark.sql import SparkSession


def forget_history(spark: SparkSession, folder: Path) -> None:
    """What the commits of the table in `folder` said of themselves goes; its rows and transactions stay."""
    log = folder / "_delta_log"
    spark.sql(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    *older, newest = sorted(file for file in log.glob("*.json") if file.stem.isdigit())
    assert any(log.glob(f"{newest.stem}.checkpoint*")), f"no checkpoint at {newest}"
    for file in older:
        file.unlink()
