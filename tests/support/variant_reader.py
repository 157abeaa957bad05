"""The tests' own VARIANT reader, written from the Parquet VARIANT specification: an independent check of the encoder.

Strict: wrong widths, ids out of order and trailing bytes are errors.
"""

import struct
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LATEST = (datetime.max.replace(tzinfo=_EPOCH.tzinfo) - _EPOCH) // timedelta(microseconds=1)


class NoVariantError(Exception):
    """The bytes are not a valid VARIANT."""


def read_keys(metadata: bytes) -> list[str]:
    """The dictionary of a metadata value."""
    version, width = metadata[0] & 0x0F, (metadata[0] >> 6) + 1
    if version != 1:
        raise NoVariantError(f"version {version}")
    count = _number(metadata, 1, width)
    offsets = [_number(metadata, 1 + width * (place + 1), width) for place in range(count + 1)]
    start = 1 + width * (count + 2)
    if start + offsets[-1] != len(metadata):
        raise NoVariantError("bytes are left over in the metadata")
    return [metadata[start + a : start + b].decode() for a, b in pairwise(offsets)]


def read_variant(value: bytes, metadata: bytes) -> Any:
    """The Python value; decimals as Decimal, instants as aware datetimes, times without zone as naive ones."""
    found, end = _read(value, 0, read_keys(metadata))
    if end != len(value):
        raise NoVariantError(f"{len(value) - end} bytes are left over")
    return found


def _number(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise NoVariantError("cut short")
    return int.from_bytes(data[at : at + width], "little")


def _read(data: bytes, at: int, keys: list[str]) -> tuple[Any, int]:
    basic, info = data[at] & 3, data[at] >> 2
    if basic == 0:
        return _primitive(data, at + 1, info)
    if basic == 1:
        return data[at + 1 : at + 1 + info].decode(), at + 1 + info
    return _object(data, at + 1, info, keys) if basic == 2 else _array(data, at + 1, info, keys)


def _primitive(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (0, 1, 2):
        return (None, True, False)[kind], at
    fixed = {3: "<b", 4: "<h", 5: "<i", 6: "<q", 7: "<d", 14: "<f", 11: "<i", 12: "<q", 13: "<q"}
    if kind in fixed:
        number = struct.unpack_from(fixed[kind], data, at)[0]
        at += struct.calcsize(fixed[kind])
        if kind == 11:
            return date(1970, 1, 1) + timedelta(days=number), at
        if kind in (12, 13):
            if number > _LATEST:  # a damaged year, up to 10081: Spark's timestamps exceed Python's
                return number, at
            moment = _EPOCH + timedelta(microseconds=number)
            return (moment if kind == 12 else moment.replace(tzinfo=None)), at
        return number, at
    if kind in (8, 9, 10):
        size = {8: 4, 9: 8, 10: 16}[kind]
        unscaled = int.from_bytes(data[at + 1 : at + 1 + size], "little", signed=True)
        return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -data[at])), at + 1 + size
    if kind in (15, 16):
        size = _number(data, at, 4)
        raw = data[at + 4 : at + 4 + size]
        if len(raw) < size:
            raise NoVariantError("cut short")
        return (raw if kind == 15 else raw.decode()), at + 4 + size
    raise NoVariantError(f"primitive {kind}")


def _object(data: bytes, at: int, info: int, keys: list[str]) -> tuple[dict[str, Any], int]:
    offset_width, id_width, large = (info & 3) + 1, (info >> 2 & 3) + 1, info >> 4 & 1
    count = _number(data, at, 4 if large else 1)
    at += 4 if large else 1
    names = [keys[_number(data, at + place * id_width, id_width)] for place in range(count)]
    if names != sorted(set(names), key=str.encode):
        raise NoVariantError(f"names out of order: {names}")
    at += count * id_width
    offsets = [_number(data, at + place * offset_width, offset_width) for place in range(count + 1)]
    at += (count + 1) * offset_width
    found: dict[str, Any] = {}
    covered = 0
    for name, offset in zip(names, offsets, strict=False):
        found[name], end = _read(data, at + offset, keys)
        covered += end - at - offset
    if covered != offsets[-1]:
        raise NoVariantError(f"values cover {covered} of {offsets[-1]} bytes")
    return found, at + offsets[-1]


def _array(data: bytes, at: int, info: int, keys: list[str]) -> tuple[list[Any], int]:
    offset_width, large = (info & 3) + 1, info >> 2 & 1
    count = _number(data, at, 4 if large else 1)
    at += 4 if large else 1
    offsets = [_number(data, at + place * offset_width, offset_width) for place in range(count + 1)]
    at += (count + 1) * offset_width
    found = []
    for begin, end in pairwise(offsets):
        item, stop = _read(data, at + begin, keys)
        if stop != at + end:
            raise NoVariantError("an element does not fill its place")
        found.append(item)
    return found, at + offsets[-1]
