"""Sessions of Spark Connect are closed while the process still runs.

PySpark closes a session's channel when the session is deleted, at the latest while the interpreter ends. gRPC's threads
are gone by then, and a channel with a call that has not ended waits for them forever: the process would not end.
"""

import atexit
from contextlib import suppress
from typing import Any, cast
from weakref import WeakSet

from pyspark.sql import SparkSession

_OPEN: "WeakSet[Any]" = WeakSet()


def closed_at_exit(spark: SparkSession) -> SparkSession:
    """The session; if it is one of Spark Connect, its channel is closed before the interpreter ends."""
    if not isinstance(cast("object", spark), SparkSession):  # PySpark has another class of this name for them
        _OPEN.add(spark)
    return spark


@atexit.register
def _close() -> None:
    for spark in list(_OPEN):
        with suppress(Exception):  # the process ends
            spark.client.close()
