"""The table's keys in its history: literals of integer keys, and nothing of any other key."""

import json
import logging
from pathlib import Path

import pytest

from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.rows.key_predicate import SUFFIXES, plan_key_predicate
from dmdelta.silver.rows.strategy import Mode, Step
from tests.support.changelog import Changelog

EMAIL = "{}@example.org"
MARK = "example.org"
TEXT = (
    TableSchema("d", "people", (Column("mail", "varchar", length=80), Column("v", "int")), ("mail",)),
    TableSchema("d", "pairs", (Column("n", "int"), Column("mail", "varchar", length=80), Column("v", "int")), ("n", "mail")),
)  # fmt: skip


@pytest.fixture
def changelog(spark, lakehouse):
    return Changelog(spark, lakehouse)


def history_of(spark, place):
    """All that the history of a table contains: each column of each commit, and the commits' own JSON."""
    rows = spark.sql(f"DESCRIBE HISTORY {place}").collect()
    lines = [json.dumps(row.asDict(recursive=True), default=str) for row in rows]
    log = sorted((Path(place.split("`")[1]) / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for file in log for line in file.read_text().splitlines()]
    return lines + [json.dumps(action) for action in actions if "add" not in action and "remove" not in action]


@pytest.mark.parametrize("schema", TEXT, ids=lambda schema: schema.table)
def test_no_key_of_another_type_is_in_the_history(changelog, caplog, schema):
    """A load with inserts, updates, deletes and key changes, in both modes, names no key in history or log."""
    caplog.set_level(logging.DEBUG)
    name = schema.name

    def row(number, v=0):
        values = {"mail": EMAIL.format(number), "v": v, "n": number}
        return {column.name: values[column.name] for column in schema.columns}

    begin = changelog.position
    changelog.tell(schema)
    for number in range(20):
        changelog.insert(row(number), name)
    changelog.apply(begin, name=name)
    ranges = (
        (Mode.NORMAL, [("delete", 0), ("delete", 1)], Step.DELETE_MERGE),
        (Mode.NORMAL, [("update", 2), ("insert", 20)], Step.REPLACE),
        (Mode.NORMAL, [("update", 3), ("delete", 5), ("insert", 5), ("delete", 6), ("move", 4, 21)], Step.MERGE),
        (Mode.SAFE, [("move", 7, 22), ("update", 22), ("delete", 8)], Step.MERGE),
    )
    for mode, changes, step in ranges:
        begin = changelog.position
        for op, *numbers in changes:
            old, new = row(numbers[0]), row(numbers[-1], v=1)
            if op == "insert":
                changelog.insert(old, name)
            elif op == "delete":
                changelog.delete(old, name)
            else:
                changelog.update(old, new, name)
        assert changelog.apply(begin, name=name, mode=mode).steps == (step,)
    assert sorted(int(line[-2].split("@")[0]) for line in changelog.silver(name)) == [2, 3, 5, *range(9, 23)]
    found = history_of(changelog.spark, changelog.lakehouse.silver(*name))
    assert sum('"operation"' in line for line in found) >= 2 + len(ranges)
    assert not [text for text in [*found, caplog.text] if MARK in text]


EDGES = {
    "TINYINT": [-128, -127, -126, 0, 127],
    "SMALLINT": [-(2**15), 2**15 - 3, 2**15 - 2, 2**15 - 1],
    "INT": [-(2**31), -1, 0, 1, 2**31 - 1],
    "BIGINT": [-(2**63), -(2**63) + 1, -(2**63) + 2, 0, 2**63 - 1],
    "DECIMAL(20,0)": [0, 5, 6, 7, 2**63, 2**64 - 2, 2**64 - 1],
}


@pytest.mark.parametrize("kind", SUFFIXES)
def test_spark_understands_the_literals_of_each_type(spark, kind):
    """At the edges of the type, and its neighbours do not match."""
    keys = EDGES[kind]
    near = sorted({near for key in keys for near in (key - 1, key, key + 1) if keys[0] <= near <= keys[-1]})
    values = ", ".join(f"(CAST('{number}' AS {kind}))" for number in near)
    predicate = plan_key_predicate("id", kind, keys)
    rows = spark.sql(f"SELECT CAST(id AS STRING) AS id FROM VALUES {values} AS t(id) WHERE {predicate}").collect()
    assert sorted(int(row.id) for row in rows) == keys


KEYS = [(Column("id", "bigint"), EDGES["BIGINT"]), (Column("id", "bigint", unsigned=True), EDGES["DECIMAL(20,0)"])]


@pytest.mark.parametrize(("key", "numbers"), KEYS, ids=["signed", "unsigned"])
def test_integer_keys_are_replaced_in_one_commit(changelog, key, numbers):
    """Deletes, updates and inserts up to the edges of the type are one commit, whose condition is literals."""
    name = ("d", "numbers")
    changelog.tell(TableSchema(*name, (key, Column("v", "int")), ("id",)))
    begin = changelog.position.__class__(1, "binlog.000001", 4)
    for number in [*numbers[:-1], 100]:
        changelog.insert({"id": number, "v": 0}, name)
    changelog.apply(begin, name=name)
    begin = changelog.position
    changelog.delete({"id": numbers[0], "v": 0}, name)
    for number in numbers[1:-1]:
        changelog.update({"id": number, "v": 0}, {"id": number, "v": 1}, name)
    changelog.insert({"id": numbers[-1], "v": 1}, name)
    assert changelog.apply(begin, name=name).steps == (Step.REPLACE_LITERALS,)
    wanted = {(number, 1) for number in numbers[1:]} | {(100, 0)}
    assert {(int(number), v) for number, v in changelog.silver(name)} == wanted
    place = changelog.lakehouse.silver(*name)
    newest = changelog.spark.sql(f"DESCRIBE HISTORY {place} LIMIT 1").collect()[0]
    predicate = plan_key_predicate("id", silver_type(key), numbers)
    assert (newest.version, newest.operationParameters["predicate"]) == (2, predicate)  # created, loaded, replaced
