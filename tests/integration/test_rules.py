"""Rules of the spec against a real server: which events reach silver, and how online DDL changes it."""

from decimal import Decimal

import pytest
import yaml

from dmdelta.config import load_spec
from dmdelta.rules import SourceRules
from tests.support.online_ddl import GH_OST, GH_OST_TWO_STEP, PT_OSC, ROUNDING, TABLE, UNIQUE
from tests.support.pipeline import Pipeline
from tests.support.recording import record

ROWS = [(1, "x", 10), (2, None, 20), (3, "z", None)]
"""The rows of TABLE."""


@pytest.fixture
def follow(mysql80, spark, tmp_path):
    """Run statements in a database of their own and follow them under rules; silver's rows of t, and the pipeline."""

    def run(statements, rules, *, each=False):
        database = mysql80.fresh_database("rules")
        source = {"source-id": "s1", "binlog-dir": str(tmp_path)}
        spec_of = {"name": "t", "sources": [source], "lakehouse": {"root": str(tmp_path / "lake")}, **rules}
        path = tmp_path / "spec.yml"
        path.write_text(yaml.safe_dump(spec_of).replace("{db}", database))
        spec = load_spec(path)
        followed = Pipeline(spark, tmp_path / "lake", rules=SourceRules.from_spec(spec, spec.sources[0]))
        for statement in (*TABLE, *statements):
            mysql80.execute(statement.replace("{db}", database), database=database)
            if each:
                followed.catch_up(record(mysql80, tmp_path / "log"), "s1", [database])
        followed.catch_up(record(mysql80, tmp_path / "log"), "s1", [database])
        return followed, database

    return run


def rows(followed, database):
    return {tuple(row)[:-2] for row in followed.silver(database, "t").collect()}


@pytest.mark.parametrize(
    ("events", "statements", "left"),
    [
        (["delete"], ["DELETE FROM t WHERE id = 1"], {(1, "x", 10), (2, None, 20), (3, "z", None)}),
        (["update", "insert"], ["UPDATE t SET b = 0", "DELETE FROM t WHERE id = 2"], set()),
        (["truncate table", "drop table"], ["TRUNCATE t", "INSERT INTO t VALUES (4,'n',1)", "DROP TABLE t"],
         {(1, "x", 10), (2, None, 20), (3, "z", None), (4, "n", 1)}),
        (["add column"], ["ALTER TABLE t ADD c INT DEFAULT 5 AFTER id", "INSERT INTO t VALUES (4,1,'n',1)",
                          "UPDATE t SET b = 7 WHERE id = 1", "ALTER TABLE t DROP COLUMN c"],
         {(1, "x", 7), (2, None, 20), (3, "z", None), (4, "n", 1)}),
        (["drop column"], ["ALTER TABLE t DROP b", "INSERT INTO t VALUES (4,'n')", "UPDATE t SET a = 'w' WHERE id = 1"],
         {(1, "w", 10), (2, None, 20), (3, "z", None), (4, "n", None)}),
        (["drop column"], ["ALTER TABLE t DROP b, ADD c INT DEFAULT 4 AFTER id", "INSERT INTO t VALUES (4,5,'n')"],
         {(1, 4, "x", 10), (2, 4, None, 20), (3, 4, "z", None), (4, 5, "n", None)}),
    ],
)  # fmt: skip
def test_ignored_events(follow, events, statements, left):
    """Events that a filter ignores do not reach silver; later events do."""
    rule = {"f": {"schema-pattern": "{db}", "table-pattern": "t", "events": events, "action": "Ignore"}}
    followed, database = follow(statements, {"filters": rule}, each=len(statements) == 3)
    assert followed.refused == {}
    assert rows(followed, database) == left


_STEPS = [pytest.param(False, id="in one batch"), pytest.param(True, id="step by step", marks=pytest.mark.long)]


