"""Structures of tables as JSON."""

from dmdelta.model.schema import Column, TableSchema


def test_a_structure_without_collations_is_written_as_it_always_was():
    """Structures that nobody told the collations of keep their JSON, and so their version."""
    plain = TableSchema("s", "t", (Column("a", "varchar", charset="utf8mb4"),))
    assert "collation" not in plain.to_json()
    assert TableSchema.from_json(plain.to_json()) == plain


def test_a_collation_is_part_of_the_structure():
    """It survives the way through JSON and makes a version of its own."""
    plain = TableSchema("s", "t", (Column("a", "varchar", charset="utf8mb4"),))
    told = TableSchema("s", "t", (Column("a", "varchar", charset="utf8mb4", collation="utf8mb4_bin"),))
    assert TableSchema.from_json(told.to_json()) == told
    assert told.version != plain.version
