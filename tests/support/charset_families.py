"""Type matrix families for every character set that a server ships, with every character that it maps.

One- and two-byte sets are written completely, a row per leading byte; three- and four-byte and Unicode sets by samples.
The server determines which codes it maps to Unicode.
"""

from tests.support.servers import Server
from tests.support.type_families import Family

_UNICODE = {
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "utf8": "utf-8",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "gb18030": "gb18030",
}
_BEYOND = {"utf16", "utf16le", "utf32", "utf8mb4", "gb18030"}
_SAMPLES = (
    "",
    "a",
    "Zoë",
    "数据库 ἄλφα",
    "žluťoučký кириллица",
    "\u0000\u007f\u0080\u07ff\u0800\uffee",
    "ends  ",
    "한국어 日本語",
)
_ASTRAL = ("😀 𝄞 𠀀", "\U0010ffff\U00010000")
_NIBBLE = 16


_EVERYWHERE = [
    "armscii8",
    "ascii",
    "big5",
    "cp1250",
    "cp1251",
    "cp1256",
    "cp1257",
    "cp850",
    "cp852",
    "cp866",
    "cp932",
    "dec8",
    "eucjpms",
    "euckr",
    "gb2312",
    "gbk",
    "geostd8",
    "greek",
    "hebrew",
    "hp8",
    "keybcs2",
    "koi8r",
    "koi8u",
    "latin1",
    "latin2",
    "latin5",
    "latin7",
    "macce",
    "macroman",
    "sjis",
    "swe7",
    "tis620",
    "ucs2",
    "ujis",
    "utf16",
    "utf16le",
    "utf32",
    "utf8mb4",
]
CHARSETS = {
    "mysql80": [*_EVERYWHERE, "gb18030", "utf8mb3"],
    "mysql97": [*_EVERYWHERE, "gb18030", "utf8mb3"],
    "mysql57": [*_EVERYWHERE, "gb18030", "utf8"],
    "mariadb": [*_EVERYWHERE, "utf8mb3"],
}
"""Every character set of a server, for naming the tests before it runs."""


def charset_families(server: Server) -> list[Family]:
    """A family for each character set of the server, with a VARCHAR, a CHAR and a TEXT column."""
    found = server.query(
        "SELECT CHARACTER_SET_NAME, MAXLEN FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME <> 'binary' ORDER BY 1"
    )
    with server.connect(init_command="SET SESSION sql_log_bin = 0") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS charset_codes")
        cursor.execute("USE charset_codes")
        cursor.execute("DROP TABLE IF EXISTS codes")
        cursor.execute("CREATE TABLE codes (n INT PRIMARY KEY)")
        cursor.executemany("INSERT INTO codes VALUES (%s)", [(number,) for number in range(65536)])
        assert {name for name, _ in found} == set(CHARSETS[server.name]), (
            "the server ships other character sets than listed"
        )
        return [family for name, width in found for family in _families(cursor, str(name), int(width))]


def _families(cursor, charset: str, width: int) -> list[Family]:
    if charset in _UNICODE:
        samples = (*_SAMPLES, *_ASTRAL) if charset in _BEYOND else _SAMPLES
        texts = [text.encode(_UNICODE[charset]) for text in samples]
    else:
        texts = _single_bytes(cursor, charset, width)
        if width > 1:
            texts += _double_bytes(cursor, charset)
        if charset in {"ujis", "eucjpms"}:
            texts += _double_bytes(cursor, charset, prefix="8F")
    values = [f"_{charset} 0x{text.hex()}" if text else "''" for text in texts]
    return [
        Family(f"charset_{charset}", table, {name: (f"{kind} CHARACTER SET {charset}", values)})
        for table, name, kind in (
            ("charsets", "v", "VARCHAR(250)"),
            ("charsets_char", "c", "CHAR(250)"),
            ("charsets_text", "t", "TEXT"),
        )
    ]


def _single_bytes(cursor, charset: str, width: int) -> list[bytes]:
    codes = _mapped(cursor, charset, "LPAD(HEX(n), 2, '0')", 256)
    if width > 1:
        # Above ASCII only half-width katakana are single bytes; the EUC sets accept lead bytes by accident.
        codes = [code for code in codes if code < 0x80 or (charset in {"sjis", "cp932"} and 0xA1 <= code <= 0xDF)]
    rows = [bytes(code for code in codes if code // _NIBBLE == row) for row in range(_NIBBLE)]
    return [b"", *filter(None, rows)]


def _double_bytes(cursor, charset: str, prefix: str = "") -> list[bytes]:
    codes = _mapped(cursor, charset, f"CONCAT('{prefix}', LPAD(HEX(n), 4, '0'))", 65536, at_least=0x8000)
    leads = sorted({code >> 8 for code in codes})
    start = bytes.fromhex(prefix)
    return [b"".join(start + code.to_bytes(2, "big") for code in codes if code >> 8 == lead) for lead in leads]


def _mapped(cursor, charset: str, code: str, end: int, at_least: int = 0) -> list[int]:
    """The codes that are one character of the set and have a Unicode character (an unmapped one reads as `?`)."""
    text = f"CONVERT(CAST(UNHEX({code}) AS BINARY) USING {charset})"
    cursor.execute(
        f"SELECT n FROM codes WHERE n >= {at_least} AND n < {end} AND CHAR_LENGTH({text}) = 1 AND HEX({text}) = {code}"
        f" AND (HEX(CONVERT({text} USING utf8mb4)) NOT IN ('3F', 'EFBFBD') OR n = 63) ORDER BY n"
    )
    return [int(number) for (number,) in cursor.fetchall()]
