"""Where the class archive of this environment is, and the JVM options that use it or make it."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
MAKE = "DMDELTA_CLASS_ARCHIVE"
"""Names the file that a JVM writes its classes to at its end."""


def class_archive() -> Path:
    """Where the archive of this environment is, or would be."""
    return Path(sys.prefix) / "share" / "dmdelta" / f"spark-{version('pyspark')}-delta-{version('delta-spark')}.jsa"


def archive_options() -> str:
    """The JVM options that use the archive, or make it; none if there is nothing to do."""
    if MAKE in os.environ:
        return f"-XX:ArchiveClassesAtExit={os.environ[MAKE]} {_QUIET}"
    archive = class_archive()
    return f"-XX:SharedArchiveFile={archive} {_QUIET}" if archive.is_file() else ""
