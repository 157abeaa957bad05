"""Collation IDs and character sets."""

# ruff: noqa: RUF001 - these characters are under test

import codecs

import pytest
from pymysql import charset as charsets
from pymysql.charset import charset_by_id

from dmdelta.binlog.values.charsets import decoder_of, is_ascii_superset
from dmdelta.binlog.values.collation_names import collation_name, plain_name
from dmdelta.binlog.values.collations import charset_of
from dmdelta.binlog.values.multi_byte import DECODERS
from dmdelta.binlog.values.single_byte import TABLES
from dmdelta.errors import UnsupportedEvent
from tests.support.charset_families import CHARSETS


@pytest.mark.parametrize(
    ("collation", "charset"),
    [
        (8, "latin1"),
        (33, "utf8mb3"),
        (45, "utf8mb4"),
        (63, "binary"),
        (255, "utf8mb4"),
        (309, "utf8mb4"),
        (28, "gbk"),
        (1032, "latin1"),
        (1069, "utf8mb4"),
        (2048, "utf8mb3"),
        (2304, "utf8mb4"),
        (2560, "ucs2"),
        (2816, "utf16"),
        (3271, "utf32"),
        (576, "utf8mb3"),
        (1270, "utf8mb4"),
    ],
)
def test_ids_of_both_flavors(collation: int, charset: str) -> None:
    """MySQL's IDs, MariaDB's NOPAD and UCA 14 IDs."""
    assert charset_of(collation) == charset


def test_ids_are_those_of_pymysql() -> None:
    """PyMySQL's list, which was made from a server, has most IDs below 256."""
    known = {number: charset_by_id(number).name for number in range(256) if number in charsets._charsets._by_id}
    assert len(known) > 140
    assert {number: charset_of(number) for number in known} == {
        number: "utf8mb3" if name == "utf8" else name for number, name in known.items()
    }


@pytest.mark.parametrize(
    ("first", "last", "charset"),
    [
        (54, 55, "utf16"),
        (60, 61, "utf32"),
        (101, 124, "utf16"),
        (128, 151, "ucs2"),
        (160, 183, "utf32"),
        (255, 323, "utf8mb4"),
        (576, 607, "utf8mb3"),
        (608, 639, "utf8mb4"),
        (640, 671, "ucs2"),
        (672, 703, "utf16"),
        (736, 767, "utf32"),
        (1025, 1025, "big5"),
        (1274, 1274, "gb18030"),
        (2048, 2303, "utf8mb3"),
        (2304, 2559, "utf8mb4"),
        (2560, 2815, "ucs2"),
        (2816, 3071, "utf16"),
        (3072, 3327, "utf32"),
    ],
)
def test_blocks_of_ids(first: int, last: int, charset: str) -> None:
    """The first and the last ID of the blocks that MySQL and MariaDB reserve for a character set."""
    assert charset_of(first) == charset_of(last) == charset


@pytest.mark.parametrize("collation", [0, 17, 100, 125, 127, 152, 184, 191, 324, 575, 704, 735, 768, 1024, 1280, 3328])
def test_ids_beside_the_blocks_are_unknown(collation: int) -> None:
    """Guessing a character set would change texts."""
    with pytest.raises(UnsupportedEvent, match=f"collation {collation} is unknown"):
        charset_of(collation)


def test_an_unknown_id_is_refused() -> None:
    """The error contains the ID."""
    with pytest.raises(UnsupportedEvent, match="9999"):
        charset_of(9999)


@pytest.mark.parametrize("charset", sorted(set().union(*CHARSETS.values())))
def test_every_character_set_decodes_ascii(charset: str) -> None:
    """Every set has `A` and `1`; if ASCII bytes are copied, they are ASCII."""
    raw = "A1 ".encode({"ucs2": "utf-16-be", "utf16": "utf-16-be"}.get(charset, "ascii"))
    if charset in ("utf16le", "utf32"):
        raw = codecs.encode("A1 ", {"utf16le": "utf-16-le", "utf32": "utf-32-be"}[charset])
    assert decoder_of(charset)(raw) == "A1 "
    if is_ascii_superset(charset):
        everything = bytes(range(128))
        assert decoder_of(charset)(everything) == everything.decode("ascii")


@pytest.mark.parametrize(
    ("charset", "raw", "text"),
    [
        ("latin1", b"\x80\x81\x9f\xe9", "€\x81Ÿé"),
        ("greek", b"\xa1\xe1", "ʽα"),
        ("swe7", b"[\\]~", "ÄÖÅü"),
        ("keybcs2", b"\x80\xad", "Č¡"),
        ("geostd8", b"\xc0\x80", "ა€"),
        ("armscii8", b"\xb2\xb3", "Աա"),
        ("hp8", b"\xa1\xe0", "ÀÁ"),
        ("dec8", b"\xd7\xa8", "Œ¤"),
        ("cp866", b"\xfc", "ⁿ"),
        ("koi8u", b"\x95", "•"),
        ("hebrew", b"\xaf\xe0", "‾א"),
        ("sjis", b"\x81\x5f\x83\x41\xb1", "\\アｱ"),
        ("ujis", b"\xa1\xc0\xa5\xa2\x8e\xb1\xf5\xa1", "\\アｱ\ue000"),
        ("eucjpms", b"\xad\xa1\x8f\xf3\xf3\xa1\xc1\x8f\xf5\xa1", "①ⅰ～\ue3ac"),
        ("big5", b"\xf9\xd6\xa4\xa4", "碁中"),
        ("gb18030", b"\x81\x30\x81\x30", "\x80"),
        ("utf16", b"\xd8\x3d\xde\x00", "😀"),
        ("macroman", b"\x80", "Ä"),
    ],
)
def test_characters_match_the_server(charset: str, raw: bytes, text: str) -> None:
    """Where Python's own codec differs, the server's mapping is used."""
    assert decoder_of(charset)(raw) == text


