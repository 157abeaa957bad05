"""How the local JVM comes by Delta's jars: from pyspark's own folder, from Ivy's cache, else from Maven Central.

`python -m dmdelta.lakehouse.jars` fetches them once; sessions then start without asking anybody.
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
"""Where Spark 4 keeps what it fetched, below the home folder."""

_MODULES = ("delta-storage", "delta-kernel-api", "delta-kernel-defaults", "delta-kernel-unitycatalog")


def delta_confs() -> dict[str, str]:
    """The Spark confs that put Delta on the classpath.

    Resolving packages takes seconds at each start and talks a lot, even when all is there: jars that Ivy fetched before
    are named directly.

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
    found = [folder / f"io.delta_{name}-{delta}.jar" for name in (artifact, *_MODULES)]
    # Delta's catalog loads Unity Catalog's client; its version is Delta's own choice.
    return [*found, *sorted(folder.glob("io.unitycatalog_*.jar"))] if all(jar.is_file() for jar in found) else []


def fetch() -> None:
    """Put Delta's jars into Ivy's cache by starting a JVM that asks for them; nothing to do if they are there."""
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
