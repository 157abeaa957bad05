"""Table schemas as JSON."""

from dmdelta.model.schema import Column, TableSchema


def test_a_schema_without_collations_keeps_its_json():
    """Schemas with unknown collations keep their JSON, and so their version."""
    plain = TableSchema("s", "t", (Column("a", "varchar", charset="utf8mb4"),))
    assert "collation" not in plain.to_json()
    assert TableSchema.from_json(plain.to_json()) == plain


def test_a_collation_is_part_of_the_schema():
    """It round-trips through JSON and changes the version."""
    plain = TableSchema("s", "t", (Column("a", "varchar", charset="utf8mb4"),))
    collated = TableSchema("s", "t", (Column("a", "varchar", charset="utf8mb4", collation="utf8mb4_bin"),))
    assert TableSchema.from_json(collated.to_json()) == collated
    assert collated.version != plain.version
