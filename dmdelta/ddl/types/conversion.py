"""How MODIFY and CHANGE convert the values of a column: servers compute them and do not log them."""

from dataclasses import replace

from dmdelta.ddl.types.added_values import Fill, implicit_fill
from dmdelta.ddl.types.number_changes import NUMBERS, number_change
from dmdelta.ddl.types.outcome import SAME, Conversion, ConversionKind, rewrite, stop
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.ddl.types.text_changes import bytes_change, enum_change, set_change, text_change
from dmdelta.ddl.types.time_changes import TIMES, time_change
from dmdelta.ddl.types.type_words import known_type
from dmdelta.model.schema import Column
from dmdelta.model.type_names import BYTES, CHARACTERS

__all__ = ["Conversion", "ConversionKind", "plan_conversion"]

_DATES = ("date", "datetime")
"""The implicit default of these types is a zero date, NULL in silver."""


def plan_conversion(old: Column, new: Column, *, mariadb: bool = False) -> Conversion:
    """How silver's values change when a source column `old` gets the definition `new`.

    A strict session rejects values that do not fit, so there are none; where an expression can compute what a
    non-strict session makes of them, it is used. An unknown character set is assumed to have all characters in the
    values.

    Args:
        mariadb: the server is MariaDB, which truncates where MySQL rounds.
    """
    for column in (old, new):
        if not known_type(column):
            return stop(f"the type {column.type} is unknown")
    planned = _planned(old, new, mariadb=mariadb)
    if planned.kind is ConversionKind.STOP or not old.nullable or new.nullable or new.type in _DATES:
        return planned
    # Only a non-strict session converts NULLs to values.
    fill = Fill("''") if new.type == "enum" else implicit_fill(new)
    if fill.sql is None:
        return stop(f"NULLs converted to {new.type.upper()} NOT NULL get a value that is not in the log")
    value = planned.sql if planned.kind is ConversionKind.REWRITE else f"CAST({{column}} AS {silver_type(new)})"
    value = "{column}" if planned is SAME else value
    return rewrite(f"coalesce({value}, {fill.sql})")


def _planned(old: Column, new: Column, *, mariadb: bool) -> Conversion:
    if replace(old, name="", nullable=True, visible=True) == replace(new, name="", nullable=True, visible=True):
        return SAME
    if old.type in NUMBERS:
        return number_change(old, new)
    if old.type in TIMES:
        return time_change(old, new, cuts=mariadb)
    if old.type in CHARACTERS:
        return text_change(old, new, mariadb=mariadb)
    if old.type in BYTES:
        return bytes_change(old, new)
    if old.type == "enum":
        return enum_change(old, new)
    if old.type == "set":
        return set_change(old, new)
    if old.type == new.type:
        return SAME
    return stop(f"the server's conversion of {old.type.upper()} to {new.type.upper()} is not supported")
