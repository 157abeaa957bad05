"""Writes MySQL's binary JSON, to test the reader: sql-common/json_binary.h, written from the format's description."""

import struct
from typing import Any

_LITERALS = {None: 0, True: 1, False: 2}


class Opaque(bytes):
    """An opaque value: type code, then its data."""


def write_jsonb(value: Any, *, large: bool = False) -> bytes:
    """A complete document; `large` writes containers with four-byte offsets."""
    kind, data = _value(value, large=large)
    return bytes((kind,)) + data


def _var_length(size: int) -> bytes:
    found = b""
    while size > 0x7F:
        found += bytes((size & 0x7F | 0x80,))
        size >>= 7
    return found + bytes((size,))


def _value(value: Any, *, large: bool) -> tuple[int, bytes]:
    if value is None or isinstance(value, bool):
        return 4, bytes((_LITERALS[value],))
    if isinstance(value, int):
        for kind, code in ((5, "<h"), (6, "<H"), (7, "<i"), (8, "<I"), (9, "<q"), (10, "<Q")):
            try:
                return kind, struct.pack(code, value)
            except struct.error:
                continue
    if isinstance(value, float):
        return 11, struct.pack("<d", value)
    if isinstance(value, Opaque):
        return 15, value[:1] + _var_length(len(value) - 1) + value[1:]
    if isinstance(value, str):
        return 12, _var_length(len(value.encode())) + value.encode()
    return _container(value, large=large)


def _container(value: Any, *, large: bool) -> tuple[int, bytes]:
    number = "<I" if large else "<H"
    width = 4 if large else 2
    names = (
        sorted((name.encode() for name in value), key=lambda name: (len(name), name)) if isinstance(value, dict) else []
    )
    items = [value[name.decode()] for name in names] if isinstance(value, dict) else list(value)
    at = 2 * width + len(names) * (width + 2) + len(items) * (width + 1)
    keys = b""
    for name in names:
        keys += struct.pack(number, at) + struct.pack("<H", len(name))
        at += len(name)
    entries, tail = b"", b""
    for item in items:
        kind, data = _value(item, large=large)
        if kind in (4, 5, 6) or (large and kind in (7, 8)):
            entries += bytes((kind,)) + data.ljust(width, b"\0")
        else:
            entries += bytes((kind,)) + struct.pack(number, at)
            tail += data
            at += len(data)
    body = struct.pack(number, len(items)) + struct.pack(number, at) + keys + entries + b"".join(names) + tail
    return (0 if isinstance(value, dict) else 2) + large, body