@pytest.mark.parametrize(
    ("charset", "raw"), [("utf8mb4", b"\xff"), ("gbk", b"\xff"), ("eucjpms", b"\x8f"), ("dec8", b"\xa4")]
)
def test_bytes_without_a_character_are_errors(charset: str, raw: bytes) -> None:
    """Nothing is replaced by a question mark."""
    with pytest.raises(UnicodeError):
        decoder_of(charset)(raw)


def test_an_unknown_character_set_is_refused() -> None:
    """An unknown name is an error."""
    with pytest.raises(UnsupportedEvent, match="klingon"):
        decoder_of("klingon")


@pytest.mark.parametrize(
    ("collation", "name"),
    [
        (8, "latin1_swedish_ci"),
        (45, "utf8mb4_general_ci"),
        (63, "binary"),
        (83, "utf8mb3_bin"),
        (224, "utf8mb4_unicode_ci"),
        (246, "utf8mb4_unicode_520_ci"),
        (255, "utf8mb4_0900_ai_ci"),
        (309, "utf8mb4_0900_bin"),
        (1069, "utf8mb4_general_nopad_ci"),
        (1070, "utf8mb4_nopad_bin"),
        (2304, "utf8mb4_uca1400_ai_ci"),
        (2316, "utf8mb4_uca1400_icelandic_nopad_ai_ci"),
        (9999, None),
    ],
)
def test_names_of_both_flavors(collation: int, name: str | None) -> None:
    """Every ID of the test servers has the server's own name."""
    assert collation_name(collation) == name


def test_collation_names_are_canonical() -> None:
    """`utf8` is `utf8mb3`, as in newer servers."""
    assert plain_name("utf8_general_ci") == "utf8mb3_general_ci"
    assert plain_name("utf8mb4_bin") == "utf8mb4_bin"
    assert plain_name("utf8mb4_croatian_mysql561_ci") == "utf8mb4_croatian_ci"


@pytest.mark.parametrize("charset", sorted(TABLES))
def test_a_character_set_of_one_byte_has_a_character_for_each(charset: str) -> None:
    """Each byte of a text is one character, or is known to have none; digits are those of ASCII."""
    assert len(TABLES[charset]) == 256
    assert TABLES[charset][0x30:0x3A] == "0123456789"


@pytest.mark.parametrize(
    ("charset", "codec", "differing"),
    [("hp8", "hp-roman8", set()), ("cp866", "cp866", {0xFC, 0xFD}), ("koi8u", "koi8-u", {0x95})],
)
def test_characters_equal_pythons(charset: str, codec: str, differing: set[int]) -> None:
    """Except for the bytes that MySQL decodes differently."""
    found = {
        byte for byte in range(256) if TABLES[charset][byte] not in ("\ufffe", bytes((byte,)).decode(codec, "replace"))
    }
    assert found == differing


@pytest.mark.parametrize(
    ("byte", "sign"), [(0x40, "É"), (0x5B, "Ä"), (0x5C, "Ö"), (0x5D, "Å"), (0x7B, "ä"), (0x7E, "ü"), (0x41, "A")]
)
def test_swedish_letters(byte: int, sign: str) -> None:
    """swe7 has letters in place of ASCII's signs, and nothing above 0x7E."""
    assert TABLES["swe7"][byte] == sign
    assert set(TABLES["swe7"][0x7F:]) == {"\ufffe"}


@pytest.mark.parametrize("charset", ["ujis", "eucjpms"])
def test_kanji_equal_pythons(charset: str) -> None:
    """Rows 16 to 84 of JIS X 0208, which are the same in all its encodings."""
    codes = [bytes((row, column)) for row in range(0xB0, 0xF5) for column in range(0xA1, 0xFF)]
    known = {code: kanji for code in codes if len(kanji := code.decode("euc_jp", "ignore")) == 1}
    assert len(known) == 6355
    assert {code: DECODERS[charset](code) for code in known} == known


@pytest.mark.parametrize(
    ("code", "sign"),
    [(b"\xa1\xa1", "\u3000"), (b"\xa4\xa2", "あ"), (b"\xa5\xf6", "ヶ"), (b"\xa3\xc1", "Ａ"), (b"\x8e\xb1", "ｱ")],
)
def test_signs_of_eucjpms(code: bytes, sign: str) -> None:
    """Kana, full-width letters, and half-width kana in two bytes."""
    assert DECODERS["eucjpms"](b"x" + code + b"y") == f"x{sign}y"
