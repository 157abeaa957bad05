"""A decoded batch as an Arrow record batch of the 18 columns of the data source."""

from datetime import datetime, timezone
from itertools import chain
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dmdelta.binlog.rows.batch import ChangeBatch
from dmdelta.errors import UnsupportedEvent
from dmdelta.model.position import FILE_SHIFT

VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        # Spark treats a struct whose metadata field has this mark as a VARIANT.
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
ARROW_SCHEMA = pa.schema(
    [
        pa.field("source_id", pa.string()),
        pa.field("epoch", pa.int32()),
        pa.field("seq", pa.int64()),
        pa.field("row", pa.int32()),
        pa.field("binlog_file", pa.string()),
        pa.field("binlog_pos", pa.int64()),
        pa.field("gtid", pa.string()),
        pa.field("committed_at", pa.timestamp("us", tz="UTC")),
        pa.field("schema_name", pa.string()),
        pa.field("table_name", pa.string()),
        pa.field("op", pa.string()),
        pa.field("xid", pa.string()),
        pa.field("image", pa.list_(pa.string())),
        pa.field("key_changed", pa.bool_()),
        pa.field("ddl", pa.string()),
        pa.field("schema_version", pa.int64()),
        pa.field("before", VARIANT),
        pa.field("after", VARIANT),
    ]
)
LANDED_FIELDS = (pa.field("landed_at", pa.timestamp("us", tz="UTC")), pa.field("landed_on", pa.date32()))
LANDED_ARROW_SCHEMA = pa.schema([*ARROW_SCHEMA, *LANDED_FIELDS])
"""Bronze's columns."""
_MOST_BYTES = (1 << 31) - 1
_OFFSET_MASK = (1 << FILE_SHIFT) - 1


class Origin(Protocol):
    """The part of a source's log that rows come from."""

    @property
    def source_id(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def binlog_file(self) -> str: ...


def to_record_batch(batch: ChangeBatch, origin: Origin, landed_at: datetime | None = None) -> pa.RecordBatch:
    """The rows of a batch decoded from `origin`, in `ARROW_SCHEMA`; with `landed_at`, also `LANDED_FIELDS`."""
    counts = len(batch.runs)
    count, seqs, firsts, numbers = np.fromiter(chain.from_iterable(batch.runs), np.int64, 4 * counts).reshape(-1, 4).T
    total = int(count.sum())
    run_of_row = np.repeat(np.arange(len(count)), count)
    begins = np.cumsum(count) - count
    seq = seqs[run_of_row]
    row = np.arange(total) - begins[run_of_row] + firsts[run_of_row]
    take = pa.array(numbers[run_of_row])
    gtids, committed, schema_name, table_name, op, xid, image, ddl, version, dictionaries = zip(
        *batch.shared, strict=True
    )
    metadata = _spread(dictionaries, pa.binary(), take)
    columns = [
        pa.repeat(pa.scalar(origin.source_id, pa.string()), total),
        pa.repeat(pa.scalar(origin.epoch, pa.int32()), total),
        pa.array(seq),
        pa.array(row.astype(np.int32)),
        pa.repeat(pa.scalar(origin.binlog_file, pa.string()), total),
        pa.array(seq & _OFFSET_MASK),
        _spread(gtids, pa.string(), take),
        _spread(committed, pa.int64(), take).cast(pa.timestamp("us", tz="UTC")),
        _spread(schema_name, pa.string(), take),
        _spread(table_name, pa.string(), take),
        _spread(op, pa.string(), take),
        _spread(xid, pa.string(), take),
        _spread(image, pa.list_(pa.string()), take),
        _marked(batch.moved, total),
        _spread(ddl, pa.string(), take),
        _spread(version, pa.int64(), take),
        variants(batch.before, metadata),
        variants(batch.after, metadata),
    ]
    if landed_at is None:
        return pa.RecordBatch.from_arrays(columns, schema=ARROW_SCHEMA)
    day = landed_at.astimezone(timezone.utc).date()
    columns += [
        pa.repeat(pa.scalar(value, field.type), total)
        for value, field in zip((landed_at, day), LANDED_FIELDS, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=LANDED_ARROW_SCHEMA)


def _spread(values: tuple[Any, ...], kind: Any, take: Any) -> Any:
    """A column of values, indexed for each row by `take`."""
    if values.count(values[0]) == len(values):
        return pa.repeat(pa.scalar(values[0], kind), len(take))
    return pa.array(values, kind).take(take)


def _marked(rows: list[int], total: int) -> Any:
    """A column that is true at `rows`."""
    if not rows:
        return pa.repeat(pa.scalar(value=False), total)
    marks = np.zeros(total, bool)
    marks[rows] = True
    return pa.array(marks)


def variants(values: list[bytes], metadata: Any) -> Any:
    """A VARIANT column of values, b"" for absent ones, and a column of the dictionaries that they refer to.

    Raises:
        UnsupportedEvent: they have more bytes than an Arrow array can hold.
    """
    # Faster than an array built from the list: one copy of all bytes, without checking each object's type.
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=ends[1:])
    if ends[-1] > _MOST_BYTES:
        raise UnsupportedEvent(
            f"the rows of one event have {ends[-1]} bytes of images, more than an Arrow array can hold ({_MOST_BYTES})",
            hint="write fewer rows per statement (binlog_row_event_max_size), or exclude the table",
        )
    offsets, data = pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(values))
    value = pa.BinaryArray.from_buffers(pa.binary(), len(values), [None, offsets, data])
    absent = pa.array(ends[1:] == ends[:-1])
    return pa.StructArray.from_arrays([value, metadata], fields=list(VARIANT), mask=absent)
