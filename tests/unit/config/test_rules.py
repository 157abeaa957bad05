"""The rule sections: accepted values, refused values, and the sources that rules apply to."""

from pathlib import Path

import pytest

from dmdelta.config import TaskSpec, load_spec
from dmdelta.errors import ConfigError

SPEC = """\
name: shop
sources:
  - {source-id: one, host: db, user: u}
  - {source-id: two, host: db, user: u, route-rules: [by-month], filter-rules: [], expression-filters: [even]}
routes:
  by-month:
    schema-pattern: "shop_[0-9]*"
    table-pattern: "~^orders_[0-9]{6}$"
    target-schema: shop
    target-table: orders
    extract-table: {table-regexp: "^orders_(....)(..)$", target-column: month}
    extract-schema: {schema-regexp: "^shop_(.*)$", target-column: shard}
    extract-source: {source-regexp: "(.*)", target-column: server}
  rest: {schema-pattern: "shop_*", target-schema: shop}
filters:
  no-drops:
    schema-pattern: "*"
    events: [Drop Table, truncate  table, drop schema, reorganize partition]
    sql-pattern: ["^DROP\\\\s+PROCEDURE"]
    action: Ignore
expression-filter:
  even: {schema: shop, table: t, insert-value-expr: "c % 2 = 0"}
  pair: {schema: shop, table: t, update-old-value-expr: "a = 1", update-new-value-expr: "a = 2"}
lakehouse: {root: lake}
"""


def load(folder: Path, *changes: tuple[str, str]) -> TaskSpec:
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "spec.yml"
    path.write_text(text, encoding="utf-8")
    return load_spec(path, {})


def test_rules_are_named_and_typed(tmp_path):
    """Each section is a mapping of named rules; events accept DM's aliases in any case and spacing."""
    spec = load(tmp_path)
    assert list(spec.routes) == ["by-month", "rest"]
    assert spec.routes["by-month"].extract_table.target_column == "month"
    assert spec.routes["rest"].table_pattern is None
    assert spec.filters["no-drops"].events == (
        "drop table",
        "truncate table",
        "drop database",
        "reorganize table partition",
    )
    assert spec.expression_filter["even"].schema_ == "shop"
    assert spec.expression_filter["pair"].update_new_value_expr == "a = 2"


def test_a_source_uses_all_rules_or_those_it_names(tmp_path):
    """Without a list all rules apply to a source; with an empty list none do."""
    spec = load(tmp_path)
    one, two = spec.sources
    assert (set(spec.routes_of(one)), set(spec.routes_of(two))) == ({"by-month", "rest"}, {"by-month"})
    assert (set(spec.filters_of(one)), set(spec.filters_of(two))) == ({"no-drops"}, set())
    assert (set(spec.expression_filters_of(one)), set(spec.expression_filters_of(two))) == ({"even", "pair"}, {"even"})


def test_online_ddl_is_enabled_with_dms_patterns(tmp_path):
    """gh-ost's and pt-osc's tables are detected unless the spec disables it; matching is case-insensitive by default."""
    spec = load(tmp_path)
    assert (spec.online_ddl, spec.case_sensitive) == (True, False)
    assert spec.shadow_table_rules == ("^_(.+)_(?:new|gho)$",)
    assert spec.trash_table_rules == ("^_(.+)_(?:ghc|del|old)$",)


MISTAKES = {
    "an unknown rule": (
        ("route-rules: [by-month]", "route-rules: [by-moth]"),
        "1: source 'two': route-rules names 'by-moth', but the spec defines 'by-month', 'rest'",
    ),
    "an unknown filter": (
        ("filter-rules: []", "filter-rules: [x]"),
        "1: source 'two': filter-rules names 'x', but the spec defines 'no-drops'",
    ),
    "a broken pattern": (
        ("~^orders_[0-9]{6}$", "~^orders_("),
        "8: routes.by-month.table-pattern: '~^orders_(' is not a regular expression: missing ), unterminated subpattern",
    ),
    "a key that no rule has": (
        ("target-table: orders", "taget-table: orders"),
        "10: unknown key 'routes.by-month.taget-table': did you mean 'target-table'?",
    ),
    "the same column twice": (
        ("target-column: shard", "target-column: Month"),
        "6: routes.by-month: two extracts of a rule have the same target-column",
    ),
    "an unknown event": (
        ("Drop Table", "Drop Tabel"),
        "18: filters.no-drops.events[0]: 'Drop Tabel' is not an event name: did you mean 'drop table'?",
    ),
    "an unknown action": (
        ("action: Ignore", "action: Skip"),
        "20: filters.no-drops.action: Input should be 'Do', 'Ignore' or 'Error'",
    ),
    "a broken sql-pattern": (
        ("^DROP\\\\s+PROCEDURE", "(DROP"),
        "19: filters.no-drops.sql-pattern[0]: '(DROP' is not a regular expression: missing ), unterminated subpattern",
    ),
    "two kinds of expressions": (
        ("insert-value-expr:", 'delete-value-expr: "1", insert-value-expr:'),
        "22: expression-filter.even: a rule must have expressions for exactly one kind of change: insert, update or delete",
    ),
    "a shadow rule without the real name": (
        ("lakehouse:", 'shadow-table-rules: ["^_.*_new$"]\nlakehouse:'),
        "24: shadow-table-rules[0]: '^_.*_new$' has 0 groups; it must have exactly one, which captures",
    ),
    "a trash rule with two groups": (
        ("lakehouse:", 'trash-table-rules: ["^_(.*)_(old)$"]\nlakehouse:'),
        "24: trash-table-rules[0]: '^_(.*)_(old)$' has 2 groups; it must have exactly one, which captures",
    ),
    "a broken shadow rule": (
        ("lakehouse:", 'shadow-table-rules: ["("]\nlakehouse:'),
        "24: shadow-table-rules[0]: '(' is not a regular expression: missing ), unterminated subpattern",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_rules_are_reported_with_their_line(mistake, tmp_path):
    """Each error names the line, the key and the problem."""
    change, expected = MISTAKES[mistake]
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, change)
    lines = [line.removeprefix(f"{tmp_path / 'spec.yml'}:") for line in caught.value.message.splitlines()]
    assert any(line.startswith(expected) for line in lines), lines
