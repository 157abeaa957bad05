"""A table on two servers: the compared columns, and the differing documents."""

from dataclasses import replace

from dmdelta.model.schema import Column, TableSchema
from dmdelta.quality.server_tables import differing_texts, plan_server_comparison

SOURCE = TableSchema(
    "d",
    "t",
    (
        Column("id", "int"),
        Column("name", "varchar", length=20, charset="latin1"),
        Column("d", "decimal", precision=9, scale=2),
        Column("f", "float"),
        Column("at", "datetime", precision=3),
        Column("j", "json"),
        Column("w", "vector"),
        Column("lost", "int"),
    ),
    ("id",),
)
TARGET = TableSchema(
    "other",
    "t",
    (
        Column("ID", "bigint"),
        Column("name", "mediumtext", charset="utf8mb4"),
        Column("d", "decimal", precision=12, scale=3),
        Column("f", "double"),
        Column("at", "timestamp", precision=3),
        Column("j", "longtext", charset="utf8mb4"),
        Column("more", "int"),
    ),
)


def test_both_sides_have_the_same_columns():
    """With each server's names; columns without a common text, or missing on one server, are listed."""
    plan = plan_server_comparison(SOURCE, TARGET, ("mysql", "mariadb"), 40_000)
    assert [column.name for column in plan.source.columns] == ["id", "name", "at"]
    assert [column.name for column in plan.target.columns] == ["ID", "name", "at"]
    assert [column.name for column in plan.target.key] == ["ID"]
    assert (plan.documents.source, plan.documents.target) == (("j",), ("j",))
    assert plan.uncompared == ("d", "f", "w", "lost")
    assert plan.source.buckets == plan.target.buckets == 40
    assert plan.source.hash.source.replace("`id`", "`ID`") == plan.target.hash.source


def test_documents_of_a_table_without_a_key_are_not_compared():
    """Without a key, the target's row of a source row is unknown."""
    plan = plan_server_comparison(replace(SOURCE, primary_key=()), TARGET, ("mysql", "mysql"), 1)
    assert plan.source.key == plan.source.columns
    assert (plan.documents.source, "j" in plan.uncompared) == ((), True)


def test_documents_are_compared_by_meaning():
    """Only for keys that both sides have: the others are missing rows."""
    source = [("1", '{"a": 1.0}', None), ("2", "[1]", None), ("3", "1", "2"), ("9", "1", "1")]
    target = [("1", '{"a":1}', None), ("2", "[1]", "null"), ("3", "2", "2")]
    assert differing_texts(("j", "k"), source, target) == {"2": {"k": (None, "null")}, "3": {"j": ("1", "2")}}
