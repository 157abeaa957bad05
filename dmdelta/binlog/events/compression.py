"""MariaDB's compressed events and compressed columns.

The part of an event after its headers is one zlib stream. Format: sql/log_event.cc, `binlog_buf_uncompress`: a byte
1ccc0nnn (c: algorithm, 0 is zlib; n: bytes of the length), the uncompressed length big endian, the stream.
"""

import zlib

from dmdelta.errors import CorruptBinlog

_MOST = 1 << 31
"""Larger than any event or value."""
_HINT = "the event is damaged: fetch the file again"


def decompress(data: bytes) -> bytes:
    """The uncompressed bytes.

    Raises:
        CorruptBinlog: unknown algorithm, an invalid stream, or a length mismatch.
    """
    if not data or data[0] & 0xF0 != 0x80:
        raise CorruptBinlog("a compressed event has an unknown header", hint=_HINT)
    return _inflate(data, zlib.MAX_WBITS, "event")


def decompress_value(data: bytes) -> bytes:
    """The original value of a COMPRESSED column.

    Format: sql/field_comp.cc: nothing for an empty value; 0 and the unchanged value; or a byte 1000rnnn (r: raw deflate
    without a zlib header; n: bytes of the length), the length big endian, the stream.

    Raises:
        CorruptBinlog: unknown algorithm, an invalid stream, or a length mismatch.
    """
    if not data or not data[0]:
        return data[1:]
    if data[0] & 0xF0 != 0x80:
        raise CorruptBinlog("a compressed value has an unknown header", hint=_HINT)
    return _inflate(data, -zlib.MAX_WBITS if data[0] & 0x08 else zlib.MAX_WBITS, "value")


def _inflate(data: bytes, window: int, what: str) -> bytes:
    """The stream after a header of one byte and the length; `what` is for messages."""
    width = data[0] & 0x07
    length = int.from_bytes(data[1 : 1 + width], "big")
    inflating = zlib.decompressobj(window)
    try:
        # Not more than the stated length: a damaged stream of some kilobytes may expand to gigabytes.
        plain = inflating.decompress(data[1 + width :], min(length + 1, _MOST))
    except zlib.error as damage:
        raise CorruptBinlog(f"a compressed {what} cannot be decompressed", hint=_HINT) from damage
    if len(plain) != length or not inflating.eof:
        raise CorruptBinlog(f"a compressed {what} does not have its stated length of {length} bytes", hint=_HINT)
    return plain
