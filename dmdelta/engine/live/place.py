"""The position at which live reads see a source: the end of bronze, or a place that a user names."""

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from dmdelta.bronze.landed_rows import landed_rows
from dmdelta.bronze.progress import newest_landed
from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.ranges import of_source
from dmdelta.changelog.xa import AT, position_of
from dmdelta.engine.history.positions import LandedPositions, Side, find_place
from dmdelta.engine.task.source import TaskSource
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal

NEAR_BYTES = 64 << 10
"""The log on each side of a position that is searched for the ends of transactions first."""


def live_position(source: TaskSource, place: str | None) -> Position:
    """The position of a place in a source's log, between two transactions.

    Args:
        place: as for `find_place`; a transaction or a batch is included. None: the end of bronze.

    Raises:
        ConfigError: nothing has landed, or bronze does not have the place.
        QualityError: the place may have expired from bronze.
        LakehouseError: bronze cannot be read.
    """
    spark, landing = source.task.spark, source.landing
    landed = newest_landed(spark, landing)
    if landed is None:
        raise ConfigError(f"no data of {source.config.source_id} has landed", hint="run the task first")
    if place is None:
        return landed.end
    found = find_place(LandedPositions(spark, landing, landed.end), place, Side.TO)
    return found if found == landed.end else transaction_begin(source, landing, found)


def transaction_begin(source: TaskSource, landing: SourceContext, at: Position) -> Position:
    """The position of the first row of the transaction that `at` is inside of; `at` if it is between transactions.

    Only transactions with a GTID are recognized.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    near = _gtids_around(source, landing, at)
    if near is not None and near[0] != near[1]:
        return at
    bronze, file = (
        landing.bronze,
        f"epoch = {at.epoch} AND binlog_file = {literal(at.binlog_file)} AND gtid IS NOT NULL",
    )
    query = f"""SELECT max_by(gtid, struct(seq, row)) FILTER (WHERE seq < {at.seq}) AS earlier,
        min_by(gtid, struct(seq, row)) FILTER (WHERE seq >= {at.seq}) AS later
        FROM {bronze} WHERE {of_source(landing.source_id)} AND {file}"""
    with wrapped(bronze, "reading"):
        (row,) = source.task.spark.sql(query).collect()
        if row["earlier"] is None or row["earlier"] != row["later"]:
            return at
        (first,) = source.task.spark.sql(
            f"""SELECT min(struct(epoch, seq, {AT} AS at)) AS first FROM {bronze}
            WHERE {of_source(landing.source_id)} AND {file} AND gtid = {literal(row["earlier"])}"""
        ).collect()
    return position_of(first["first"]["at"])


def _gtids_around(source: TaskSource, landing: SourceContext, at: Position) -> tuple[str, str] | None:
    """The GTIDs of the rows before and after a position, without Spark; None: the rows near it do not show both."""
    begin, end = (replace(at, offset=max(at.offset + distance, 0)) for distance in (-NEAR_BYTES, NEAR_BYTES))
    rows = landed_rows(source.task.spark, landing, begin, end)
    if rows is None:
        return None
    rows = rows.filter(pc.is_valid(rows["gtid"]))
    first_after = int(np.searchsorted(rows["seq"].to_numpy(), at.seq))
    if not 0 < first_after < len(rows):
        return None
    return rows["gtid"][first_after - 1].as_py(), rows["gtid"][first_after].as_py()
