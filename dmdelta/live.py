"""Live reads: tables as of the newest position in bronze, seconds old and consistent with each other.

A live read combines a version of silver with the changes in bronze that the version does not contain, and writes
nothing. All tables of a call are read at one position of their source.
"""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from dmdelta.config import TaskSpec, load_spec
from dmdelta.engine.live.tables import LiveTables

__all__ = ["live", "tables"]


def live(spark: SparkSession, spec: TaskSpec | Path | str, table: str, at: str | None = None) -> DataFrame:
    """The rows of a table at a position, with the columns of silver.

    Args:
        spark: a session that can read the task's tables. Its time zone must be UTC.
        spec: the task, or the file of its spec.
        table: `schema.table` in silver.
        at: `binlog.000012:4711`, a GTID, a time in ISO 8601 or `batch:17`; a transaction or a batch is included, one
            that a position divides is not. None: the end of bronze.

    Raises:
        ConfigError: the spec is invalid, the task has no such table, or bronze does not have the position.
        NotReadable: the rows at the position are unknown; names the reason, and the last position that can be read.
        LakehouseError: a table cannot be read.
    """
    return tables(spark, spec, [table], at)[table]


def tables(
    spark: SparkSession, spec: TaskSpec | Path | str, names: Sequence[str], at: str | None = None
) -> dict[str, DataFrame]:
    """The rows of several tables by their names, all at one position of each source.

    Args:
        at: as for `live`; of a task with several sources a time or None, unless all tables are from one source.

    Raises:
        DmdeltaError: as `live`.
    """
    task = spec if isinstance(spec, TaskSpec) else load_spec(Path(spec))
    return LiveTables.of(spark, task).read(names, at)
