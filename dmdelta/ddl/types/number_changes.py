"""How numbers change when their column gets another type."""

from dmdelta.ddl.types.number_bounds import INTEGER_BITS, MAX_FLOAT, decimal_bounds, integer_bounds, within
from dmdelta.ddl.types.outcome import SAME, Conversion, kept, rewrite, stop
from dmdelta.ddl.types.silver_types import MAX_DECIMAL_DIGITS, silver_type
from dmdelta.ddl.types.text_changes import cut
from dmdelta.model.schema import Column
from dmdelta.model.spark_sql import literal
from dmdelta.model.type_names import CHARACTERS

NUMBERS = (*INTEGER_BITS, "bit", "year", "decimal", "float", "double")
"""The types whose values are numbers in silver."""

LONG_DECIMAL = "a DECIMAL of more than 38 digits is text in silver"
ZEROFILL = "an unsigned number converted to text has leading zeros if it is ZEROFILL, which is not in the log"
FLOAT_TEXT = "servers format a FLOAT or DOUBLE as text differently"


def number_change(old: Column, new: Column) -> Conversion:
    """How the numbers in `old`, a column of one of NUMBERS, change."""
    if max(old.precision, new.precision) > MAX_DECIMAL_DIGITS:
        longer = MAX_DECIMAL_DIGITS < old.precision <= new.precision
        return SAME if longer and old.scale == new.scale and old.unsigned >= new.unsigned else stop(LONG_DECIMAL)
    if new.type in INTEGER_BITS:
        return _to_integer(old, new)
    if new.type == "decimal":
        return _to_decimal(old, new)
    if new.type in ("float", "double"):
        return _to_float(old, new)
    if new.type == "bit":
        return _to_bit(old, new)
    if new.type == "year":
        return _to_year(old)
    if new.type == "enum" and _is_whole(old) and new.members:
        names = ", ".join(literal(name) for name in new.members)
        chosen = f"element_at(array({names}), CAST({{column}} AS INT))"
        inside = f"{{column}} BETWEEN 1 AND {len(new.members)}"
        return rewrite(f"CASE WHEN {inside} THEN {chosen} WHEN {{column}} IS NOT NULL THEN '' END")
    return _to_text(old, new)


def _is_whole(column: Column) -> bool:
    return column.type in INTEGER_BITS or column.type in ("bit", "year")


def _to_integer(old: Column, new: Column) -> Conversion:
    low, high = integer_bounds(new)
    if _is_whole(old):
        least, most = integer_bounds(old)
        if low <= least and most <= high:
            return kept(old, new)
        value = "{column}"
    elif old.type == "decimal":
        value = "round({column}, 0)"
    else:
        # MySQL rounds half to even, via a signed integer.
        value, high = "rint({column})", min(high, (1 << 63) - 1)
    return rewrite(within(value, str(low), str(high), silver_type(new)))


def _to_decimal(old: Column, new: Column) -> Conversion:
    whole = new.precision - new.scale
    kind = silver_type(new)
    low, high = decimal_bounds(new)
    if _is_whole(old):
        least, most = integer_bounds(old)
        if most < 10**whole and not (least and new.unsigned):
            return kept(old, new)
        return rewrite(within("{column}", low, high, kind))
    if old.type == "decimal":
        holds = new.scale >= old.scale and whole >= old.precision - old.scale
        if holds and (old.unsigned or not new.unsigned):
            return kept(old, new)
        return rewrite(within("{column}", low, high, kind))
    return rewrite(within("CAST({column} AS DOUBLE)", low, high, kind))


def _to_float(old: Column, new: Column) -> Conversion:
    negative = not old.unsigned and new.unsigned and old.type not in ("bit", "year")
    if new.type == "double" or old.type == "float":
        return rewrite(_not_negative(f"CAST({{column}} AS {silver_type(new)})")) if negative else kept(old, new)
    value = within("CAST({column} AS DOUBLE)", f"-{MAX_FLOAT}", MAX_FLOAT, "FLOAT")
    return rewrite(_not_negative(value) if negative else value)


def _not_negative(value: str) -> str:
    return f"IF({{column}} < 0, 0, {value})"


def _to_bit(old: Column, new: Column) -> Conversion:
    most = (1 << new.length) - 1
    kind = silver_type(new)
    if old.type in ("bit", "year") or (old.type in INTEGER_BITS and old.unsigned):
        return kept(old, new) if integer_bounds(old)[1] <= most else rewrite(within("{column}", "0", str(most), kind))
    if old.type in INTEGER_BITS:
        # The bits of a negative number are kept; a value that is too long becomes all ones.
        negative = f"CAST({{column}} AS DECIMAL(20,0)) + {1 << 64}" if new.length == 64 else str(most)
        positive = f"IF({{column}} > {most}, {most}, {{column}})"
        return rewrite(f"CAST(IF({{column}} < 0, {negative}, {positive}) AS {kind})")
    return stop("the server's conversion of a DECIMAL or a floating-point number to BIT is not supported")


def _to_year(old: Column) -> Conversion:
    if old.type == "year":
        return SAME
    if not _is_whole(old):
        return stop("the server's conversion of a fraction to YEAR is not supported")
    value = (
        "CASE WHEN {column} BETWEEN 1901 AND 2155 THEN {column} WHEN {column} BETWEEN 1 AND 69 THEN {column} + 2000"
        " WHEN {column} BETWEEN 70 AND 99 THEN {column} + 1900 WHEN {column} IS NOT NULL THEN 0 END"
    )
    return rewrite(f"CAST({value} AS SMALLINT)")


def _to_text(old: Column, new: Column) -> Conversion:
    if new.type not in CHARACTERS:
        return stop(f"the server's conversion of numbers to {new.type.upper()} is not supported")
    if old.type in ("float", "double"):
        return stop(FLOAT_TEXT)
    if old.type == "bit":
        return stop("the bytes of a BIT become characters")
    if old.type == "year":
        return rewrite(cut("lpad(CAST({column} AS STRING), 4, '0')", new))
    return stop(ZEROFILL) if old.unsigned else rewrite(cut("CAST({column} AS STRING)", new))
