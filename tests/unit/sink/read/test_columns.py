"""Rendering a table's changes from Spark's rows: key changes, partial images, tables without a key."""

import pyarrow as pa
import pytest

from dmdelta.binlog.values import variant
from dmdelta.bronze.arrow import VARIANT
from dmdelta.errors import SinkError
from dmdelta.model import variant_types
from dmdelta.model.schema import Column, TableSchema
from dmdelta.sink.change import Act
from dmdelta.sink.execute.compactor import compact
from dmdelta.sink.plan.table_mapping import plan_table
from dmdelta.sink.plan.target_table import TargetColumn, TargetKey, TargetTable
from dmdelta.sink.read.change_reader import changes_of
from dmdelta.sink.read.columns import rendered
from dmdelta.sink.read.image_query import Rendering

SCHEMA = TableSchema("d", "t", (Column("id", "int"), Column("c", "varchar", charset="utf8mb4")), ("id",))
COLUMNS = {"id": TargetColumn("id", "int", nullable=False), "c": TargetColumn("c", "varchar", "utf8mb4_bin")}
BY_ID = (TargetKey("PRIMARY", (("id", None),)),)
BY_BOTH = (*BY_ID, TargetKey("u", (("c", None),)))
ABSENT = (variant_types.NULL, variant.metadata_bytes(()))


def image(id_=None, c=None, *, absent=False):
    """A row image: (value, dictionary). None for no image of it; `absent`: it does not have c."""
    fields = [
        (1, variant_types.NULL if c is None else variant.string_piece(c.encode())),
        (0, variant.int32_piece(id_ or 0)),
    ]
    return variant.object_piece(fields[1:] if absent else fields), variant.metadata_bytes((b"id", b"c"))


XA = [
    ("insert", None, image(10, "a"), None, None),
    ("insert", None, image(11, "old"), None, None),
    ("update", image(11, "old"), image(11, "NEW"), False, None),
    ("insert", None, image(12, "later"), None, None),
]
"""An event of two rows and one of a single row, prepared in an XA transaction, and a row behind its commit."""
XA_PLACES = [(900, 100, 0), (900, 100, 1), (900, 200, 0), (901, 901, 0)]


def changes(*rows, keys=BY_ID, **wanted):
    """(op, before, after, key_changed, image's names) of rows, as changes."""
    return [change for _, change in changes_of(rendered(*read(*rows, keys=keys, **wanted)))]


def read(*rows, keys=BY_ID, places=None, **wanted):
    """What Spark reads of the rows of `changes`, last row first, and the query.

    Args:
        places: at, own and row of each of them; each row is an event of its own by default.
    """
    plan = plan_table(SCHEMA.name, SCHEMA, TargetTable("d", "t", COLUMNS, keys))
    at, own, row = zip(*(places or [(number, number, 0) for number in range(len(rows))])[::-1], strict=True)

    def images(found):
        values, dictionaries = zip(*(one or ABSENT for one in found), strict=True)
        arrays = [pa.array(values, pa.binary()), pa.array(dictionaries, pa.binary())]
        return pa.StructArray.from_arrays(arrays, fields=list(VARIANT))

    ops, before, after, moved, names = zip(*rows[::-1], strict=True)
    table = pa.table(
        {
            "op": pa.array(ops),
            "at": pa.array(at, pa.int64()),
            "own": pa.array(own, pa.int64()),
            "row": pa.array(row, pa.int32()),
            "after": images(after),
            "before": images(before),
            "key_changed": pa.array(moved, pa.bool_()),
            "image": pa.array(names, pa.list_(pa.string())),
        }
    )
    return table, Rendering(plan, "", frozenset(ops), **wanted)


def test_rows_of_a_table_with_a_key():
    """In log order; an update that changes the key has the old key and assignments."""
    insert, update, move, delete = changes(
        ("insert", None, image(1, "a"), None, None),
        ("update", None, image(1, "b"), False, None),
        ("update", image(1, "b"), image(2, "b"), True, None),
        ("delete", image(2, "b"), None, None, None),
    )
    assert insert == (Act.INSERT, "1", None, "(1,'a')", None, ("1.id.`d`.`t`",), ((0, 0),))
    assert update == (Act.UPDATE, "1", None, "(1,'b')", None, ("1.id.`d`.`t`",), ((1, 0),))
    keys = ("2.id.`d`.`t`", "1.id.`d`.`t`")
    assert move == (Act.UPDATE, "2", "1", "(2,'b')", "`id`=2, `c`='b'", keys, ((2, 0),))
    assert delete == (Act.DELETE, "2", None, None, None, ("2.id.`d`.`t`",), ((3, 0),))