@pytest.mark.parametrize("each", _STEPS)
def test_an_insert_replaces_the_row_whose_delete_was_ignored(follow, each):
    """Its key exists once."""
    rule = {"f": {"schema-pattern": "{db}", "table-pattern": "t", "events": ["delete"], "action": "Ignore"}}
    statements = ["DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 'again', 11)"]
    followed, database = follow(statements, {"filters": rule}, each=each)
    found = [tuple(row)[:-2] for row in followed.silver(database, "t").collect()]
    assert sorted(found) == [(1, "again", 11), (2, None, 20), (3, "z", None)]


@pytest.mark.long
def test_a_renamed_table_is_dropped_with_its_database(follow):
    """No row event has its structure under the new name."""
    followed, database = follow(["RENAME TABLE t TO u", "DROP DATABASE {db}"], {}, each=True)
    assert followed.refused == {}
    assert followed.silver(database, "u").isEmpty()


def test_a_filter_that_stops(follow):
    """Error stops the table before the statement; the message contains it."""
    rule = {"f": {"schema-pattern": "{db}", "events": ["drop column"], "action": "Error"}}
    followed, database = follow(["ALTER TABLE t DROP b"], {"filters": rule})
    (error,) = followed.refused.values()
    assert "a filter of the spec has the action Error" in str(error)
    assert "ALTER TABLE t DROP b" in str(error)
    assert len(rows(followed, database)) == 3


def test_expression_filters(follow):
    """Rows of each kind of event are left out by their old or new values."""
    kinds = [
        {"insert-value-expr": "b > 15 OR a = 'Z'"},
        {"update-old-value-expr": "id = 1", "update-new-value-expr": "b IS NULL"},
        {"delete-value-expr": "id = 1"},
    ]
    rule = {f"e{number}": {"schema": "{db}", "table": "t", **kind} for number, kind in enumerate(kinds)}
    statements = [
        "UPDATE t SET b = NULL WHERE id = 1",  # left out: both hold
        "INSERT INTO t VALUES (5,'n',5),(6,'n',60),(7,'n',NULL)",
        "UPDATE t SET b = 6 WHERE id = 5",
        "DELETE FROM t WHERE id IN (1, 7)",
    ]
    followed, database = follow(statements, {"expression-filter": rule})
    assert followed.refused == {}
    assert rows(followed, database) == {(1, "x", 10), (5, "n", 6)}


@pytest.mark.parametrize("each", _STEPS)
@pytest.mark.parametrize(
    "sequence",
    [
        pytest.param(GH_OST, id="gh-ost", marks=pytest.mark.long),
        pytest.param(GH_OST_TWO_STEP, id="gh-ost-two-step"),
        pytest.param(PT_OSC, id="pt-osc"),
    ],
)
def test_online_ddl(follow, mysql80, sequence, each):
    """The tool's steps under writes: silver lacks its tables, and the real table changes at the cut-over."""
    followed, database = follow(sequence.strip().splitlines(), {}, each=each)
    assert followed.refused == {}
    assert followed.differences(mysql80, database, "t") == []
    assert [path.name for path in (followed.root / "silver" / database).iterdir()] == ["t"]


def test_an_online_ddl_that_rounds_stops_the_table(follow):
    """As after a direct ALTER, silver does not know the values: it keeps those before the cut-over."""
    followed, database = follow(ROUNDING.strip().splitlines(), {})
    (error,) = followed.refused.values()
    assert "the server rounds the values of price to the digits of the new type" in str(error)
    assert rows(followed, database) == {(key, a, b, Decimal("9.8765")) for key, a, b in ROWS}


def test_an_online_ddl_that_leaves_out_rows(follow, mysql80, caplog):
    """The log has no deletion of a row that violates a new unique index: silver keeps it, and a warning says so."""
    followed, database = follow(UNIQUE.strip().splitlines(), {})
    assert followed.refused == {}
    assert rows(followed, database) == {*ROWS, (4, "x", 40)}
    assert mysql80.query("SELECT COUNT(*) FROM t", database) == ((3,),)
    assert any("run dmdelta validate" in record.getMessage() for record in caplog.records)
