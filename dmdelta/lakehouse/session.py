"""The only place that builds a SparkSession."""

import os
import re
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from dmdelta.errors import LakehouseError
from dmdelta.lakehouse.access.deferred_session import DeferredSession, deferred_session
from dmdelta.lakehouse.access.local_root import is_provided
from dmdelta.lakehouse.access.remote_sessions import closed_at_exit
from dmdelta.lakehouse.cds_options import MAKE
from dmdelta.lakehouse.jars import delta_confs
from dmdelta.lakehouse.jvm.cancellation import interrupts_kept
from dmdelta.lakehouse.jvm.early_start import launch_jvm, start_early
from dmdelta.lakehouse.jvm.options import jvm_confs
from dmdelta.lakehouse.jvm.output import filtered_output, inherited_output
from dmdelta.lakehouse.jvm.priority import start_yielding
from dmdelta.logging import get_logger

log = get_logger(__name__)
_REPLACE_DELTA = (4, 3)
_REPLACE_RUNTIME = (18, 2)
_ARROW_SPARK = (4, 2)
_STARTING = threading.Lock()
"""The output of this process is redirected while a JVM starts."""
_DELTA_VERSIONS: dict[str, str] = {}
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

SQL_CONFS = {
    "spark.sql.session.timeZone": "UTC",
    # Otherwise a value that overflows becomes NULL, and a DECIMAL may become text in scientific notation.
    "spark.sql.ansi.enabled": "true",
    # A table's state is small here: with Delta's 50 partitions a first commit takes 8 s, with one 2 s.
    "spark.databricks.delta.snapshotPartitions": "1",
    # If pushed into the scan, a column would be extracted from every row of a file before the filter on its table, and
    # one of the same name but another type in another table would fail the read.
    "spark.sql.variant.pushVariantIntoScan": "false",
    # For the same reason: a value that a filter uses twice would be extracted before the conditions that precede it.
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    # The version before the newest one is read at the RENAME of a table, also if the table had not changed for weeks.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    # Otherwise ${env:NAME} in the name of a source table, or in a key, would be replaced from the environment.
    "spark.sql.variable.substitute": "false",
    # The optimizer compares each column with each other one: planning a MERGE of 2,000 columns took minutes. What it
    # infers, such as that the keys of a join are not NULL, makes no write faster.
    "spark.sql.constraintPropagation.enabled": "false",
}
"""Session confs that affect results or speed, set on every dmdelta session."""

_PROVIDED_CONFS = {
    # Unless the JVM's zone is UTC, Delta verifies the list of a small table's files at each commit, with a Spark job.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
}
"""Further confs of provided sessions; a local JVM runs in UTC."""

_NEEDED = frozenset({"spark.sql.session.timeZone", "spark.sql.ansi.enabled"})
"""Confs that affect results."""


_MAINTENANCE_CONFS = {
    # Smaller files are rewritten together with new ones on each run.
    "spark.databricks.delta.optimize.minFileSize": str(128 << 20),
    "spark.databricks.delta.optimize.maxFileSize": str(128 << 20),
    # The same for smaller groups of files that were clustered together; the default of 100 GB is usually a whole table.
    "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold": str(1 << 30),
    "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize": str(3 << 29),
}
"""Compaction runs often and must therefore be cheap."""

