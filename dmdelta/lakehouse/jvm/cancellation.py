"""Cancelling Spark's jobs: by dmdelta, or by Ctrl-C."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from pyspark.sql import SparkSession

from dmdelta.lakehouse.jvm.output import cancelling


def cancel_jobs(spark: SparkSession) -> None:
    """Cancel the running jobs of a session."""
    cancelling()
    spark.interruptAll()


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Keep the caller's handler of SIGINT when PySpark installs its own, which cancels all jobs.

    That one only replaces Python's default handler, and then without Spark's reports of the cancelled jobs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        after = signal.getsignal(signal.SIGINT)
        if before is not signal.default_int_handler and before is not None:
            signal.signal(signal.SIGINT, before)
        elif callable(after) and after is not before:
            signal.signal(signal.SIGINT, _quietly(after))


def _quietly(cancel: Callable[[int, FrameType | None], object]) -> Callable[[int, FrameType | None], None]:
    """A handler that cancels jobs, without Spark's reports of them."""

    def on_signal(signum: int, frame: FrameType | None) -> None:
        cancelling()
        cancel(signum, frame)

    return on_signal
