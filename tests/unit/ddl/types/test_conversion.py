"""How the values of a column are converted to another type; the integration tests compare the values themselves."""

from pathlib import Path

import pytest

from dmdelta.ddl.type_changes import type_changes_page
from dmdelta.ddl.types.conversion import ConversionKind, plan_conversion
from dmdelta.model.schema import Column
from tests.support.conversions import conversions

INT = Column("c", "int")
TEXT = Column("c", "varchar", length=80, charset="utf8mb4")

PLANS = [
    (INT, Column("c", "bigint"), ConversionKind.WIDEN),
    (INT, Column("other", "int", visible=False), ConversionKind.SAME),
    (INT, Column("c", "int", nullable=False), ConversionKind.REWRITE),
    (Column("c", "int", nullable=False), INT, ConversionKind.SAME),
    (Column("c", "bigint"), Column("c", "decimal", precision=19), ConversionKind.REWRITE),
    (
        Column("c", "decimal", precision=10, scale=2),
        Column("c", "decimal", precision=12, scale=4),
        ConversionKind.WIDEN,
    ),
    (TEXT, Column("c", "varchar", length=20), ConversionKind.SAME),
    (TEXT, Column("c", "varchar", length=19), ConversionKind.REWRITE),
    (TEXT, Column("c", "varchar", length=20, charset="latin1"), ConversionKind.REWRITE),
    (TEXT, Column("c", "varchar", length=40, charset="big5"), ConversionKind.STOP),
    (Column("c", "float"), TEXT, ConversionKind.STOP),
    (Column("c", "int", unsigned=True), TEXT, ConversionKind.STOP),
    (Column("c", "timestamp"), Column("c", "datetime"), ConversionKind.STOP),
    (Column("c", "json"), Column("c", "longtext"), ConversionKind.STOP),
    (Column("c", "geometry"), Column("c", "geometry"), ConversionKind.SAME),
    (Column("c", "hyperlink"), TEXT, ConversionKind.STOP),
    (INT, Column("c", "hyperlink"), ConversionKind.STOP),
    (Column("c", "enum"), Column("c", "enum", members=("a",)), ConversionKind.STOP),
    (Column("c", "enum", members=("a", "b")), Column("c", "enum", members=("b", "c")), ConversionKind.REWRITE),
    (Column("c", "enum", members=("a", "b")), Column("c", "enum", members=("A", "b")), ConversionKind.STOP),
    (Column("c", "enum", members=("e", "b")), Column("c", "enum", members=("é", "b")), ConversionKind.STOP),
    (Column("c", "enum", members=("日",)), Column("c", "varchar", length=9, charset="latin1"), ConversionKind.STOP),
    (Column("c", "enum", members=("1", "2")), Column("c", "enum", members=("1",)), ConversionKind.STOP),
    (Column("c", "enum", members=("é", "b")), Column("c", "enum", members=("b", "é", "c")), ConversionKind.SAME),
    (Column("c", "set", members=("e", "b")), Column("c", "set", members=("é", "b")), ConversionKind.STOP),
    (Column("c", "set", members=("1", "2")), Column("c", "set", members=("1",)), ConversionKind.STOP),
    (
        Column("c", "varchar", length=400, charset="utf8mb4"),
        Column("c", "tinytext", charset="utf8mb4"),
        ConversionKind.STOP,
    ),
    (
        Column("c", "varchar", length=240, charset="utf8mb4"),
        Column("c", "tinytext", charset="utf8mb4"),
        ConversionKind.SAME,
    ),
    (Column("c", "varbinary", length=256), Column("c", "tinyblob"), ConversionKind.STOP),
    (Column("c", "varchar", length=64), Column("c", "tinytext", charset="utf8mb4"), ConversionKind.STOP),
    (Column("c", "enum", members=("é",), charset="latin1"), Column("c", "text", charset="latin1"), ConversionKind.SAME),
    (
        Column("c", "enum", members=("é",), charset="latin1"),
        Column("c", "text", charset="utf8mb3"),
        ConversionKind.SAME,
    ),
    (Column("c", "set", members=("😀",)), Column("c", "text", charset="utf8mb3"), ConversionKind.STOP),
]


@pytest.mark.parametrize(("old", "new", "kind"), PLANS)
def test_plan(old, new, kind):
    """Each change is of one kind, and an unsupported one has a reason."""
    plan = plan_conversion(old, new)
    assert plan.kind is kind
    assert bool(plan.sql) == (kind is ConversionKind.REWRITE)
    assert bool(plan.reason) == (kind is ConversionKind.STOP)


def test_expression():
    """The old column replaces the template's placeholder, and nothing in a name that resembles it."""
    plan = plan_conversion(INT, Column("c", "enum", members=("{column}",)))
    assert plan.expression("`x`").count("`x`") == 3
    assert plan_conversion(INT, INT).expression("`x`") == "`x`"


def test_page_is_up_to_date():
    """docs/type-changes.md matches the code."""
    assert Path("docs/type-changes.md").read_text(encoding="utf-8") == type_changes_page()


def test_expressions_are_those_that_servers_confirmed():
    """Of every change in `tests/support/type_changes.py`: the integration test compares their values with servers'."""
    recorded = Path("tests/golden/ddl/conversions.txt").read_text(encoding="utf-8").splitlines()
    assert list(conversions()) == recorded


@pytest.mark.parametrize(
    ("old", "digits", "unsigned", "fits"),
    [
        (Column("c", "int", unsigned=True), 9, False, False),
        (Column("c", "int", unsigned=True), 10, False, True),
        (Column("c", "int", unsigned=True), 10, True, True),
        (Column("c", "int"), 10, True, False),
        (Column("c", "tinyint"), 2, False, False),
        (Column("c", "tinyint"), 3, False, True),
        (Column("c", "tinyint"), 3, True, False),
        (Column("c", "bit", length=9), 3, True, True),
        (Column("c", "bit", length=10), 3, True, False),
    ],
)
def test_an_integer_that_may_not_fit_a_decimal_is_checked(old, digits, unsigned, fits):
    """Of either sign, and only where a value of the old type can be out of range."""
    plan = plan_conversion(old, Column("c", "decimal", precision=digits, unsigned=unsigned))
    assert ("CASE WHEN" in plan.expression("c")) is not fits
