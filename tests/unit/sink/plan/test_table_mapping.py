"""How rows are written, based on the target's own columns and keys."""

import pytest

from dmdelta.errors import SinkError
from dmdelta.model.schema import Column, TableSchema
from dmdelta.sink.plan.foreign_keys import ALONE, Connected, Parent, Reference
from dmdelta.sink.plan.table_mapping import plan_table
from dmdelta.sink.plan.target_table import TargetColumn, TargetKey, TargetTable

SOURCE = TableSchema("d", "t", (Column("id", "int"), Column("name", "varchar", charset="utf8mb4")), ("id",))
COLUMNS = {
    "id": TargetColumn("id", "int"),
    "name": TargetColumn("name", "varchar", "utf8mb4_0900_ai_ci", nullable=True),
}
PRIMARY = TargetKey("PRIMARY", (("id", None),))


def planned(*keys, columns=None, foreign_keys=False, connected=ALONE):
    target = TargetTable("d", "t", {**COLUMNS, **(columns or {})}, keys)
    return plan_table(("d", "t"), SOURCE, target, foreign_keys=foreign_keys, connected=connected)


def test_same_table():
    """The target has the source's key, a number: its literal is unambiguous."""
    plan = planned(PRIMARY)
    assert plan.shape == ("`d`.`t`", "(`id`, `name`)", "`id`=VALUES(`id`), `name`=VALUES(`name`)", "`id`")
    assert plan.plain
    assert not plan.whole


@pytest.mark.parametrize(("bits", "assigned"), [(56, "`flags`=VALUES(`flags`)"), (57, "")])
def test_long_bits_of_tidb(bits, assigned):
    """VALUES() reverses their bytes in TiDB, so it is not used."""
    schema = TableSchema("d", "t", (Column("flags", "bit", length=bits),), ())
    target = TargetTable("d", "t", {"flags": TargetColumn("flags", "bit")})
    assert plan_table(("d", "t"), schema, target, tidb=True).shape.assigned == assigned
    assert plan_table(("d", "t"), schema, target).shape.assigned == "`flags`=VALUES(`flags`)"


def test_more_columns():
    """The target's own columns are not written."""
    assert planned(PRIMARY, columns={"own": TargetColumn("own", "int")}).shape.columns == "(`id`, `name`)"


def test_generated_column_takes_no_values():
    """Generated columns of the target are not written."""
    generated = {"name": TargetColumn("name", "varchar", "utf8mb4_bin", generated=True)}
    assert planned(PRIMARY, columns=generated).shape.columns == "(`id`)"


def test_other_key():
    """WHERE uses the target's key, not the source's."""
    named = {"name": TargetColumn("name", "varchar", "utf8mb4_bin", nullable=False)}
    plan = planned(TargetKey("u", (("name", None),)), columns=named)
    assert plan.shape.identity == "`name`"
    assert not plan.plain
    assert not plan.watched


def test_nullable_unique_key_does_not_identify_rows():
    """A nullable unique key does not identify every row, but causality compares its values."""
    plan = planned(TargetKey("u", (("name", None),)))
    assert plan.shape.keyless
    assert [key.parts[0][1] for key in plan.keys] == ["name"]
    assert plan.watched


def test_no_key():
    """Without a key a row is identified by all its columns."""
    plan = planned()
    assert plan.shape.keyless
    assert plan.keys == ()


def test_key_of_the_targets_own_column():
    """For a key with a column that the source lacks, only its other columns are compared."""
    plan = planned(PRIMARY, TargetKey("u", (("own", None), ("name", 10))), columns={"own": TargetColumn("own", "int")})
    assert [[part[1:] for part in key.parts] for key in plan.keys] == [[("id", None)], [("name", 10)]]


@pytest.mark.parametrize(
    "key", [TargetKey("e", ((None, None),)), TargetKey("g", (("computed", None),))], ids=["expression", "generated"]
)
def test_key_of_unknown_values(key):
    """A unique key with values that are not in the log: the table's changes stay in one order."""
    columns = {"computed": TargetColumn("computed", "int", generated=True)}
    assert planned(PRIMARY, key, columns=columns).whole


def test_key_of_another_type():
    """Texts that are numbers in the target may be equal there: the changes stay in one order."""
    columns = {"name": TargetColumn("name", "bigint")}
    assert planned(PRIMARY, TargetKey("u", (("name", None),)), columns=columns).whole


def test_column_is_missing():
    """A column that the target lacks stops the sink with the table's and the column's name."""
    target = TargetTable("d", "t", {"id": COLUMNS["id"]}, (PRIMARY,))
    with pytest.raises(SinkError, match=r"d\.t has no column name"):
        plan_table(("d", "t"), SOURCE, target)


def test_documents_that_are_text_in_the_target():
    """MariaDB's JSON is text, and is compared as such."""
    source = TableSchema("d", "t", (Column("j", "json"), Column("k", "json")), ())
    there = {"j": TargetColumn("j", "longtext", "utf8mb4_bin"), "k": TargetColumn("k", "json")}
    assert plan_table(("d", "t"), source, TargetTable("d", "t", there)).as_text == {"j"}


def test_groups_of_foreign_keys():
    """The key of a table as a whole is that of its group; a group with a cascade has one order from the start."""
    assert planned(PRIMARY).table_key == "`d`.`t`"
    plan = planned(PRIMARY, foreign_keys=True, connected=Connected("group"))
    assert (plan.table_key, plan.whole) == ("group", "")
    plan = planned(PRIMARY, foreign_keys=True, connected=Connected("group", cascades=True))
    assert plan.table_key == "group"
    assert plan.whole


@pytest.mark.parametrize("names", [("ID",), ("name",), ("id", "name")], ids=["other case", "no key", "more than a key"])
def test_what_foreign_keys_reference(names):
    """It is a further key of the parent, and the same as that of its children, also if it is no key of the parent."""
    reference = Reference("D", "T", names)
    parent = planned(PRIMARY, foreign_keys=True, connected=Connected("group", referenced=(reference,)))
    own = ("id", "name")[: len(names)]
    child = planned(PRIMARY, foreign_keys=True, connected=Connected("group", parents=(Parent(own, reference),)))
    shown = [[(tuple(name for _, name, _ in key.parts), key.ends) for key in plan.keys] for plan in (parent, child)]
    assert shown[0] == shown[1] == [(("id",), ".`d`.`t`"), (names, ".`D`.`T`")]


def test_references_to_a_key():
    """The parent's own key relates it to its children; it has no other key, and its literal remains the key."""
    connected = Connected("group", referenced=(Reference("d", "t", ("id",)),))
    plan = planned(PRIMARY, foreign_keys=True, connected=connected)
    assert plan.plain


def test_references_to_columns_that_are_not_in_the_log():
    """Nothing relates a parent to its children: their changes stay in one order."""
    connected = Connected("group", referenced=(Reference("d", "t", ("own",)),))
    assert planned(PRIMARY, foreign_keys=True, connected=connected).whole
    connected = Connected("group", parents=(Parent(("own",), Reference("d", "p", ("id",))),))
    assert planned(PRIMARY, foreign_keys=True, connected=connected).whole


def test_checked_foreign_keys():
    """A child has its parent's key in the form of the parent's own changes; unchecked ones are ignored."""
    connected = Connected("group", parents=(Parent(("id",), Reference("d", "p", ("key",))),))
    assert len(planned(PRIMARY, connected=connected).keys) == 1
    keys = planned(PRIMARY, foreign_keys=True, connected=connected).keys
    assert [(key.parts[0][1], key.ends) for key in keys] == [("id", ".`d`.`t`"), ("key", ".`d`.`p`")]
