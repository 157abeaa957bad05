"""MariaDB's compressed events: the part behind the headers is one zlib stream.

Format: sql/log_event.cc, `binlog_buf_uncompress`: a byte 1ccc0nnn (c: algorithm, 0 is zlib; n: bytes of the length),
the uncompressed length big endian, the stream.
"""

import zlib

from dmdelta.errors import CorruptBinlog


def decompress(data: bytes) -> bytes:
    """The uncompressed bytes.

    Raises:
        CorruptBinlog: unknown algorithm, a broken stream, or another length than told.
    """
    hint = "the event is damaged: fetch the file again"
    if not data or data[0] & 0xF0 != 0x80:
        raise CorruptBinlog("a compressed event has an unknown header", hint=hint)
    width = data[0] & 0x07
    length = int.from_bytes(data[1 : 1 + width], "big")
    try:
        plain = zlib.decompress(data[1 + width :], bufsize=max(length, 1))
    except zlib.error as damage:
        raise CorruptBinlog("a compressed event does not decompress", hint=hint) from damage
    if len(plain) != length:
        raise CorruptBinlog(f"a compressed event has {len(plain)} bytes instead of {length}", hint=hint)
    return plain
