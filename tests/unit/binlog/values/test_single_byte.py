"""Character sets of one byte compared with Python's codecs."""

# ruff: noqa: RUF001 - these characters are under test

import pytest

from dmdelta.binlog.values.single_byte import TABLES

UNDEFINED = "\ufffe"


@pytest.mark.parametrize(
    ("charset", "codec", "differing"),
    [
        ("latin1", "cp1252", {0x81: "\x81", 0x8D: "\x8d", 0x8F: "\x8f", 0x90: "\x90", 0x9D: "\x9d"}),
        ("cp866", "cp866", {0xFC: "ⁿ", 0xFD: "²"}),
        ("greek", "iso8859_7", {0xA1: "ʽ", 0xA2: "ʼ"}),
        ("hebrew", "iso8859_8", {0xAF: "‾"}),
        ("koi8u", "koi8_u", {0x95: "•"}),
        ("dec8", "latin_1", {0xA8: "¤", 0xD7: "Œ", 0xDD: "Ÿ", 0xF7: "œ", 0xFD: "ÿ"}),
        (
            "swe7",
            "ascii",
            dict(zip(b"@[\\]^`{|}~", "ÉÄÖÅÜéäöåü", strict=True)),
        ),
    ],
)
def test_all_other_bytes_are_those_of_a_codec(charset: str, codec: str, differing: dict[int, str]) -> None:
    """A byte has the codec's character, a different one, or none."""
    plain = [bytes((byte,)).decode(codec, "ignore") for byte in range(256)]
    found = {byte: sign for byte, sign in enumerate(TABLES[charset]) if sign not in (plain[byte], UNDEFINED)}
    assert found == differing


@pytest.mark.parametrize(
    ("charset", "undefined"),
    [
        ("latin1", set()),
        ("cp866", set()),
        ("koi8u", set()),
        ("greek", {0xAE, 0xD2, 0xFF}),
        ("hebrew", {0xA1, *range(0xBF, 0xDF), 0xFB, 0xFC, 0xFF}),
        ("swe7", set(range(0x7F, 0x100))),
        ("keybcs2", set()),
        ("hp8", {0xFF}),
        ("armscii8", set()),
    ],
)
def test_bytes_without_a_character(charset: str, undefined: set[int]) -> None:
    """A text with such a byte is not decoded."""
    assert {byte for byte, sign in enumerate(TABLES[charset]) if sign == UNDEFINED} == undefined


@pytest.mark.parametrize("charset", sorted(set(TABLES) - {"swe7"}))
def test_bytes_below_128_are_ascii(charset: str) -> None:
    assert TABLES[charset][:128] == bytes(range(128)).decode("ascii")


@pytest.mark.parametrize("charset", ["armscii8", "dec8", "hp8"])
def test_bytes_128_to_159_are_control_characters(charset: str) -> None:
    assert TABLES[charset][0x80:0xA0] == bytes(range(0x80, 0xA0)).decode("latin-1")
