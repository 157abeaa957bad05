"""Names of collation IDs, and the character sets of the same IDs."""

from itertools import product

import pytest
from pymysql import charset as charsets

from dmdelta.binlog.values.collation_names import collation_name, plain_name
from dmdelta.binlog.values.collations import charset_of
from dmdelta.errors import UnsupportedEvent

KINDS = ("ai_ci", "ai_cs", "as_ci", "as_cs", "nopad_ai_ci", "nopad_ai_cs", "nopad_as_ci", "nopad_as_cs")


def known(collation: int) -> str | None:
    try:
        return charset_of(collation)
    except UnsupportedEvent:
        return None


def test_names_are_those_of_pymysql() -> None:
    """PyMySQL's list was made from a server."""
    expected = {number: plain_name(one.collation) for number, one in charsets._charsets._by_id.items()}
    assert {number: collation_name(number) for number in expected} == expected


def test_a_name_begins_with_the_character_set() -> None:
    """The names and the character sets of all IDs agree; NOPAD IDs exist for those below 256."""
    ids = [number for number in range(5000) if not 1280 <= number < 2048]
    names = {number: name for number in ids if (name := collation_name(number))}
    assert {number: known(number) for number in names} == {
        number: name.partition("_")[0] for number, name in names.items()
    }
    assert len(names) > 1400


@pytest.mark.parametrize(
    ("first", "charset"), [(101, "utf16"), (128, "ucs2"), (160, "utf32"), (192, "utf8mb3"), (224, "utf8mb4")]
)
def test_languages_of_a_unicode_character_set(first: int, charset: str) -> None:
    """Each block has the same languages in the same order."""
    known = {0: "unicode", 1: "icelandic", 6: "estonian", 14: "spanish2", 20: "german2", 23: "vietnamese"}
    assert {place: collation_name(first + place) for place in known} == {
        place: f"{charset}_{language}_ci" for place, language in known.items()
    }
    assert (collation_name(first + 24) or "").partition("_")[2] != "unicode_ci"


@pytest.mark.parametrize(
    ("first", "charset"), [(2048, "utf8mb3"), (2304, "utf8mb4"), (2560, "ucs2"), (2816, "utf16"), (3072, "utf32")]
)
def test_uca_14_names(first: int, charset: str) -> None:
    """A block has eight kinds of each language; the first language has no name."""
    languages = {0: "", 1: "icelandic_", 8: "swedish_", 20: "german2_", 23: "vietnamese_", 24: "croatian_"}
    expected = {
        first + 8 * language + kind: f"{charset}_uca1400_{languages[language]}{KINDS[kind]}"
        for language, kind in product(languages, range(8))
    }
    assert {number: collation_name(number) for number in expected} == expected


@pytest.mark.parametrize("block", range(5))
@pytest.mark.parametrize("language", [21, 22, 25, 31])
def test_unused_ids_of_uca_14_have_no_name(block: int, language: int) -> None:
    """The first and the last ID of a language that MariaDB does not have."""
    first = 2048 + 256 * block + 8 * language
    assert collation_name(first) is None
    assert collation_name(first + 7) is None


@pytest.mark.parametrize("collation", [-1, 0, 17, 100, 579, 1023, 1024, 1041, 2047, 3328, 3329, 3584])
def test_ids_outside_the_blocks_have_no_name(collation: int) -> None:
    assert collation_name(collation) is None


@pytest.mark.parametrize(
    ("collation", "name"),
    [
        (1025, "big5_chinese_nopad_ci"),
        (1087, None),
        (1088, "armscii8_nopad_bin"),
        (1274, "gb18030_unicode_520_nopad_ci"),
    ],
)
def test_nopad_names(collation: int, name: str | None) -> None:
    """The word is before the last part; `binary` has no such collation."""
    assert collation_name(collation) == name


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("UTF8_BIN", "utf8mb3_bin"),
        ("utf8mb3_bin", "utf8mb3_bin"),
        ("utf8", "utf8"),
        ("utf8_croatian_mysql561_ci", "utf8mb3_croatian_ci"),
        ("Latin1_Swedish_CI", "latin1_swedish_ci"),
    ],
)
def test_a_servers_name_in_plain_notation(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize("collation", [1275, 1278, 1280, 1600, 2047])
def test_ids_behind_nopad_have_no_character_set(collation: int) -> None:
    """MySQL's IDs above 255 have no NOPAD counterpart."""
    assert known(collation) is None
