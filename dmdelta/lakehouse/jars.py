"""Where the local JVM gets Delta's jars from: pyspark's own folder, Ivy's cache, or else Maven Central.

`python -m dmdelta.lakehouse.jars` downloads them once; sessions then start without network access.
"""

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from dmdelta.errors import LakehouseError

SCALA = "2.13"
IVY = Path(".ivy2.5.2")
"""Spark 4's download cache, below the home folder."""

_MODULES = ("delta-storage", "delta-kernel-api", "delta-kernel-defaults", "delta-kernel-unitycatalog")


def delta_confs() -> dict[str, str]:
    """The Spark confs that put Delta on the classpath.

    Resolving packages takes seconds at each start and logs a lot, even if everything is cached: jars that Ivy
    downloaded before are listed directly.

    Raises:
        LakehouseError: delta-spark is not installed.
    """
    jars = Path(pyspark.__file__).parent / "jars"
    if any(jars.glob(f"delta-spark_*_{SCALA}-*.jar")):
        return {}
    fetched = _fetched()
    return {"spark.jars": ",".join(map(str, fetched))} if fetched else {"spark.jars.packages": _coordinate()}


def _artifact() -> tuple[str, str]:
    try:
        delta = version("delta-spark")
    except PackageNotFoundError as error:
        raise LakehouseError("delta-spark is not installed", hint="pip install 'dmdelta[local]'") from error
    return f"delta-spark_{'.'.join(pyspark.__version__.split('.')[:2])}_{SCALA}", delta


def _coordinate() -> str:
    artifact, delta = _artifact()
    return f"io.delta:{artifact}:{delta}"


def _fetched() -> list[Path]:
    artifact, delta = _artifact()
    folder = Path.home() / IVY / "jars"
    jars = [folder / f"io.delta_{name}-{delta}.jar" for name in (artifact, *_MODULES)]
    # Delta's catalog loads Unity Catalog's client, whose version Delta determines.
    return [*jars, *sorted(folder.glob("io.unitycatalog_*.jar"))] if all(jar.is_file() for jar in jars) else []


def fetch() -> None:
    """Download Delta's jars to Ivy's cache by starting a JVM that needs them; does nothing if they exist."""
    confs = delta_confs()
    if "spark.jars.packages" not in confs:
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for name, value in confs.items():
        builder = builder.config(name, value)
    builder.getOrCreate().stop()


if __name__ == "__main__":
    fetch()
