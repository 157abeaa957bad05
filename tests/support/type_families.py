"""The type matrix: columns per type family with NULL, zero, limits, typical and edge-case values.

Families share a few tables (`Matrix`), because a table costs seconds, a column nothing; column `FAMILY__NAME` belongs
to its family. Row `k` holds each column's k-th value (`id` = k), cyclically; row 0 is all NULL. The update moves every
column to its next value, so that values are also in before images; the delete removes every second row.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MYSQL80, MYSQL57, MARIADB, MYSQL97 = "mysql80", "mysql57", "mariadb", "mysql97"
ALL = frozenset({MYSQL80, MYSQL57, MARIADB, MYSQL97})
MYSQL = ALL - {MARIADB}

Columns = dict[str, tuple[str, Sequence[str]]]
"""Column name → (its type in SQL, its values as SQL expressions)."""


SQL_MODE = "ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
"""SQL mode of the writing sessions: permissive, so that odd values are stored."""
TIME_ZONE = "+05:30"


@dataclass(frozen=True, slots=True)
class Family:
    """Columns of one table of the matrix.

    Attributes:
        extra: further column definitions without values (generated columns), with the columns' full names.
        servers: those that support the family.
    """

    name: str
    table: str
    columns: Columns
    extra: tuple[str, ...] = ()
    servers: frozenset[str] = field(default=ALL)


@dataclass(frozen=True, slots=True)
class Matrix:
    """One table, with the columns of its families."""

    table: str
    columns: Columns
    extra: tuple[str, ...]

    @property
    def height(self) -> int:
        """Number of rows, the NULL row included."""
        return 1 + max(len(values) for _, values in self.columns.values())

    def create(self, *, keyed: bool = True) -> str:
        columns = [f"`{name}` {kind}" for name, (kind, _) in self.columns.items()]
        number = "id INT PRIMARY KEY" if keyed else "id INT"
        return f"CREATE TABLE `{self.table}` ({', '.join([number, *columns, *self.extra])})"

    def inserts(self) -> list[str]:
        names = ", ".join(f"`{name}`" for name in ("id", *self.columns))
        head = f"INSERT INTO `{self.table}` ({names}) VALUES "
        return [f"{head}({', '.join([str(row), *self._values(row)])})" for row in range(self.height)]

    def updates(self) -> list[str]:
        """Every row gets the next row's values, the last one NULLs."""
        statements = []
        for row in range(self.height):
            values = self._values((row + 1) % self.height)
            changes = ", ".join(f"`{name}` = {value}" for name, value in zip(self.columns, values, strict=True))
            statements.append(f"UPDATE `{self.table}` SET {changes} WHERE id = {row}")
        return statements

    def deletes(self) -> list[str]:
        return [f"DELETE FROM `{self.table}` WHERE id % 2 = 1"]

    def _values(self, row: int) -> list[str]:
        if row == 0:
            return ["NULL"] * len(self.columns)
        return [values[(row - 1) % len(values)] for _, values in self.columns.values()]


def matrices(families: Iterable[Family]) -> list[Matrix]:
    """The tables of some families."""
    found: dict[str, list[Family]] = {}
    for family in families:
        found.setdefault(family.table, []).append(family)
    return [
        Matrix(
            table,
            {f"{family.name}__{name}": column for family in members for name, column in family.columns.items()},
            tuple(definition for family in members for definition in family.extra),
        )
        for table, members in found.items()
    ]


def family_of(column: str) -> str:
    """The family that a column of a matrix belongs to."""
    return column.split("__", maxsplit=1)[0]


def _texts(*values: str) -> tuple[str, ...]:
    return tuple("_utf8mb4 0x" + value.encode().hex() if value else "''" for value in values)


def _signed(bits: int) -> tuple[str, ...]:
    return ("0", "1", "-1", str(-(2 ** (bits - 1))), str(2 ** (bits - 1) - 1), "42")


def _unsigned(bits: int) -> tuple[str, ...]:
    return ("0", "1", str(2 ** (bits - 1) - 1), str(2 ** (bits - 1)), str(2**bits - 1), "42")


_WIDTHS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


def _decimal(precision: int, scale: int) -> tuple[str, tuple[str, ...]]:
    digits = "9" * (precision - scale) + ("." + "9" * scale if scale else "")
    typical = ("1234567890123456789012345678901234567890"[: precision - scale] or "0") + (
        "." + "0123456789" * 3 if scale else ""
    )[: scale + 1]
    smallest = "0." + "0" * (scale - 1) + "1" if scale else "1"
    return (
        f"DECIMAL({precision},{scale})",
        ("0", digits, f"-{digits}", typical, f"-{typical}", smallest, f"-{smallest}"),
    )