_QUERY_CONFS = {
    # Spark's default, which a local JVM replaces for the small batches of a task: without it Parquet is read by rows.
    "spark.sql.codegen.wholeStage": "true",
    # Otherwise the optimizer extracts the values of the tail's rows, one by one, in the driver.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    # Spark's default: conditions on one side of a join also filter the other one.
    "spark.sql.constraintPropagation.enabled": "true",
}
"""A user's queries read large tables, and some of them again and again."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How a local session is created; a provided one (`is_provided`) only uses `shuffle_partitions` and `sql_confs`.

    Attributes:
        master: Spark master; None: the cores of this machine, unless the environment's Spark conf sets it.
        driver_memory: heap of the local JVM, as in `4g`; None: a quarter of the memory, at most 3 GB.
        shuffle_partitions: None: the number of cores.
        sql_confs: further session confs, by name.
        ui: the web UI of a local session.
        beside_run: next to a running task, which keeps its share: half of the cores but at least two, and
            1 GB of heap by default. Without it, the JVM has a lower CPU priority than other processes.
    """

    master: str | None = None
    driver_memory: str | None = None
    shuffle_partitions: int | None = None
    sql_confs: Mapping[str, str] = field(default_factory=dict)
    ui: bool = False
    beside_run: bool = False

    @property
    def cores(self) -> int:
        """The cores that a local JVM may use."""
        cores = os.cpu_count() or 1
        return min(cores, max(2, cores // 2)) if self.beside_run else cores


def open_session(app: str, settings: SessionSettings | None = None) -> SparkSession:
    """The session to use: the one of Databricks, Spark Connect or spark-submit, else a local one configured for Delta.

    Raises:
        LakehouseError: Spark or Delta is not installed or does not start.
    """
    settings = settings or SessionSettings()
    _log_no_values()
    try:
        spark = closed_at_exit(SparkSession.builder.getOrCreate()) if is_provided() else _open_local(app, settings)
    except LakehouseError:
        raise
    except Exception as error:
        raise LakehouseError("Spark does not start", hint=f"see the log above: {type(error).__name__}") from error
    set_confs(spark, {**_own_confs(), **_shuffle(settings), **settings.sql_confs})
    return spark


def _log_no_values() -> None:
    """Stop PySpark from logging errors that name a part of a query: their text may quote a row, and they are raised."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def begin_session(app: str, settings: SessionSettings) -> None:
    """Start the JVM of the session that `open_session` will open with the same arguments; returns at once.

    Does nothing for a provided session.
    """
    if is_provided():
        return
    # It reports its errors, such as a missing delta-spark.
    with suppress(LakehouseError):
        start_early(_local_options(app, settings), _STARTING)


def _own_confs() -> dict[str, str]:
    return {**SQL_CONFS, **(_PROVIDED_CONFS if is_provided() else {})}


def set_confs(spark: SparkSession, confs: Mapping[str, str]) -> None:
    """Set a session's confs. Databricks' serverless compute allows few: confs that only affect speed may be rejected.

    Raises:
        LakehouseError: one that affects results is rejected.
    """
    for name, value in confs.items():
        try:
            spark.conf.set(name, value)
        except Exception as error:
            if name in _NEEDED or not is_provided():
                hint = "it affects results: use compute that allows setting it"
                raise LakehouseError(f"Spark rejects the conf {name}", hint=hint) from error
            log.info("conf rejected by this compute", conf=name)


def clone_session(spark: SparkSession) -> SparkSession:
    """A session with the same confs and separate temporary views: one for each table that is written concurrently.

    Delta's MERGE and DELETE take transaction ids only from session confs, so two tables cannot share a session.

    Raises:
        LakehouseError: this version of Spark Connect does not support it.
    """
    if isinstance(spark, DeferredSession):
        return deferred_session(lambda: clone_session(spark.started()))
    if hasattr(spark, "cloneSession"):  # Spark Connect
        return closed_at_exit(cast("Any", spark).cloneSession())
    if not hasattr(spark, "newSession"):
        raise LakehouseError(
            "this Spark Connect cannot clone a session",
            hint="use Spark 4.1 or later; on Databricks' serverless compute, environment version 5 or later",
        )
    clone = spark.newSession()
    for name in (*_own_confs(), "spark.sql.shuffle.partitions"):
        clone.conf.set(name, cast("str", spark.conf.get(name)))
    return clone


def maintenance_session(spark: SparkSession) -> SparkSession:
    """A session for compacting tables. If these confs are rejected, the catalog maintains its tables itself."""
    clone = clone_session(spark)
    set_confs(clone, _MAINTENANCE_CONFS)
    return clone


def query_session(spark: SparkSession) -> SparkSession:
    """A session for a user's queries."""
    clone = clone_session(spark)
    set_confs(clone, _QUERY_CONFS)
    return clone


def tasks_at_once() -> int | None:
    """Number of concurrent tasks of a session from `open_session`; None if a cluster determines it."""
    if is_provided():
        return None
    master = os.environ.get("SPARK_MASTER", "local[*]")
    cores = re.fullmatch(r"local(?:\[(\*|\d+)(?:,.*)?\])?", master)
    if cores is None:
        return None
    return (os.cpu_count() or 1) if cores[1] == "*" else int(cores[1] or 1)


def can_replace(spark: SparkSession) -> bool:
    """Whether Delta can replace rows by a condition (since 4.3, Databricks 18.2). Older versions would overwrite the
    whole table, so the answer is no if the version is unknown.
    """
    runtime = os.environ.get("DATABRICKS_RUNTIME_VERSION")
    if runtime is not None:
        return _numbers(runtime) >= _REPLACE_RUNTIME
    if is_provided():
        return _numbers(_delta_version(spark)) >= _REPLACE_DELTA
    try:
        return _numbers(version("delta-spark")) >= _REPLACE_DELTA
    except PackageNotFoundError:
        return False


def takes_arrow(spark: SparkSession) -> bool:
    """Whether a DataFrame can be created from Arrow data with VARIANT columns.

    Not with Spark Connect, where the data would travel to the server, nor with versions of Spark that are not tested.
    """
    return isinstance(spark, SparkSession) and _numbers(spark.version) >= _ARROW_SPARK


def _delta_version(spark: SparkSession) -> str:
    """The Delta version of a remote Spark, queried once per process; "" if it cannot be queried."""
    where = os.environ.get("SPARK_REMOTE", "")
    if where not in _DELTA_VERSIONS:
        try:
            (row,) = spark.sql("SELECT java_method('io.delta.package', 'VERSION')").collect()
            _DELTA_VERSIONS[where] = row[0]
        except Exception as error:  # noqa: BLE001 - whatever the reason, MERGE gives the same result
            log.info("Delta version unknown: rows are merged", why=type(error).__name__)
            _DELTA_VERSIONS[where] = ""
    return _DELTA_VERSIONS[where]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


def _shuffle(settings: SessionSettings) -> dict[str, str]:
    if settings.shuffle_partitions is not None:
        return {"spark.sql.shuffle.partitions": str(settings.shuffle_partitions)}
    return {} if is_provided() else {"spark.sql.shuffle.partitions": str(max(2, settings.cores))}


def local_confs(settings: SessionSettings) -> dict[str, str]:
    """The Spark confs of a JVM started by dmdelta, whether the session is in this process or in its server's.

    Raises:
        LakehouseError: delta-spark is not installed.
    """
    return {
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        **jvm_confs(settings.driver_memory, ui=settings.ui, cores=settings.cores if settings.beside_run else None),
        # As the context's own, so that cloned sessions have them as well.
        **SQL_CONFS,
        **_shuffle(settings),
        **settings.sql_confs,
        **delta_confs(),
    }


def _local_options(app: str, settings: SessionSettings) -> dict[str, str]:
    """The options of a local session's builder; prepares the environment of its JVM."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    options = {"spark.app.name": app}
    if settings.master is not None or "SPARK_MASTER" not in os.environ:
        options["spark.master"] = settings.master or (f"local[{settings.cores}]" if settings.beside_run else "local[*]")
    return {**options, **local_confs(settings)}


def _open_local(app: str, settings: SessionSettings) -> SparkSession:
    builder = SparkSession.builder
    options = _local_options(app, settings)
    for name, value in options.items():
        builder = builder.config(name, value)
    # Whoever makes the class archive waits for the JVM's end, which is the end of its output.
    output = inherited_output() if MAKE in os.environ else filtered_output()
    with _STARTING, output, interrupts_kept():
        if not settings.beside_run:
            start_yielding(partial(launch_jvm, options))
        return builder.getOrCreate()
