"""The only place that builds a SparkSession."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from pyspark.sql import SparkSession

from dmdelta.errors import LakehouseError
from dmdelta.lakehouse.archive_options import archive_options
from dmdelta.lakehouse.jars import delta_confs
from dmdelta.logging import get_logger

log = get_logger(__name__)
_REPLACE_DELTA = (4, 3)
_REPLACE_RUNTIME = (18, 2)
_DELTA_VERSIONS: dict[str, str] = {}
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
LOG4J = Path(__file__).with_name("log4j2.properties")
FAIR_POOL = Path(__file__).with_name("fairscheduler.xml")

SQL_CONFS = {
    "spark.sql.session.timeZone": "UTC",
    # A table's state is small here: with Delta's 50 partitions a first commit takes 8 s, with one 2 s.
    "spark.databricks.delta.snapshotPartitions": "1",
    # Pushed into the scan, a column is extracted from every row of a file before the filter on its table, and one of
    # the same name but another type in another table fails the read.
    "spark.sql.variant.pushVariantIntoScan": "false",
    # Else a ${env:NAME} in the name of a source table, or in a key, is what the environment has under it.
    "spark.sql.variable.substitute": "false",
}
"""Session confs that results or speed depend on, set on every session of ours."""

_NEEDED = frozenset({"spark.sql.session.timeZone"})
"""Those that results depend on."""


_CARE_CONFS = {
    # What is smaller is written anew together with what has come, each time.
    "spark.databricks.delta.optimize.minFileSize": str(128 << 20),
    "spark.databricks.delta.optimize.maxFileSize": str(128 << 20),
    # So is what was clustered together and is smaller; by default 100 GB, which is all of a table.
    "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold": str(1 << 30),
    "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize": str(3 << 29),
}
"""How compaction is to be: often, and therefore cheap."""

_LOCAL_CONFS = {
    # First in, first out would make every small look-up wait until a landing has no task left to start.
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": FAIR_POOL.as_uri(),
    # A range's bounds are literals in generated code: fused with all that follows them, each range would be compiled
    # anew, by Spark and by the JVM. Apart, only its filter is; and the cache must hold what all tables share.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.cache.maxEntries": "2000",
    # The other one asks a `readlink` process, some of them for each commit, whether what it renames is a link.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing"
    ".FileSystemBasedCheckpointFileManager",
    # Whole row images hardly ever repeat: a dictionary of them is only built to be thrown away.
    "spark.hadoop.parquet.enable.dictionary#before.value": "false",
    "spark.hadoop.parquet.enable.dictionary#after.value": "false",
    # Nor does anybody ask for the least or greatest image.
    "spark.hadoop.parquet.column.statistics.enabled#before.value": "false",
    "spark.hadoop.parquet.column.statistics.enabled#after.value": "false",
}
"""What makes a local JVM quick; Databricks and other clusters have their own ways."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How a local session is made; a provided one (`is_provided`) takes only `shuffle_partitions` and `sql_confs`.

    Attributes:
        master: Spark master; None: all cores of this machine, unless the environment's Spark conf says otherwise.
        driver_memory: heap of the local JVM, as in `4g`; None: a quarter of the memory, 4 GB at most.
        shuffle_partitions: None: as many as cores.
        sql_confs: further session confs, by name.
        ui: the web UI of a local session.
    """

    master: str | None = None
    driver_memory: str | None = None
    shuffle_partitions: int | None = None
    sql_confs: Mapping[str, str] = field(default_factory=dict)
    ui: bool = False


def open_session(app: str, settings: SessionSettings | None = None) -> SparkSession:
    """The session to work in: what Databricks, Spark Connect or spark-submit provide, else a local one made for Delta.

    Raises:
        LakehouseError: Spark or Delta is not installed or does not start.
    """
    settings = settings or SessionSettings()
    try:
        spark = SparkSession.builder.getOrCreate() if is_provided() else _open_local(app, settings)
    except LakehouseError:
        raise
    except Exception as error:
        raise LakehouseError("Spark does not start", hint=f"look at the log above: {type(error).__name__}") from error
    _set_confs(spark, {**SQL_CONFS, **_shuffle(settings), **settings.sql_confs})
    return spark


def _set_confs(spark: SparkSession, confs: Mapping[str, str]) -> None:
    """Set a session's confs. Databricks' serverless compute knows few: what only speed depends on may be refused there.

    Raises:
        LakehouseError: one that results depend on is refused.
    """
    for name, value in confs.items():
        try:
            spark.conf.set(name, value)
        except Exception as error:
            if name in _NEEDED or not is_provided():
                hint = "results depend on it: take compute that lets it be set"
                raise LakehouseError(f"Spark refuses the conf {name}", hint=hint) from error
            log.info("conf refused by this compute", conf=name)


def clone_session(spark: SparkSession) -> SparkSession:
    """A session with the same confs, temporary views apart: one for each table written at the same time.

    Delta's MERGE and DELETE take transaction ids from session confs only, so two tables cannot share a session.

    Raises:
        LakehouseError: this Spark Connect cannot.
    """
    if hasattr(spark, "cloneSession"):  # Spark Connect
        return cast("SparkSession", cast("Any", spark).cloneSession())
    if not hasattr(spark, "newSession"):
        raise LakehouseError("this Spark Connect cannot clone a session", hint="Connect needs Spark 4.1 or later")
    clone = spark.newSession()
    for name in (*SQL_CONFS, "spark.sql.shuffle.partitions"):
        clone.conf.set(name, cast("str", spark.conf.get(name)))
    return clone


def care_session(spark: SparkSession) -> SparkSession:
    """A session to compact tables in. Where these confs are refused, the catalog cares for its tables itself."""
    clone = clone_session(spark)
    _set_confs(clone, _CARE_CONFS)
    return clone


def is_provided() -> bool:
    """Somebody else says where Spark is and how it works: Databricks, Spark Connect, or spark-submit."""
    return any(name in os.environ for name in ("DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"))


def tasks_at_once() -> int | None:
    """How many tasks a session runs at the same time that `open_session` makes; None: a cluster decides."""
    if is_provided():
        return None
    master = os.environ.get("SPARK_MASTER", "local[*]")
    cores = re.fullmatch(r"local(?:\[(\*|\d+)(?:,.*)?\])?", master)
    if cores is None:
        return None
    return (os.cpu_count() or 1) if cores[1] == "*" else int(cores[1] or 1)


def can_replace(spark: SparkSession) -> bool:
    """Delta can replace rows by a condition (4.3 on, Databricks 18.2 on). Older ones would overwrite the whole table,
    so where it cannot be told, the answer is no.
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


