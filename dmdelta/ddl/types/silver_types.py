"""MySQL's and MariaDB's column types, and their representation in bronze's VARIANT and in silver."""

from dataclasses import dataclass

from dmdelta.errors import SchemaError
from dmdelta.model.schema import Column, ConstantColumn, StoredColumn, TableSchema
from dmdelta.model.type_names import BYTES, TEXTUAL

MAX_DECIMAL_DIGITS = 38
"""Precision of Delta's DECIMAL; MySQL's is 65."""

LONG_BITS = 63

_INTEGERS = {
    "tinyint": ("TINYINT", "SMALLINT"),
    "smallint": ("SMALLINT", "INT"),
    "mediumint": ("INT", "INT"),
    "int": ("INT", "BIGINT"),
    "bigint": ("BIGINT", "DECIMAL(20,0)"),
}
_FIXED = {
    "float": "FLOAT",
    "double": "DOUBLE",
    "year": "SMALLINT",
    "date": "DATE",
    "time": "STRING",
    "datetime": "TIMESTAMP_NTZ",
    "timestamp": "TIMESTAMP",
    "json": "VARIANT",
    "geometry": "STRUCT<srid: INT, wkb: BINARY>",
    "vector": "ARRAY<FLOAT>",
    **dict.fromkeys(TEXTUAL, "STRING"),
    **dict.fromkeys(BYTES, "BINARY"),
}

ZERO_DATE_TYPES = ("date", "datetime", "timestamp")
"""Types whose values Delta cannot always hold: zero dates are text in bronze and NULL in silver."""


VERSION = "_dm_version"
COMMITTED_AT = "_dm_committed_at"
OWN_COLUMNS = {VERSION: "STRUCT<epoch: INT, seq: BIGINT, row: INT>", COMMITTED_AT: "TIMESTAMP"}
"""The columns that silver adds to the source's own: the event that wrote the row, and its commit time."""
SHARD = "_dm_shard"
"""The column of a merged table that identifies the source table of a row."""


def silver_type(column: Column) -> str:
    """The SQL type of a source column in silver.

    Raises:
        SchemaError: the type is unknown.
    """
    if isinstance(column, StoredColumn):
        return column.stored
    if column.type in _INTEGERS:
        return _INTEGERS[column.type][column.unsigned]
    if column.type == "decimal":
        fits = column.precision <= MAX_DECIMAL_DIGITS
        return f"DECIMAL({column.precision},{column.scale})" if fits else "STRING"
    if column.type == "bit":
        return "BIGINT" if column.length <= LONG_BITS else "DECIMAL(20,0)"
    try:
        return _FIXED[column.type]
    except KeyError:
        raise SchemaError(
            f"column {column.name} has the unknown type {column.type!r}",
            hint="report it to the project with the table's DDL",
        ) from None


def silver_columns(schema: TableSchema) -> dict[str, str]:
    """The names and SQL types of a table's columns in silver, in order.

    Raises:
        SchemaError: a column has the name of one of silver's own columns, or an unknown type.
    """
    constants = {column.name.lower() for column in schema.columns if isinstance(column, ConstantColumn)}
    for column in schema.columns:
        if not isinstance(column, ConstantColumn) and column.name.lower() in {*OWN_COLUMNS, SHARD, *constants}:
            raise SchemaError(
                f"column {column.name} of {schema} has a name that silver reserves",
                hint="rename it at the source, or exclude the table with block-allow-list",
            )
    return {**{column.name: silver_type(column) for column in schema.columns}, **OWN_COLUMNS}


def same_shape(one: TableSchema, other: TableSchema) -> bool:
    """Whether both structures are equal in silver: names, types and key, regardless of column order."""
    return one.primary_key == other.primary_key and _shape(one) == _shape(other)


