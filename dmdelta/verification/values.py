"""Compares a value that mysql-replication reads with the value in bronze: same, different, or not covered.

Each reason for `not covered` is a limit of mysql-replication 1.0.17 that was observed with real servers.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from dmdelta.model.schema import Column
from dmdelta.verification.events import LoggedColumn

ABSENT = object()
"""The image in bronze has no such field."""
DIFFERENT = "different"
Verdict = str | None
"""None: the same; `DIFFERENT`; any other text is the reason why the value is not covered."""
Comparison = Callable[[Any, Any], Verdict]
"""(value of the log, value in bronze, neither of them NULL) → verdict."""

NO_DATE = "date that Python cannot represent"
NO_TIMESTAMP = "TIMESTAMP of 0 or after 2038"
NEGATIVE_TIME = "negative TIME with a fraction"
OLD_TIME = "negative TIME of a format before MySQL 5.6"
JSON_NULL = "SQL NULL and JSON null, which it does not distinguish"
JSON_OTHER = "JSON with a value of an SQL type other than DECIMAL"
PARTIAL_JSON = "partial JSON"
NO_MEMBERS = "ENUM or SET without names in the log"
UNREAD_ENUM = "ENUM or SET with non-ASCII names, in a character set other than UTF-8"

_TINY, _SHORT, _LONG, _FLOAT, _DOUBLE, _OLD_TIMESTAMP, _LONGLONG, _INT24 = 1, 2, 3, 4, 5, 7, 8, 9
_DATE, _OLD_TIME, _OLD_DATETIME, _YEAR, _VARCHAR, _BIT, _TIMESTAMP, _DATETIME, _TIME = (
    10,
    11,
    12,
    13,
    15,
    16,
    17,
    18,
    19,
)
_JSON, _DECIMAL, _ENUM, _SET, _BLOB, _STRING, _GEOMETRY = 245, 246, 247, 248, 252, 254, 255
_BITS = {_TINY: 8, _SHORT: 16, _INT24: 24, _LONG: 32, _LONGLONG: 64}
_TEXT = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d+))?")

_UTF8 = frozenset({"utf8", "utf8mb3", "utf8mb4", "ascii"})
_CODECS = {
    **dict.fromkeys(("utf8", "utf8mb3", "utf8mb4"), "utf-8"),
    "ascii": "ascii",
    "latin1": "cp1252",
    "cp1252": "cp1252",
    "latin2": "latin2",
    "latin5": "latin5",
    "greek": "greek",
    "hebrew": "hebrew",
    "koi8r": "koi8_r",
    "koi8_r": "koi8_r",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
}
"""MySQL's and mysql-replication's names of character sets that Python decodes like MySQL → Python's codecs."""


def comparison_of(column: LoggedColumn, described: Column | None) -> Comparison:
    """How the values of a column are compared.

    Args:
        described: the column in bronze's schema, for logs without column names; None: unknown.
    """
    if column.kind in _BITS:
        return _integer if column.named else _unsigned_unknown(_BITS[column.kind])
    if column.kind in (_VARCHAR, _BLOB, _STRING):
        charset = column.encoding if column.named else described.charset if described is not None else None
        return _bytes_as(charset, padded=column.kind == _STRING)
    if column.kind in (_ENUM, _SET):
        return _members(column)
    if column.kind == _TIME:
        return _time_with_fraction if column.fraction else _time
    return _BY_KIND.get(column.kind, lambda _logged, _found: f"column type {column.kind}")


def null_verdict(column: LoggedColumn, why: str, found: Any) -> Verdict:
    """The verdict on a value that is None in the log.

    Args:
        why: mysql-replication's reason (`NONE_SOURCE`).
    """
    if why.startswith("out of date"):
        return NO_DATE if isinstance(found, str) else DIFFERENT
    if why == "empty set" and column.kind == _SET:
        if column.members is None:
            return NO_MEMBERS
        return None if found == "" else DIFFERENT
    if column.kind == _ENUM and column.members is None:
        return NO_MEMBERS  # whether it was NULL or not
    if column.kind == _JSON and why == "same with before values":
        return PARTIAL_JSON
    if column.kind == _JSON:
        # The reason is not reliable: for a JSON null, it is that of the previous value.
        return JSON_NULL if found is None or found is ABSENT else DIFFERENT
    return None if found is None else DIFFERENT


def _verdict(*, same: bool) -> Verdict:
    return None if same else DIFFERENT


def _is_number(found: Any) -> bool:
    return isinstance(found, (int, float, Decimal)) and not isinstance(found, bool)


def _integer(logged: Any, found: Any) -> Verdict:
    return _verdict(same=_is_number(found) and found == logged)


def _unsigned_unknown(bits: int) -> Comparison:
    """For logs without signedness: the bits of the value must be the same."""

    def compare(logged: Any, found: Any) -> Verdict:
        return _verdict(same=_is_number(found) and (found - logged) % (1 << bits) == 0)

    return compare


def _decimal(logged: Any, found: Any) -> Verdict:
    if isinstance(found, str):  # more digits than VARIANT supports
        return _verdict(same=re.fullmatch(r"-?\d+(\.\d+)?", found) is not None and Decimal(found) == logged)
    return _integer(logged, found)


def _bit(logged: Any, found: Any) -> Verdict:
    return _integer(int(logged, 2), found)


