"""Counts the rows of a range that is in memory, by table and op, as the query on bronze does."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dmdelta.model.change import Op

_KEYS = ("schema_name", "table_name", "op", "epoch", "binlog_file")
_STRUCTURE = (Op.SCHEMA.value, Op.DDL.value, Op.TRUNCATE.value)
_COUNTS = {
    "count_all": "rows",
    "partial_sum": "partial",
    "moved_sum": "moves",
    "binlog_pos_min": "first",
    "binlog_pos_max": "last",
}
_AT = {"epoch": "epoch", "seq": "seq", "row": "row", "file": "binlog_file", "pos": "binlog_pos"}


def range_counts(rows: Any | None) -> list[Mapping[str, Any]] | None:
    """One mapping per table, op and binlog file.

    Its keys: schema_name, table_name, op, epoch, binlog_file, `rows`, `partial` (images), `moves` (key changes),
    `first` and `last` (offsets), and `structure`: the structures and statements.

    Args:
        rows: an Arrow table in bronze's columns (`BatchMemory.rows`).

    Returns:
        None without rows, or if they contain rows or ends of XA transactions, whose effect is elsewhere in bronze.
    """
    if rows is None or rows["xid"].null_count < len(rows):
        return None
    structure = defaultdict(list)
    kinds = pa.array(_STRUCTURE)  # not a constant: the first array imports pandas, which takes 0.7 s
    for row in rows.filter(pc.is_in(rows["op"], kinds)).drop_columns(["before", "after", "image"]).to_pylist():
        at = {name: row[column] for name, column in _AT.items()}
        structure[tuple(row[key] for key in _KEYS)].append({"at": at, "op": row["op"], "ddl": row["ddl"]})
    counted = rows.select([*_KEYS, "binlog_pos"])
    counted = counted.append_column("partial", pc.cast(pc.is_valid(rows["image"]), pa.int64()))
    counted = counted.append_column("moved", pc.cast(pc.fill_null(rows["key_changed"], fill_value=False), pa.int64()))
    lines = counted.group_by(list(_KEYS)).aggregate(
        [([], "count_all"), ("partial", "sum"), ("moved", "sum"), ("binlog_pos", "min"), ("binlog_pos", "max")]
    )
    return [_line(line, structure[tuple(line[key] for key in _KEYS)]) for line in lines.to_pylist()]


def _line(line: Mapping[str, Any], structure: list[Any]) -> Mapping[str, Any]:
    counts = {ours: line[theirs] for theirs, ours in _COUNTS.items()}
    return {**{key: line[key] for key in _KEYS}, **counts, "structure": structure}
