"""Waits until bronze reaches the source's position."""

import time

from pyspark.sql import SparkSession

from dmdelta.bronze.progress import newest_landed
from dmdelta.changelog.context import SourceContext
from dmdelta.errors import NotLanded
from dmdelta.model.position import Position
from dmdelta.source.server import ServerPosition

POLL_SECONDS = 1.0


def await_landed(spark: SparkSession, landing: SourceContext, at: ServerPosition, wait: float) -> Position:
    """Wait until bronze has everything before the source's position. Returns that position.

    Args:
        wait: seconds.

    Raises:
        NotLanded: bronze does not reach it in time.
        LakehouseError: bronze cannot be read.
    """
    deadline = time.monotonic() + wait
    while True:
        landed = newest_landed(spark, landing)
        if landed is None:
            raise NotLanded(f"no data of {landing.source_id} has landed", hint="run the task first")
        position = Position(landed.end.epoch, at.binlog_file, at.offset)
        if landed.end >= position:
            return position
        if time.monotonic() > deadline:
            raise NotLanded(
                f"the source is at {position}, bronze ends at {landed.end}",
                hint="run the task (`dmdelta run SPEC --until-caught-up`), then compare",
            )
        time.sleep(POLL_SECONDS)
