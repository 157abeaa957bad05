"""Which changes of a table's structure a snapshot's reader must not overlook."""

from dataclasses import replace

import pytest

from dmdelta.model.schema import Column, TableSchema
from dmdelta.source.snapshot.structure import plan_changed, plan_unfollowed

PLANNED = TableSchema(
    "d",
    "t",
    (
        Column("id", "varchar", length=10, charset="latin1", nullable=False, collation="latin1_bin"),
        Column("e", "enum", charset="latin1", members=("a", "b"), collation="latin1_bin"),
        Column("n", "decimal", precision=10, scale=2),
        Column("x", "binary", length=4),
        Column("m", "int"),
    ),
    ("id",),
)


def now(name, /, **changes):
    """The current columns, one of them changed."""
    return [replace(column, **changes) if column.name == name else column for column in PLANNED.columns]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("id", {"charset": "utf8mb4"}),
        ("id", {"collation": "latin1_german1_ci"}),
        ("id", {"type": "text"}),
        ("e", {"members": ("b", "a")}),
        ("e", {"members": ("a", "b", "c")}),
        ("n", {"precision": 12}),
        ("n", {"scale": 3}),
        ("x", {"length": 8}),
        ("m", {"type": "bigint"}),
        ("m", {"unsigned": True}),
        ("m", {"name": "k"}),
    ],
)
def test_another_form_or_meaning(name, changes):
    """A value of the column would be decoded wrongly, or chunks of a key would no longer have every row."""
    assert plan_changed(PLANNED, now(name, **changes)) == [name]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("id", {"length": 20}),
        ("id", {"collation": None}),
        ("e", {"collation": "latin1_german1_ci"}),
        ("m", {"nullable": False}),
        ("m", {"visible": False}),
    ],
)
def test_the_same_values(name, changes):
    """Values are decoded as before."""
    assert plan_changed(PLANNED, now(name, **changes)) == []


@pytest.mark.parametrize("place", range(6))
def test_an_added_column(place):
    """It may be anywhere: the planned ones are selected by name."""
    columns = list(PLANNED.columns)
    assert plan_changed(PLANNED, [*columns[:place], Column("new", "int"), *columns[place:]]) == []


def test_columns_that_exchange_their_names():
    """They have the planned names and types, but not the places."""
    first, second = Column("a", "int"), Column("b", "int")
    assert plan_changed(replace(PLANNED, columns=(first, second)), [second, first]) == ["b"]


def test_a_table_that_is_gone():
    """No column is found."""
    assert len(plan_changed(PLANNED, [])) == len(PLANNED.columns)


@pytest.mark.parametrize(("exact", "unfollowed"), [(False, []), (True, ["new (new)"])])
def test_a_column_that_is_added_before_an_exact_read(exact, unfollowed):
    """The log after the read does not have the statement; the log after the plan has it."""
    current = replace(PLANNED, columns=(*PLANNED.columns, Column("new", "int")))
    assert plan_unfollowed(PLANNED, current, exact=exact) == unfollowed


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("key", [(), ("m",), ("id", "m"), ("m", "id")])
def test_another_key(key, exact):
    """The log that overlaps the rows could not be applied to them by the planned key."""
    assert plan_unfollowed(PLANNED, replace(PLANNED, primary_key=key), exact=exact) == ["its key"]


@pytest.mark.parametrize("exact", [False, True])
def test_the_planned_structure(exact):
    """The name of the index does not matter: the columns are the key."""
    assert plan_unfollowed(PLANNED, replace(PLANNED, unique_key="u"), exact=exact) == []


def test_a_table_that_gets_a_key_before_an_exact_read():
    """Silver would have the rows without it."""
    planned = replace(PLANNED, primary_key=())
    assert plan_unfollowed(planned, PLANNED, exact=True) == ["its key"]
