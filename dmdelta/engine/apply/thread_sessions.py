"""Sessions for threads that write tables in parallel."""

import threading

from pyspark.sql import SparkSession

from dmdelta.lakehouse.session import clone_session


class ThreadSessions:
    """A session per calling thread: Delta's transaction ids are session confs."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._of_thread = threading.local()
        self._all: list[SparkSession] = []

    def own(self) -> SparkSession:
        """The session of the calling thread."""
        if not hasattr(self._of_thread, "spark"):
            self._of_thread.spark = clone_session(self._spark)
            self._all.append(self._of_thread.spark)
        spark: SparkSession = self._of_thread.spark
        return spark

    def interrupt_all(self) -> None:
        """Cancel the running jobs of all sessions."""
        for session in self._all:
            session.interruptAll()
