"""Waiting for bronze to have what the source has."""

import time

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import newest_landed
from dmdelta.changelog.context import SourceContext
from dmdelta.errors import QualityError
from dmdelta.model.position import Position
from dmdelta.source.server import ServerPosition

POLL_SECONDS = 1.0


class NotLanded(QualityError):
    """Bronze does not reach where the source is: no table can be compared."""


def await_landed(spark: SparkSession, landing: SourceContext, at: ServerPosition, wait: float) -> Position:
    """The source's place in the log, once all before it is in bronze.

    Args:
        wait: seconds.

    Raises:
        NotLanded: it does not come in time.
        LakehouseError: bronze cannot be read.
    """
    deadline = time.monotonic() + wait
    while True:
        landed = newest_landed(spark, landing)
        if landed is None:
            raise NotLanded(f"nothing of {landing.source_id} has landed", hint="run the task first")
        position = Position(landed.end.epoch, at.binlog_file, at.offset)
        if landed.end >= position:
            return position
        if time.monotonic() > deadline:
            raise NotLanded(
                f"the source is at {position}, bronze ends at {landed.end}",
                hint="is the task running? `dmdelta run SPEC --until-caught-up`, then compare",
            )
        time.sleep(POLL_SECONDS)
