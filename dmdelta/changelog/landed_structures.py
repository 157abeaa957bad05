"""The structures and statements of a source in bronze, read without Spark under a local root."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.spark_errors import wrapped

if TYPE_CHECKING:
    from dmdelta.lakehouse.access.data_files import DataFile

MAX_ROWS = 4_000_000
"""Maximum number of rows in the files with structures: about a second. Spark reads more in less time."""
_OPS = ("schema", "ddl", "truncate")
_TEXTS = ("source_id", "schema_name", "table_name", "op", "binlog_file")
_NUMBERS = ("epoch", "seq", "row", "binlog_pos")
_AT = {"epoch": "epoch", "seq": "seq", "row": "row", "file": "binlog_file", "pos": "binlog_pos"}


def landed_structures(spark: SparkSession, source: SourceContext) -> list[dict[str, Any]] | None:
    """The structures and statements of a source, in no particular order.

    Returns:
        Mappings with the columns that identify a row, op, ddl, and the position `at` with the fields of
        `dmdelta.changelog.xa.AT`; None if Spark has to read them.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    table = local_table(spark, source.bronze)
    if table is None or not table.is_plain(variants=True):
        return None
    from dmdelta.lakehouse.access.data_files import files_within  # noqa: PLC0415 - delta-rs, for local roots only

    files = files_within(table, {"source_id": (source.source_id, source.source_id)}, present="ddl")
    if sum(file.rows for file in files) > MAX_ROWS:
        return None
    with wrapped(source.bronze, "reading"):
        return [row for file in files for row in _structures(file, source.source_id)]


def _structures(file: "DataFile", source_id: str) -> Iterator[dict[str, Any]]:
    # Nearly all rows are row changes: only the others become values.
    with pq.ParquetFile(file.path, read_dictionary=_TEXTS) as opened:
        places = pc.indices_nonzero(pc.is_valid(opened.read(["ddl"])["ddl"]))
        rows = opened.read([*_TEXTS, *_NUMBERS, "ddl"]).take(places) if len(places) else None
    for row in rows.to_pylist() if rows is not None else ():
        if row["source_id"] == source_id and row["op"] in _OPS:
            yield {**row, "at": {name: row[column] for name, column in _AT.items()}}
