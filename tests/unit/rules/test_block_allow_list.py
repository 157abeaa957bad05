"""Which tables are replicated, as in DM."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.config import BlockAllowListConfig
from dmdelta.rules import BlockAllowList

CASES = {
    "an empty list takes everything": ({}, {("shop", "orders"): True, ("a", "b"): True}),
    "do-dbs is exclusive": ({"do_dbs": ("shop",)}, {("shop", "x"): True, ("shops", "x"): False}),
    "ignore-dbs excludes": ({"ignore_dbs": ("tmp*",)}, {("tmp1", "x"): False, ("shop", "x"): True}),
    "do-dbs goes before ignore-dbs": ({"do_dbs": ("a",), "ignore_dbs": ("a",)}, {("a", "x"): True, ("b", "x"): False}),
    "do-tables is exclusive": (
        {"do_tables": (("shop", "ord*"),)},
        {("shop", "orders"): True, ("shop", "x"): False, ("other", "orders"): False},
    ),
    "ignore-tables excludes": (
        {"ignore_tables": (("shop", "~^log_[0-9]+$"),)},
        {("shop", "log_7"): False, ("shop", "log_x"): True, ("other", "log_7"): True},
    ),
    "do-tables goes before ignore-tables": (
        {"do_tables": (("s", "t*"),), "ignore_tables": (("s", "t1"), ("s", "u"))},
        {("s", "t1"): True, ("s", "t2"): True, ("s", "u"): False},
    ),
    "the schema must pass first": (
        {"do_dbs": ("a",), "do_tables": (("b", "t"),)},
        {("b", "t"): False, ("a", "t"): False},
    ),
    "wildcards": (
        {"do_dbs": ("test[123]", "a?c")},
        {("test1", "x"): True, ("test4", "x"): False, ("abc", "x"): True, ("abbc", "x"): False, ("xabc", "x"): False},
    ),
    "a regular expression matches anywhere": ({"do_dbs": ("~est",)}, {("test", "x"): True, ("tst", "x"): False}),
    "case does not count": (
        {"do_tables": (("Shop", "~^ORD"),)},
        {("SHOP", "orders"): True, ("shop", "Orders"): True},
    ),
    "dots and other signs are plain": ({"do_dbs": ("a.b",)}, {("a.b", "x"): True, ("axb", "x"): False}),
    "the server's own schemas never take part": (
        {"do_dbs": ("*",)},
        {
            ("mysql", "user"): False,
            ("sys", "x"): False,
            ("INFORMATION_SCHEMA", "x"): False,
            ("performance_schema", "x"): False,
            ("mysql2", "x"): True,
        },
    ),
    "a statement on a schema is judged by the schema": (
        {"do_dbs": ("a",), "do_tables": (("a", "t"),)},
        {("a", None): True, ("b", None): False, ("mysql", None): False},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_decisions_match_dm(case):
    """Schema rules before table rules; allow before block."""
    rules, expected = CASES[case]
    allow_list = BlockAllowList(**rules)
    assert {table: allow_list.wanted(*table) for table in expected} == expected


@pytest.mark.parametrize(
    ("lists", "places"),
    [
        ({}, (("*", "*"),)),
        ({"do_dbs": ("a", "b*")}, (("a", "*"), ("b*", "*"))),
        ({"do_tables": (("a", "t"), ("a", "u*"), ("a", "t"))}, (("a", "t"), ("a", "u*"))),
        ({"do_tables": (("a", "t"), ("b", "t")), "ignore_dbs": ("a",)}, (("b", "t"),)),
        ({"do_tables": (("*", "t"),), "do_dbs": ("a", "b")}, (("a", "t"), ("b", "t"))),
        ({"do_tables": (("a*", "t"),), "do_dbs": ("ab", "b")}, (("ab", "t"),)),
        ({"do_tables": (("a*", "t"),), "do_dbs": ("ab", "b*")}, (("a*", "t"),)),
    ],
)
def test_the_places_of_the_selected_tables(lists, places):
    """Each pattern once, with the names of schemas where the lists have them."""
    assert BlockAllowList(**lists).places == places


def test_the_spec_section_is_converted_completely():
    """`from_config` converts all four lists."""
    config = BlockAllowListConfig.model_validate(
        {
            "do-dbs": ["a"],
            "ignore-dbs": ["b"],
            "do-tables": [{"db-name": "a", "tbl-name": "t"}],
            "ignore-tables": [{"db-name": "a", "tbl-name": "u"}],
        }
    )
    assert BlockAllowList.from_config(config) == BlockAllowList(("a",), ("b",), (("a", "t"),), (("a", "u"),))


names = st.text(min_size=1, max_size=5)
pairs = st.tuples(names, names)


@given(st.lists(names), st.lists(names), st.lists(pairs), st.lists(pairs), pairs)
def test_it_round_trips_through_json_and_pickle(do_dbs, ignore_dbs, do_tables, ignore_tables, table):
    """A copy on an executor decides like the original, regardless of earlier decisions."""
    sent = BlockAllowList(
        tuple(n for n in do_dbs if n[0] != "~"),
        tuple(n for n in ignore_dbs if n[0] != "~"),
        tuple(p for p in do_tables if p[0][0] != "~" and p[1][0] != "~"),
        tuple(p for p in ignore_tables if p[0][0] != "~" and p[1][0] != "~"),
    )
    wanted = sent.wanted(*table)
    for arrived in (BlockAllowList.from_json(sent.to_json()), pickle.loads(pickle.dumps(sent))):  # noqa: S301
        assert arrived == sent
        assert hash(arrived) == hash(sent)
        assert arrived.wanted(*table) is wanted


def test_patterns_are_case_sensitive_if_configured():
    """With `case-sensitive` a pattern matches only names in the same case, also after a round trip through JSON."""
    rules = BlockAllowList.from_config(BlockAllowListConfig(do_dbs=("Shop",)), case_sensitive=True)
    for decides in (rules, BlockAllowList.from_json(rules.to_json())):
        assert (decides.wanted("Shop", "t"), decides.wanted("shop", "t")) == (True, False)


def test_a_changed_copy_decides_for_itself():
    """Earlier decisions do not pass to a copy with other lists, and are no part of the text."""
    rules = BlockAllowList(do_dbs=("a",))
    text = repr(rules)
    assert rules.wanted("a", "t")
    assert not replace(rules, do_dbs=("b",)).wanted("a", "t")
    assert repr(rules) == text
