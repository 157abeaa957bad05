"""Collation IDs and their character sets, for MySQL 5.7 to 9 and MariaDB.

Source: information_schema.COLLATIONS of MySQL 5.7.22, 8.0.31 and 9.7 and COLLATION_CHARACTER_SET_APPLICABILITY of
MariaDB 10.11; no ID has different character sets in two of them. MariaDB's NOPAD collations are ID + 1024, its UCA
14.0.0 collations occupy one block of 256 IDs per character set, starting at 2048.
"""

from dmdelta.errors import UnsupportedEvent

BINARY_COLLATION = 63
_NOPAD = 1024
_NOPAD_END = 1280
_IDS: dict[str, tuple[int | tuple[int, int], ...]] = {
    "big5": (1, 84),
    "latin2": (2, 9, 21, 27, 77),
    "dec8": (3, 69),
    "cp850": (4, 80),
    "latin1": (5, 8, 15, 31, (47, 49), 94),
    "hp8": (6, 72),
    "koi8r": (7, 74),
    "swe7": (10, 82),
    "ascii": (11, 65),
    "ujis": (12, 91),
    "sjis": (13, 88),
    "cp1251": (14, 23, (50, 52)),
    "hebrew": (16, 71),
    "tis620": (18, 89),
    "euckr": (19, 85),
    "latin7": (20, (41, 42), 79),
    "koi8u": (22, 75),
    "gb2312": (24, 86),
    "greek": (25, 70),
    "cp1250": (26, 34, 44, 66, 99),
    "gbk": (28, 87),
    "cp1257": (29, (58, 59)),
    "latin5": (30, 78),
    "armscii8": (32, 64),
    "utf8mb3": (33, 76, 83, (192, 215), 223, (576, 607), (2048, 2303)),
    "ucs2": (35, 90, (128, 151), 159, (640, 671), (2560, 2815)),
    "cp866": (36, 68),
    "keybcs2": (37, 73),
    "macce": (38, 43),
    "macroman": (39, 53),
    "cp852": (40, 81),
    "utf8mb4": ((45, 46), (224, 247), (255, 323), (608, 639), (2304, 2559)),
    "utf16": ((54, 55), (101, 124), (672, 703), (2816, 3071)),
    "utf16le": (56, 62),
    "cp1256": (57, 67),
    "utf32": ((60, 61), (160, 183), (736, 767), (3072, 3327)),
    "binary": (BINARY_COLLATION,),
    "geostd8": (92, 93),
    "cp932": (95, 96),
    "eucjpms": (97, 98),
    "gb18030": ((248, 250),),
}


_CHARSETS = {
    collation: charset
    for charset, ids in _IDS.items()
    for entry in ids
    for collation in ((entry,) if isinstance(entry, int) else range(entry[0], entry[1] + 1))
}


def charset_of(collation: int) -> str:
    """MySQL's name of the character set of a collation ID.

    Raises:
        UnsupportedEvent: an unknown ID.
    """
    charset = _CHARSETS.get(collation)
    if charset is None and collation < _NOPAD_END:
        charset = _CHARSETS.get(collation - _NOPAD)
    if charset is None:
        raise UnsupportedEvent(f"collation {collation} is unknown", hint="report this to the project")
    return charset
