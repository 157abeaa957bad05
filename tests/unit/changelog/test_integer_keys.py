"""The keys of changes in memory, against a computation row by row."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.binlog.values import variant
from dmdelta.bronze.arrow import VARIANT
from dmdelta.changelog.integer_keys import integer_key, net_changes
from dmdelta.errors import LakehouseError
from dmdelta.model.schema import Column, ConstantColumn, StoredColumn, TableSchema
from tests.support.variant_pieces import int8_piece

KEYS = (b"id", b"v")
KINDS = {
    "tinyint": (8, int8_piece),
    "smallint": (16, variant.int16_piece),
    "int": (32, variant.int32_piece),
    "bigint": (64, variant.int64_piece),
}


def schema_of(kind="bigint", *, unsigned=False):
    return TableSchema("d", "t", (Column("v", "int"), Column("id", kind, unsigned=unsigned)), ("id",))


def images(values):
    """VARIANTs of objects with a key's piece; None: no image."""
    pieces = [b"" if value is None else variant.object_piece([(0, value), (1, int8_piece(1))]) for value in values]
    metadata = pa.array([variant.metadata_bytes(KEYS)] * len(values), pa.binary())
    absent = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays([pa.array(pieces, pa.binary()), metadata], fields=list(VARIANT), mask=absent)


def rows_of(changes, encode, xid=None, first=0):
    """Rows of (op, old key, new key)."""
    ops, olds, news = (list(column) for column in zip(*changes, strict=True)) if changes else ([], [], [])
    encoded = [[None if key is None else encode(key) for key in keys] for keys in (olds, news)]
    return pa.table(
        {
            "op": pa.array(ops, pa.string()),
            "xid": pa.array([xid] * len(ops), pa.string()),
            "key_changed": pa.array([op == "update" and old != new for op, old, new in changes], pa.bool_()),
            "before": images(encoded[0]),
            "after": images(encoded[1]),
            "epoch": pa.array([1] * len(ops), pa.int32()),
            "seq": pa.array(range(first, first + len(ops)), pa.int64()),
            "row": pa.array([0] * len(ops), pa.int32()),
            "committed_at": pa.array([0] * len(ops), pa.timestamp("us", "UTC")),
        }
    )


def changes(numbers):
    return st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["insert", "read"]), st.none(), numbers),
            st.tuples(st.just("update"), numbers, numbers),
            st.tuples(st.just("delete"), numbers, st.none()),
            st.tuples(st.sampled_from(["schema", "ddl"]), st.none(), st.none()),
        ),
        max_size=20,
    )


@given(st.data())
def test_old_and_new_keys(data):
    """Every type, in several chunks, with rows of XA transactions, which do not count."""
    kind = data.draw(st.sampled_from([*KINDS, "unsigned"]))
    bits, encode = KINDS.get(kind, (64, variant.uint64_piece))
    low, high = (0, 2**64 - 1) if kind == "unsigned" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    some = data.draw(changes(st.integers(low, high)))
    schema = schema_of("bigint" if kind == "unsigned" else kind, unsigned=kind == "unsigned")
    prepared = rows_of([("insert", None, high)], encode, xid="x")
    net = net_changes(pa.concat_tables([rows_of(some[:3], encode), rows_of(some[3:], encode), prepared]), schema)
    assert net.keys.tolist() == sorted({key for _, *both in some for key in both if key is not None})
    assert net.keys.dtype == ("uint64" if kind == "unsigned" else "int64")


@given(changes(st.integers(1, 4)))
def test_the_last_change_of_each_key(some):
    """The result equals that of an interpreter that applies the changes one by one to a table of keys."""
    table = {}
    for at, (op, old, new) in enumerate(some):
        if op in ("delete", "update"):
            table.pop(old, None)
        if op in ("insert", "read", "update"):
            table[new] = at
    upserts = net_changes(
        pa.concat_tables([rows_of(some[:5], int8_piece), rows_of(some[5:], int8_piece, first=5)]),
        schema_of(),
    ).upserts
    assert upserts["seq"].to_pylist() == sorted(table.values())


def test_an_image_without_the_key_is_refused():
    """No key is omitted silently."""
    rows = rows_of([("insert", None, 1)], int8_piece)
    with pytest.raises(LakehouseError, match="lacks the key column other"):
        net_changes(rows, TableSchema("d", "t", (Column("other", "int"),), ("other",)))


def test_which_keys_are_integers():
    """One integer column in its own type; a merged table's key contains the shard."""
    assert integer_key(schema_of()).name == "id"
    text = TableSchema("d", "t", (Column("id", "varchar"),), ("id",))
    decimal = TableSchema("d", "t", (Column("id", "decimal", precision=20),), ("id",))
    both = TableSchema("d", "t", (Column("a", "int"), Column("b", "int")), ("a", "b"))
    keyless = TableSchema("d", "t", (Column("a", "int"),))
    stored = TableSchema("d", "t", (StoredColumn.of(Column("a", "int"), "BIGINT"),), ("a",))
    constant = TableSchema("d", "t", (ConstantColumn("a", "int", value="1"),), ("a",))
    assert [integer_key(each) for each in (text, decimal, both, keyless, stored, constant)] == [None] * 6