_DECIMALS = (
    (1, 0),
    (5, 2),
    (9, 0),
    (9, 9),
    (10, 4),
    (18, 9),
    (19, 0),
    (30, 30),
    (37, 18),
    (38, 0),
    (38, 10),
    (39, 0),
    (65, 0),
    (65, 30),
)

_TIMES = (
    "'00:00:00'",
    "'838:59:59'",
    "'-838:59:59'",
    "'12:34:56.123456'",
    "'-12:34:56.123456'",
    "'-00:00:00.000001'",
    "'00:00:00.999999'",
    "'-00:00:00.1'",
    "'-01:00:00'",
    "'-00:59:59.900000'",
    "'24:00:00'",
    "'100:01:02.5'",
)
_DATETIMES = (
    "'1000-01-01 00:00:00'",
    "'9999-12-31 23:59:59'",
    "'2024-02-29 12:34:56.123456'",
    "'1969-12-31 23:59:59.999999'",
    "'1970-01-01 00:00:00.000001'",
    "'0001-01-01 00:00:00'",
    "'1582-10-10 10:10:10.1'",
    "'2026-03-29 02:30:00'",
    "'0000-00-00 00:00:00'",
    "'2023-00-10 01:02:03.4'",
    "'2023-02-00 01:02:03.4'",
    "'2023-02-30 01:02:03.4'",
    "'0000-01-01 00:00:00'",
)
_TIMESTAMPS = (
    "'1970-01-01 05:30:01'",
    "'2038-01-19 08:44:07'",
    "'2026-06-15 12:34:56.789012'",
    "'2001-09-09 07:16:40.000001'",
    "'0000-00-00 00:00:00'",
)
_DATES = (
    "'1000-01-01'",
    "'9999-12-31'",
    "'2024-02-29'",
    "'1969-12-31'",
    "'1970-01-01'",
    "'0001-01-01'",
    "'1582-10-10'",
    "'0000-00-00'",
    "'2023-00-10'",
    "'2023-02-00'",
    "'2023-02-30'",
    "'0000-01-01'",
)

_WORDS = _texts("", "a", "Zoë 😀 数据库", "x" * 10, "'\"\\%\n\t", "\u0000nul", "žluťoučký", "  in", "ends  ")
_LONGER = (*_WORDS, "REPEAT(_utf8mb4 0xc3a9, 60)")
_LONG = (*_LONGER, "REPEAT('n', 300)", "REPEAT(_utf8mb4 0xf09f9880, 16000)")
_HUGE = (*_LONG, "REPEAT(_utf8mb4 0xe6aca2, 30000)")

_BYTES = ("''", "0x00", "0x0000", "0x20", "0xFF", "0xFF00", "0x4100", "0x0041", "0x80818283")
_ALL_BYTES = "0x" + bytes(range(256)).hex()

_ENUM_300 = ",".join(f"'m{number}'" for number in range(1, 301))
_SET_64 = ",".join(f"'s{number}'" for number in range(1, 65))


def _points(srid: str = "") -> tuple[str, ...]:
    shapes = (
        "POINT(1 2)",
        "POINT(-1.5 2.25)",
        "LINESTRING(0 0,1 1,2 3)",
        "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,2 2,1 2,1 1))",
        "MULTIPOINT(0 0,1 1)",
        "MULTILINESTRING((0 0,1 1),(2 2,3 3))",
        "MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,6 5,6 6,5 5)))",
        "GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))",
    )
    return tuple(f"ST_GeomFromText('{shape}'{srid})" for shape in shapes)


def _json_texts() -> tuple[str, ...]:
    documents = (
        None,
        True,
        False,
        0,
        -1,
        32767,
        -32769,
        2147483648,
        -(2**63),
        2**64 - 1,
        1.5,
        -0.1,
        1e300,
        "",
        "Zoë 😀 数",
        "s" * 127,
        "s" * 128,
        "s" * 20000,
        [],
        {},
        [1, "two", None, True, [3.5, {"four": []}]],
        {"": 1, "é": {"b": [None]}, "long" * 20: "x"},
        {"z": 1, "a": 2, "mm": 3},
        {f"key{number}": [number, str(number), number / 7] for number in range(400)},
        {"big": "b" * 70000, "list": list(range(5000))},
        [-128, 127, 128, 255, 65535, 65536, -32768, 2**31 - 1, -(2**31), 2**32, 2**53 + 1],
    )
    return tuple(f"_utf8mb4 0x{json.dumps(document, ensure_ascii=False).encode().hex()}" for document in documents)


