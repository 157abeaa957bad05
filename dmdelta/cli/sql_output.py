"""Writes the rows of a query to stdout."""

import csv
import json
import sys
from collections.abc import Iterator
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from dmdelta.cli.render import console
from dmdelta.errors import ConfigError

if TYPE_CHECKING:  # Spark takes a second to import
    from pyspark.sql import DataFrame

SHOWN_ROWS = 1_000
"""The maximum number of rows in a table."""


class Output(str, Enum):
    """A format."""

    TABLE = "table"
    """At most 1,000 rows."""
    CSV = "csv"
    JSON = "json"
    """One document: an array of objects."""
    PARQUET = "parquet"
    """VARIANT columns are JSON text."""


def write(rows: "DataFrame", output: Output) -> None:
    """Write the result of a query.

    Raises:
        ConfigError: Parquet on a terminal.
        LakehouseError: the query fails.
    """
    from dmdelta.engine.live.sql import explained

    if output is Output.PARQUET and sys.stdout.isatty():
        raise ConfigError("Parquet is not text", hint="redirect the output to a file: > rows.parquet")
    with explained():
        {Output.TABLE: _table, Output.CSV: _csv, Output.JSON: _json, Output.PARQUET: _parquet}[output](rows)
    sys.stdout.flush()


def _table(rows: "DataFrame") -> None:
    found = list(islice(_values(_as_text(rows)), SHOWN_ROWS + 1))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for field in rows.schema.fields:
        is_number = field.dataType.typeName() in ("byte", "short", "integer", "long", "float", "double", "decimal")
        table.add_column(Text(field.name), justify="right" if is_number else "left", overflow="fold")
    for row in found[:SHOWN_ROWS]:
        table.add_row(*(Text("NULL", "dim") if value is None else Text(value) for value in row))
    console().print(table)
    if len(found) > SHOWN_ROWS:
        console(stderr=True).print(f"the first {SHOWN_ROWS:,} rows; --output csv has all", markup=False)


def _csv(rows: "DataFrame") -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(rows.columns)
    writer.writerows(_values(_as_text(rows)))


def _json(rows: "DataFrame") -> None:
    names = [json.dumps(name, ensure_ascii=False) for name in rows.columns]
    separator = "["
    for row in _values(_as_json(rows)):
        pairs = ", ".join(f"{name}: {value or 'null'}" for name, value in zip(names, row, strict=True))
        sys.stdout.write(f"{separator}\n  {{{pairs}}}")
        separator = ","
    sys.stdout.write("[]\n" if separator == "[" else "\n]\n")


def _parquet(rows: "DataFrame") -> None:
    import pyarrow.parquet as pq

    table = _numbered(rows, {"variant": "to_json({c})", "": "{c}"}).toArrow()
    pq.write_table(table.rename_columns(rows.columns), sys.stdout.buffer)


def _as_text(rows: "DataFrame") -> "DataFrame":
    """Every column as text: bytes in hexadecimal, nested values and VARIANTs as JSON."""
    return _numbered(rows, {"variant": "to_json({c})", "nested": "to_json({c})", "binary": "hex({c})"})


def _as_json(rows: "DataFrame") -> "DataFrame":
    """Every column as JSON text: a decimal keeps its digits, bytes are hexadecimal text."""
    as_is = ("tinyint", "smallint", "int", "bigint", "decimal", "boolean", "void")
    plain = dict.fromkeys(as_is, "CAST({c} AS STRING)")
    nested = dict.fromkeys(("variant", "nested"), "to_json({c})")
    text = "to_json(array({value}))"
    other = f"substr({text}, 2, length({text}) - 2)"
    kinds = {"binary": other.format(value="hex({c})"), "": other.format(value="{c}")}
    return _numbered(rows, {**plain, **nested, **kinds})


def _numbered(rows: "DataFrame", expressions: dict[str, str]) -> "DataFrame":
    """The columns by number, as their names may repeat: each by the expression of its type, "" for other types."""
    columns = []
    for number, field in enumerate(rows.schema.fields):
        kind = field.dataType.simpleString().partition("<")[0].partition("(")[0]
        kind = "nested" if kind in ("struct", "array", "map") else kind
        value = expressions.get(kind, expressions.get("", "CAST({c} AS STRING)")).format(c=f"c{number}")
        columns.append(f"IF(c{number} IS NULL, NULL, {value}) AS c{number}")
    return rows.toDF(*(f"c{number}" for number in range(len(columns)))).selectExpr(*columns)


def _values(rows: "DataFrame") -> Iterator[tuple[Any, ...]]:
    return map(tuple, rows.toLocalIterator())