def test_rows_of_an_xa_transaction_keep_their_order():
    """All take effect at the commit, at 900; then the order is that of the events, of which each begins at row 0."""
    ordered = changes(*XA, places=XA_PLACES)
    assert [(change.act, change.values, change.events) for change in ordered] == [
        (Act.INSERT, "(10,'a')", ((100, 0),)),
        (Act.INSERT, "(11,'old')", ((100, 1),)),
        (Act.UPDATE, "(11,'NEW')", ((200, 0),)),
        (Act.INSERT, "(12,'later')", ((901, 0),)),
    ]
    assert [change.values for change in compact(ordered).rows] == ["(10,'a')", "(11,'NEW')", "(12,'later')"]


def test_unique_values_before_and_after_are_keys():
    """An update has the unique value before it as a key, too; NULL is no key."""
    update, nobody = changes(
        ("update", image(1, "old"), image(1, "New "), False, None),
        ("update", image(2, None), image(2, None), False, None),
        keys=BY_BOTH,
    )
    assert update.keys == ("1.id.`d`.`t`", "NEU.c.`d`.`t`", "OLD.c.`d`.`t`")
    assert nobody.keys == ("2.id.`d`.`t`",)


def test_images_with_some_columns_are_assignments():
    """Columns that are not in the image are neither values nor assigned."""
    partial, full = changes(
        ("update", image(1, "x"), image(1, "x"), False, ["id"]),
        ("insert", None, image(2, "y"), None, None),
        partial=True,
    )
    assert (partial.values, partial.sets) == (None, "`id`=1")
    assert (full.values, full.sets) == ("(2,'y')", None)


def test_deletes_without_the_columns_of_a_key():
    """They have the key of the table, and so does every other change with them; NULL in a full image is a value."""
    taker = ("insert", None, image(2, "u5"), None, None)
    lacking = changes(("delete", image(1, absent=True), None, None, None), taker, keys=BY_BOTH)
    assert [change.keys for change in lacking] == [("`d`.`t`",)] * 2
    full = changes(("delete", image(1, None), None, None, None), taker, keys=BY_BOTH)
    assert [change.keys for change in full] == [("1.id.`d`.`t`",), ("2.id.`d`.`t`", "U5.c.`d`.`t`")]


def test_table_without_a_key():
    """A row is identified by all its values; equal rows have the same key."""
    insert, update, delete = changes(
        ("insert", None, image(1, "a"), None, None),
        ("update", image(1, "a"), image(1, None), None, None),
        ("delete", image(1, None), None, None, None),
        keys=(),
    )
    same = "`id` = 1 AND `c` BETWEEN 'a' AND 'a' AND BINARY CONVERT(`c` USING utf8mb4) = BINARY 'a'"
    assert (insert.identity, update.identity, delete.identity) == ("", same, "`id` = 1 AND `c` IS NULL")
    assert update.sets == "`id`=1, `c`=NULL"
    assert set(insert.keys) < set(update.keys)
    assert set(delete.keys) < set(update.keys)


def test_images_that_lack_the_targets_key():
    """The target's key is NULL in an image: the row cannot be identified, and the error has a hint."""
    by_name = {**COLUMNS, "c": TargetColumn("c", "varchar", "utf8mb4_bin", nullable=False)}
    plan = plan_table(SCHEMA.name, SCHEMA, TargetTable("d", "t", by_name, (TargetKey("PRIMARY", (("c", None),)),)))
    value, dictionary = image(1, None)
    after = pa.StructArray.from_arrays([pa.array([value]), pa.array([dictionary])], fields=list(VARIANT))
    numbers = pa.array([5], pa.int64())
    table = pa.table({"op": pa.array(["insert"]), "at": numbers, "own": numbers, "row": numbers, "after": after})
    with pytest.raises(SinkError, match="lack the key"):
        rendered(table, Rendering(plan, "", frozenset(("insert",))))
