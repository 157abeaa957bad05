"""How dates and times change when their column gets another type."""

from decimal import Decimal

from dmdelta.ddl.types.outcome import SAME, Conversion, kept, rewrite, stop
from dmdelta.ddl.types.text_changes import cut
from dmdelta.model.schema import Column
from dmdelta.model.type_names import CHARACTERS

TIMES = ("date", "datetime", "timestamp", "time")

ZONE = "the result depends on the time zone of the statement's session"
ZERO_DATES = "dates that silver stores as NULL would become values"
_LAST = "9999-12-31 23:59:59"


def time_change(old: Column, new: Column, *, cuts: bool) -> Conversion:
    """How the values in `old`, a column of one of TIMES, change.

    Args:
        cuts: fractional seconds are truncated as in MariaDB, not rounded as in MySQL.
    """
    if new.type not in TIMES:
        if old.type == "time" and new.type in CHARACTERS:
            return rewrite(cut("{column}", new))
        return stop(ZONE if old.type == "timestamp" else ZERO_DATES)
    if old.type == new.type:
        if old.precision == new.precision:
            return SAME
        if old.type == "time":
            return rewrite(_time(old.precision, new.precision, cuts=cuts))
        if old.precision < new.precision:
            return SAME
        return rewrite(_cut(new.precision, "{column}") if cuts else _rounded(new.precision, old.type))
    if "timestamp" in (old.type, new.type):
        return stop(ZONE)
    if old.type == "time":
        return stop("the result depends on the date of the statement")
    if new.type == "time":
        return stop(ZERO_DATES)
    if old.type == "date":
        return kept(old, new)
    rounds = old.precision and not cuts
    return rewrite(f"CAST({_rounded(0, 'datetime') if rounds else '{column}'} AS DATE)")


def _cut(digits: int, value: str) -> str:
    """SQL: a timestamp with fewer fractional digits."""
    unit = f"CAST('{Decimal(1).scaleb(-digits):f}' AS DECIMAL(8,6))"
    return f"{value} - make_dt_interval(0, 0, 0, extract(SECOND FROM {value}) % {unit})"


def _rounded(digits: int, kind: str) -> str:
    """SQL: a timestamp with fewer fractional digits, rounded half up; beyond the last day it becomes a zero date."""
    half = f"INTERVAL '0.{'0' * digits}5' SECOND"
    value = _cut(digits, f"({{column}} + {half})")
    last = f"TIMESTAMP_NTZ'{_LAST}.{'9' * digits}5'"
    return f"CASE WHEN {{column}} < {last} THEN {value} END" if kind == "datetime" else value


def _time(before: int, after: int, *, cuts: bool) -> str:
    """SQL: the text of a TIME with another number of fractional digits, truncated or rounded half away from zero.

    Text without exactly the old number of digits stays: in safe mode it may have been changed before.
    """
    changed = _more_digits(before, after) if after > before else _fewer_digits(before, after, cuts=cuts)
    digits = f"%.{'_' * before}" if before else "%:__"
    return f"IF({{column}} LIKE '{digits}', {changed}, {{column}})"


def _more_digits(before: int, after: int) -> str:
    return f"concat({{column}}, '{'' if before else '.'}{'0' * (after - before)}')"


def _fewer_digits(before: int, after: int, *, cuts: bool) -> str:
    parts = "split(ltrim('-', {column}), '[:.]')"
    second = f"(({parts}[0] * 60L + {parts}[1]) * 60L + {parts}[2])"
    unit = 10 ** (before - after)
    units = f"({second} * {10**before}L + CAST({parts}[3] AS BIGINT) + {0 if cuts else unit // 2}L) DIV {unit}L"
    whole = f"(({units}) DIV {10**after}L)"
    hours = f"CAST({whole} DIV 3600 AS STRING)"
    text = (
        f"IF(length({hours}) < 2, '0', ''), {hours}, ':', lpad(CAST({whole} DIV 60 % 60 AS STRING), 2, '0'), ':', "
        f"lpad(CAST({whole} % 60 AS STRING), 2, '0')"
    )
    if after:
        text += f", '.', lpad(CAST(({units}) % {10**after}L AS STRING), {after}, '0')"
    sign = f"IF({{column}} LIKE '-%' AND ({units}) > 0, '-', '')"
    return f"concat({sign}, {text})"
