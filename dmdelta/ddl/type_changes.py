"""The documentation page of type changes: what becomes of silver's values, pair by pair, as the plan says it."""

from dataclasses import dataclass

from dmdelta.ddl.columns import parse_definition
from dmdelta.ddl.conversion import ConversionKind, plan_conversion
from dmdelta.ddl.tokens import Cursor, tokenize
from dmdelta.ddl.types import silver_type
from dmdelta.model.schema import Column


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A pair of types that stands for its class, and what is worth saying about it."""

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


_CLAMPED = "a number beyond the new type becomes its bound, where the session allowed it"
_CUT = "text that is too long is cut, where the session allowed it"

TYPE_CHANGES = (
    TypeChange("INT", "BIGINT", "any whole number to one that holds it"),
    TypeChange("MEDIUMINT", "INT"),
    TypeChange("INT", "BIGINT UNSIGNED", "negative numbers become 0, where the session allowed it"),
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
    TypeChange("VARCHAR(20)", "VARCHAR(40)", "CHAR and TEXT, too, to what holds more"),
    TypeChange("VARCHAR(20)", "VARCHAR(10)", _CUT),
    TypeChange("VARCHAR(20)", "CHAR(20)", "without spaces at the end"),
    TypeChange("TEXT", "VARCHAR(100)", _CUT),
    TypeChange("TEXT", "TINYTEXT"),
    TypeChange("VARCHAR(20) CHARACTER SET latin1", "VARCHAR(20)"),
    TypeChange("VARCHAR(20)", "VARCHAR(20) CHARACTER SET latin1", "to utf8mb3, ucs2, ascii, too; '?' for others"),
    TypeChange("VARCHAR(20)", "VARCHAR(20) CHARACTER SET gbk"),
    TypeChange("TEXT", "BLOB", "of utf8mb4, utf8mb3 or ascii"),
    TypeChange("TEXT CHARACTER SET latin1", "BLOB"),
    TypeChange(
        "VARCHAR(20)", "INT", "the number that the text begins with, halves away from zero; MariaDB: its whole digits"
    ),
    TypeChange("VARCHAR(20)", "DECIMAL(10,1)", "the number that the text begins with"),
    TypeChange("VARCHAR(20)", "DOUBLE", "the number that the text begins with"),
    TypeChange("VARCHAR(20)", "DATETIME"),
    TypeChange("VARCHAR(20)", "ENUM('a','b')"),
    TypeChange("VARCHAR(20)", "JSON"),
    TypeChange("BLOB", "TEXT", "to utf8mb4, utf8mb3 or ascii"),
    TypeChange("BLOB", "TEXT CHARACTER SET latin1"),
    TypeChange("BINARY(5)", "VARBINARY(9)", "with its zeros"),
    TypeChange("VARBINARY(9)", "BINARY(9)", "with zeros at the end"),
    TypeChange("BINARY(16)", "VARCHAR(36)"),
    TypeChange("BLOB", "TINYBLOB"),
    TypeChange("ENUM('a','b')", "ENUM('b','c','a')", "names go by name, whatever their order"),
    TypeChange("ENUM('a','b')", "ENUM('A','x')", "a name that is gone becomes '', where the session allowed it"),
    TypeChange("ENUM('a','b')", "VARCHAR(9)"),
    TypeChange("ENUM('a','b')", "INT", "its number"),
    TypeChange("SET('a','b')", "SET('a','b','c')"),
    TypeChange("SET('a','b')", "SET('b','a')", "in the new order"),
    TypeChange("SET('a','b')", "VARCHAR(9)"),
    TypeChange("SET('a','b')", "INT"),
    TypeChange("DATE", "DATETIME"),
    TypeChange("DATE", "VARCHAR(20)"),
    TypeChange("DATETIME(6)", "DATETIME", "halves upwards; MariaDB cuts digits off"),
    TypeChange("DATETIME", "DATETIME(6)", "TIMESTAMP, too"),
    TypeChange("DATETIME(6)", "DATE", "rounded, too; MariaDB cuts the time off"),
    TypeChange("DATETIME", "TIMESTAMP"),
    TypeChange("DATETIME", "TIME"),
    TypeChange("TIMESTAMP", "DATETIME"),
    TypeChange("TIME(6)", "TIME", "halves away from zero; MariaDB cuts digits off"),
    TypeChange("TIME", "VARCHAR(20)"),
    TypeChange("TIME", "DATETIME"),
    TypeChange("JSON", "TEXT"),
    TypeChange("POINT", "GEOMETRY"),
    TypeChange("INT NULL", "INT NOT NULL", "NULL becomes the implicit default, where the session allowed it"),
    TypeChange("TIMESTAMP NULL", "TIMESTAMP NOT NULL"),
)

_WORDS = {
    ConversionKind.SAME: "nothing is done",
    ConversionKind.WIDEN: "widened in place",
    ConversionKind.REWRITE: "rewritten",
    ConversionKind.STOP: "not followed",
}


def type_changes_page() -> str:
    """The documentation page, in Markdown."""
    lines = [
        "# Type changes",
        "",
        "Generated from `dmdelta/ddl/type_changes.py` by `python -m dmdelta.ddl.type_changes`; do not edit.",
        "",
        "What becomes of the values in rows that are there when MODIFY or CHANGE gives a column another type. The",
        "server computes them and the log does not tell them, so silver computes what the server does. What is not",
        "followed stops the table with the reason; `dmdelta snapshot SPEC --table` reads it again.",
        "",
        "| from | to | silver | what is done | remark |",
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
