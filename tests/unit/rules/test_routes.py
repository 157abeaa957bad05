"""Which target a table is routed to, as in DM."""

import pickle

import pytest

from dmdelta.config import RouteRule
from dmdelta.errors import ConfigError
from dmdelta.rules import Route, Routes

RULES = {
    "schema": {"schema-pattern": "shop_*", "target-schema": "shop"},
    "table": {
        "schema-pattern": "shop_*",
        "table-pattern": "~^orders_[0-9]+$",
        "target-schema": "shop",
        "target-table": "orders",
        "extract-table": {"table-regexp": "^orders_(....)(..)?", "target-column": "month"},
        "extract-schema": {"schema-regexp": "^shop_(.*)$", "target-column": "shard"},
        "extract-source": {"source-regexp": "^nothing(.*)", "target-column": "server"},
    },
    "keeps-names": {"schema-pattern": "log[12]", "table-pattern": "t?", "target-schema": "logs"},
}


def routes(rules=RULES, **options):
    return Routes.from_config({name: RouteRule.model_validate(rule) for name, rule in rules.items()}, **options)


CASES = {
    ("shop_1", "orders_202601"): Route(
        "shop", "orders", (("month", "202601"), ("shard", "1"), ("server", "")), merged=True
    ),
    ("shop_2", "orders_2026"): Route(
        "shop", "orders", (("month", "2026"), ("shard", "2"), ("server", "")), merged=True
    ),
    ("SHOP_2", "ORDERS_2026"): Route("shop", "orders", (("month", ""), ("shard", ""), ("server", "")), merged=True),
    ("shop_1", "items"): Route("shop", "items", merged=True),
    ("log1", "t1"): Route("logs", "t1", merged=True),
    ("log1", "t10"): Route("log1", "t10"),
    ("log3", "t1"): Route("log3", "t1"),
    ("other", "Orders"): Route("other", "Orders"),
}


@pytest.mark.parametrize("table", CASES)
def test_a_table_is_routed_as_in_dm(table):
    """Rules with a table pattern take precedence; extracts concatenate their groups; without a rule the name is kept."""
    assert routes().route("one", *table) == CASES[table]


def test_patterns_are_case_sensitive_if_configured():
    """With `case-sensitive` a pattern matches only names in the same case."""
    assert routes(case_sensitive=True).route("one", "SHOP_2", "ORDERS_2026") == Route("SHOP_2", "ORDERS_2026")


@pytest.mark.parametrize("table_pattern", [None, "t*"])
def test_two_matching_rules_of_a_kind_are_an_error(table_pattern):
    """The error names both rules; a rule of the other kind does not resolve the conflict."""
    rule = {"schema-pattern": "a*", "target-schema": "x"}
    if table_pattern:
        rule["table-pattern"] = table_pattern
    both = routes({"one": rule, "two": {**rule, "schema-pattern": "ab"}})
    assert both.route("s", "ac", "t").schema == "x"
    with pytest.raises(ConfigError, match=r"two routes match ab\.t: 'one' and 'two'"):
        both.route("s", "ab", "t")


def test_routes_are_picklable():
    """A pickled copy decides the same."""
    assert pickle.loads(pickle.dumps(routes())).route("one", "log1", "t1") == Route("logs", "t1", merged=True)  # noqa: S301 - our own bytes


ONE = {"schema-pattern": "a", "table-pattern": "t", "target-schema": "x", "target-table": "t"}


@pytest.mark.parametrize(
    ("rules", "of_others", "merged"),
    [
        ([ONE], [], False),
        ([{"schema-pattern": "a", "target-schema": "x"}], [], False),
        ([{**ONE, "table-pattern": "t*"}], [], True),
        ([{**ONE, "table-pattern": "~^t$"}], [], True),
        ([{**ONE, "schema-pattern": "a*"}], [], True),
        ([{key: ONE[key] for key in ONE if key != "table-pattern"}], [], True),
        ([ONE, {**ONE, "schema-pattern": "b"}], [], True),
        ([ONE, {**ONE, "schema-pattern": "b", "target-table": "u"}], [], False),
        ([ONE, {"schema-pattern": "b", "target-schema": "x"}], [], True),
        ([ONE], [ONE], True),
        ([ONE], [{**ONE, "target-schema": "w"}], False),
        ([ONE], [{**ONE, "target-schema": "y"}], False),
    ],
)
def test_tables_that_can_share_a_target_are_merged(rules, of_others, merged):
    """They share it by a pattern of one rule, by two rules, or by two sources; the spec alone determines this."""
    read = {str(number): RouteRule.model_validate(rule) for number, rule in enumerate(rules)}
    found = Routes.from_config(read, of_others=[RouteRule.model_validate(rule) for rule in of_others])
    assert found.route("one", "a", "t").merged is merged
