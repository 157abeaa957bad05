"""The rules of one source, from a spec with several."""

import pytest

from dmdelta.config import TaskSpec
from dmdelta.model.position import Position
from dmdelta.rules import NO_RULES, Action, EventFilter, SourceRules
from dmdelta.rules.operators import Operator, Verb

ORDERS = {"schema-pattern": "shop", "table-pattern": "orders", "target-schema": "all", "target-table": "orders"}
EVERYTHING = {
    "routes": {"orders": ORDERS, "items": {**ORDERS, "table-pattern": "items", "target-table": "items"}},
    "filters": {
        "no-deletes": {"schema-pattern": "shop", "events": ["delete"], "action": "Ignore"},
        "no-drops": {"schema-pattern": "shop", "events": ["drop table"], "action": "Error"},
    },
    "expression-filter": {"old": {"schema": "shop", "table": "orders", "insert-value-expr": "id < 10"}},
}


def rules(*sources, **options):
    """The rules of each source."""
    servers = [
        {"source-id": f"s{number}", "host": "db", "user": "u", **source} for number, source in enumerate(sources, 1)
    ]
    spec = TaskSpec.model_validate(
        {"name": "t", "sources": servers, "lakehouse": {"root": "lake"}, **EVERYTHING, **options}
    )
    return [SourceRules.from_spec(spec, source) for source in spec.sources]


def test_a_source_has_the_rules_that_it_names():
    """Without a list it has all of the spec's; with an empty one none."""
    some, none = rules({"route-rules": ["items"], "filter-rules": ["no-drops"]}, {
        "route-rules": [], "filter-rules": [], "expression-filters": []
    })  # fmt: skip
    assert (some.source_id, none.source_id) == ("s1", "s2")
    assert [found.route("shop", "items").schema for found in (some, none)] == ["all", "shop"]
    assert [found.route("shop", "orders").schema for found in (some, none)] == ["shop", "shop"]
    assert [found.row_events("shop", "t")["delete"] for found in (some, none)] == [Action.DO, Action.DO]
    assert [len(found.expressions) for found in (some, none)] == [1, 0]
    assert [found.leave_statements_out for found in (some, none)] == [True, False]


@pytest.mark.parametrize(
    ("sources", "merged"),
    [
        ([{}], [False]),
        ([{}, {}], [True, True]),
        ([{"route-rules": ["orders"]}, {"route-rules": ["items"]}], [False, False]),
        ([{"route-rules": ["orders"]}, {"route-rules": ["items"]}, {"route-rules": ["orders"]}], [True, False, True]),
    ],
)
def test_sources_with_the_same_target_share_a_merged_table(sources, merged):
    """A source's own routes do not merge it with itself."""
    assert [found.route("shop", "orders").merged for found in rules(*sources)] == merged


def test_tables_and_statements_of_an_online_ddl():
    """A shadow table's statements are replicated if its real table is; its rows never are."""
    options = {"block-allow-list": {"do-tables": [{"db-name": "shop", "tbl-name": "t"}]}}
    (found,) = rules({}, **options)
    tables = ("t", "_t_new", "_t_old", "u", "_u_new")
    assert [found.wanted("shop", table) for table in tables] == [True, False, False, False, False]
    assert [found.statements_wanted("shop", table) for table in tables] == [True, True, False, False, False]
    assert (found.statements_wanted("shop", None), found.statements_wanted("mysql", None)) == (True, False)
    (off,) = rules({}, **{**options, "online-ddl": False})
    assert not off.statements_wanted("shop", "_t_new")


def test_the_actions_for_row_events_and_statements():
    """Those of the filters; without filters everything is replicated."""
    (found,) = rules({})
    assert found.row_events("shop", "t") == {"insert": Action.DO, "update": Action.DO, "delete": Action.IGNORE}
    assert found.decide(("shop", "t"), ["drop table"], "DROP TABLE t") is Action.ERROR
    assert found.decide(("other", "t"), ["drop table"], "DROP TABLE t") is Action.DO
    assert NO_RULES.decide(("shop", "t"), ["drop table"], "DROP TABLE t") is Action.DO
    assert NO_RULES.row_events("shop", "t") == dict.fromkeys(("insert", "update", "delete"), Action.DO)


def test_names_are_case_sensitive_if_configured():
    """In the allow list, routes and filters alike."""
    options = {"block-allow-list": {"do-dbs": ["shop"]}}
    for sensitive in (False, True):
        (found,) = rules({}, **{**options, "case-sensitive": sensitive})
        assert found.wanted("SHOP", "orders") is not sensitive
        assert found.route("SHOP", "orders").schema == ("SHOP" if sensitive else "all")
        assert found.row_events("SHOP", "t")["delete"] is (Action.DO if sensitive else Action.IGNORE)


@pytest.mark.parametrize("clash", ["warn", "error", "ignore"])
def test_the_handling_of_a_key_in_several_shards_is_the_specs(clash):
    """By default it is a warning."""
    assert rules({}, **{"shard-key-clash": clash})[0].shard_key_clash == clash
    assert (rules({})[0].shard_key_clash, NO_RULES.shard_key_clash) == ("warn", "warn")


def test_silver_can_lack_a_statement_by_a_filter_or_an_override():
    """Without either it has the structure of the source."""
    overrides = {Position(1, "b.000001", 4): Operator(Verb.SKIP)}
    assert not NO_RULES.leave_statements_out
    assert SourceRules(operators=overrides).leave_statements_out
    assert rules({})[0].leave_statements_out
    assert not SourceRules(events=EventFilter()).leave_statements_out


@pytest.mark.parametrize(
    ("rule", "ignores"),
    [
        ({"events": ["add column"]}, True),
        ({"events": ["all"]}, True),
        ({"events": ["alter table"]}, True),
        ({"events": ["incompatible ddl changes"]}, True),
        ({"sql-pattern": ["^ALTER TABLE"]}, True),
        ({"events": ["drop table", "truncate table", "drop column", "delete"]}, False),
        ({"events": ["all dml"]}, False),
        ({"events": ["add column"], "action": "Error"}, False),
        ({"events": ["add column"], "table-pattern": "other"}, False),
        ({"events": ["add column"], "schema-pattern": "other"}, False),
        ({"events": ["all"], "action": "Do"}, False),
        ({"events": ["all ddl"], "sql-pattern": ["ADD"], "action": "Do"}, True),
        ({"events": ["insert"], "action": "Do"}, True),
    ],
)
def test_whether_silver_can_lack_columns_of_a_table_by_a_filter(rule, ignores):
    """Only one that fits the table and may ignore statements that add or change columns; of overrides, any."""
    (found,) = rules({}, filters={"r": {"schema-pattern": "shop", "action": "Ignore", **rule}})
    assert found.ignores_columns(("shop", "t")) is ignores
    assert found.leaves_columns_out(("shop", "t")) is ignores
    overrides = {Position(1, "b.000001", 4): Operator(Verb.SKIP)}
    assert SourceRules(operators=overrides).leaves_columns_out(("shop", "t"))
    assert not SourceRules(operators=overrides).ignores_columns(("shop", "t"))
