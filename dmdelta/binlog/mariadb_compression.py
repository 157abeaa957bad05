"""MariaDB's compressed events and compressed columns.

An event's part behind the headers is one zlib stream. Format: sql/log_event.cc, `binlog_buf_uncompress`: a byte
1ccc0nnn (c: algorithm, 0 is zlib; n: bytes of the length), the uncompressed length big endian, the stream.
"""

import zlib

from dmdelta.errors import CorruptBinlog

_HINT = "the event is damaged: fetch the file again"


def decompress(data: bytes) -> bytes:
    """The uncompressed bytes.

    Raises:
        CorruptBinlog: unknown algorithm, a broken stream, or another length than told.
    """
    if not data or data[0] & 0xF0 != 0x80:
        raise CorruptBinlog("a compressed event has an unknown header", hint=_HINT)
    width = data[0] & 0x07
    length = int.from_bytes(data[1 : 1 + width], "big")
    try:
        plain = zlib.decompress(data[1 + width :], bufsize=max(length, 1))
    except zlib.error as damage:
        raise CorruptBinlog("a compressed event does not decompress", hint=_HINT) from damage
    if len(plain) != length:
        raise CorruptBinlog(f"a compressed event has {len(plain)} bytes instead of {length}", hint=_HINT)
    return plain


def decompress_value(data: bytes) -> bytes:
    """A value of a COMPRESSED column as it was written.

    Format: sql/field_comp.cc: nothing for an empty value; 0 and the value as it is; or a byte 1000rnnn (r: raw deflate
    without a zlib header; n: bytes of the length), the length big endian, the stream.

    Raises:
        CorruptBinlog: unknown algorithm, a broken stream, or another length than told.
    """
    if not data or not data[0]:
        return data[1:]
    if data[0] & 0xF0 != 0x80:
        raise CorruptBinlog("a compressed value has an unknown header", hint=_HINT)
    width = data[0] & 0x07
    length = int.from_bytes(data[1 : 1 + width], "big")
    try:
        plain = zlib.decompress(data[1 + width :], -zlib.MAX_WBITS if data[0] & 0x08 else zlib.MAX_WBITS)
    except zlib.error as damage:
        raise CorruptBinlog("a compressed value does not decompress", hint=_HINT) from damage
    if len(plain) != length:
        raise CorruptBinlog(f"a compressed value has {len(plain)} bytes instead of {length}", hint=_HINT)
    return plain
