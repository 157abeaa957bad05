"""Reads a short range of bronze into memory without Spark, under a local root."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from dmdelta.bronze.arrow import LANDED_ARROW_SCHEMA
from dmdelta.changelog.context import SourceContext
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.session import takes_arrow
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position

if TYPE_CHECKING:
    from dmdelta.lakehouse.access.data_files import DataFile

MAX_BYTES = 64 << 20
"""Maximum size of the files with rows of the range. Spark reads more in less time."""


def landed_rows(spark: SparkSession, source: SourceContext, begin: Position, end: Position) -> Any | None:
    """All rows of a source in [begin, end), in bronze's columns and in log order.

    Returns:
        An Arrow table; None if Spark has to read them: bronze is not under a local root, has a feature of Delta that
        delta-rs does not read, the range is large or crosses an epoch.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    table = local_table(spark, source.bronze)
    if begin.epoch != end.epoch or table is None or not takes_arrow(spark) or not table.is_plain(variants=True):
        return None
    from dmdelta.lakehouse.access.data_files import files_within  # noqa: PLC0415 - delta-rs, for local roots only

    bounds = {
        "source_id": (source.source_id, source.source_id),
        "epoch": (begin.epoch, begin.epoch),
        "seq": (begin.seq, end.seq - 1),
    }
    files = files_within(table, bounds)
    if sum(file.size for file in files) > MAX_BYTES:
        return None
    with wrapped(source.bronze, "reading"):
        parts = [_within(_read(file), source.source_id, begin, end) for file in files]
    return in_log_order(parts)


def in_log_order(parts: Sequence[Any]) -> Any:
    """The rows of several tables of one epoch as one: structures of an event come before its other rows."""
    rows = pa.concat_tables(parts) if parts else LANDED_ARROW_SCHEMA.empty_table()
    ordinals = rows["row"].to_numpy()
    order = np.lexsort((np.abs(ordinals), ordinals >= 0, rows["seq"].to_numpy()))
    return rows if np.all(np.diff(order) == 1) else rows.take(pa.array(order))


def _read(file: "DataFile") -> Any:
    with pq.ParquetFile(file.path, coerce_int96_timestamp_unit="us") as opened:
        found = opened.read()
    columns = []
    for field in LANDED_ARROW_SCHEMA:
        if field.name in file.partition:
            columns.append(pa.array([file.partition[field.name]], field.type).take(_zeros(found.num_rows)))
        else:
            columns.append(_conformed(found[field.name], field.type))
    return pa.Table.from_arrays(columns, schema=LANDED_ARROW_SCHEMA)


def _within(rows: Any, source_id: str, begin: Position, end: Position) -> Any:
    inside = pc.and_(pc.equal(rows["source_id"], source_id), pc.equal(rows["epoch"], begin.epoch))
    inside = pc.and_(inside, pc.and_(pc.greater_equal(rows["seq"], begin.seq), pc.less(rows["seq"], end.seq)))
    return rows.filter(inside)


def _conformed(column: Any, kind: Any) -> Any:
    """A column in a type of bronze's; the fields of a VARIANT are in any order in a file."""
    if column.type == kind:
        return column
    if not pa.types.is_struct(kind):
        return column.cast(kind)
    chunks = [
        pa.StructArray.from_arrays([chunk.field(field.name) for field in kind], fields=list(kind), mask=chunk.is_null())
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, kind)


def _zeros(count: int) -> Any:
    return pa.array(np.zeros(count, np.int64))
