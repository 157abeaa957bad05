"""The change of a real table by the statements on its shadow table."""

import pytest

from dmdelta.ddl.tracking.effects import Altered, Moved, Unread
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.schema.ddl_effects import TableLog
from dmdelta.silver.schema.range_profile import StructureEvent
from dmdelta.silver.schema.shadow_change import plan_shadow_change

REAL = TableSchema(
    "db",
    "t",
    (
        Column("id", "int", nullable=False),
        Column("v", "varchar", length=80),
        Column("price", "decimal", precision=10, scale=4),
    ),
    ("id",),
)
SHADOW = ("db", "_t_gho")
CREATE = "CREATE TABLE _t_gho LIKE t"


def event(number, op, text):
    return StructureEvent(Position(1, "b.000001", 10 * number), 0, op, text)


def change(*statements, recorded=None):
    events = [event(number, Op.DDL, sql) for number, sql in enumerate(statements, 1)]
    if recorded is not None:
        events.insert(0, event(0, Op.SCHEMA, recorded.to_json()))
    log = TableLog(SHADOW, "mysql", events, other=lambda name, _: REAL if name == REAL.name else None)
    return plan_shadow_change(log, REAL)


def test_columns_keep_their_origin_over_several_statements():
    """A column has the values of the real table's column from which all statements together derive it."""
    altered = change(
        CREATE, "ALTER TABLE _t_gho CHANGE v w VARCHAR(90), ADD c INT", "ALTER TABLE _t_gho CHANGE w x TEXT"
    )
    assert isinstance(altered, Altered)
    assert [
        (column.name, origin.was) for column, origin in zip(altered.after.columns, altered.origins, strict=True)
    ] == [
        ("id", "id"),
        ("x", "v"),
        ("price", "price"),
        ("c", None),
    ]
    assert (altered.table, altered.after.name, altered.doubt, altered.unique_in_copy) == (
        REAL.name,
        REAL.name,
        "",
        False,
    )


@pytest.mark.parametrize(
    ("statement", "kind", "reason"),
    [
        ("ALTER TABLE _t_gho FROBNICATE v", Unread, "FROBNICATE V is not understood"),
        ("ALTER TABLE _t_gho EXCHANGE PARTITION p WITH TABLE u", Moved, "EXCHANGE PARTITION moves rows"),
    ],
)
def test_a_statement_that_stops_a_table_on_the_shadow_table(statement, kind, reason):
    """Silver cannot apply the cut-over either, whatever statement follows; the reason names the statement's place."""
    stop = change(CREATE, statement, "ALTER TABLE _t_gho ADD c INT")
    assert isinstance(stop, kind)
    assert stop.table == REAL.name
    assert stop.reason.startswith(reason)
    assert stop.reason.endswith("(in the statement on db._t_gho at 1/b.000001:20)")


@pytest.mark.parametrize(
    ("statement", "doubt"),
    [
        ("ALTER TABLE _t_gho MODIFY price FLOAT(7,2)", "the server rounds the values of price"),
        ("ALTER IGNORE TABLE _t_gho ADD UNIQUE (v)", "ALTER IGNORE deletes rows"),
        ("ALTER TABLE _t_gho MODIFY price BIGINT AUTO_INCREMENT", "AUTO_INCREMENT generates values"),
    ],
)
def test_unknown_values(statement, doubt):
    """What is unknown after a statement on the real table is unknown after one on the shadow table."""
    altered = change(CREATE, statement, "ALTER TABLE _t_gho ADD c INT")
    assert altered.doubt.startswith(doubt)


@pytest.mark.parametrize(
    ("statement", "unique"),
    [
        ("ALTER TABLE _t_gho ADD UNIQUE KEY (v)", True),
        ("ALTER TABLE db._t_gho ADD c INT UNIQUE", True),
        ("ALTER TABLE _t_gho DROP PRIMARY KEY, ADD PRIMARY KEY (v)", True),
        ("CREATE UNIQUE INDEX i ON _t_gho (v)", True),
        ("CREATE INDEX i ON _t_gho (v)", False),
        ("ALTER TABLE _t_gho ADD KEY (v), ADD c INT", False),
        ("CREATE UNIQUE INDEX i ON u (v)", False),
        ("ALTER TABLE u ADD UNIQUE (v)", False),
    ],
)
def test_a_unique_index(statement, unique):
    """The change says that the tool copies no rows which violate a new unique index."""
    altered = change(CREATE, statement)
    assert (altered.unique_in_copy, altered.doubt) == (unique, "")


@pytest.mark.parametrize("end", ["DROP TABLE IF EXISTS _t_gho", "RENAME TABLE t TO _t_del, _t_gho TO t"])
@pytest.mark.parametrize("earlier", ["FROBNICATE v", "MODIFY price FLOAT(7,2)", "ADD UNIQUE (v)"])
def test_an_earlier_online_ddl_with_the_same_shadow_table(earlier, end):
    """The statements before the newest creation of the shadow table do not matter."""
    altered = change(CREATE, f"ALTER TABLE _t_gho {earlier}", end, CREATE, "ALTER TABLE _t_gho ADD c INT")
    assert (altered.doubt, altered.unique_in_copy, len(altered.after.columns)) == ("", False, 4)


@pytest.mark.parametrize("recorded", [None, TableSchema(*SHADOW, REAL.columns, REAL.primary_key)])
def test_statements_without_the_creation(recorded):
    """They do not determine the origin of the columns, even if the log has the shadow table's structure."""
    assert change("ALTER TABLE _t_gho ADD c INT", recorded=recorded) is None
