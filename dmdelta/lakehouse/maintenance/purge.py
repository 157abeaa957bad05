"""The purge of a table: its files are rewritten without the rows that deletion vectors hide."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from dmdelta.lakehouse.access.spark import removed_and_added
from dmdelta.lakehouse.session import set_confs
from dmdelta.lakehouse.spark_errors import wrapped

_CONFS = {
    # OPTIMIZE … FULL clusters files again that were clustered together, whatever their size.
    "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold": str(2**63 - 1),
    # OPTIMIZE without clustering rewrites each file that has a hidden row.
    "spark.databricks.delta.optimize.maxDeletedRowsRatio": "0.0",
}
_OPTIMIZE = "OPTIMIZE {table}"
_BETTER = (
    # REORG purges no clustered files that are large, or are all that was clustered together (Delta 4.4).
    ("OPTIMIZE {table} FULL", "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"),
    # On a cluster, REORG needs a session in the executors, which have none (https://github.com/delta-io/delta/pull/5697).
    ("REORG TABLE {table} APPLY (PURGE)", "No active or default Spark session"),
)
"""Statements that purge more than OPTIMIZE, with the error of a table or a cluster for which they do not work."""


def purge(spark: SparkSession, table: str) -> int:
    """Purge a table; the number of files that were replaced. No other thread may use the session.

    Dead rows remain in a clustered table that has had no new file since it was clustered as a whole, and in a single
    file of a table without clustering on a cluster: until the next file is written.

    Raises:
        LakehouseError: the table cannot be written.
    """
    with wrapped(table, "purging"), _changed(spark, _CONFS):
        for statement, unsupported in _BETTER:
            try:
                return removed_and_added(spark, statement.format(table=table))[0]
            except Exception as error:
                if unsupported not in str(error):
                    raise
        return removed_and_added(spark, _OPTIMIZE.format(table=table))[0]


@contextmanager
def _changed(spark: SparkSession, confs: Mapping[str, str]) -> Iterator[None]:
    """Set confs of a session for a while."""
    before = {name: spark.conf.get(name, None) for name in confs}
    set_confs(spark, confs)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                set_confs(spark, {name: value})
