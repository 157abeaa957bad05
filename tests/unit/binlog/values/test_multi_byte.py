"""Multi-byte character sets at the ends of their rows."""

# ruff: noqa: RUF001 - these characters are under test

import pytest

from dmdelta.binlog.values.multi_byte import DECODERS


@pytest.mark.parametrize("charset", ["ujis", "eucjpms"])
@pytest.mark.parametrize(
    ("code", "point"),
    [
        (b"\xf5\xa1", 0xE000),
        (b"\xf5\xfe", 0xE05D),
        (b"\xf6\xa1", 0xE05E),
        (b"\xfe\xfe", 0xE3AB),
        (b"\x8f\xf5\xa1", 0xE3AC),
        (b"\x8f\xf6\xa1", 0xE40A),
        (b"\x8f\xfe\xfe", 0xE757),
    ],
)
def test_user_defined_characters(charset: str, code: bytes, point: int) -> None:
    """Ten rows of 94 codes with two bytes, then ten with three, in Unicode's private area."""
    assert DECODERS[charset](code) == chr(point)


@pytest.mark.parametrize(
    ("charset", "code", "text"),
    [
        ("ujis", b"\xa1\xc0", "\\"),
        ("ujis", b"\x8e\xa1", "｡"),
        ("ujis", b"\x8e\xdf", "ﾟ"),
        ("ujis", b"\x8f\xb0\xa1", "丂"),
        ("ujis", b"\xf4\xa6", "熙"),
        ("eucjpms", b"\xa1\xc0", "＼"),
        ("eucjpms", b"\x8e\xa1", "｡"),
        ("eucjpms", b"\x8e\xdf", "ﾟ"),
        ("eucjpms", b"\xad\xa1", "①"),
        ("eucjpms", b"\xf4\xa6", "熙"),
        ("eucjpms", b"\x8f\xb0\xa1", "丂"),
        ("eucjpms", b"\x8f\xa2\xb7", "～"),
        ("eucjpms", b"\x8f\xa2\xc3", "￤"),
        ("eucjpms", b"\x8f\xf3\xf3", "ⅰ"),
        ("eucjpms", b"\x8f\xf3\xfe", "Ⅱ"),
        ("eucjpms", b"\x8f\xf4\xa1", "Ⅲ"),
        ("eucjpms", b"\x8f\xf4\xfe", "黑"),
        ("sjis", b"\x81\x5f", "\\"),
        ("sjis", b"\x81\x40", "\u3000"),
        ("sjis", b"\xa1\xdf", "｡ﾟ"),
        ("sjis", b"\x9f\xfc", "滌"),
        ("sjis", b"\xe0\x40", "漾"),
        ("sjis", b"\xea\xa4", "熙"),
        ("big5", b"\xf9\xd5", "龘"),
        ("big5", bytes.fromhex("f9d6f9d7f9d8f9d9f9daf9dbf9dc"), "碁銹裏墻恒粧嫺"),
        ("big5", b"\xa1\x40\xa4\x7e\xa4\xa1", "\u3000才丑"),
    ],
)
def test_characters(charset: str, code: bytes, text: str) -> None:
    """Also between ASCII and after itself."""
    decode = DECODERS[charset]
    assert decode(code) == text
    assert decode(b"a1" + code + b"\n" + code + b"~") == f"a1{text}\n{text}~"


@pytest.mark.parametrize(
    ("charset", "code"),
    [
        *(
            (charset, code)
            for charset in ("ujis", "eucjpms")
            for code in (b"\x80", b"\xa1", b"\x8e", b"\xff", b"\x8f\xa1")
        ),
        ("ujis", b"\xa9\xa1"),
        ("eucjpms", b"\xa9\xa1"),
        ("ujis", b"\x8f\xf3\xf3"),
        ("eucjpms", b"\x8f\xf3\xa1"),
        *(("sjis", code) for code in (b"\x80", b"\x81", b"\x81\x20", b"\xfd", b"\xff")),
        *(("big5", code) for code in (b"\x80", b"\xa1", b"\xf9\xdd", b"\xa1\x30", b"\xff")),
    ],
)
def test_codes_without_a_character_are_errors(charset: str, code: bytes) -> None:
    """Half of a character, and codes that the set does not define."""
    for text in (code, b"a" + code, code + b"\n"):
        with pytest.raises(UnicodeError):
            DECODERS[charset](text)
