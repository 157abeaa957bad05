"""The data files of a table in a folder of this machine that may contain rows of a range, by Delta's statistics."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable


@dataclass(frozen=True, slots=True)
class DataFile:
    """
    Attributes:
        size: bytes.
        rows: their number; 0 if unknown.
        partition: the values of the partition columns.
    """

    path: Path
    size: int
    rows: int
    partition: Mapping[str, date]


def files_within(
    table: LocalTable, bounds: Mapping[str, tuple[Any, Any]], present: str | None = None
) -> list[DataFile]:
    """The files of the newest version that may have rows with every column within its bounds, both inclusive.

    Args:
        present: a column that is not NULL in these rows.

    Raises:
        LakehouseError: the table cannot be read.
    """
    files = table.file_statistics()
    for column, (lowest, highest) in bounds.items():
        if f"min.{column}" not in files.column_names:
            continue  # no file has statistics of it
        least, most = files[f"min.{column}"], files[f"max.{column}"]
        outside = pc.or_(pc.greater(least, highest), pc.less(most, lowest))
        files = files.filter(pc.invert(pc.fill_null(outside, fill_value=False)))  # without statistics: it may have some
    if f"null_count.{present}" in files.column_names:
        absent = pc.equal(files[f"null_count.{present}"], files["num_records"])
        files = files.filter(pc.invert(pc.fill_null(absent, fill_value=False)))
    partitions = [name for name in files.column_names if name.startswith("partition.")]
    return [
        DataFile(
            table.folder / row["path"],
            row["size_bytes"],
            row["num_records"] or 0,
            {name.removeprefix("partition."): row[name] for name in partitions},
        )
        for row in files.select(["path", "size_bytes", "num_records", *partitions]).to_pylist()
    ]
