"""The documentation page of type changes: how silver's values change, for each pair of types, according to the plan."""

from dataclasses import dataclass

from dmdelta.ddl.parse.columns import parse_definition
from dmdelta.ddl.tokens import Cursor, tokenize
from dmdelta.ddl.types.conversion import ConversionKind, plan_conversion
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.schema import Column


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A pair of types that represents a class of type changes, with a remark."""

    old: str
    new: str
    remark: str = ""

    @property
    def columns(self) -> tuple[Column, Column]:
        return _column(self.old), _column(self.new)


def _column(text: str) -> Column:
    definition = parse_definition(Cursor(tokenize(f"c {text}")))
    assert definition is not None
    return definition.within("utf8mb4")


_CLAMPED = "numbers out of range are clamped, if the session allowed it"
_CUT = "text that is too long is truncated, if the session allowed it"

TYPE_CHANGES = (
    TypeChange("INT", "BIGINT", "any integer type to one that holds it"),
    TypeChange("MEDIUMINT", "INT"),
    TypeChange("INT", "BIGINT UNSIGNED", "negative numbers become 0, if the session allowed it"),
    TypeChange("INT UNSIGNED", "BIGINT UNSIGNED"),
    TypeChange("BIGINT", "INT", _CLAMPED),
    TypeChange("INT", "DECIMAL(12,2)"),
    TypeChange("INT", "DECIMAL(5,2)", _CLAMPED),
    TypeChange("INT", "DOUBLE"),
    TypeChange("BIGINT", "DOUBLE"),
    TypeChange("INT", "VARCHAR(20)"),
    TypeChange("INT UNSIGNED", "VARCHAR(20)"),
    TypeChange("INT", "BIT(8)"),
    TypeChange("INT", "YEAR", "70 becomes 1970"),
    TypeChange("INT", "ENUM('a','b')", "by number"),
    TypeChange("INT", "DATE"),
    TypeChange("BIT(8)", "BIT(16)"),
    TypeChange("BIT(8)", "INT"),
    TypeChange("BIT(8)", "VARCHAR(9)"),
    TypeChange("YEAR", "INT"),
    TypeChange("YEAR", "CHAR(4)"),
    TypeChange("DECIMAL(10,2)", "DECIMAL(12,3)"),
    TypeChange("DECIMAL(10,4)", "DECIMAL(10,2)", "halves away from zero"),
    TypeChange("DECIMAL(10,4)", "INT", "halves away from zero"),
    TypeChange("DECIMAL(10,4)", "DOUBLE"),
    TypeChange("DECIMAL(10,4)", "VARCHAR(20)"),
    TypeChange("DECIMAL(40,2)", "DECIMAL(50,2)"),
    TypeChange("DECIMAL(30,2)", "DECIMAL(40,2)"),
    TypeChange("FLOAT", "DOUBLE"),
    TypeChange("DOUBLE", "FLOAT"),
    TypeChange("DOUBLE", "INT", "halves to the even number"),
    TypeChange("DOUBLE", "DECIMAL(20,3)"),
    TypeChange("DOUBLE", "VARCHAR(20)"),
    TypeChange("VARCHAR(20)", "VARCHAR(40)", "also CHAR and TEXT, to a larger type"),
    TypeChange("VARCHAR(20)", "VARCHAR(10)", _CUT),
    TypeChange("VARCHAR(20)", "CHAR(20)", "without trailing spaces"),
    TypeChange("TEXT", "VARCHAR(100)", _CUT),
    TypeChange("TEXT", "TINYTEXT"),
    TypeChange("VARCHAR(20) CHARACTER SET latin1", "VARCHAR(20)"),
    TypeChange("VARCHAR(20)", "VARCHAR(20) CHARACTER SET latin1", "also to utf8mb3, ucs2, ascii; '?' for others"),
    TypeChange("VARCHAR(20)", "VARCHAR(20) CHARACTER SET gbk"),
    TypeChange("TEXT", "BLOB", "from utf8mb4, utf8mb3 or ascii"),
    TypeChange("TEXT CHARACTER SET latin1", "BLOB"),
    TypeChange(
        "VARCHAR(20)", "INT", "the number at the start of the text, halves away from zero; MariaDB: leading digits"
    ),
    TypeChange("VARCHAR(20)", "DECIMAL(10,1)", "the number at the start of the text"),
    TypeChange("VARCHAR(20)", "DOUBLE", "the number at the start of the text"),
    TypeChange("VARCHAR(20)", "DATETIME"),
    TypeChange("VARCHAR(20)", "ENUM('a','b')"),
    TypeChange("VARCHAR(20)", "JSON"),
    TypeChange("BLOB", "TEXT", "to utf8mb4, utf8mb3 or ascii"),
    TypeChange("BLOB", "TEXT CHARACTER SET latin1"),
    TypeChange("BINARY(5)", "VARBINARY(9)", "including its zero padding"),
    TypeChange("VARBINARY(9)", "BINARY(9)", "padded with zeros"),
    TypeChange("BINARY(16)", "VARCHAR(36)"),
    TypeChange("BLOB", "TINYBLOB"),
    TypeChange("ENUM('a','b')", "ENUM('b','c','a')", "matched by name, regardless of order"),
    TypeChange("ENUM('a','b')", "ENUM('A','x')", "a removed name becomes '', if the session allowed it"),
    TypeChange("ENUM('a','b')", "VARCHAR(9)"),
    TypeChange("ENUM('a','b')", "INT", "its index"),
    TypeChange("SET('a','b')", "SET('a','b','c')"),
    TypeChange("SET('a','b')", "SET('b','a')", "in the new order"),
    TypeChange("SET('a','b')", "VARCHAR(9)"),
    TypeChange("SET('a','b')", "INT"),
    TypeChange("DATE", "DATETIME"),
    TypeChange("DATE", "VARCHAR(20)"),
    TypeChange("DATETIME(6)", "DATETIME", "halves up; MariaDB truncates"),
    TypeChange("DATETIME", "DATETIME(6)", "also TIMESTAMP"),
    TypeChange("DATETIME(6)", "DATE", "also rounded; MariaDB truncates the time"),
    TypeChange("DATETIME", "TIMESTAMP"),
    TypeChange("DATETIME", "TIME"),
    TypeChange("TIMESTAMP", "DATETIME"),
    TypeChange("TIME(6)", "TIME", "halves away from zero; MariaDB truncates"),
    TypeChange("TIME", "VARCHAR(20)"),
    TypeChange("TIME", "DATETIME"),
    TypeChange("JSON", "TEXT"),
    TypeChange("POINT", "GEOMETRY"),
    TypeChange("INT NULL", "INT NOT NULL", "NULL becomes the implicit default, if the session allowed it"),
    TypeChange("TIMESTAMP NULL", "TIMESTAMP NOT NULL"),
)

_WORDS = {
    ConversionKind.SAME: "no change",
    ConversionKind.WIDEN: "widened in place",
    ConversionKind.REWRITE: "rewritten",
    ConversionKind.STOP: "not supported",
}


def type_changes_page() -> str:
    """The documentation page, in Markdown."""
    lines = [
        "# Type changes",
        "",
        "Generated by `python -m dmdelta.ddl.type_changes`; do not edit.",
        "",
        "How the values in existing rows change when MODIFY or CHANGE gives a column another type. The server computes",
        "the new values and does not log them, so silver computes what the server does. A change that is not supported",
        "stops the table with the reason; `dmdelta snapshot SPEC --table` reloads it.",
        "",
        "Generated columns that depend on the column keep their values in silver, because the log does not say which",
        "columns are generated: reload such a table.",
        "",
        "| from | to | silver | action | remark |",
        "| --- | --- | --- | --- | --- |",
        *map(_line, TYPE_CHANGES),
    ]
    return "\n".join(line.replace("|  |", "| |") for line in lines) + "\n"


def _line(change: TypeChange) -> str:
    old, new = change.columns
    plan = plan_conversion(old, new)
    silver = " → ".join(dict.fromkeys((f"`{silver_type(old)}`", f"`{silver_type(new)}`")))
    return f"| {change.old} | {change.new} | {silver} | {_WORDS[plan.kind]} | {plan.reason or change.remark} |"


if __name__ == "__main__":
    print(type_changes_page(), end="")  # noqa: T201 - its output is the page
