"""A class data sharing archive of Spark's and Delta's classes, with which a local JVM starts in two thirds of the time.

`python -m dmdelta.lakehouse.cds_archive` creates it once, in half a minute; sessions use it if it exists.
Java ignores an archive that does not match (Java documentation, "Class Data Sharing": dynamic archives, since Java 13).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dmdelta.lakehouse.cds_options import MAKE, class_archive
from dmdelta.lakehouse.session import SessionSettings, open_session


def make() -> Path | None:
    """Create the archive unless it exists; None if this environment is not writable or Java cannot write one."""
    archive = class_archive()
    if archive.is_file():
        return archive
    fresh = archive.with_suffix(".new")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    # Its output ends when the JVM has exited, which is later than Python itself.
    subprocess.run(
        [sys.executable, "-m", __spec__.name, "load-classes"],
        env={**os.environ, MAKE: str(fresh)},
        check=True,
        capture_output=True,
    )
    if not fresh.is_file():
        return None
    fresh.rename(archive)
    return archive


def load_classes() -> None:
    """Load the classes that every run needs: one of each kind of commit in silver."""
    spark = open_session("dmdelta class archive", SessionSettings(master="local[1]"))
    with tempfile.TemporaryDirectory() as folder:
        table = f"delta.`{folder}/t`"
        spark.sql(f"CREATE TABLE {table} (id BIGINT, at TIMESTAMP, v VARIANT) USING delta CLUSTER BY (id)")
        rows = spark.sql("SELECT id, now() AS at, parse_json('{\"a\": 1}') AS v FROM range(9)")
        rows.writeTo(table).append()
        replacing = rows.alias("s").write.format("delta").mode("overwrite").option("targetAlias", "t")
        replacing.option("replaceOn", "t.id = s.id").saveAsTable(table)
        spark.sql(
            f"MERGE INTO {table} AS t USING (SELECT id, max_by(v, id) AS v FROM range(5, 12) "
            "CROSS JOIN (SELECT parse_json('2') AS v) GROUP BY id) AS s ON t.id = s.id "
            "WHEN MATCHED AND s.id > 7 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
        )
        spark.sql(f"DELETE FROM {table} WHERE id IN (1, 2)")
        for statement in (f"DESCRIBE HISTORY {table}", f"DESCRIBE DETAIL {table}", f"SELECT count(*) FROM {table}"):
            spark.sql(statement).collect()
        spark.stop()


if __name__ == "__main__":
    if sys.argv[1:] == ["load-classes"]:
        load_classes()
    else:
        archive_path = make()
        sys.stdout.write(f"{archive_path or 'no class archive: Spark starts without one'}\n")
