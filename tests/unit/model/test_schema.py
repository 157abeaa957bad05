"""Table schemas as JSON."""

import pytest

from dmdelta.model.position import Position
from dmdelta.model.schema import Column, StoredColumn, StructureFrom, TableSchema


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


def test_a_default_is_no_part_of_the_version():
    """Table maps do not have it: structures from them are equal to those of the catalog."""
    plain = TableSchema("s", "t", (Column("a", "int"),))
    known = TableSchema("s", "t", (Column("a", "int", default="1"),))
    assert (known, known.version, known.to_json()) == (plain, plain.version, plain.to_json())
    assert TableSchema.from_json(known.to_json(defaults=True)).columns[0].default == "1"
    assert TableSchema.from_json(plain.to_json(defaults=True)).columns[0].default is None


def test_every_attribute_survives_json():
    """Also members, keys and names beyond ASCII, which stay readable."""
    columns = (
        Column("größe", "enum", members=("a", "ß"), charset="latin1", nullable=False, collation="latin1_bin"),
        Column("n", "decimal", unsigned=True, precision=9, scale=2, visible=False),
    )
    full = TableSchema("s", "t", columns, ("größe", "n"))
    assert TableSchema.from_json(full.to_json()) == full
    assert "größe" in full.to_json()
    assert 0 <= full.version < 2**63


@pytest.mark.parametrize("schema", [None, TableSchema("s", "t", (Column("a", "int"),), ("a",))])
def test_where_a_structure_begins_survives_json(schema):
    """This holds for a known structure, and for a dropped table."""
    found = StructureFrom(("s", "t"), Position(2, "b.000003", 77), schema)
    assert StructureFrom.from_json(found.to_json()) == found


def test_a_stored_column_remembers_its_own_type():
    own = Column("a", "int", unsigned=True, nullable=False)
    stored = StoredColumn.of(own, "DECIMAL(20,0)")
    assert (stored.stored, stored.own, stored.unsigned) == ("DECIMAL(20,0)", own, True)
