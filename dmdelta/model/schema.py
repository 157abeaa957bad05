"""The schema of a source table, as reported by its table map or information_schema."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from dmdelta.model.position import Position

SYSTEM_SCHEMAS = ("mysql", "sys", "information_schema", "performance_schema")
"""The server's own schemas, which are never replicated."""

TableName = tuple[str, str]
"""Schema and table in the source."""

SEQUENCE_COLUMNS = (
    "next_not_cached_value",
    "minimum_value",
    "maximum_value",
    "start_value",
    "increment",
    "cache_size",
    "cycle_option",
    "cycle_count",
)
"""The columns of each sequence of MariaDB, which logs the numbers that it takes as rows of a table. They tell it from
a table: nothing else in the log does."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a source table.

    Attributes:
        name: as written in the source.
        type: MySQL's type name, as in information_schema.DATA_TYPE: tinyint smallint mediumint int bigint decimal float
            double bit year date time datetime timestamp char varchar binary varbinary tinytext text mediumtext longtext
            tinyblob blob mediumblob longblob enum set json geometry vector.
        unsigned: for a numeric type.
        length: maximum bytes of char/varchar/binary/varbinary, bits of bit, else 0.
        precision: digits of a decimal, fractional second digits of a time type, else 0.
        scale: digits after the decimal point.
        charset: MySQL's name of the character set of a text type, enum or set; None for other types.
        members: the names of an enum or set.
        nullable: NULL is allowed.
        visible: False for INVISIBLE columns.
        collation: MySQL's name of the collation of a text type, enum or set; None for other types and if unknown.
        default: the literal after DEFAULT, as text, of the types `WITH_DEFAULT`; None for none, NULL or an expression,
            and if unknown: table maps do not contain it. Structures that differ only in it are equal.
    """

    name: str
    type: str
    unsigned: bool = False
    length: int = 0
    precision: int = 0
    scale: int = 0
    charset: str | None = None
    members: tuple[str, ...] = ()
    nullable: bool = True
    visible: bool = True
    collation: str | None = None
    default: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ConstantColumn(Column):
    """A column that no row image contains: all rows of a source table have the same value in it.

    Attributes:
        value: as text.
    """

    value: str = ""


@dataclass(frozen=True, slots=True)
class StoredColumn(Column):
    """A column whose values are stored in a type other than its own because other tables share the target table.

    Attributes:
        stored: that type, in Delta's notation.
    """

    stored: str = ""

    @classmethod
    def of(cls, column: Column, stored: str) -> "StoredColumn":
        return cls(**_attributes(column), stored=stored)

    @property
    def own(self) -> Column:
        """The column with its own type."""
        return Column(**_attributes(self))


def _attributes(column: Column) -> dict[str, Any]:
    return {of.name: getattr(column, of.name) for of in fields(Column)}


def _column_of(values: Mapping[str, Any]) -> Column:
    """A column of a structure's JSON; structures in silver have columns of each kind."""
    kind = StoredColumn if "stored" in values else ConstantColumn if "value" in values else Column
    return kind(**{**values, "members": tuple(values["members"])})


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table's columns in their order and the names of its key columns (empty: a keyless table).

    Attributes:
        unique_key: the UNIQUE index without nullable columns that is the key; '' if it is the PRIMARY KEY, or if a
            table map names the key.
    """

    schema: str
    table: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    unique_key: str = ""

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def name(self) -> TableName:
        return (self.schema, self.table)

    @property
    def is_sequence(self) -> bool:
        """In MariaDB; other servers have no sequences."""
        return tuple(column.name for column in self.columns) == SEQUENCE_COLUMNS

    @property
    def version(self) -> int:
        """A stable 63-bit hash of the schema: the `schema_version` of its bronze rows."""
        return int.from_bytes(hashlib.blake2b(self.to_json().encode(), digest_size=8).digest(), "big") >> 1

    def to_json(self, *, defaults: bool = False) -> str:
        """
        Args:
            defaults: with the defaults of the columns that have one.
        """
        fields = asdict(self)
        for column in fields["columns"]:
            # Schemas without collations keep their original JSON, and so their version.
            if column["collation"] is None:
                del column["collation"]
            if not defaults or column["default"] is None:
                del column["default"]
        if not self.unique_key:
            del fields["unique_key"]
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "TableSchema":
        fields: dict[str, Any] = json.loads(text)
        columns = tuple(map(_column_of, fields["columns"]))
        key = tuple(fields["primary_key"])
        return cls(fields["schema"], fields["table"], columns, key, fields.get("unique_key", ""))


@dataclass(frozen=True, slots=True)
class StructureFrom:
    """The schema that a table has in its source's log, starting with the event at `since`.

    Attributes:
        schema: None if it is unknown or the table was dropped.
    """

    table: TableName
    since: Position
    schema: TableSchema | None

    def to_json(self) -> str:
        text = self.schema.to_json() if self.schema is not None else None
        return json.dumps([*self.table, self.since.to_dict(), text])

    @classmethod
    def from_json(cls, text: str) -> "StructureFrom":
        schema, table, since, structure = json.loads(text)
        table_schema = TableSchema.from_json(structure) if structure is not None else None
        return cls((schema, table), Position.from_dict(since), table_schema)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key of a source table.

    Attributes:
        columns: pairs of the child's column and the parent's column that it references.
    """

    name: str
    child: TableName
    parent: TableName
    columns: tuple[tuple[str, str], ...]
