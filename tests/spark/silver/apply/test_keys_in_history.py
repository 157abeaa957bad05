"""What of a table's keys its history contains: literals of integer keys, and nothing of any other key."""

import json
import logging
from pathlib import Path

import pytest

from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.rows.strategy import Mode, Step
from tests.support.changelog import Changelog

EMAIL = "{}@example.org"
MARK = "example.org"
TEXT = (
    TableSchema("d", "people", (Column("mail", "varchar", length=80), Column("v", "int")), ("mail",)),
    TableSchema("d", "pairs", (Column("n", "int"), Column("mail", "varchar", length=80), Column("v", "int")), ("n", "mail")),
    TableSchema("d", "hashes", (Column("mail", "varbinary", length=80), Column("v", "int")), ("mail",)),
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


def number_of(mail):
    """The number of a row whose key is text or bytes."""
    text = mail if isinstance(mail, str) else bytes(mail).decode()
    return int(text.split("@")[0])


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
        [("delete", 0), ("delete", 1)],
        [("update", 2), ("insert", 20), ("delete", 3)],
        [("move", 4, 21), ("update", 21)],
        [("update", 5), ("insert", 22)],
        [("delete", 6), ("insert", 6)],
    )
    for mode in (Mode.NORMAL, Mode.SAFE):
        for changes in ranges if mode is Mode.NORMAL else ranges[1:3]:
            begin = changelog.position
            for op, *numbers in changes:
                old, new = row(numbers[0]), row(numbers[-1], v=1)
                if op == "insert":
                    changelog.insert(old, name)
                elif op == "delete":
                    changelog.delete(old, name)
                else:
                    changelog.update(old, new, name)
            changelog.apply(begin, name=name, mode=mode)
    assert sorted(number_of(line[-2]) for line in changelog.silver(name)) == [2, *range(5, 23)]
    found = history_of(changelog.spark, changelog.lakehouse.silver(*name))
    assert sum('"operation"' in line for line in found) >= 8
    texts = [*found, caplog.text]
    assert not [text for text in texts if MARK in text or MARK.encode().hex() in text.lower()]


EDGES = [
    (Column("id", "bigint"), [-(2**63), -(2**63) + 1, -(2**63) + 2, 0, 2**63 - 1]),
    (Column("id", "bigint", unsigned=True), [0, 5, 6, 7, 2**63, 2**64 - 1]),
    (Column("id", "int"), [-(2**31), -1, 0, 1, 2**31 - 1]),
    (Column("id", "smallint"), [-(2**15), 2**15 - 3, 2**15 - 2, 2**15 - 1]),
    (Column("id", "tinyint"), [-128, -127, -126, 127]),
    (Column("id", "tinyint", unsigned=True), [0, 254, 255]),
]


@pytest.mark.parametrize(("key", "numbers"), EDGES, ids=[f"{key.type}{key.unsigned:d}" for key, _ in EDGES])
def test_integer_keys_are_replaced_in_one_commit(changelog, key, numbers):
    """Deletes, updates and inserts of any integer type up to its edges are one commit, whose condition is literals."""
    name = ("d", "numbers")
    schema = TableSchema(*name, (key, Column("v", "int")), ("id",))
    begin = changelog.position
    changelog.tell(schema)
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
    assert "`id` " in newest.operationParameters["predicate"]
    assert newest.version == 2  # created, loaded, replaced