def _year(logged: Any, found: Any) -> Verdict:
    return _integer(0 if logged == 1900 else logged, found)  # the byte 0 is the year 0, and no YEAR is 1900


def _bytes_as(charset: str | None, *, padded: bool) -> Comparison:
    """Bytes that bronze stores unchanged, or as text of a character set.

    Args:
        padded: the column has a fixed length: the log omits trailing zeros of its bytes, which bronze has.
    """
    codec = _CODECS.get(charset or "")
    is_text = charset not in (None, "binary")

    def shortened(data: bytes) -> bytes:
        return data.rstrip(b"\0") if padded else data

    def compare(logged: Any, found: Any) -> Verdict:
        logged = logged or b""  # it returns an empty text for empty bytes
        if not is_text or not isinstance(found, str):
            return _verdict(same=not is_text and isinstance(found, bytes) and shortened(found) == shortened(logged))
        if codec is None:
            return f"text in the character set {charset}"
        try:
            return _verdict(same=logged.decode(codec) == found)
        except UnicodeDecodeError:
            return f"text in the character set {charset} that Python does not decode"

    return compare


def _members(column: LoggedColumn) -> Comparison:
    members = column.members
    if members is None:
        return lambda _logged, _found: NO_MEMBERS
    plain = all(name.isascii() for name in members) and (column.encoding or "") in _CODECS
    # It replaces names that it cannot decode by empty ones.
    whole = all(name or (column.kind == _ENUM and number == 0) for number, name in enumerate(members))
    if not whole or not (plain or column.encoding in _UTF8):
        return lambda _logged, _found: UNREAD_ENUM
    if column.kind == _ENUM:
        return lambda logged, found: _verdict(same=found == logged)
    return lambda logged, found: _verdict(same=isinstance(found, str) and set(found.split(",")) == logged)


def _date(logged: Any, found: Any) -> Verdict:
    return _verdict(same=isinstance(found, date) and not isinstance(found, datetime) and found == logged)


def _datetime(logged: Any, found: Any) -> Verdict:
    return _verdict(same=isinstance(found, datetime) and found.tzinfo is None and found == logged)


def _timestamp(logged: Any, found: Any) -> Verdict:
    if logged <= datetime(1970, 1, 1):  # noqa: DTZ001 - mysql-replication returns UTC without a zone
        return NO_TIMESTAMP
    return _verdict(same=isinstance(found, datetime) and found.astimezone(timezone.utc).replace(tzinfo=None) == logged)


def _time(logged: Any, found: Any) -> Verdict:
    read = _TEXT.fullmatch(found) if isinstance(found, str) else None
    if read is None:
        return DIFFERENT
    sign, hours, minutes, seconds, fraction = read.groups()
    micros = int((fraction or "").ljust(6, "0"))
    value = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds), microseconds=micros)
    return _verdict(same=(-value if sign else value) == logged)


def _time_with_fraction(logged: Any, found: Any) -> Verdict:
    if logged < timedelta(0):
        return NEGATIVE_TIME if isinstance(found, str) and found.startswith("-") else DIFFERENT
    return _time(logged, found)


def _old_time(logged: Any, found: Any) -> Verdict:
    return OLD_TIME if isinstance(found, str) and found.startswith("-") else _time(logged, found)


def _geometry(logged: Any, found: Any) -> Verdict:
    if not isinstance(found, dict) or not isinstance(logged, bytes):
        return DIFFERENT
    return _verdict(same=int.from_bytes(logged[:4], "little") == found.get("srid") and logged[4:] == found.get("wkb"))


def _json(logged: Any, found: Any) -> Verdict:
    if isinstance(logged, Mapping):
        if not isinstance(found, dict) or {key.decode() for key in logged} != found.keys():
            return DIFFERENT
        return _worst(_json(value, found[key.decode()]) for key, value in logged.items())
    if isinstance(logged, list):
        if not isinstance(found, list) or len(found) != len(logged):
            return DIFFERENT
        return _worst(_json(one, other) for one, other in zip(logged, found, strict=True))
    if isinstance(logged, bytes):
        return _verdict(same=found == logged.decode())
    if logged is None or isinstance(logged, bool):
        return _verdict(same=found is logged)
    if isinstance(logged, (int, float, Decimal)):
        return _verdict(same=_is_number(found) and found == logged)
    # JSON strings are bytes; it converts opaque values to text, and dates lose their SQL type.
    if isinstance(logged, (str, date, datetime, timedelta)) or type(logged).__name__ == "time":
        return JSON_OTHER
    return PARTIAL_JSON


def _worst(verdicts: Any) -> Verdict:
    found = {verdict for verdict in verdicts if verdict is not None}
    return DIFFERENT if DIFFERENT in found else min(found, default=None)


_BY_KIND: dict[int, Comparison] = {
    _FLOAT: _integer,
    _DOUBLE: _integer,
    _DECIMAL: _decimal,
    _BIT: _bit,
    _YEAR: _year,
    _DATE: _date,
    _DATETIME: _datetime,
    _OLD_DATETIME: _datetime,
    _TIMESTAMP: _timestamp,
    _OLD_TIMESTAMP: _timestamp,
    _OLD_TIME: _old_time,
    _GEOMETRY: _geometry,
    _JSON: _json,
}