def _shape(schema: TableSchema) -> dict[str, str]:
    return {column.name: silver_type(column) for column in schema.columns}


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A row of the table of types."""

    source: str
    bronze: str
    silver: str
    remark: str = ""


TYPE_ROWS = (
    TypeRow("TINYINT, BOOL", "int8", silver_type(Column("", "tinyint"))),
    TypeRow("TINYINT UNSIGNED", "int16", silver_type(Column("", "tinyint", unsigned=True))),
    TypeRow("SMALLINT", "int16", silver_type(Column("", "smallint"))),
    TypeRow("SMALLINT UNSIGNED", "int32", silver_type(Column("", "smallint", unsigned=True))),
    TypeRow("MEDIUMINT, signed or not", "int32", silver_type(Column("", "mediumint"))),
    TypeRow("INT", "int32", silver_type(Column("", "int"))),
    TypeRow("INT UNSIGNED", "int64", silver_type(Column("", "int", unsigned=True))),
    TypeRow("BIGINT", "int64", silver_type(Column("", "bigint"))),
    TypeRow("BIGINT UNSIGNED", "decimal", silver_type(Column("", "bigint", unsigned=True)), "up to 2^64 - 1"),
    TypeRow("DECIMAL(p,s), p ≤ 38", "decimal", "DECIMAL(p,s)"),
    TypeRow(
        "DECIMAL(p,s), p > 38",
        "string",
        silver_type(Column("", "decimal", precision=65)),
        "every digit, in MySQL's format",
    ),
    TypeRow("FLOAT", "float", silver_type(Column("", "float"))),
    TypeRow("DOUBLE", "double", silver_type(Column("", "double"))),
    TypeRow("BIT(n), n ≤ 63", "int64", silver_type(Column("", "bit", length=1))),
    TypeRow("BIT(64)", "decimal", silver_type(Column("", "bit", length=64))),
    TypeRow("YEAR", "int16", silver_type(Column("", "year"))),
    TypeRow(
        "DATE",
        "date; zero, partial and year-0 dates: string",
        silver_type(Column("", "date")),
        "zero, partial and year-0 dates are NULL; bronze keeps them",
    ),
    TypeRow("TIME(n)", "string", silver_type(Column("", "time")), "in MySQL's format, -838:59:59 to 838:59:59"),
    TypeRow(
        "DATETIME(n)",
        "timestamp_ntz; zero and invalid: string",
        silver_type(Column("", "datetime")),
        "zero and invalid values are NULL; bronze keeps them",
    ),
    TypeRow(
        "TIMESTAMP(n)",
        "timestamp; zero: string",
        silver_type(Column("", "timestamp")),
        "an instant; the zero value is NULL; bronze keeps it",
    ),
    TypeRow("CHAR, VARCHAR, TEXT of any size", "string", silver_type(Column("", "text")), "any charset, as Unicode"),
    TypeRow(
        "BINARY, VARBINARY, BLOB of any size",
        "binary",
        silver_type(Column("", "blob")),
        "BINARY(n) includes its zero padding",
    ),
    TypeRow("ENUM", "string", silver_type(Column("", "enum")), "the name; '' for index 0"),
    TypeRow("SET", "string", silver_type(Column("", "set")), "names joined by commas"),
    TypeRow("JSON (MySQL)", "nested variant", silver_type(Column("", "json")), "SQL NULL and JSON null differ"),
    TypeRow("JSON (MariaDB)", "string", silver_type(Column("", "longtext")), "LONGTEXT on the wire"),
    TypeRow("GEOMETRY and its kinds", "object of srid and wkb", silver_type(Column("", "geometry"))),
    TypeRow("VECTOR (MySQL)", "array of float", silver_type(Column("", "vector"))),
    TypeRow(
        "VECTOR (MariaDB)",
        "binary",
        silver_type(Column("", "varbinary")),
        "VARBINARY in the log: 4 bytes per float, little endian; not tested with a server",
    ),
)


def types_page() -> str:
    """The documentation page of the types, in Markdown."""
    lines = [
        "# Types",
        "",
        "Generated by `python -m dmdelta.ddl.types.silver_types`; do not edit.",
        "",
        "| MySQL, MariaDB | bronze (VARIANT) | silver | remark |",
        "| --- | --- | --- | --- |",
        *(f"| {row.source} | {row.bronze} | `{row.silver}` | {row.remark} |" for row in TYPE_ROWS),
        "",
        "A row image in bronze is limited to 128 MiB, the maximum size of a VARIANT in Spark. A larger image stops the",
        "task with the table and the position; exclude the table with `block-allow-list` to continue with the others.",
        "",
        "MariaDB's sequences are not replicated: the log contains their numbers as rows of a table, which dmdelta",
        "skips. A table with exactly the columns of a sequence is refused. So is a table with system versioning,",
        "because its log mixes rows and their history: `dmdelta check` and the start of a run fail, and a statement",
        "that creates one or adds the versioning stops the table. Exclude such tables with `block-allow-list`.",
    ]
    return "\n".join(line.replace("|  |", "| |") for line in lines) + "\n"


if __name__ == "__main__":
    print(types_page(), end="")  # noqa: T201 - its output is the page
