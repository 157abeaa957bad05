"""The text of a row's columns in SQL: equal for equal values, whether they come from the log or from a snapshot."""

from collections.abc import Mapping

from dmdelta.model.spark_sql import literal, quote

_AS_TEXT = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
_FRACTION = r'"((?:\d{4}-\d\d-\d\d[ T])?-?\d{2,3}:\d\d:\d\d)(?:(\.\d{0,5}?[1-9])0*|\.0+)"'
"""A time in a document. In one from the log Spark writes it without trailing zeros, in one from a snapshot MySQL wrote
it with six digits."""
_NUMBER = r'("[^"\\]*+(?:\\.[^"\\]*+)*+")|(?<=[\[:,]|^)(-?\d+)(?:\.0+|(\.\d*?[1-9])0+)(?=[\]},]|$)'
"""A string, which stays as it is, or a number with trailing zeros: a decimal may be a double in a snapshot."""


def row_text(columns: Mapping[str, str]) -> str:
    """Columns, by name with their SQL type, as a JSON object. NULL has no member."""
    fields = (f"{literal(name)}, {_field(quote(name), kind)}" for name, kind in columns.items())
    return f"to_json(named_struct({', '.join(fields)}))"


def _field(column: str, kind: str) -> str:
    if kind == "VARIANT":
        text = f"regexp_replace(to_json({column}), {literal(_FRACTION)}, '\"$1$2\"')"
        return f"regexp_replace({text}, {literal(_NUMBER)}, '$1$2$3')"
    # to_json truncates timestamps to milliseconds.
    return f"CAST({column} AS STRING)" if kind in _AS_TEXT else column
