"""MySQL's character sets as decoders: bytes of a column to text.

Source: the server's strings/ctype-*.cc. `latin1` is cp1252 with its five holes as C1 controls. Sets that Python has no
codec for, or a different one, are in `single_byte` and `multi_byte`.
"""

import codecs
from collections.abc import Callable

from dmdelta.binlog.multi_byte import DECODERS
from dmdelta.binlog.single_byte import TABLES
from dmdelta.errors import UnsupportedEvent

Decoder = Callable[[bytes], str]
"""Raises UnicodeDecodeError for bytes that the character set has no character for."""

UTF8 = frozenset({"utf8", "utf8mb3", "utf8mb4"})
"""Character sets whose bytes are UTF-8 already."""

_PYTHON = {
    "utf8": "utf-8",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "ascii": "ascii",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "cp932": "cp932",
    "euckr": "cp949",
    "tis620": "tis_620",
    "koi8r": "koi8_r",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
}
_NOT_ASCII = frozenset({"ucs2", "utf16", "utf16le", "utf32", "swe7"})


def is_ascii_superset(charset: str) -> bool:
    """Bytes below 128 mean ASCII wherever they stand alone: pure ASCII bytes need no decoding."""
    return charset not in _NOT_ASCII


def decoder_of(charset: str) -> Decoder:
    """The decoder of one of MySQL's character sets.

    Raises:
        UnsupportedEvent: a name that no server has.
    """
    table = TABLES.get(charset)
    if table is not None:
        return lambda data: codecs.charmap_decode(data, "strict", table)[0]
    if charset in DECODERS:
        return DECODERS[charset]
    name = _PYTHON.get(charset)
    if name is None:
        raise UnsupportedEvent(f"character set {charset!r} is not known", hint="report it to the project")
    decode = codecs.getdecoder(name)
    return lambda data: decode(data)[0]
