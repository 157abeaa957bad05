"""Columns and literals as values."""

import re
from collections.abc import Callable
from datetime import date, datetime

from sqlglot import exp

from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import literal
from dmdelta.model.type_names import BYTES, TEXTUAL, WHOLE
from dmdelta.rules.expressions.values import INTEGER_DIGITS, MAX_DIGITS, Kind, Refusal, Value

ColumnSql = Callable[[Column], str]
"""The SQL of a column's value, typed as in silver."""

_DATE = re.compile(r"(\d{4}-\d\d-\d\d)")
_DATETIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,6})?")
_TIME = re.compile(r"(-?)(\d{1,3}):([0-5]\d):([0-5]\d)(\.\d{1,6})?")
_NUMBER = re.compile(r"(\d+)(?:\.(\d*))?")
_SECONDS = 6


def column_value(node: exp.Column, schema: TableSchema, column_sql: ColumnSql) -> Value:
    """A column of the table, found without case.

    Raises:
        Refusal: there is none, or silver does not hold its values as MySQL compares them.
    """
    text = node.sql("mysql")
    for said, wanted in ((node.table, schema.table), (node.db, schema.schema)):
        if said and said.lower() != wanted.lower():
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
        # The session's zone is UTC, and so is that of literals which a TIMESTAMP is compared with, as in DM.
        return Value(Kind.DATETIME, sql if kind == "datetime" else f"CAST({sql} AS TIMESTAMP_NTZ)", text)
    if kind == "time":
        return Value(Kind.TIME, _seconds(sql), text, 7, _SECONDS)
    return Value(Kind.OTHER, sql, text)


def _seconds(sql: str) -> str:
    """A TIME, which silver has as text, as seconds."""
    parts = [f"try_cast(split_part(ltrim('-', {sql}), ':', {part}) AS DECIMAL(12,6))" for part in (1, 2, 3)]
    sign = f"IF(startswith({sql}, '-'), -1, 1)"
    return f"CAST({sign} * ({parts[0]} * 3600 + {parts[1]} * 60 + {parts[2]}) AS DECIMAL(13,6))"


def literal_value(node: exp.Literal) -> Value:
    """A number or a text."""
    text, said = node.sql("mysql"), str(node.this)
    if node.is_string:
        return Value(Kind.TEXT, literal(said), text, literal=said)
    found = _NUMBER.fullmatch(said)
    if found is None:
        return Value(Kind.DOUBLE, f"CAST({literal(said)} AS DOUBLE)", text, literal=said)
    digits, scale = len(found[1]), len(found[2] or "")
    if digits + scale > MAX_DIGITS:
        raise Refusal(text, f"more than {MAX_DIGITS} digits")
    sql = f"CAST({literal(said)} AS DECIMAL({digits + scale},{scale}))"
    return Value(Kind.EXACT, sql, text, digits, scale, literal=said)


def temporal_literal(value: Value, kind: Kind) -> Value:
    """A text literal as the date or time that MySQL takes it for, beside a value of that kind.

    Raises:
        Refusal: it is not written in full; MySQL reads more forms, and looser ones.
    """
    said = (value.literal or "").strip(" ")
    if kind is Kind.TIME and (found := _TIME.fullmatch(said)):
        seconds = int(found[2]) * 3600 + int(found[3]) * 60 + int(found[4])
        sql = f"CAST('{found[1]}{seconds}{found[5] or ''}' AS DECIMAL(13,6))"
        return Value(Kind.TIME, sql, value.text, 7, _SECONDS)
    if kind is not Kind.TIME and (found := _DATE.fullmatch(said)) and _is_date(said):
        return Value(Kind.DATE, f"DATE'{said}'", value.text)
    if kind is not Kind.TIME and (found := _DATETIME.fullmatch(said)) and _is_date(f"{found[1]} {found[2]}"):
        return Value(Kind.DATETIME, f"TIMESTAMP_NTZ'{found[1]} {found[2]}{found[3] or ''}'", value.text)
    form = "hh:mm:ss" if kind is Kind.TIME else "yyyy-mm-dd or yyyy-mm-dd hh:mm:ss"
    raise Refusal(value.text, f"beside {kind.value}: write it as {form}, and let it be one that there is")


def _is_date(text: str) -> bool:
    try:
        return (date if len(text) == 10 else datetime).fromisoformat(text).year > 0
    except ValueError:
        return False
