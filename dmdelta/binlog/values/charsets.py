"""MySQL's character sets as decoders: bytes of a column to text.

Source: the server's strings/ctype-*.cc. `latin1` is cp1252 with its five undefined codes as C1 controls. Sets for which
Python has no codec, or a different one, are in `single_byte` and `multi_byte`.
"""

import codecs
from collections.abc import Callable

from dmdelta.binlog.values.multi_byte import DECODERS
from dmdelta.binlog.values.single_byte import TABLES
from dmdelta.errors import UnsupportedEvent

Decoder = Callable[[bytes], str]
"""Raises UnicodeDecodeError for bytes that are not a character in the set."""

UTF8 = frozenset({"utf8", "utf8mb3", "utf8mb4"})
"""Character sets whose bytes are UTF-8."""

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
    """Whether bytes below 128 are ASCII if they are not part of a character: pure ASCII bytes need no decoding."""
    return charset not in _NOT_ASCII


def decoder_of(charset: str) -> Decoder:
    """The decoder of one of MySQL's character sets.

    Raises:
        UnsupportedEvent: an unknown character set.
    """
    table = TABLES.get(charset)
    if table is not None:
        return lambda data: codecs.charmap_decode(data, "strict", table)[0]
    if charset in DECODERS:
        return DECODERS[charset]
    name = _PYTHON.get(charset)
    if name is None:
        raise UnsupportedEvent(f"character set {charset!r} is unknown", hint="report this to the project")
    decode = codecs.getdecoder(name)
    return lambda data: decode(data)[0]
