"""The cut-over of an online DDL in silver: what a statement on the real table leaves unknown stops the table."""

import logging
from dataclasses import replace
from decimal import Decimal

import pytest

from dmdelta.errors import UnsupportedSchemaChange
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import NO_RULES, OnlineDdl
from tests.support.changelog import ITEMS, Changelog

SHADOW = ("d", "_items_gho")
RULES = replace(NO_RULES, online=OnlineDdl((r"^_(.+)_gho$",), (r"^_(.+)_del$",)))
PRICED = TableSchema("d", "items", (*ITEMS.columns, Column("price", "decimal", precision=10, scale=4)), ("id",))
RENAMED = replace(PRICED, columns=(PRICED.columns[0], replace(PRICED.columns[1], name="w"), PRICED.columns[2]))
KEPT = [(1, "kept", Decimal("9.8765"))]


@pytest.fixture
def changelog(spark, lakehouse):
    return Changelog(spark, lakehouse)


def cut_over(changelog, action):
    """Apply the range in which an online DDL with one action ends."""
    begin = changelog.position
    changelog.tell(PRICED)
    changelog.insert({"id": 1, "v": "kept", "price": 9.8765})
    changelog.ddl("CREATE TABLE _items_gho LIKE items", SHADOW)
    changelog.ddl(f"ALTER TABLE _items_gho {action}", SHADOW)
    changelog.ddl("RENAME TABLE items TO _items_del, _items_gho TO items")
    if "RENAME" in action:
        changelog.tell(RENAMED)
        changelog.insert({"id": 2, "w": "later", "price": 1})
    return changelog.apply(begin, rules=RULES)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("MODIFY price FLOAT(7,2)", "the server rounds the values of price to the digits of the new type"),
        ("FROBNICATE v RENAME COLUMN v TO w", "FROBNICATE V RENAME is not understood"),
    ],
)
def test_an_unknown_result_stops_the_table(changelog, action, reason):
    """The table stops with its rows and columns: nothing is rounded, and no column is dropped and added again."""
    with pytest.raises(UnsupportedSchemaChange, match=reason):
        cut_over(changelog, action)
    assert changelog.silver() == KEPT


@pytest.mark.parametrize(("action", "warned"), [("ADD UNIQUE KEY (v)", True), ("ADD KEY (v)", False)])
def test_a_unique_index_warns(changelog, caplog, action, warned):
    """Silver follows a new unique index, and the log advises to compare the rows."""
    caplog.set_level(logging.WARNING)
    cut_over(changelog, action)
    assert changelog.silver() == KEPT
    assert any("run dmdelta validate" in record.getMessage() for record in caplog.records) is warned
