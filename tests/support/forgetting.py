"""A Delta table whose history has expired: the log begins at the current version."""

from pathlib import Path

from pyspark.sql import SparkSession


def forget_history(spark: SparkSession, folder: Path) -> None:
    """Remove the commit files of the table in `folder`; its rows and transactions remain."""
    log = folder / "_delta_log"
    spark.sql(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    *older, newest = sorted(file for file in log.glob("*.json") if file.stem.isdigit())
    assert any(log.glob(f"{newest.stem}.checkpoint*")), f"no checkpoint at {newest}"
    for file in older:
        file.unlink()