def _delta_version(spark: SparkSession) -> str:
    """What the Delta of a Spark elsewhere says of itself, asked once by a process; "" where it may not be asked."""
    where = os.environ.get("SPARK_REMOTE", "")
    if where not in _DELTA_VERSIONS:
        try:
            (row,) = spark.sql("SELECT java_method('io.delta.package', 'VERSION')").collect()
            _DELTA_VERSIONS[where] = row[0]
        except Exception as error:  # noqa: BLE001 - whatever keeps it from telling, MERGE does the same work
            log.info("Delta does not tell its version: rows are merged", why=type(error).__name__)
            _DELTA_VERSIONS[where] = ""
    return _DELTA_VERSIONS[where]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


def _shuffle(settings: SessionSettings) -> dict[str, str]:
    if settings.shuffle_partitions is not None:
        return {"spark.sql.shuffle.partitions": str(settings.shuffle_partitions)}
    return {} if is_provided() else {"spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2))}


def _quarter_of_memory() -> str:
    """A heap of a quarter of this machine's memory, as Java's own default, but not more than 4 GB."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{min(4 << 10, max(1 << 10, total >> 22))}m"


def _java_options() -> str:
    """What the local JVM is started with."""
    # The parallel collector leaves the work more of few cores than Java's default; two of them keep Java from starting.
    given = " ".join(os.environ.get(name, "") for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"))
    collector = "" if "GC" in given else "-XX:+UseParallelGC "
    # Code of hundreds of tables overflows the default code cache, and Java then stops compiling for good.
    code = "-XX:ReservedCodeCacheSize=512m"
    return f"{collector}{code} {archive_options()} -Dlog4j2.configurationFile={LOG4J.as_uri()}"


def local_confs(settings: SessionSettings) -> dict[str, str]:
    """The Spark confs of a JVM of ours, whether the session is in this process or its server's.

    Raises:
        LakehouseError: delta-spark is not installed.
    """
    confs = {
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        "spark.ui.enabled": str(settings.ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": _java_options(),
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.catalogImplementation": "in-memory",
        **_LOCAL_CONFS,
        # As the context's own, so that cloned sessions have them too.
        **SQL_CONFS,
        **_shuffle(settings),
        **settings.sql_confs,
        **delta_confs(),
    }
    # Spark's own default, 1 GB, spends a tenth of the time collecting garbage.
    if settings.driver_memory is not None or "SPARK_DRIVER_MEMORY" not in os.environ:
        confs["spark.driver.memory"] = settings.driver_memory or _quarter_of_memory()
    return confs


def _open_local(app: str, settings: SessionSettings) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app)
    if settings.master is not None or "SPARK_MASTER" not in os.environ:
        builder = builder.master(settings.master or "local[*]")
    for name, value in local_confs(settings).items():
        builder = builder.config(name, value)
    with _stdout_kept():
        return builder.getOrCreate()


@contextmanager
def _stdout_kept() -> Iterator[None]:
    """What a JVM that is started meanwhile prints goes to stderr: VACUUM prints, and our stdout may be JSON."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
