"""Writes row images and their table maps, from the formats' descriptions: the inverse of the codec.

A `Family` is a column of one type with a strategy for its values: (bytes in the image, value in VARIANT).
"""

import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.support.changes import packed
from tests.support.jsonb_writer import write_jsonb

Value = tuple[bytes, Any]
_GROUP_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_UTF8MB4, _BINARY = 45, 63
_TEXT = st.characters(exclude_categories=("Cs",))


class Family(NamedTuple):
    """A column.

    Attributes:
        code, metadata: in the table map.
        values: those that are not NULL.
        unsigned: None if the type is not a number.
        collation: of a text; 0 for other types.
        members: of an enum or set.
        is_json: NULL omits the field.
    """

    code: int
    metadata: bytes
    values: st.SearchStrategy[Value]
    unsigned: bool | None = None
    collation: int = 0
    members: tuple[str, ...] = ()
    is_json: bool = False


def integer(code: int, size: int, *, unsigned: bool) -> Family:
    low, high = (0, 256**size - 1) if unsigned else (-(256**size // 2), 256**size // 2 - 1)
    edges = st.sampled_from((low, low + 1, high, high // 2 + 1, 0))
    raw = (edges | st.integers(low, high)).map(
        lambda number: (number.to_bytes(size, "little", signed=not unsigned), number)
    )
    return Family(code, b"", raw, unsigned)


def decimal(precision: int, scale: int) -> Family:
    most = 10**precision - 1
    numbers = st.integers(-most, most) | st.sampled_from((most, -most, 0, 1, -1))
    return Family(246, bytes((precision, scale)), numbers.map(lambda number: _decimal(number, precision, scale)), False)


def _decimal(number: int, precision: int, scale: int) -> Value:
    digits = f"{abs(number):0{precision}d}"
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    begun = len(whole) % 9
    groups = [whole[:begun], *(whole[at : at + 9] for at in range(begun, len(whole), 9))]
    groups += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    raw = b"".join(int(group).to_bytes(_GROUP_SIZES[len(group)], "big") for group in groups if group)
    if number < 0:
        raw = bytes(byte ^ 0xFF for byte in raw)
    raw = bytes((raw[0] ^ 0x80,)) + raw[1:]
    if precision <= 38:
        return raw, Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))
    shown = (whole.lstrip("0") or "0") + ("." + fraction if scale else "")
    return raw, "-" + shown if number < 0 else shown


def _fraction(micros: int, precision: int) -> tuple[int, bytes, str]:
    """The microseconds at this precision, their stored bytes, and their text."""
    size = (precision + 1) // 2
    micros -= micros % 10 ** (6 - precision)
    text = f".{micros:06d}"[: precision + 1] if precision else ""
    return micros, (micros // 10 ** (6 - 2 * size)).to_bytes(size, "big"), text


def moment(precision: int) -> Family:
    """DATETIME: any valid one, and MySQL's zero."""

    def value(at: datetime) -> Value:
        micros, raw, _ = _fraction(at.microsecond, precision)
        day = (at.year * 13 + at.month) << 5 | at.day
        whole = day << 17 | at.hour << 12 | at.minute << 6 | at.second
        return (whole + (1 << 39)).to_bytes(5, "big") + raw, at.replace(microsecond=micros)

    zero = (
        (1 << 39).to_bytes(5, "big") + bytes((precision + 1) // 2),
        "0000-00-00 00:00:00" + _fraction(0, precision)[2],
    )
    return Family(18, bytes((precision,)), st.datetimes().map(value) | st.just(zero))


def instant(precision: int) -> Family:
    """TIMESTAMP: 32-bit seconds."""

    def value(micros: int) -> Value:
        seconds, rest = divmod(micros, 1_000_000)
        rest, raw, _ = _fraction(rest, precision)
        at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds, microseconds=rest)
        return seconds.to_bytes(4, "big") + raw, at

    return Family(17, bytes((precision,)), st.integers(1_000_000, (2**32 - 1) * 1_000_000).map(value))


def duration(precision: int) -> Family:
    """TIME: up to 838 hours, of either sign; VARIANT has its text."""

    def value(found: tuple[int, int, bool]) -> Value:
        seconds, micros, negative = found
        micros, raw, text = _fraction(micros, precision)
        hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
        size = len(raw)
        stored = (hours << 12 | minutes << 6 | rest) << 8 * size | int.from_bytes(raw, "big")
        negative = negative and stored > 0
        stored = (0x800000 << 8 * size) + (-stored if negative else stored)
        shown = f"{'-' if negative else ''}{hours:02d}:{minutes:02d}:{rest:02d}{text}"
        return stored.to_bytes(3 + size, "big"), shown

    parts = st.tuples(st.integers(0, 838 * 3600 + 3599), st.integers(0, 999_999), st.booleans())
    return Family(19, bytes((precision,)), parts.map(value))


def _date(day: date) -> Value:
    return (day.year << 9 | day.month << 5 | day.day).to_bytes(3, "little"), day


def bits(count: int) -> Family:
    numbers = st.integers(0, 2**count - 1).map(lambda number: (number.to_bytes((count + 7) // 8, "big"), number))
    return Family(16, bytes((count % 8, count // 8)), numbers)


def enum(members: tuple[str, ...]) -> Family:
    size = 1 if len(members) < 256 else 2
    shown = ("", *members)
    found = st.integers(0, len(members)).map(lambda index: (index.to_bytes(size, "little"), shown[index]))
    return Family(254, bytes((247, size)), found, members=members)


def of_set(members: tuple[str, ...]) -> Family:
    size = next(size for size in (1, 2, 3, 4, 8) if len(members) <= 8 * size)
    found = st.integers(0, 2 ** len(members) - 1).map(
        lambda mask: (
            mask.to_bytes(size, "little"),
            ",".join(name for bit, name in enumerate(members) if mask >> bit & 1),
        )
    )
    return Family(254, bytes((248, size)), found, members=members)


def _sized(width: int, raw: bytes) -> bytes:
    return len(raw).to_bytes(width, "little") + raw


def text(collation: int, codec: str, *, long: bool = False, alphabet: st.SearchStrategy[str] = _TEXT) -> Family:
    """VARCHAR(1000 bytes), or LONGTEXT."""
    width = 4 if long else 2
    code, metadata = (252, b"\4") if long else (15, struct.pack("<H", 1000))
    values = st.text(alphabet, max_size=40).map(lambda found: (_sized(width, found.encode(codec)), found))
    return Family(code, metadata, values, collation=collation)


def binary(width: int) -> Family:
    """A BLOB with a length of this many bytes."""
    raw = st.binary(max_size=80).map(lambda found: (_sized(width, found), found))
    return Family(252, bytes((width,)), raw, collation=_BINARY)


def padded(size: int) -> Family:
    """BINARY(size): the log omits trailing NUL bytes."""
    raw = st.binary(max_size=size).map(lambda found: (_sized(1, found.rstrip(b"\0")), found.ljust(size, b"\0")))
    return Family(254, bytes((254, size)), raw, collation=_BINARY)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(_TEXT, max_size=150),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(_TEXT, max_size=8), inner, max_size=4),
    max_leaves=8,
)
_DOCUMENTS = st.tuples(_JSON, st.booleans()).map(
    lambda found: (_sized(4, write_jsonb(found[0], large=found[1])), found[0])
)


def _geometry(found: tuple[int, bytes]) -> Value:
    return _sized(4, struct.pack("<i", found[0]) + found[1]), {"srid": found[0], "wkb": found[1]}


def _float(code: str, size: int) -> st.SearchStrategy[Value]:
    return st.floats(width=8 * size, allow_nan=False).map(lambda number: (struct.pack(code, number), number))


_SHORT = tuple("abcdefghij")
_LATIN = st.characters(codec="latin-1", exclude_categories=("Cc",))
FAMILIES: tuple[Family, ...] = (
    *(
        integer(code, size, unsigned=unsigned)
        for code, size in ((1, 1), (2, 2), (9, 3), (3, 4), (8, 8))
        for unsigned in (False, True)
    ),
    *(decimal(*digits) for digits in ((1, 0), (5, 5), (9, 2), (10, 0), (18, 9), (19, 3), (38, 30), (39, 10), (65, 30))),
    Family(4, b"\4", _float("<f", 4), False),
    Family(5, b"\x08", _float("<d", 8), False),
    Family(13, b"", st.integers(1, 255).map(lambda year: (bytes((year,)), 1900 + year)) | st.just((b"\0", 0)), True),
    Family(10, b"", st.dates().map(_date) | st.just((bytes(3), "0000-00-00"))),
    *(make(precision) for make in (moment, instant, duration) for precision in range(7)),
    *map(bits, (1, 8, 12, 63, 64)),
    enum(_SHORT),
    enum(tuple(f"m{number}é" for number in range(300))),
    *(of_set(tuple(f"s{number}" for number in range(count))) for count in (3, 9, 20, 30, 64)),
    text(_UTF8MB4, "utf-8"),
    text(_UTF8MB4, "utf-8", long=True),
    text(8, "cp1252", alphabet=_LATIN),
    text(54, "utf-16-be"),
    text(60, "utf-32-be", long=True),
    text(28, "gbk", alphabet=st.sampled_from("aé中文字~\\")),
    text(51, "cp1251", alphabet=st.sampled_from("abЖя№")),
    *map(binary, (1, 2, 3, 4)),
    padded(9),
    Family(245, b"\4", _DOCUMENTS, is_json=True),
    Family(255, b"\4", st.tuples(st.integers(0, 2**31 - 1), st.binary(max_size=40)).map(_geometry)),
)


def _field(kind: int, value: bytes) -> bytes:
    return bytes((kind,)) + packed(len(value)) + value


def _strings(names: Sequence[str]) -> bytes:
    return b"".join(packed(len(name.encode())) + name.encode() for name in names)


def described(columns: Sequence[Family], names: Sequence[str]) -> bytes:
    """The optional metadata of a table map: signs, collations, names and members, as MySQL 8 writes them."""
    signs = [column.unsigned for column in columns if column.unsigned is not None]
    high = sum(0x80 >> at % 8 << 8 * (len(signs) // 8 - at // 8) for at, unsigned in enumerate(signs) if unsigned)
    collations = b"".join(packed(column.collation) for column in columns if column.collation)
    by_kind = {
        kind: [column.members for column in columns if column.members and column.metadata[0] == kind]
        for kind in (247, 248)
    }
    listed = {kind: b"".join(packed(len(one)) + _strings(one) for one in found) for kind, found in by_kind.items()}
    return (
        (_field(1, high.to_bytes(len(signs) // 8 + 1, "big")) if signs else b"")
        + (_field(3, collations) if collations else b"")
        + _field(4, _strings(names))
        + (_field(5, listed[248]) if by_kind[248] else b"")
        + (_field(6, listed[247]) if by_kind[247] else b"")
        + (_field(10, packed(_UTF8MB4)) if any(by_kind.values()) else b"")
    )


def bitmap(flags: Sequence[bool]) -> bytes:
    """The lowest bit of the first byte is the first flag."""
    return sum(1 << at for at, flag in enumerate(flags) if flag).to_bytes((len(flags) + 7) // 8, "little")


def image(values: Sequence[Value | None]) -> bytes:
    """A row image of the columns that are present; None is NULL."""
    return bitmap([value is None for value in values]) + b"".join(value[0] for value in values if value is not None)
