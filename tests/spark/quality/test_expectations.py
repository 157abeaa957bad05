"""Row-wise expectations as Spark expressions: they find the same rows as Great Expectations."""

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.config import ExpectationConfig
from dmdelta.errors import ConfigError
from dmdelta.quality.expectations import assert_known, evaluate, failing
from dmdelta.quality.results import SAMPLES
from dmdelta.quality.suite import ROW_WISE, Expectation

ROWS = """
SELECT id, CAST(id % 10 AS INT) AS k, IF(id = 77, NULL, concat('n', id)) AS name, 'o' AS op FROM range(1000)
"""


def expectation(kind, **kwargs):
    return Expectation(ExpectationConfig(type=kind, kwargs=kwargs), "orders.yml:7")


CASES = (
    expectation("expect_column_values_to_not_be_null", column="name"),
    expectation("expect_column_values_to_be_null", column="name"),
    expectation("expect_column_values_to_be_between", column="k", min_value=0, max_value=8),
    expectation("expect_column_values_to_be_between", column="k", min_value=5, row_condition="name = 'n3'", condition_parser="spark"),
    expectation("expect_column_values_to_be_in_set", column="k", value_set=[1, 2, 3]),
    expectation("expect_column_values_to_not_be_in_set", column="k", value_set=[1, 2, 3]),
    expectation("expect_column_values_to_match_regex", column="name", regex="^n[0-8]"),
    expectation("expect_column_values_to_not_match_regex", column="name", regex="^n[0-8]"),
    expectation("expect_column_values_to_match_regex_list", column="name", regex_list=["^n1", "2$"]),
    expectation("expect_column_values_to_not_match_regex_list", column="name", regex_list=["^n1", "2$"]),
    expectation("expect_column_value_lengths_to_be_between", column="name", min_value=2, max_value=3),
    expectation("expect_column_value_lengths_to_equal", column="name", value=3),
    expectation("expect_column_pair_values_to_be_equal", column_A="id", column_B="k"),
    expectation("expect_column_pair_values_to_be_in_set", column_A="id", column_B="k", value_pairs_set=[(1, 1)]),
    expectation("expect_column_pair_values_a_to_be_greater_than_b", column_A="id", column_B="k"),
    expectation("expect_multicolumn_sum_to_equal", column_list=["id", "k"], sum_total=3),
    expectation("expect_multicolumn_values_to_be_equal", column_list=["id", "k"]),
    expectation("expect_select_column_values_to_be_unique_within_record", column_list=["id", "k"]),
)  # fmt: skip


def test_a_row_fails_as_in_great_expectations(spark):
    """Each row-wise expectation, including NULLs and row conditions."""
    assert {each.config.type for each in CASES} == ROW_WISE
    rows = spark.sql(ROWS)
    nothing = rows.where("false")
    by_us = rows.agg(*(_count(failing(each, nothing), n) for n, each in enumerate(CASES))).collect()[0]
    by_them, validation = evaluate(rows, "shop.orders", CASES, ["id"])
    assert list(by_us) == [result.unexpected for result in by_them]
    assert all(result.unexpected for result in by_them), "each finds something"
    assert by_them[0].samples == ({"id": 77},)
    assert [result.success for result in validation.results] == [False] * len(CASES)


def test_a_query_reports_the_number_of_rows_and_some_of_their_keys(spark):
    """Like other expectations, up to the maximum number of keys; none if the query omits the key."""
    queries = (
        "SELECT * FROM {batch} WHERE id IN (3, 5)",
        "SELECT id FROM {batch};",
        "SELECT name FROM {batch} WHERE id < 3",
    )
    wanted = [expectation("unexpected_rows_expectation", unexpected_rows_query=query) for query in queries]
    (two, all_rows, keyless), _ = evaluate(spark.sql(ROWS), "shop.orders", wanted, ["id"])
    assert (two.success, two.unexpected, two.samples) == (False, 2, ({"id": 3}, {"id": 5}))
    assert (all_rows.unexpected, len(all_rows.samples)) == (1000, SAMPLES)
    assert (keyless.unexpected, keyless.samples) == (3, ())


def _count(condition, number):
    return F.count_if(condition).alias(f"c{number}")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (expectation("expect_nothing"), "orders.yml:7: there is no expect_nothing"),
        (expectation("expect_column_values_to_be_between", colum="k"), "extra fields not permitted"),
        (
            expectation("unexpected_rows_expectation", unexpected_rows_query="SELECT * FROM {batch} WHERE v = '{}'"),
            r"orders.yml:7: unexpected_rows_expectation has braces other than \{batch\}",
        ),
    ],
)
def test_an_invalid_expectation_is_reported_with_its_place(wrong, words):
    """An unknown name, or arguments that it does not accept."""
    with pytest.raises(ConfigError, match=words):
        assert_known(wrong)


def test_a_missing_column_is_reported_with_its_place(spark):
    """Once the table's schema is known."""
    with pytest.raises(ConfigError, match=r"orders\.yml:7: there is no column zz"):
        failing(expectation("expect_column_values_to_not_be_null", column="zz"), spark.sql(ROWS))
