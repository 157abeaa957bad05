"""Which events are replicated, as in DM's filters."""

import pytest

from dmdelta.config import FilterRule
from dmdelta.rules import Action, EventFilter

DO, IGNORE, ERROR = Action.DO, Action.IGNORE, Action.ERROR


def event_filter(*rules, **options):
    made = {
        str(number): FilterRule.model_validate({"schema-pattern": "*", **rule}) for number, rule in enumerate(rules)
    }
    return EventFilter.from_config(made, **options)


def ignore(*events, **more):
    return {"events": list(events), "action": "Ignore", **more}


def do(*events, **more):
    return {"events": list(events), "action": "Do", **more}


def error(*events, **more):
    return {"events": list(events), "action": "Error", **more}


ROWS = {
    "without rules everything counts": ([], {"insert": DO, "update": DO, "delete": DO}),
    "what is ignored is left out": ([ignore("delete")], {"insert": DO, "delete": IGNORE}),
    "do is exclusive": ([do("insert", "update")], {"insert": DO, "update": DO, "delete": IGNORE}),
    "do with DDL alone leaves out rows": ([do("all ddl")], {"insert": IGNORE}),
    "all": ([ignore("all")], {"insert": IGNORE}),
    "all dml": ([ignore("all dml")], {"insert": IGNORE, "delete": IGNORE}),
    "all ddl": ([ignore("all ddl")], {"insert": DO}),
    "none ends the list": ([ignore("none", "insert")], {"insert": DO}),
    "none dml ends the list": ([ignore("none dml", "all")], {"insert": DO}),
    "none ddl does not": ([ignore("none ddl", "all")], {"insert": IGNORE}),
    "the first that says something decides": ([ignore("insert", "none")], {"insert": IGNORE, "update": DO}),
    "sql-pattern is not for rows": ([ignore(**{"sql-pattern": ["."]})], {"insert": DO}),
    "ignore goes before error": ([error("delete"), ignore("delete")], {"delete": IGNORE, "insert": DO}),
    "error stops": ([error("delete"), do("all")], {"delete": ERROR, "insert": DO}),
    "another schema": ([ignore("all", **{"schema-pattern": "other"})], {"insert": DO}),
    "another table": ([ignore("all", **{"table-pattern": "u*"})], {"insert": DO}),
    "this table": ([ignore("all", **{"table-pattern": "~^T"})], {"insert": IGNORE}),
}


@pytest.mark.parametrize("case", ROWS)
def test_row_events_are_filtered_as_in_dm(case):
    """The rules that match a table decide on each kind of row event."""
    rules, expected = ROWS[case]
    decided = event_filter(*rules)
    assert {event: decided.decide_row("shop", "t", event) for event in expected} == expected


DROP, ADD = "ALTER TABLE t DROP COLUMN c", "ALTER TABLE t ADD COLUMN c INT"
STATEMENTS = {
    "without rules everything counts": ([], {"drop column"}, DROP, DO),
    "by its name": ([ignore("drop column")], {"drop column"}, DROP, IGNORE),
    "by DM's group": ([ignore("incompatible ddl changes")], {"drop column"}, DROP, IGNORE),
    "no member of the group": ([ignore("incompatible ddl changes")], {"add column"}, ADD, DO),
    "a constraint is a member, by DM's name for it": (
        [error("incompatible DDL changes")],
        {"add primary key"},
        "ALTER TABLE t ADD PRIMARY KEY (i)",
        ERROR,
    ),
    "a finer name is an alter table, too": ([ignore("alter table")], {"add column"}, ADD, IGNORE),
    "an own name of DM is not": ([ignore("alter table")], {"drop column"}, DROP, DO),
    "all ddl": ([ignore("all ddl")], {"add column"}, ADD, IGNORE),
    "all dml": ([ignore("all dml")], {"add column"}, ADD, DO),
    "by its text, whatever its case": ([ignore(**{"sql-pattern": ["^alter\\s+table"]})], {"add column"}, ADD, IGNORE),
    "either match is enough to ignore": (
        [ignore("truncate table", **{"sql-pattern": ["drop column"]})],
        {"drop column"},
        DROP,
        IGNORE,
    ),
    "do needs both": ([do("all ddl", **{"sql-pattern": ["^create"]})], {"drop column"}, DROP, IGNORE),
    "do with both": ([do("all ddl", **{"sql-pattern": ["^create", "^alter"]})], {"drop column"}, DROP, DO),
    "do without events leaves out whatever has a name": (
        [do(**{"sql-pattern": ["^alter"]})],
        {"drop column"},
        DROP,
        IGNORE,
    ),
    "without a name only the text counts": (
        [ignore("all ddl"), error(**{"sql-pattern": ["procedure"]})],
        set(),
        "DROP PROCEDURE p",
        ERROR,
    ),
    "ignore goes before error": ([error("all ddl"), ignore("drop column")], {"drop column"}, DROP, IGNORE),
    "a statement of two actions, both ignored": (
        [ignore("drop column", "add column")],
        {"drop column", "add column"},
        f"{DROP}, ADD d INT",
        IGNORE,
    ),
    "half a statement cannot be left out": (
        [ignore("drop column")],
        {"drop column", "add column"},
        f"{DROP}, ADD d INT",
        ERROR,
    ),
}


@pytest.mark.parametrize("case", STATEMENTS)
def test_statements_are_filtered_as_in_dm(case):
    """The statement's event and text decide; a statement is never executed partially."""
    rules, events, sql, expected = STATEMENTS[case]
    assert event_filter(*rules).decide_ddl("shop", "t", events, sql) is expected


def test_a_schema_statement_matches_rules_for_the_whole_schema():
    """A rule with a table pattern does not match a schema, unless the pattern is `*`, as in DM."""
    drop = ({"drop database"}, "DROP DATABASE shop")
    assert event_filter(ignore("drop database")).decide_ddl("shop", None, *drop) is IGNORE
    assert event_filter(ignore("drop database", **{"table-pattern": "t*"})).decide_ddl("shop", None, *drop) is DO
    assert event_filter(ignore("drop database", **{"table-pattern": "*"})).decide_ddl("shop", None, *drop) is IGNORE


def test_patterns_are_case_sensitive_if_configured():
    """With `case-sensitive` a pattern matches only names in the same case."""
    rule = ignore("all", **{"schema-pattern": "Shop"})
    assert event_filter(rule).decide_row("shop", "t", "insert") is IGNORE
    assert event_filter(rule, case_sensitive=True).decide_row("shop", "t", "insert") is DO
