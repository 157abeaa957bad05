"""A session that starts with its first use: a command that only needs dm_meta under a local root starts no JVM."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DeferredSession:
    """Starts a session when an attribute is first read, and then stands for it. Thread-safe."""

    def __init__(self, start: "Callable[[], SparkSession]") -> None:
        self._start = start
        self._lock = threading.Lock()
        self._session: SparkSession | None = None

    def started(self) -> "SparkSession":
        """The session itself.

        Raises:
            LakehouseError: as the function that starts it.
        """
        with self._lock:
            if self._session is None:
                self._session = self._start()
            return self._session

    @property
    def is_started(self) -> bool:
        """Whether it has been used."""
        return self._session is not None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.started(), name)


def is_unstarted(spark: "SparkSession") -> bool:
    """Whether a session would be started by its first use."""
    return isinstance(spark, DeferredSession) and not spark.is_started


def deferred_session(start: "Callable[[], SparkSession]") -> "SparkSession":
    """A session that `start` starts with its first use."""
    return cast("SparkSession", DeferredSession(start))
