"""The Spark data source `mysql_binlog`: segments or whole binlog files in, decoded row changes out.

    spark.dataSource.register(MySqlBinlog)
    spark.read.format("mysql_binlog").option("path", "/data/binlogs").load()        # or readStream

Options:
    path: a relay or archive folder, a segment, or a binlog file; readable by every executor. In a relay folder,
        transactions that an earlier epoch has are skipped.
    segments: instead of path, the exact segments to read (`segments_to_json`): a retried task reads the same bytes.
    source-id: the `source_id` of the rows [binlog].
    block-allow-list: the tables to decode, as `BlockAllowList.to_json` [all but the system schemas].
    online-ddl: the name patterns of online DDL's tables, as `OnlineDdl.to_json` [none]: their rows are not decoded.
    schemas: a JSON list of `TableSchema` for servers that log no column names: the last one that matches is used.
    structures: also for these, a JSON list of `StructureFrom` in log order: each table's structures by position.
    recorded: structures that `schema` rows have recorded before the first segment, as `RecordedStructures.to_json`
        [none]: the first group of segments does not repeat them; each further group records its own.
    landed-at: ISO 8601 with a zone: adds `landed_at` and `landed_on`, the time and its UTC date, as in bronze.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from dmdelta.bronze.schema import DECODED_SCHEMA, LANDED_SCHEMA
from dmdelta.errors import ConfigError, CorruptBinlog
from dmdelta.model.position import Position
from dmdelta.model.segment import Segment
from dmdelta.segments import follows, read_path

if TYPE_CHECKING:
    import pyarrow as pa

_Item = TypeVar("_Item")
PARTITION_BYTES = 16 << 20
DEFAULT_SOURCE_ID = "binlog"
LANDED_AT = "landed-at"
RECORDED = "recorded"


def segments_to_json(segments: Sequence[Segment]) -> str:
    """The value of the option `segments`."""
    return json.dumps([asdict(segment) for segment in segments])


def register(spark: SparkSession, kind: type[DataSource] | None = None) -> None:
    """Register `mysql_binlog`, or another source, in a session, unless it is registered already. Cloned sessions do not
    inherit it.
    """
    try:
        spark.dataSource.register(kind or MySqlBinlog)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


class SegmentGroup(InputPartition):
    """Adjacent segments that one task reads.

    Attributes:
        is_first: the option `recorded` applies to it. Another task decodes the segments before any other group.
    """

    def __init__(self, segments: Sequence[Segment], *, is_first: bool) -> None:
        super().__init__(None)
        self.segments = tuple(segments)
        self.is_first = is_first


class MySqlBinlog(DataSource):
    """See the module's docstring."""

    @classmethod
    def name(cls) -> str:
        return "mysql_binlog"

    def schema(self) -> str:
        return DECODED_SCHEMA + LANDED_SCHEMA if LANDED_AT in self.options else DECODED_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the schema is fixed
        return BinlogReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - PySpark's name
        return BinlogStreamReader(self.options)


class BinlogReader(DataSourceReader):
    """Reads a fixed list of segments, several per task."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = plain_options(options)

    def partitions(self) -> Sequence[InputPartition]:
        return group_segments(self._segments())

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return _read(partition, self.options)

    def _segments(self) -> list[Segment]:
        listed = self.options.get("segments")
        if listed is None:
            return _list_path(self.options)
        return [Segment(**fields) for fields in json.loads(listed)]


class BinlogStreamReader(DataSourceStreamReader):
    """Follows a relay folder; an offset is the position after the last segment read."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = plain_options(options)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        return {"epoch": 0, "file": "", "pos": 0}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: ARG002, N802
        segments = _list_path(self.options)
        return segments[-1].end_position.to_dict() if segments else start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start == end:
            return []
        after, upto = _read_to(start), Position.from_dict(end)
        chosen = [
            segment
            for segment in _list_path(self.options)
            if (after is None or segment.end_position > after) and segment.end_position <= upto
        ]
        if after is not None and chosen and not follows(after, chosen[0]):
            raise CorruptBinlog(
                "the stream's next segment no longer exists",
                hint="it was purged before it was read: start a new query with a new checkpoint location",
                ends=str(after),
                begins=str(chosen[0].begin_position),
            )
        return group_segments(chosen)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return _read(partition, self.options)


def group_segments(segments: Sequence[Segment]) -> list[SegmentGroup]:
    """Groups adjacent segments up to `PARTITION_BYTES`: small segments share a task, large ones have their own."""
    groups = neighbours(segments, lambda segment: segment.size, PARTITION_BYTES)
    return [SegmentGroup(group, is_first=number == 0) for number, group in enumerate(groups)]


def neighbours(
    items: Iterable[_Item], size_of: Callable[[_Item], int], most: int, count: int | None = None
) -> list[list[_Item]]:
    """Groups adjacent items up to `most` in size and `count` in number; a larger one is alone."""
    groups: list[list[_Item]] = []
    filled = 0
    for item in items:
        size = size_of(item)
        if not groups or filled + size > most or len(groups[-1]) == count:
            groups.append([])
            filled = 0
        groups[-1].append(item)
        filled += size
    return groups


def _read(partition: InputPartition, options: Mapping[str, str]) -> "Iterator[pa.RecordBatch]":
    if not isinstance(partition, SegmentGroup):
        raise TypeError(f"not a partition of this data source: {type(partition).__name__}")
    # Spark also imports this module in every process that plans or registers the source: modules that only reading
    # needs (numpy, Arrow's kernels, the codec) would slow down the start of each.
    from dmdelta.bronze.segment_reader import read_group  # noqa: PLC0415

    if not partition.is_first:
        options = {name: value for name, value in options.items() if name != RECORDED}
    return read_group(partition.segments, options)


def plain_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options with lower-case keys: Spark's own mapping cannot be sent to the executors."""
    return {key.lower(): value for key, value in options.items()}


def _list_path(options: Mapping[str, str]) -> list[Segment]:
    path = options.get("path")
    if not path:
        raise ConfigError("mysql_binlog requires a path", hint='.option("path", <relay folder or binlog file>)')
    return read_path(path, options.get("source-id", DEFAULT_SOURCE_ID))


def _read_to(offset: dict[str, Any]) -> Position | None:
    return Position.from_dict(offset) if offset["file"] else None