_JSON_MADE = (
    "CAST(CAST('1.10' AS DECIMAL(5,2)) AS JSON)",
    "JSON_ARRAY(CAST('-99999999999999999999.0123456789' AS DECIMAL(40,10)), CAST(0 AS DECIMAL(3,1)))",
    "CAST(CAST('2024-02-29' AS DATE) AS JSON)",
    "CAST(CAST('2024-02-29 12:34:56.123456' AS DATETIME(6)) AS JSON)",
    "CAST(CAST('-12:34:56.5' AS TIME(3)) AS JSON)",
    "JSON_OBJECT('d', CAST('2024-02-29' AS DATE), 't', CAST('10:11:12' AS TIME), 'dt', CAST('2001-02-03 04:05:06' AS DATETIME))",
    "JSON_OBJECT('blob', CAST(x'00ff10' AS BINARY), 'n', 9223372036854775808, 'u', CAST(18446744073709551615 AS UNSIGNED))",
    "JSON_ARRAY(b'101', x'')",
    "JSON_OBJECT('point', ST_GeomFromText('POINT(1 2)'))",
    "JSON_ARRAY(1e0, 100e0, 1e20, 0.1e0, 1.7976931348623157e308, 5e-324)",
    "JSON_ARRAY(YEAR('2024-01-01'), TRUE AND TRUE, NULL)",
)

_MEMBERS = "'','a','é','b b','数'"

