"""How a column's values change when its type changes."""

from dataclasses import dataclass
from enum import Enum

from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.schema import Column

_COLUMN = "{column}"
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")


class ConversionKind(Enum):
    """What happens to a silver column whose source column gets another type."""

    SAME = "same"
    """Nothing: silver's type and all values stay the same."""
    WIDEN = "widen"
    """Delta widens the type in place; all values remain correct."""
    REWRITE = "rewrite"
    """Every row gets the value of an expression."""
    STOP = "stop"
    """The values cannot be determined."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What happens to a column's values in existing rows.

    Attributes:
        sql: of a REWRITE: the new value, of silver's new type, as Spark SQL with `{column}` for the old value. If
            silver's type stays the same, only the rows for which the value differs need to be written.
        reason: of a STOP.
    """

    kind: ConversionKind
    sql: str = ""
    reason: str = ""

    def expression(self, column: str) -> str:
        """The new value as an expression of `column`, which is SQL; for every kind but STOP."""
        return self.sql.replace(_COLUMN, column) if self.kind is ConversionKind.REWRITE else column


SAME = Conversion(ConversionKind.SAME)
WIDEN = Conversion(ConversionKind.WIDEN)


def rewrite(sql: str) -> Conversion:
    return Conversion(ConversionKind.REWRITE, sql)


def stop(reason: str) -> Conversion:
    return Conversion(ConversionKind.STOP, reason=reason)


def kept(old: Column, new: Column) -> Conversion:
    """All values stay the same, in silver's new type."""
    one, other = silver_type(old), silver_type(new)
    if one == other:
        return SAME
    return WIDEN if widens(one, other) else rewrite(f"CAST({_COLUMN} AS {other})")


def widens(one: str, other: str) -> bool:
    """Whether Delta can widen this silver type to the other in place (since 4.0, in open source)."""
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
