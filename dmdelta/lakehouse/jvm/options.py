"""The JVM that dmdelta starts for a local session: its options, its heap, and the confs that make it fast."""

import os
from pathlib import Path

from dmdelta.lakehouse.cds_options import archive_options

_LAKEHOUSE = Path(__file__).parents[1]
LOG4J = _LAKEHOUSE / "log4j2.properties"
MAX_HEAP_MIB = 3 << 10
"""The default's maximum: two rows of 64 MB need it. Small batches keep about 600 MB alive; Java fills whatever it has
before it frees the rest."""
MIN_HEAP_MIB = 1 << 10
"""The least, and that of a JVM next to a running task."""
FAIR_POOL = _LAKEHOUSE / "fairscheduler.xml"

_LOCAL_CONFS = {
    # With FIFO every small query would wait until a landing has no tasks left to start.
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": FAIR_POOL.as_uri(),
    # A range's bounds are literals in generated code: fused with everything that follows, each range would be compiled
    # again, by Spark and by the JVM. Unfused, only its filter is; and the cache must hold the code that all tables
    # share.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.cache.maxEntries": "2000",
    # The other one starts a `readlink` process, several times per commit, to check whether the renamed file is a link.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing"
    ".FileSystemBasedCheckpointFileManager",
    # The default one starts eight `readlink` processes per commit for the same reason.
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    # What every broadcast, and every sort, hash table and shuffle allocates at once, even for a few rows: by default
    # 4 MB and, with 2 GB of heap, 64 MB. Together, they were a quarter of what the JVM allocated for small commits.
    "spark.broadcast.blockSize": "256k",
    "spark.buffer.pageSize": "2m",
    # Whole row images hardly ever repeat: their dictionary would only be built and discarded.
    "spark.hadoop.parquet.enable.dictionary#before.value": "false",
    "spark.hadoop.parquet.enable.dictionary#after.value": "false",
    # Minimum and maximum of images are never needed either.
    "spark.hadoop.parquet.column.statistics.enabled#before.value": "false",
    "spark.hadoop.parquet.column.statistics.enabled#after.value": "false",
}
"""Settings that make a local JVM fast; Databricks and other clusters have their own."""

_WITHOUT_UI_CONFS = {
    # Spark keeps the plans, metrics and tasks of a thousand statements even if no UI shows them.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
}


def jvm_confs(driver_memory: str | None, *, ui: bool, cores: int | None = None) -> dict[str, str]:
    """The confs of Spark and Java for a JVM on this machine.

    Args:
        driver_memory: its heap, as in `4g`; None: a quarter of the memory, at most 3 GB; 1 GB if `cores` is limited.
        ui: it serves Spark's web UI.
        cores: the cores that Java, its compilers and its collector use; None: all.
    """
    result = {
        "spark.ui.enabled": str(ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": _java_options(cores),
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.catalogImplementation": "in-memory",
        **_LOCAL_CONFS,
        **({} if ui else _WITHOUT_UI_CONFS),
    }
    # With Spark's own default, 1 GB, Java spends a tenth of the time on garbage collection.
    if driver_memory is not None or "SPARK_DRIVER_MEMORY" not in os.environ:
        result["spark.driver.memory"] = driver_memory or (f"{MIN_HEAP_MIB}m" if cores else _heap())
    return result


def _heap() -> str:
    """A quarter of this machine's memory, as in Java's own default, but at most MAX_HEAP_MIB."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{min(MAX_HEAP_MIB, max(MIN_HEAP_MIB, total >> 22))}m"


def _java_options(cores: int | None) -> str:
    """The options of the local JVM, which uses so many cores; None: all."""
    # The parallel collector leaves the work more of few cores than Java's default; with two collectors Java does not
    # start.
    given = " ".join(os.environ.get(name, "") for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"))
    collector = "" if "GC" in given else "-XX:+UseParallelGC "
    options = [
        # The code for hundreds of tables overflows the default code cache, and Java then stops compiling permanently.
        "-XX:ReservedCodeCacheSize=512m",
        # Planning and committing run a lot of code a few hundred times. By default, Java spends a third of the CPU time
        # of the first minutes on optimizing it. Loops over rows reach these numbers at once.
        "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000",
        # In any other zone Delta verifies the list of a small table's files at each commit, with a Spark job.
        "-Duser.timezone=UTC",
        archive_options(),
        *([f"-XX:ActiveProcessorCount={cores}"] if cores else []),
        f"-Dlog4j2.configurationFile={LOG4J.as_uri()}",
    ]
    return collector + " ".join(options)
