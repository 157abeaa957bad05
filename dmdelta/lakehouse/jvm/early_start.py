"""Starts the JVM of a local session: in a thread while the command imports the code that uses it, or now."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

from pyspark import SparkConf, SparkContext

from dmdelta.lakehouse.jvm.output import filtered_output
from dmdelta.logging import get_logger

log = get_logger(__name__)


def start_early(confs: Mapping[str, str], starting: AbstractContextManager[object]) -> None:
    """Start the JVM, unless this process has one; returns at once.

    If it does not start, whoever opens the session tries again and has the error.

    Args:
        confs: those of the session.
        starting: the lock of whoever starts a JVM, or opens a session.
    """
    if SparkContext._gateway is None:  # noqa: SLF001 - the only way to start the JVM before the session
        # An executor, because its module is loaded then. It registers functions to call before and after a fork: loaded
        # during the fork below, only the latter would be called, and fail.
        pool = ThreadPoolExecutor(1, thread_name_prefix="jvm-start")
        pool.submit(_start, confs, starting)
        pool.shutdown(wait=False)


def launch_jvm(confs: Mapping[str, str]) -> None:
    """Start the JVM with the confs of a session, unless this process has one; returns when it answers.

    Raises:
        Exception: PySpark's, if it does not start.
    """
    if SparkContext._gateway is None:  # noqa: SLF001
        conf = SparkConf(loadDefaults=False)
        for name, value in confs.items():
            conf.set(name, value)
        SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001


def _start(confs: Mapping[str, str], starting: AbstractContextManager[object]) -> None:
    try:
        with starting, filtered_output():
            launch_jvm(confs)
    except Exception as error:  # noqa: BLE001 - the same call, made by the session, raises it
        log.info("the JVM did not start early", why=type(error).__name__)
