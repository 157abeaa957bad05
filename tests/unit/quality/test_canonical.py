"""The text of a value, on both sides."""

import pytest

from dmdelta.ddl.types.silver_types import _FIXED, _INTEGERS
from dmdelta.model.schema import Column
from dmdelta.quality.canonical import canonical, is_comparable, value_text

KINDS = sorted({*_FIXED, *_INTEGERS, "bit", "decimal"})


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_has_a_text_or_is_known_to_have_none(kind):
    """A type that silver knows is compared, or named as one that is not; NULL has a text of its own."""
    column = Column("a`b", kind, length=4, precision=6)
    assert is_comparable(column) is (kind not in ("json", "vector"))
    if not is_comparable(column):
        with pytest.raises(AssertionError):
            value_text(column, "mysql")
        return
    for flavor in ("mysql", "mariadb"):
        text = value_text(column, flavor)
        assert text.source.startswith("IFNULL(")
        assert text.silver.startswith("coalesce(")
        assert "`a``b`" in text.source
        assert "`a``b`" in text.silver


def test_columns_of_a_row_are_told_apart():
    """Fixed forms stand between bars, free text behind its length."""
    text = canonical([Column("n", "int"), Column("t", "varchar", length=9)], "mysql")
    assert text.source == (
        "CONCAT_WS('|', IFNULL(CAST(`n` + 0 AS CHAR), '~'), "
        "IFNULL(CONCAT(LENGTH(CONVERT(`t` USING utf8mb4)), ':', CONVERT(`t` USING utf8mb4)), '~'))"
    )
    assert text.silver.count("octet_length") == 1
