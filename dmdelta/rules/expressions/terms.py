"""Columns and literals as values."""

import re
from collections.abc import Callable
from datetime import datetime

from sqlglot import exp

from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import literal
from dmdelta.model.type_names import BYTES, TEXTUAL, WHOLE
from dmdelta.rules.expressions.values import INTEGER_DIGITS, MAX_DIGITS, Kind, Refusal, Value

ColumnSql = Callable[[Column], str]
"""Returns the SQL of a column's value, typed as in silver."""

_DATE = re.compile(r"(\d{4}-\d\d-\d\d)")
_DATETIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,6})?")
_TIME = re.compile(r"(-?)(\d{1,3}):([0-5]\d):([0-5]\d)(\.\d{1,6})?")
_NUMBER = re.compile(r"(\d+)(?:\.(\d*))?")


def column_value(node: exp.Column, schema: TableSchema, column_sql: ColumnSql) -> Value:
    """A column of the table, by case-insensitive name.

    Raises:
        Refusal: the column does not exist, or silver does not hold its values in a form that compares as in MySQL.
    """
    text = node.sql("mysql")
    for given, expected in ((node.table, schema.table), (node.db, schema.schema)):
        if given and given.lower() != expected.lower():
            raise Refusal(text, f"the table is {schema}")
    column = next((one for one in schema.columns if one.name.lower() == node.name.lower()), None)
    if column is None:
        known = ", ".join(one.name for one in schema.columns)
        raise Refusal(text, f"{schema} has no column {node.name}; it has {known}")
    return _of_type(column, column_sql(column), text)


def _of_type(column: Column, sql: str, text: str) -> Value:
    kind = column.type
    if kind in WHOLE:
        cast = f"CAST({sql} AS DECIMAL({INTEGER_DIGITS},0))"
        unsigned = column.unsigned or kind in ("bit", "year")
        return Value(Kind.EXACT, cast, text, INTEGER_DIGITS, unsigned=unsigned, year=kind == "year")
    if kind == "decimal" and column.precision <= MAX_DIGITS:
        return Value(Kind.EXACT, sql, text, column.precision - column.scale, column.scale, unsigned=column.unsigned)
    if kind in ("float", "double"):
        return Value(Kind.DOUBLE, f"CAST({sql} AS DOUBLE)", text)
    if kind in TEXTUAL:
        members = kind in ("enum", "set")
        return Value(Kind.TEXT, sql, text, members=members, collation=column.collation or "", charset=column.charset)
    if kind in BYTES:
        return Value(Kind.BYTES, sql, text)
    if kind == "date":
        return Value(Kind.DATE, sql, text)
    if kind in ("datetime", "timestamp"):
        # The session's time zone is UTC, and so is that of literals compared with a TIMESTAMP, as in DM.
        return Value(Kind.DATETIME, sql if kind == "datetime" else f"CAST({sql} AS TIMESTAMP_NTZ)", text)
    if kind == "time":
        return Value(Kind.TIME, _seconds(sql), text)
    return Value(Kind.OTHER, sql, text)


def _seconds(sql: str) -> str:
    """A TIME, which silver stores as text, in seconds."""
    parts = [f"try_cast(split_part(ltrim('-', {sql}), ':', {part}) AS DECIMAL(12,6))" for part in (1, 2, 3)]
    sign = f"IF(startswith({sql}, '-'), -1, 1)"
    return f"CAST({sign} * ({parts[0]} * 3600 + {parts[1]} * 60 + {parts[2]}) AS DECIMAL(13,6))"


def literal_value(node: exp.Literal) -> Value:
    """A number or text literal."""
    text, value = node.sql("mysql"), str(node.this)
    if node.is_string:
        return Value(Kind.TEXT, literal(value), text, literal=value)
    match = _NUMBER.fullmatch(value)
    if match is None:
        return Value(Kind.DOUBLE, f"CAST({literal(value)} AS DOUBLE)", text, literal=value)
    digits, scale = len(match[1]), len(match[2] or "")
    if digits + scale > MAX_DIGITS:
        raise Refusal(text, f"more than {MAX_DIGITS} digits")
    sql = f"CAST({literal(value)} AS DECIMAL({digits + scale},{scale}))"
    return Value(Kind.EXACT, sql, text, digits, scale, literal=value)


def temporal_literal(value: Value, kind: Kind) -> Value:
    """A text literal as the date or time that MySQL converts it to when compared with a value of that kind.

    Raises:
        Refusal: it is not written in full; MySQL also accepts other, looser formats.
    """
    content = (value.literal or "").strip(" ")
    if kind is Kind.TIME and (match := _TIME.fullmatch(content)):
        seconds = int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4])
        sql = f"CAST('{match[1]}{seconds}{match[5] or ''}' AS DECIMAL(13,6))"
        return Value(Kind.TIME, sql, value.text)
    if kind is not Kind.TIME and (match := _DATE.fullmatch(content)) and _is_date(content):
        return Value(Kind.DATE, f"DATE'{content}'", value.text)
    if kind is not Kind.TIME and (match := _DATETIME.fullmatch(content)) and _is_date(f"{match[1]} {match[2]}"):
        return Value(Kind.DATETIME, f"TIMESTAMP_NTZ'{match[1]} {match[2]}{match[3] or ''}'", value.text)
    form = "hh:mm:ss" if kind is Kind.TIME else "yyyy-mm-dd or yyyy-mm-dd hh:mm:ss"
    raise Refusal(value.text, f"compared with {kind.value}: write a valid value as {form}")


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
