"""The canonical text of values, on both sides."""

import pytest

from dmdelta.ddl.types.silver_types import _FIXED, _INTEGERS
from dmdelta.model.schema import Column
from dmdelta.quality.canonical import canonical, is_comparable, value_text

KINDS = sorted({*_FIXED, *_INTEGERS, "bit", "decimal"})


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_has_a_canonical_text_or_is_not_comparable(kind):
    """Every type of silver is compared, or listed as not comparable; NULL has its own text."""
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


def test_columns_of_a_row_are_separated():
    """Bars separate values, and free text is prefixed with its length."""
    text = canonical([Column("n", "int"), Column("t", "varchar", length=9)], "mysql")
    assert text.source == (
        "CONCAT_WS('|', IFNULL(CAST(`n` + 0 AS CHAR), '~'), "
        "IFNULL(CONCAT(LENGTH(CONVERT(`t` USING utf8mb4)), ':', CONVERT(`t` USING utf8mb4)), '~'))"
    )
    assert text.silver.count("octet_length") == 1