FAMILIES: tuple[Family, ...] = (
    Family("integers_signed", "numbers", {name: (name, _signed(bits)) for name, bits in _WIDTHS.items()}),
    Family(
        "integers_unsigned", "numbers", {name: (f"{name} UNSIGNED", _unsigned(bits)) for name, bits in _WIDTHS.items()}
    ),
    Family(
        "integers_zerofill",
        "numbers",
        {"z": ("INT(8) ZEROFILL", ("0", "7", "4294967295")), "b": ("BOOLEAN", ("0", "1", "-128", "127"))},
    ),
    Family(
        "decimals",
        "numbers",
        {f"d{precision}_{scale}": _decimal(precision, scale) for precision, scale in _DECIMALS},
    ),
    Family("decimals_unsigned", "numbers", {"d": ("DECIMAL(12,3) UNSIGNED", ("0", "999999999.999", "1.5", "0.001"))}),
    Family(
        "floats",
        "numbers",
        {
            "f": (
                "FLOAT",
                ("0", "1.5", "-1.5", "3.4028234e38", "-3.4028234e38", "1.17549435e-38", "0.1", "3.14159265", "1e-45"),
            ),
            "fu": ("FLOAT UNSIGNED", ("0", "16777217", "0.3")),
            "fmd": ("FLOAT(7,3)", ("0", "1234.567", "-0.001")),
            "d": (
                "DOUBLE",
                (
                    "0",
                    "1.7976931348623157e308",
                    "-1.7976931348623157e308",
                    "2.2250738585072014e-308",
                    "0.1",
                    "1e0/3",
                    "5e-324",
                    "-2.5",
                ),
            ),
            "dmd": ("DOUBLE(16,4)", ("0", "123456789012.3456", "-0.0001")),
        },
    ),
    Family(
        "bits",
        "numbers",
        {
            f"b{width}": (
                f"BIT({width})",
                ("0", "1", str(2**width - 1), str(2 ** (width - 1)), str((2**width - 1) // 3)),
            )
            for width in (1, 2, 7, 8, 9, 16, 17, 33, 63, 64)
        },
    ),
    Family("years", "numbers", {"y": ("YEAR", ("0", "1901", "2155", "2026", "'0000'", "'00'"))}),
    Family("dates", "times", {"d": ("DATE", _DATES)}),
    Family("times", "times", {f"t{digits}": (f"TIME({digits})", _TIMES) for digits in range(7)}),
    Family("datetimes", "times", {f"d{digits}": (f"DATETIME({digits})", _DATETIMES) for digits in range(7)}),
    Family(
        "timestamps",
        "times",
        {f"t{digits}": (f"TIMESTAMP({digits}) NULL", _TIMESTAMPS) for digits in range(7)},
    ),
    Family(
        "texts_utf8mb4",
        "texts",
        {
            "c": ("CHAR(10)", _WORDS),
            "c255": ("CHAR(255)", (*_LONGER, "REPEAT(_utf8mb4 0xf09f9880, 255)")),
            "v": ("VARCHAR(60)", _LONGER),
            "v255": ("VARCHAR(63)", _LONGER),
            "v256": ("VARCHAR(64)", _LONGER),
            "v300": ("VARCHAR(300)", (*_LONGER, "REPEAT('n', 300)")),
            "tiny": ("TINYTEXT", _LONGER),
            "txt": ("TEXT", _LONG),
            "medium": ("MEDIUMTEXT", _HUGE),
            "longt": ("LONGTEXT", _HUGE),
        },
    ),
    Family(
        "texts_of_other_sets",
        "texts",
        {
            charset: (
                f"VARCHAR(40) CHARACTER SET {charset}",
                (*_texts("", "a", "ends  "), f"_{charset} 0x{word.encode(codec).hex()}"),
            )
            for charset, codec, word in (
                ("latin1", "cp1252", "Zoë €"),
                ("gbk", "gbk", "数据库 é"),
                ("utf16", "utf-16-be", "Zoë 😀 数"),
                ("ucs2", "utf-16-be", "Zoë 数"),
                ("sjis", "shift_jis", "データ ｱ"),
                ("cp1251", "cp1251", "кириллица"),
            )
        },
    ),
    Family(
        "binaries",
        "texts",
        {
            "b1": ("BINARY(1)", ("''", "0x00", "0x20", "0xFF")),
            "b5": ("BINARY(5)", _BYTES),
            "b255": ("BINARY(255)", (*_BYTES, f"LEFT({_ALL_BYTES}, 255)")),
            "v": ("VARBINARY(255)", (*_BYTES, f"LEFT({_ALL_BYTES}, 255)")),
            "v300": ("VARBINARY(300)", (*_BYTES, _ALL_BYTES)),
            "tiny": ("TINYBLOB", _BYTES),
            "blb": ("BLOB", (*_BYTES, _ALL_BYTES)),
            "medium": ("MEDIUMBLOB", (*_BYTES, f"REPEAT({_ALL_BYTES}, 300)")),
            "longb": ("LONGBLOB", (*_BYTES, f"REPEAT({_ALL_BYTES}, 300)")),
            "cbin": ("CHAR(4) CHARACTER SET binary", _BYTES),
        },
    ),
    Family(
        "enums",
        "texts",
        {
            "e": (f"ENUM({_MEMBERS})", ("''", "'a'", "'é'", "'b b'", "5", "0")),
            "latin": ("ENUM('ä','ö','x') CHARACTER SET latin1", ("'ä'", "'ö'", "'x'")),
            "e300": (f"ENUM({_ENUM_300})", ("'m1'", "'m255'", "'m256'", "'m300'", "'nothing'")),
        },
    ),
    Family(
        "sets",
        "texts",
        {
            "s": ("SET('a','é','b b','数')", ("''", "'a'", "'a,é'", "15", "'数'", "'a,nothing'")),
            "s9": ("SET('1','2','3','4','5','6','7','8','9') CHARACTER SET latin1", ("'9'", "'1,9'", "511", "''")),
            "s64": (f"SET({_SET_64})", ("'s1'", "'s64'", "'s1,s33,s64'", "''", "18446744073709551615")),
        },
    ),
    Family("json_documents", "documents", {"j": ("JSON", _json_texts())}),
    Family("json_made_by_functions", "documents", {"j": ("JSON", _JSON_MADE)}, servers=MYSQL),
    Family(
        "geometries",
        "special",
        {
            "g": ("GEOMETRY", (*_points(), *_points(", 4326"))),
            "p": ("POINT", _points()[:2]),
            "l": ("LINESTRING", _points()[2:3]),
            "m": ("MULTIPOLYGON", _points()[6:7]),
        },
    ),
    Family(
        "generated",
        "special",
        {"a": ("INT", ("1", "-5", "2147483646")), "name": ("VARCHAR(20)", _texts("é", "xyz"))},
        extra=(
            "generated__sum INT GENERATED ALWAYS AS (generated__a + 1) STORED",
            "generated__call VARCHAR(30) GENERATED ALWAYS AS (CONCAT(generated__name, '!')) VIRTUAL",
        ),
    ),
    Family(
        "invisibles",
        "special",
        {
            "a": ("INT INVISIBLE", ("1", "-5")),
            "b": ("VARCHAR(9)", _texts("é", "x")),
            "c": ("DECIMAL(5,2) INVISIBLE", ("1.25", "-1")),
        },
        servers=ALL - {MYSQL57},
    ),
    Family(
        "wide",
        "special",
        {f"c{number:02d}": ("SMALLINT", ("0", str(number), "NULL" if number % 3 else "7")) for number in range(90)},
    ),
    Family(
        "vectors",
        "special",
        {
            "v3": ("VECTOR(3)", ("TO_VECTOR('[1,2,3]')", "TO_VECTOR('[-0.5,0,3.4028234e38]')")),
            "v": ("VECTOR", ("TO_VECTOR('[0.1]')",)),
        },
        servers=frozenset({MYSQL97}),
    ),
)
