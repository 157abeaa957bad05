"""Landing: selects the segments of the next batch, and writes batch and position in one commit.

A batch is bound to a range of the log by its number, the Delta transaction version. Bronze's newest commit by this task
determines where the next batch starts, whatever any metadata table says; so a crash between two writes neither loses
nor repeats anything.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import takewhile
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dmdelta.binlog.events.boundary import scan_gtids
from dmdelta.bronze.datasource import RECORDED, segments_to_json
from dmdelta.bronze.driver_decoding import decode_small
from dmdelta.bronze.progress import BATCH_BYTES, LandedRange, first_number, landing_app, plan_rest
from dmdelta.bronze.schema import BRONZE_SCHEMA, PARTITION_COLUMN, SKIPPING_COLUMNS
from dmdelta.bronze.small_append import append_small
from dmdelta.changelog.context import SourceContext
from dmdelta.errors import CorruptBinlog, PositionLost
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.commits import CommitTag, append
from dmdelta.lakehouse.creation import NewTable, create_table
from dmdelta.lakehouse.history import OwnCommit
from dmdelta.lakehouse.retention import FREQUENT
from dmdelta.lakehouse.session import takes_arrow
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.lakehouse.tables import OWNER, table_state
from dmdelta.model.gtid import GtidRun, GtidSet, grown, missing_from, parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.model.recorded import RecordedStructures
from dmdelta.model.schema import StructureFrom
from dmdelta.model.segment import CUT_BYTES, Segment
from dmdelta.segments import EpochBegin, epoch_begin, epoch_folder_of, follows, open_segment


@dataclass(frozen=True, slots=True)
class LandingBatch:
    """The next commit: its number and its segments."""

    number: int
    segments: tuple[Segment, ...]

    @property
    def begin(self) -> Position:
        return self.segments[0].begin_position

    @property
    def end(self) -> Position:
        return self.segments[-1].end_position

    @property
    def size(self) -> int:
        """Bytes of the log."""
        return sum(segment.size for segment in self.segments)

    @property
    def grows(self) -> bool:
        """Whether the last segment was cut because of its size: the relay is behind the source, and more follows at
        once.
        """
        return self.segments[-1].size >= CUT_BYTES and self.size < BATCH_BYTES


def plan_landing(
    segments: Sequence[Segment], landed: LandedRange | None, batch_bytes: int = BATCH_BYTES
) -> LandingBatch | None:
    """The next batch of a listing, or None if everything in it has landed.

    A batch never crosses an epoch and contains at least one segment, however large. If bronze ends within a segment,
    because another machine's relay cut the log elsewhere, the batch contains the rest of it.

    Raises:
        CorruptBinlog: the log does not continue where bronze ends.
    """
    # From the end: nearly all of a day's segments have landed.
    newer = takewhile(lambda segment: landed is None or segment.end_position > landed.end, reversed(segments))
    pending = list(newer)[::-1]
    if not pending:
        return None
    if landed is not None:
        pending[0] = pending[0].behind(landed.end)
        if not follows(landed.end, pending[0]):
            raise CorruptBinlog(
                "the relay log does not continue where bronze ends",
                hint="segments were purged before they landed: restore them, or start again from a snapshot",
                bronze_ends=str(landed.end),
                relay_begins=str(pending[0].begin_position),
            )
    chosen: list[Segment] = []
    size = 0
    for segment in pending:
        if chosen and (size + segment.size > batch_bytes or segment.epoch != chosen[0].epoch):
            break
        chosen.append(segment)
        size += segment.size
    return LandingBatch(landed.batch + 1 if landed else 1, tuple(chosen))


def land(
    spark: SparkSession,
    source: SourceContext,
    batch: LandingBatch,
    landed: LandedRange | None,
    structures: Sequence[StructureFrom] = (),
    *,
    recorded: RecordedStructures | None = None,
) -> LandedRange:
    """Decode a batch and append it to bronze in one commit.

    A small batch is decoded on the driver, and its rows are kept in `source.memory` once they are committed.

    Args:
        structures: the structures of tables by position, in log order, for servers that log no column names.
        recorded: the structures that bronze has recorded before the batch; updated to those after it, also if it does
            not land. None: the batch records all of its structures.

    Raises:
        PositionLost: the batch begins an epoch that would repeat transactions.
        CorruptBinlog, UnsupportedEvent, UnknownSchema: as raised by the decoder.
        Fenced: another runner of this task landed the batch.
    """
    begin = None
    if landed is not None and landed.end.epoch != batch.begin.epoch:
        begin = epoch_begin(epoch_folder_of(batch.segments[0]))
        assert_continues(landed, begin)
    gtid_set = landed.gtid_set if landed else parse_gtid_set("", source.flavor)
    runs: list[GtidRun] = []
    for segment in batch.segments:
        with open_segment(segment) as stream:
            runs += scan_gtids(stream, segment)
    done = LandedRange(batch.number, batch.begin, batch.end, grown(gtid_set, runs), plan_safe_until(landed, begin))
    recorded = recorded if recorded is not None else RecordedStructures()
    options = {**_read_options(source, batch, structures), RECORDED: recorded.to_json()}
    with wrapped(source.bronze, "landing in"):
        held = decode_small(batch.segments, options, recorded) if takes_arrow(spark) else None
    if held is None:
        recorded.forget_all()  # several tasks decode the batch, so the structures at its end are unknown here
    else:
        reach(CrashPoint.LAND_DECODED)
    reach(CrashPoint.LAND_BEFORE_COMMIT)
    if held is None or not append_small(spark, source.bronze, held, _tag(source, done)):
        land_rows(spark, source, _rows_of(spark, source, options, held), done)
    if held is not None:
        # From the end of bronze on: between it and the batch, the log has no rows.
        since = landed.end if landed and landed.end.epoch == batch.begin.epoch else batch.begin
        source.memory.add(since, batch.end, held)
    reach(CrashPoint.LAND_AFTER_COMMIT)
    return done


def plan_safe_until(landed: LandedRange | None, begin: EpochBegin | None) -> Position | None:
    """Up to where the log behind `landed` may have been applied already; None: nothing of it.

    Args:
        begin: how the epoch of that log started, if it is not that of `landed`.
    """
    if landed is None or landed.safe_until is None:
        return None
    if begin is None or landed.safe_until.epoch == begin.epoch:
        return landed.safe_beyond
    return plan_rest(landed.safe_until, landed.end, begin.log_end)


def assert_continues(landed: LandedRange, begin: EpochBegin | None) -> None:
    """Check that an epoch that another server's log begins continues after everything that has landed.

    Raises:
        PositionLost: it would land transactions again, and newer rows would be overwritten.
    """
    if begin is None or not begin.gtid_set:
        return
    again = missing_from(landed.gtid_set, parse_gtid_set(begin.gtid_set, begin.flavor))
    if again:
        raise PositionLost(
            f"the log of epoch {begin.epoch} continues before the end of bronze",
            hint="remove the folder of this epoch from the source's relay folder, and run again",
            repeated=again,
        )


def _rows_of(spark: SparkSession, source: SourceContext, options: dict[str, str], held: Any | None) -> DataFrame:
    """The rows of a batch for Spark: decoded by its executors, or in memory already."""
    with wrapped(source.bronze, "landing in"):
        if held is None:
            return spark.read.format("mysql_binlog").options(**options).load()
        # Spark makes no frame of an Arrow table without rows: filters excluded all of them.
        return spark.createDataFrame(held).coalesce(1) if held.num_rows else _no_rows(spark, source)


def start_epoch(
    spark: SparkSession,
    source: SourceContext,
    landed: LandedRange | None,
    begin: Position,
    *,
    safe_until: Position | None = None,
    gtid_set: GtidSet | None = None,
) -> LandedRange:
    """Start a new epoch at `begin` for the next batch, with a commit without rows.

    Args:
        safe_until: ranges that start before it may be in silver already.
        gtid_set: all transactions below `begin`, if known.

    Raises:
        Fenced: another runner of this task landed a batch.
    """
    number = landed.batch + 1 if landed else first_number(spark, source)
    mark = LandedRange(number, begin, begin, gtid_set or parse_gtid_set("", source.flavor), safe_until)
    _land_nothing(spark, source, _tag(source, mark))
    return mark


def write_keepalive(spark: SparkSession, source: SourceContext, landed: LandedRange) -> LandedRange:
    """Repeat bronze's position in a commit without rows, before its history expires the last landing commit.

    Raises:
        Fenced: another runner of this task landed a batch.
    """
    number, end = landed.batch + 1, landed.end
    repeated = LandedRange(number, end, end, landed.gtid_set, landed.safe_beyond)
    _land_nothing(spark, source, replace(_tag(source, repeated), again=True))
    return repeated


def _land_nothing(spark: SparkSession, source: SourceContext, tag: CommitTag) -> None:
    append(spark, _no_rows(spark, source), source.bronze, tag)


def _no_rows(spark: SparkSession, source: SourceContext) -> DataFrame:
    return spark.read.table(source.bronze).where("false")


def land_rows(spark: SparkSession, source: SourceContext, rows: DataFrame, landed: LandedRange) -> OwnCommit:
    """Append the bronze rows of `landed` in one commit.

    Raises:
        Fenced: another runner of this task landed a batch.
    """
    return append(spark, rows, source.bronze, _tag(source, landed))


def _tag(source: SourceContext, landed: LandedRange) -> CommitTag:
    return CommitTag(
        app=landing_app(source.task, source.source_id),
        version=landed.batch,
        task=source.task,
        source=source.source_id,
        run=source.run,
        begin=landed.begin,
        end=landed.end,
        gtid_set=str(landed.gtid_set),
        safe_until=landed.safe_until,
    )


def _read_options(source: SourceContext, batch: LandingBatch, structures: Sequence[StructureFrom]) -> dict[str, str]:
    """The options of the data source for a batch."""
    return {
        "segments": segments_to_json(batch.segments),
        "block-allow-list": source.rules.allow_list.to_json(),
        "online-ddl": source.rules.online.to_json(),
        "structures": json.dumps([structure.to_json() for structure in structures]),
        # As data: Spark would write its own time into the code that it generates, and compile it again for every batch.
        "landed-at": datetime.now(timezone.utc).isoformat(),
    }


def open_bronze(spark: SparkSession, bronze: str, task: str) -> None:
    """Create the bronze table if it does not exist.

    Column statistics are collected for the columns that users and ranges filter by: each costs landing time.

    Raises:
        ForeignTable: the path contains something else, or another task's bronze.
        LakehouseError: the storage cannot be accessed.
    """
    state = table_state(spark, bronze)
    if state is not None:
        state.assert_owned(bronze, task)
        return
    properties = {
        "delta.appendOnly": "true",
        "delta.dataSkippingStatsColumns": ",".join(SKIPPING_COLUMNS),
        "delta.checkpointInterval": "50",
        **FREQUENT.properties,
        OWNER: task,
    }
    columns = dict(column.split(maxsplit=1) for column in BRONZE_SCHEMA.split(","))
    create_table(spark, bronze, NewTable(columns, properties, partition=(PARTITION_COLUMN,)))
