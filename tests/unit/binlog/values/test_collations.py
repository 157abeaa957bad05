"""Collation IDs and character sets."""

# ruff: noqa: RUF001 - the characters are the point

import codecs

import pytest

from dmdelta.binlog.values.charsets import decoder_of, is_ascii_superset
from dmdelta.binlog.values.collation_names import collation_name, plain_name
from dmdelta.binlog.values.collations import charset_of
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
