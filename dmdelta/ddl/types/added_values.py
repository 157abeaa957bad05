"""The value of an added column in existing rows."""

import re
from dataclasses import dataclass

from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.schema import Column
from dmdelta.model.spark_sql import literal
from dmdelta.model.type_names import BLOBS, CHARACTERS, INTEGERS, NAMED, TEXTS

_ZERO_DATE = re.compile(r"0000-00-00( 00:00:00(\.0+)?)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")
_TIME = re.compile(r"(-?\d{2,3}:\d\d:\d\d)(?:\.(\d{1,6}))?")
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Fill:
    """The value of an added column in existing rows: an SQL expression, or why it is unknown."""

    sql: str | None = None
    unknown: str | None = None


def literal_fill(column: Column, text: str) -> Fill:
    """The SQL of a literal default."""
    kind, unknown = column.type, Fill(unknown=f"silver cannot fill in the default of column {column.name}")
    if kind in ("date", "datetime", "timestamp") and _ZERO_DATE.fullmatch(text):
        return Fill()
    if kind in ("varchar", *NAMED, *TEXTS):
        return Fill(literal(text))
    if kind == "char":
        return Fill(literal(text.rstrip(" ")))
    if kind in ("bit", "year", *INTEGERS):
        return Fill(_cast(text, column)) if re.fullmatch(r"[-+]?\d+", text) else unknown
    if kind in ("decimal", "float", "double"):
        fits = _NUMBER.fullmatch(text) and silver_type(column) != "STRING"
        return Fill(_cast(text, column)) if fits else unknown
    if kind == "date" and _DATE.fullmatch(text):
        return Fill(_cast(text, column))
    if kind == "datetime" and _DATETIME.fullmatch(text):
        return Fill(_cast(text, column)) if len(text.partition(".")[2]) <= column.precision else unknown
    if kind == "time" and (time := _TIME.fullmatch(text)) and len(time[2] or "") <= column.precision:
        digits = (time[2] or "").ljust(column.precision, "0")
        return Fill(literal(f"{time[1]}.{digits}" if digits else time[1]))
    return unknown


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
