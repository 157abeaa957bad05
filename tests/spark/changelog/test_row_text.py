"""The text of a row's columns: equal for equal values, different for different ones."""

import json

import pytest

from dmdelta.changelog.row_text import row_text
from dmdelta.model.spark_sql import literal

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
    ("VARIANT", """parse_json('{"s": "x", "n": 1.50}')""", """parse_json('{"s": "x", "n": 1.5}')"""),
    ("VARIANT", """parse_json('{"t": "-100:00:00.000000"}')""", """parse_json('{"t": "-100:00:00"}')"""),
    ("INT", "1", "1"),
    ("STRING", "NULL", "NULL"),
]
DIFFERENT = [
    ("VARIANT", """parse_json('["2026-01-02 03:04:05.1"]')""", """parse_json('["2026-01-02 03:04:05.01"]')"""),
    ("VARIANT", """parse_json('{"s": "x,1.0,y"}')""", """parse_json('{"s": "x,1.00,y"}')"""),
    ("VARIANT", """parse_json('{"s": "\\\\"[1.0]"}')""", """parse_json('{"s": "\\\\"[1]"}')"""),
    ("VARIANT", """parse_json('{"s": "at 10:00:00.500"}')""", """parse_json('{"s": "at 10:00:00.5"}')"""),
    ("VARIANT", """parse_json('["12:34:560"]')""", """parse_json('["12:34:56"]')"""),
    ("VARIANT", """parse_json('{"n": 100}')""", """parse_json('{"n": 10}')"""),
    ("VARIANT", """parse_json('{"n": 1.05}')""", """parse_json('{"n": 1.5}')"""),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'2026-01-02 03:04:05.123456'", "TIMESTAMP_NTZ'2026-01-02 03:04:05.123789'"),
    ("TIMESTAMP", "TIMESTAMP'2026-01-02 03:04:05.123456Z'", "TIMESTAMP'2026-01-02 03:04:05.123789Z'"),
    ("DATE", "DATE'2026-01-02'", "NULL"),
    ("STRING", "'1'", "NULL"),
]


def test_a_long_document_has_a_text(spark):
    """Its strings are skipped without recursion: they may have many escapes."""
    document = json.dumps(['\n"x' * 20_000, "end"]).replace('"end"', "1.50")
    (found,) = spark.sql(
        f"SELECT {row_text({'c': 'VARIANT'})} FROM (SELECT parse_json({literal(document)}) AS c)"
    ).first()
    assert json.loads(json.loads(found)["c"]) == json.loads(document)
    assert ",1.5]" in found


@pytest.mark.parametrize(("pairs", "equal"), [(EQUAL, True), (DIFFERENT, False)], ids=["equal", "different"])
def test_texts_are_equal_for_equal_values(spark, pairs, equal):
    """A snapshot writes dates and decimals of a document differently from the log; to_json cuts timestamps."""
    for kind, one, other in pairs:
        texts = [
            spark.sql(f"SELECT {row_text({'c': kind})} FROM (SELECT {value} AS c)").first()[0] for value in (one, other)
        ]
        assert (texts[0] == texts[1]) == equal, (kind, texts)
