"""What becomes of a column's values when its type changes: the record that says it, and how it is made."""

from dataclasses import dataclass
from enum import Enum

from dmdelta.ddl.types import silver_type
from dmdelta.model.schema import Column

_COLUMN = "{column}"
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")


class ConversionKind(Enum):
    """What is done to a silver column whose source column gets another type."""

    SAME = "same"
    """Nothing: silver's type and every value stay."""
    WIDEN = "widen"
    """Delta widens the type in place, and every value is right."""
    REWRITE = "rewrite"
    """Every row gets the value of an expression."""
    STOP = "stop"
    """Nobody can tell the values."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What is done to a column's values in the rows that are there.

    Attributes:
        sql: of a REWRITE: the new value, of silver's new type, as Spark SQL with `{column}` for the old one. Where
            silver's type stays, only the rows for which it differs need to be written.
        reason: of a STOP.
    """

    kind: ConversionKind
    sql: str = ""
    reason: str = ""

    def expression(self, column: str) -> str:
        """The new value in terms of `column`, which is SQL; for every kind but STOP."""
        return self.sql.replace(_COLUMN, column) if self.kind is ConversionKind.REWRITE else column


SAME = Conversion(ConversionKind.SAME)
WIDEN = Conversion(ConversionKind.WIDEN)


def rewrite(sql: str) -> Conversion:
    return Conversion(ConversionKind.REWRITE, sql)


def stop(reason: str) -> Conversion:
    return Conversion(ConversionKind.STOP, reason=reason)


def kept(old: Column, new: Column) -> Conversion:
    """Every value stays what it is, in silver's new type."""
    one, other = silver_type(old), silver_type(new)
    if one == other:
        return SAME
    return WIDEN if widens(one, other) else rewrite(f"CAST({_COLUMN} AS {other})")


def widens(one: str, other: str) -> bool:
    """Delta widens this type of silver to the other in place (4.0 on, in open source)."""
    if one in _WHOLE and other in _WHOLE:
        return _WHOLE.index(one) < _WHOLE.index(other)
    if other == "DOUBLE":
        return one in ("FLOAT", *_WHOLE[:3])
    if other.startswith("DECIMAL"):
        digits, scale = _digits(other)
        if one in _WHOLE:
            return digits - scale >= (20 if one == "BIGINT" else 10)
        if one.startswith("DECIMAL"):
            digits_before, scale_before = _digits(one)
            return scale >= scale_before and digits - scale >= digits_before - scale_before
    return (one, other) == ("DATE", "TIMESTAMP_NTZ")


def _digits(decimal: str) -> tuple[int, int]:
    digits, scale = decimal.removeprefix("DECIMAL(").removesuffix(")").split(",")
    return int(digits), int(scale)


def within(value: str, low: str, high: str, kind: str) -> str:
    """SQL: a number as a type of silver, the nearest bound where it is beyond one, as servers do it that allow it."""
    return (
        f"CASE WHEN {value} <= {low} THEN CAST('{low}' AS {kind}) WHEN {value} >= {high} THEN CAST('{high}' AS {kind})"
        f" ELSE CAST({value} AS {kind}) END"
    )
