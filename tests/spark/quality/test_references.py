"""Rows without a parent: texts refer to each other as under the collation of their columns."""

import pytest

from dmdelta.model.schema import Column, ForeignKey, TableSchema
from dmdelta.quality.references import count_orphans, orphans, plan_reference, referring

KEY = ForeignKey("of_country", ("shop", "orders"), ("shop", "countries"), (("country", "code"), ("n", "n")))
CODES = ("DE", "de", "DE ", "dé", "Straße", "strasse", "fr", None)


def reference(collation, charset="utf8mb4"):
    columns = (Column("country", "varchar", charset=charset, collation=collation), Column("n", "int"))
    return plan_reference(KEY, TableSchema("shop", "orders", columns))


@pytest.mark.parametrize(
    ("collation", "charset", "found"),
    [
        ("utf8mb4_bin", "utf8mb4", {"de", "dé", "strasse", "fr"}),
        ("utf8mb4_0900_bin", "utf8mb4", {"de", "DE ", "dé", "strasse", "fr"}),
        ("utf8mb4_general_ci", "utf8mb4", {"strasse", "fr"}),
        ("utf8mb4_general_nopad_ci", "utf8mb4", {"DE ", "strasse", "fr"}),
        ("utf8mb4_0900_ai_ci", "utf8mb4", {"DE ", "fr"}),
        ("latin1_swedish_ci", "latin1", {"strasse", "fr"}),
    ],
)
def test_texts_refer_to_each_other_under_their_collation(spark, collation, charset, found):
    """Case, accents and trailing spaces count only if the collation distinguishes them."""
    rows = spark.createDataFrame([(code, 1) for code in CODES], "country STRING, n INT")
    parents = spark.createDataFrame([("DE", 1), ("Straße", 1), ("fr", 2)], "code STRING, n INT")
    by_collation = reference(collation, charset)
    assert by_collation.undecidable == ""
    assert {row.country for row in orphans(rows, parents, by_collation).collect()} == found
    kept = {row.country for row in referring(rows, parents, by_collation, "left_semi").collect()}
    assert kept == {*CODES} - {*found, None}
    quarantined = spark.createDataFrame([("FR", 1)], "code STRING, n INT")
    waiting = collation not in ("utf8mb4_bin", "utf8mb4_0900_bin")
    counts = count_orphans(rows, parents, quarantined, by_collation)
    assert counts == (len(CODES) - 1, len(found) - waiting, int(waiting))


@pytest.mark.parametrize(
    ("collation", "why"),
    [
        ("utf8mb4_unicode_ci", "Spark does not support the collation utf8mb4_unicode_ci of country"),
        (None, "the collation of country is unknown"),
    ],
)
def test_texts_are_compared_byte_by_byte_under_other_collations(spark, collation, why):
    """Equal bytes are equal under every collation; other texts are undecidable."""
    undecidable = reference(collation)
    assert undecidable.undecidable == why
    rows = spark.createDataFrame([("DE", 1), ("de", 1)], "country STRING, n INT")
    parents = spark.createDataFrame([("DE", 1)], "code STRING, n INT")
    assert count_orphans(rows, parents, None, undecidable) == (2, 1, 0)
