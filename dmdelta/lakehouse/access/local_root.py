"""Which tables delta-rs may access: those in a folder of this machine's file system."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable

_BY_PATH = re.compile(r"delta\.`(.+)`", re.DOTALL)
_FILE_URI = re.compile(r"file:(?://)?(/(?!/).*)", re.DOTALL | re.IGNORECASE)
_HADOOP_CONFS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR")
"""With a Hadoop configuration, a path without a scheme may be on another file system."""
_NOT_ADDRESSABLE = re.compile(r"[?#\\\x00-\x1f\x7f\ud800-\udfff]")
"""What delta-rs takes for a part of a URL, or rejects, in a path."""


def is_provided() -> bool:
    """Whether Spark is configured externally: by Databricks, Spark Connect, or spark-submit."""
    return any(name in os.environ for name in ("DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"))


def local_folder(table: str) -> Path | None:
    """The folder of the table with this SQL identifier; None if it may be elsewhere than on this machine."""
    match = _BY_PATH.fullmatch(table)
    location = match[1].replace("``", "`") if match is not None else ""
    if _NOT_ADDRESSABLE.search(location):
        return None
    uri = _FILE_URI.fullmatch(location)
    if uri is not None:
        return Path(uri[1])
    is_elsewhere = any(name in os.environ for name in _HADOOP_CONFS)
    return Path(location) if location.startswith("/") and not is_elsewhere else None


def local_metadata(spark: Any, table: str) -> "LocalTable | None":
    """As `local_table`, if delta-rs can also read and write the table's rows, or create it.

    Raises:
        LakehouseError: the table cannot be read.
    """
    local = local_table(spark, table)
    return local if local is not None and local.is_plain() else None


def local_table(spark: Any, table: str) -> "LocalTable | None":
    """The table for delta-rs, if the session writes it to a folder of this machine; None: use Spark.

    Args:
        spark: the session; None for a local one that has not been started. It is not used, so a deferred one does not
            start.
    """
    # Files of a Spark Connect server or of a cluster's driver may be on another machine.
    if is_provided() or hasattr(type(spark), "cloneSession"):
        return None
    folder = local_folder(table)
    if folder is None:
        return None
    from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable  # noqa: PLC0415 - takes 50 MB, for local roots only

    return LocalTable(table, folder)
