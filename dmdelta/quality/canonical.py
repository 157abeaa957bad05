"""The canonical text of a row: SQL expressions for MySQL, MariaDB and Spark, so that equal texts mean equal rows.

Values with a fixed form (numbers, times, digests) are written without a prefix, free text is prefixed with its length
in bytes, NULL is `~`, and `|` separates values. No value can be mistaken for a separator.

Floats are compared as mantissa and exponent: their decimal texts differ between servers, Java and display widths. -0
equals 0. An invalid date is NULL, as in silver (docs/types.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dmdelta.ddl.types.silver_types import MAX_DECIMAL_DIGITS, silver_type
from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import Column
from dmdelta.model.spark_sql import quote
from dmdelta.model.type_names import BYTES, NAMED, TEXTS, WHOLE

HASH_DIGITS = 15
"""Hexadecimal digits of a row's MD5 that are summed: 60 bits."""
_NULL = "'~'"
_FLOATS = frozenset({"float", "double"})
_TIMES = frozenset({"date", "datetime", "timestamp"})
_MANTISSA = 4503599627370496
"""2^52: scales a mantissa in [1, 2) to an integer."""


@dataclass(frozen=True, slots=True)
class Sides:
    """One expression in the SQL of the source and of Spark."""

    source: str
    silver: str


def is_comparable(column: Column) -> bool:
    """Whether a column has a canonical text. JSON documents have none: servers and Spark write them differently."""
    return column.type not in ("json", "vector")


def canonical(columns: Sequence[Column], flavor: Flavor) -> Sides:
    """The canonical text of columns of a row, never NULL."""
    sides = [value_text(column, flavor) for column in columns]
    return Sides(
        f"CONCAT_WS('|', {', '.join(side.source for side in sides)})",
        f"concat_ws('|', {', '.join(side.silver for side in sides)})",
    )


def row_hash(text: Sides) -> Sides:
    """The hash of a row's text: an integer of 60 bits."""
    return Sides(
        f"CAST(CONV(LEFT(MD5({text.source}), {HASH_DIGITS}), 16, 10) AS UNSIGNED)",
        f"CAST(conv(left(md5({text.silver}), {HASH_DIGITS}), 16, 10) AS DECIMAL(20,0))",
    )


def bucket(text: Sides, buckets: int) -> Sides:
    """The number of a row's bucket, by the text of its key."""
    return Sides(f"CRC32({text.source}) % {buckets}", f"crc32({text.silver}) % {buckets}")


def value_text(column: Column, flavor: Flavor) -> Sides:
    """The canonical text of one column's value, never NULL."""
    source = silver = quote(column.name)  # both quote with backquotes, doubled inside
    if column.type in WHOLE:
        return _or_null(f"CAST({source} + 0 AS CHAR)", f"CAST({silver} AS STRING)")
    if column.type == "decimal":
        if column.precision > MAX_DECIMAL_DIGITS:
            return _or_null(f"CAST({source} AS CHAR)", silver)
        return _or_null(f"CAST({source} + 0 AS CHAR)", f"CAST({silver} AS STRING)")
    if column.type in _FLOATS:
        return _float(f"({source} * 1e0)", f"CAST({silver} AS DOUBLE)")
    if column.type in _TIMES:
        return _or_null(_date_time(source, column), f"CAST({silver} AS STRING)")
    if column.type == "time":
        return _or_null(f"CAST({source} AS CHAR)", silver)
    if column.type in ("char", "varchar", *NAMED):
        text = f"CONVERT({source} USING utf8mb4)"
        return _or_null(f"CONCAT(LENGTH({text}), ':', {text})", f"concat(octet_length({silver}), ':', {silver})")
    if column.type in TEXTS:
        return _or_null(f"MD5(CONVERT({source} USING utf8mb4))", f"md5({silver})")
    if column.type in BYTES:
        # MariaDB writes INET6 and UUID as text.
        fixed = column.type == "binary" and flavor == "mariadb"
        return _or_null(f"MD5({f'CAST({source} AS BINARY({column.length}))' if fixed else source})", f"md5({silver})")
    if column.type == "geometry":
        return _geometry(source, silver)
    raise AssertionError(f"{column.type} ({silver_type(column)}) has no canonical text")


def _or_null(source: str, silver: str) -> Sides:
    return Sides(f"IFNULL({source}, {_NULL})", f"coalesce({silver}, {_NULL})")


def _date_time(source: str, column: Column) -> str:
    """A date or a time without trailing zeros, as Spark writes it; NULL for an invalid date."""
    text = f"CAST({source} AS CHAR)"
    year, month, day = (f"CAST(SUBSTRING({text}, {at}, {size}) AS UNSIGNED)" for at, size in ((1, 4), (6, 2), (9, 2)))
    leap = f"({year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0))"
    last = (
        f"CASE {month} WHEN 2 THEN 28 + {leap} WHEN 4 THEN 30 WHEN 6 THEN 30 WHEN 9 THEN 30 WHEN 11 THEN 30 ELSE 31 END"
    )
    written = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))" if column.precision else text
    return f"IF({year} > 0 AND {month} > 0 AND {day} > 0 AND {day} <= {last}, {written}, NULL)"


def _float(source: str, silver: str) -> Sides:
    """Sign, mantissa as an integer, and exponent; powers of two and their products are exact on all sides."""

    def parts(value: str, whole: str, log2: str) -> str:
        # A logarithm may be off by one near a power of two; both sides detect that by the mantissa and correct it.
        power = f"GREATEST(LEAST(FLOOR({log2}(ABS({value}))), 1023), -1074)"
        scaled = f"(ABS({value}) / POW(2, {power}))"
        correction = f"CASE WHEN {scaled} >= 2 THEN 1 WHEN {scaled} < 1 THEN -1 ELSE 0 END"
        mantissa = f"CAST({scaled} / POW(2, {correction}) * {_MANTISSA} AS {whole})"
        exponent = f"CAST({power} + {correction} AS {whole})"
        return f"CASE WHEN {value} = 0 THEN '0' ELSE CONCAT(IF({value} < 0, '-', ''), {mantissa}, 'p', {exponent}) END"

    return _or_null(
        f"IF({source} IS NULL, NULL, {parts(source, 'SIGNED', 'LOG2')})",
        f"IF({silver} IS NULL, NULL, {parts(silver, 'BIGINT', 'log2')})",
    )


def _geometry(source: str, silver: str) -> Sides:
    """The SRID, four bytes in little-endian order at the source, and a digest of the shape."""
    hexadecimal = f"lpad(hex({silver}.srid), 8, '0')"
    srid = f"concat({', '.join(f'substr({hexadecimal}, {at}, 2)' for at in (7, 5, 3, 1))})"
    return _or_null(
        f"CONCAT(LEFT(HEX({source}), 8), MD5(SUBSTRING({source}, 5)))", f"concat({srid}, md5({silver}.wkb))"
    )
