"""The value of an added column in existing rows."""

import re
from dataclasses import dataclass

from dmdelta.ddl.types.literals import NUMBER, Literal, LiteralKind, named_member, named_members, text_in_charset
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.schema import Column
from dmdelta.model.spark_sql import literal
from dmdelta.model.type_names import BLOBS, CHARACTERS, INTEGERS, NAMED

_ZERO_DATE = re.compile(r"0000-00-00( 00:00:00(\.0+)?)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")
_TIME = re.compile(r"(-?(?:\d\d|[1-9]\d\d):\d\d:\d\d)(?:\.(\d{1,6}))?")


@dataclass(frozen=True, slots=True)
class Fill:
    """The value of an added column in existing rows: an SQL expression, or why it is unknown."""

    sql: str | None = None
    unknown: str | None = None


def literal_fill(column: Column, default: Literal) -> Fill:
    """The SQL of a literal default: the value that the servers store, confirmed by tests."""
    kind, sql = column.type, None
    if kind in ("date", "datetime", "timestamp") and _ZERO_DATE.fullmatch(default.text):
        return Fill()
    if kind in (*CHARACTERS, *NAMED):
        sql = _text_fill(column, default)
    elif kind in ("bit", "year", "decimal", "float", "double", *INTEGERS):
        sql = _number_fill(column, default)
    elif kind in ("varbinary", *BLOBS):
        sql = f"X'{default.data.hex()}'" if default.kind is LiteralKind.BYTES else None
    elif default.kind is LiteralKind.TEXT:
        sql = _moment_fill(column, default.text)
    return Fill(sql) if sql else Fill(unknown=f"silver cannot fill in the default of column {column.name}")


def _text_fill(column: Column, default: Literal) -> str | None:
    text = text_in_charset(default, column.charset)
    if text is None:
        return None
    if column.type == "enum":
        text = named_member(column.members, text.rstrip(" "))
    elif column.type == "set":
        text = named_members(column.members, text)
    elif column.type == "char":
        text = text.rstrip(" ")
    return None if text is None else literal(text)


def _number_fill(column: Column, default: Literal) -> str | None:
    text, is_whole = default.text, re.fullmatch(r"[-+]?\d+", default.text)
    if column.type == "bit" and default.kind is LiteralKind.TEXT:
        return None  # the bytes of the text
    if column.type == "year":
        year = _year(default)
        return None if year is None else _cast(str(year), column)
    if column.type in ("bit", *INTEGERS):
        return _cast(text, column) if is_whole else None
    return _cast(text, column) if NUMBER.fullmatch(text) and silver_type(column) != "STRING" else None


def _year(default: Literal) -> int | None:
    """Two digits are a year from 1970 to 2069; the number 0 is the year 0, as is the text '0000'."""
    if not re.fullmatch(r"\d{1,2}|\d{4}", default.text):
        return None
    year = int(default.text)
    is_short = len(default.text) <= 2 and (year or default.kind is LiteralKind.TEXT)
    return year + (1900 if year >= 70 else 2000) if is_short else year


def _moment_fill(column: Column, text: str) -> str | None:
    if column.type == "date" and _DATE.fullmatch(text):
        return _cast(text, column)
    if column.type == "datetime" and _DATETIME.fullmatch(text):
        return _cast(text, column) if len(text.partition(".")[2]) <= column.precision else None
    if column.type == "time" and (time := _TIME.fullmatch(text)) and len(time[2] or "") <= column.precision:
        digits = (time[2] or "").ljust(column.precision, "0")
        shown = f"{time[1]}.{digits}" if digits else time[1]
        return literal(shown if shown.strip("-0:.") else shown.removeprefix("-"))
    return None


def implicit_fill(column: Column) -> Fill:
    """The SQL of MySQL's implicit default for NOT NULL columns."""
    kind = column.type
    if kind in ("bit", "year", "decimal", "float", "double", *INTEGERS):
        text = "0" if not column.scale or silver_type(column) != "STRING" else "0." + "0" * column.scale
        return Fill(_cast(text, column))
    if kind == "enum":
        return Fill(literal(column.members[0])) if column.members else Fill(unknown="the enum's members are unknown")
    if kind in (*CHARACTERS, "set"):
        return Fill("''")
    if kind == "time":
        return Fill(literal("00:00:00" + ("." + "0" * column.precision if column.precision else "")))
    if kind in ("date", "datetime"):
        return Fill()
    if kind == "binary":
        return Fill(f"X'{'00' * column.length}'")
    if kind in ("varbinary", *BLOBS):
        return Fill("X''")
    return Fill(unknown=f"the implicit default of the {kind} column {column.name} is unknown")


def _cast(text: str, column: Column) -> str:
    return f"CAST({literal(text)} AS {silver_type(column)})"
