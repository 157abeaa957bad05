"""The text of a row's columns: equal for equal values, different for different ones."""

import pytest

from dmdelta.changelog.row_text import row_text

EQUAL = [
    (
        "VARIANT",
        """parse_json('{"at": "2026-01-02 03:04:05.100000"}')""",
        """parse_json('{"at": "2026-01-02 03:04:05.1"}')""",
    ),
    ("VARIANT", """parse_json('["2026-01-02 03:04:05.000000"]')""", """parse_json('["2026-01-02 03:04:05"]')"""),
    ("VARIANT", "CAST(100.0D AS VARIANT)", "CAST(100BD AS VARIANT)"),
    ("VARIANT", """parse_json('{"n": [-1.50]}')""", """to_variant_object(named_struct('n', array(-1.5D)))"""),
    ("TIMESTAMP", "TIMESTAMP'2026-01-02 03:04:05.1Z'", "TIMESTAMP'2026-01-02 04:04:05.1+01:00'"),
    ("INT", "1", "1"),
    ("STRING", "NULL", "NULL"),
]
DIFFERENT = [
    ("VARIANT", """parse_json('["2026-01-02 03:04:05.1"]')""", """parse_json('["2026-01-02 03:04:05.01"]')"""),
    ("VARIANT", """parse_json('{"n": 100}')""", """parse_json('{"n": 10}')"""),
    ("VARIANT", """parse_json('{"n": 1.05}')""", """parse_json('{"n": 1.5}')"""),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'2026-01-02 03:04:05.123456'", "TIMESTAMP_NTZ'2026-01-02 03:04:05.123789'"),
    ("TIMESTAMP", "TIMESTAMP'2026-01-02 03:04:05.123456Z'", "TIMESTAMP'2026-01-02 03:04:05.123789Z'"),
    ("DATE", "DATE'2026-01-02'", "NULL"),
    ("STRING", "'1'", "NULL"),
]


@pytest.mark.parametrize(("pairs", "equal"), [(EQUAL, True), (DIFFERENT, False)], ids=["equal", "different"])
def test_texts_are_equal_for_equal_values(spark, pairs, equal):
    """A snapshot writes dates and decimals of a document differently from the log; to_json cuts timestamps."""
    for kind, one, other in pairs:
        texts = [
            spark.sql(f"SELECT {row_text({'c': kind})} FROM (SELECT {value} AS c)").first()[0] for value in (one, other)
        ]
        assert (texts[0] == texts[1]) == equal, (kind, texts)
