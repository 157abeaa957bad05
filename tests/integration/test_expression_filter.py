"""Expression filters against a real server: the rows of MySQL's WHERE are the rows of the translated condition."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dmdelta.errors import ConfigError
from dmdelta.lakehouse.session import clone_session
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.rules.expressions.translate import translate
from tests.support.catalog import structures_of
from tests.support.once import Once
from tests.support.pipeline import Pipeline
from tests.support.recording import record
from tests.support.servers import Server

_TABLE = """CREATE TABLE t (
  id INT PRIMARY KEY, i INT, b BIGINT, u BIGINT UNSIGNED, tiny TINYINT UNSIGNED, d DECIMAL(10,2), d2 DECIMAL(20,6), f FLOAT, g DOUBLE,
  y YEAR, dt DATE, ts DATETIME(3), st TIMESTAMP(0) NULL, tm TIME(1), flag BOOL,
  ai VARCHAR(40) CHARACTER SET utf8mb4 {ai}, gen VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,
  bin VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, nopad VARCHAR(40) CHARACTER SET utf8mb4 {nopad},
  swe VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_swedish_ci, c CHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,
  lb VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_bin, vb VARBINARY(20), bn BINARY(4),
  e ENUM('small','Large','x y') CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, s SET('a','b','c') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  bits BIT(8), j {json})"""
_NUMBERS: tuple[str, ...] = (
    "1,1,1,1,1.00,1.000000,0.1,0.1,2020,'2020-01-01','2020-01-01 00:00:00','2020-01-01 00:00:00','00:00:00',1",
    "0,0,0,0,0.00,0.000000,0,0,1970,'1970-01-01','1970-01-01 12:30:45.5','2000-02-29 23:59:59','-00:00:01',0",
    "-1,-1,18446744073709551615,255,-1.50,-0.000001,-1.5,-1.5,1901,'9999-12-31','9999-12-31 23:59:59.999','2038-01-19 03:14:07','838:59:59',1",
    "7,9223372036854775807,9223372036854775808,7,99999999.99,12345678901234.567890,1e10,1e300,2155,'2019-12-31','2019-12-31 23:59:59.999','2019-12-31 23:59:59','-838:59:59',0",
    "NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL",
    "-7,-9223372036854775808,5,100,2.50,2.500000,2.5,2.5,2000,'2020-02-29','2020-02-29 10:00:00.001','1970-01-01 00:00:01','10:00:00.5',1",
    "3,3,3,3,0.33,0.333333,0.3333,0.333333333,2024,'2024-06-15','2024-06-15 08:09:10','2024-06-15 08:09:10','23:59:59.9',0",
)
# ruff: noqa: RUF001 - characters that look alike are the point
_TEXTS = (
    "", " ", "abc", "ABC", "abc ", "abc  ", " abc", "Abc", "ábc", "ÁBC", "abd", "ab", "a", "b", "a\tb", "ab\t", "a%c", "a_c", "a\\c", "a'c",
    'a"c', "It's", "It’s", "straße", "strasse", "STRASSE", "straze", "ß", "s", "ss", "æ", "ae", "Æ", "Ö", "o", "ö", "Å", "[", "Ä", "\\", "ø", "é", "e\u0301", "e",
    "ÿ", "Ÿ", "y", "İ", "ı", "I", "i", "K", "k", "ſ", "😀", "😁", "a😀", "Ω", "ω", "ς", "σ", "Σ", "я", "Я", "ё", "е", "日本", "日本語", "ﬁ", "fi", "①", "1",
    "5", "5.0", "05", "-1", "0", "NULL", "a\nb", "ab\u00ad", "\u0001a", "x\u200bc", "“abc”", '"abc"', "Ⓐ", "ａｂｃ", "½", "১", "٣", "3",
)  # fmt: skip
_LATIN = set(bytes(range(1, 256)).decode("cp1252", "ignore"))
_ENUMS = ("'small'", "'Large'", "'x y'", "NULL")
_SETS = ("''", "'a'", "'a,c'", "NULL")
_EXPRESSIONS = """
i = 1
i <> 1
i IN (1, 7, NULL)
i NOT IN (1, 7)
i NOT IN (1, NULL)
i BETWEEN 0 AND 5
i NOT BETWEEN 0 AND 5
i IS NULL
i IS NOT NULL
i
NOT i
!i
i AND flag
i OR NULL
i XOR flag
i <=> NULL
i <=> 1
NOT (i <=> NULL)
i + 1 > 1
i - 1 = 0
i * 3 >= 21
i / 2 = 3.5
i / 3 > 0.333333333
i / 3 = 0.3333
i / 3 > 0.3333
i / 0 IS NULL
7 / i > 2.3
-7 / 3 = -2.3333
d / 2 > 0.5
i DIV 2 = 3
i DIV 2 = -3
u DIV 2 > 9223372036854775806
i DIV 0 IS NULL
i % 3 = 1
i % 3 = -1
MOD(i, 2) = 0
i % 0 IS NULL
d % 2 = 0.5
g % 2 > 0
-i = 7
ABS(i) = 7
FLOOR(d) = -2
CEILING(d) = 3
CEIL(d2) = 1
u = 18446744073709551615
u > 9223372036854775807
u = 1.0
b > 9223372036854775806.5
b = -9223372036854775808
CAST(u AS SIGNED) = -1
CAST(i AS SIGNED) - 5 < 0
tiny > 254
tiny = '255'
i = '7'
d = 0.33
d > 2
d = 1
d + d2 = 2
d * d2 > 1
d2 = 2.5
d * 2 - 1 = 4
d BETWEEN -1.5 AND 1
f = 0.1
f = 2.5
f > 0.09
g = 0.1
g > 1e200
g = 2.5
g + f > 4
g / 0 IS NULL
d = 2.5e0
y = 2020
y > 1999 AND y < 2100
y + 1 = 2021
y BETWEEN 1901 AND 1970
dt = '2020-01-01'
dt > '2019-12-31 12:00:00'
dt < '2020-01-01'
dt IN ('2020-01-01', '1970-01-01')
dt BETWEEN '2020-01-01' AND '2020-12-31'
dt = DATE '2020-02-29'
dt <> '2020-01-01'
dt = ts
dt < ts
ts = '2020-01-01'
ts = '2019-12-31 23:59:59.999'
ts >= '2019-12-31 23:59:59.9985'
ts > TIMESTAMP '2020-01-01 00:00:00'
ts BETWEEN '1970-01-01' AND '2020-01-01'
st = '2019-12-31 23:59:59'
st < '2000-03-01'
st < ts
DATE(ts) = '2020-02-29'
DATE(ts) = dt
YEAR(dt) = 2020
YEAR(ts) >= 2020
MONTH(dt) = 2
DAY(dt) = 31
DAYOFMONTH(ts) IN (1, 29)
HOUR(ts) = 12
MINUTE(ts) + SECOND(ts) > 74
YEAR(st) = 2038
tm = '10:00:00.5'
tm < '00:00:00'
tm > '-838:59:58'
tm BETWEEN '00:00:00' AND '23:59:59.9'
flag
flag = TRUE
flag IS TRUE
flag IS NOT TRUE
flag IS FALSE
flag IS UNKNOWN
(i > 0) = flag
(i > 0) + (u > 0) = 2
i = u = flag
i > 0 IS NOT FALSE
IF(i > 0, d, d2) > 0
IF(flag, i, g) > 0
IFNULL(i, 5) = 5
COALESCE(i, u, 3) > 2
NULLIF(i, 7) IS NULL
CASE i WHEN 1 THEN 10 WHEN 7 THEN NULL ELSE d END > 0
CASE WHEN i > 0 THEN 'pos' WHEN i < 0 THEN 'neg' END = bin
CASE WHEN i > 0 THEN bin END = 'abc'
COALESCE(bin, 'none') = 'none'
COALESCE(dt, DATE '2020-01-01') = '2020-01-01'
tiny + u % 10 > 100
ai = 'abc'
ai <> 'abc'
ai = 'ABC '
ai = 'ábc'
ai IN ('It\\'s', 'strasse', 'ae')
ai NOT IN ('abc', 'e')
ai = 'e'
ai = 'fi'
ai = '1'
ai = '3'
ai = '"abc"'
ai = 'İ'
ai = '😀'
ai = 'я'
ai <=> NULL
ai LIKE 'a%'
ai LIKE 'A_C'
ai LIKE '%s%'
ai LIKE 'a\\%c'
ai LIKE 'stra_e'
ai LIKE 'it''s'
ai LIKE '%1%'
ai NOT LIKE 'abc%'
ai LIKE ''
gen = 'abc'
gen = 'abc  '
gen <> 'ABC'
gen = 'e'
gen = 's'
gen = 'ss'
gen = '😁'
gen = 'Σ'
gen > 'abc'
gen >= 'b'
gen < 'a'
gen <= 'ab'
gen BETWEEN 'a' AND 'b'
gen LIKE 'a%'
gen LIKE 'É'
gen LIKE '_'
gen LIKE '%😀'
gen LIKE 'abc '
gen LIKE '%s'
gen IN ('', 'I', 'Ω')
bin = 'abc'
bin = ''
bin <> 'abc'
bin > 'abc'
bin < 'ab'
bin <= 'ab'
bin >= 'a\\tb'
bin BETWEEN 'a' AND 'b'
bin LIKE 'a%'
bin LIKE 'a_c'
bin LIKE 'a\\_c'
bin LIKE 'a|%c' ESCAPE '|'
bin LIKE 'a\\\\\\\\c'
bin LIKE '%\\n%'
bin LIKE '_'
bin LIKE '%😀'
bin IN ('abc', NULL)
bin = 'a\\'c' OR bin = "a\\"c"
nopad = 'abc'
nopad > 'ab'
nopad < 'ab'
nopad LIKE 'abc%'
swe = 'abc'
swe = 'å'
swe = '['
swe = 'Ü'
swe > 'z'
swe < 'b'
swe LIKE 'a%'
swe LIKE '_'
swe LIKE 'ö'
c = 'abc'
c LIKE 'abc'
c LIKE 'abc%'
c = ' abc'
c > 'abc'
lb = 'é'
lb <> 'abc'
bin COLLATE utf8mb4_general_ci = 'ABC'
ai COLLATE utf8mb4_bin = 'abc'
LENGTH(bin) = 3
LENGTH(bin) > CHAR_LENGTH(bin)
CHAR_LENGTH(swe) = 1
CHAR_LENGTH(gen) = 2
LENGTH(vb) = 3
SUBSTRING(bin, 2, 1) = 'b'
SUBSTRING(gen, 2) = 'BC'
SUBSTR(bin FROM 1 FOR 2) = 'ab'
LEFT(bin, 2) = 'ab'
LEFT(gen, 0) = ''
CONCAT(bin, 'x') = 'abcx'
CONCAT(gen, '-', gen) LIKE 'a%-A%'
TRIM(bin) = 'abc'
TRIM(gen) = ' ABC '
vb = 'abc'
vb <> 'abc'
vb > 'abc'
bn = 'ab'
bn > 'ab'
e = 'small'
e = 'LARGE'
e IN ('small', 'x y')
e > 'm'
e LIKE 's%'
s = 'a,c'
s = ''
s LIKE '%c%'
bits = 5
bits > 100
j IS NULL
j IS NOT NULL AND i > 0
t.i = 1 AND `t`.`d` >= 1
i > 0 && NOT flag || d < 0
i = 1 OR i = 7 AND flag = 0
NOT i = 1 AND NOT (flag OR i IS NULL)
i - -1 = 2 -- and its end
NULL
TRUE
0
1.5
0.0 OR i = 3
"""


EXPRESSIONS = [line.replace("\\\\", "\\") for line in _EXPRESSIONS.strip().splitlines()]
_AT_ONCE = 32


def _statements(server: Server) -> list[str]:
    new = server.name == "mysql80"
    made = _TABLE.format(
        ai="COLLATE utf8mb4_0900_ai_ci" if new else "COLLATE utf8mb4_general_ci",
        nopad="COLLATE utf8mb4_0900_bin" if new else "COLLATE utf8mb4_bin",
        json="JSON" if server.flavor == "mysql" else "TEXT",
    )
    statements = [made]
    for number, text in enumerate([*_TEXTS, None]):
        quoted = "NULL" if text is None else server_literal(text)
        latin = quoted if text is not None and set(text) <= _LATIN else "NULL"
        short = quoted if text is None or len(text) <= 10 else "NULL"
        four = quoted if text is None or len(text.encode()) <= 4 else "NULL"
        values = [
            *(str(number), _NUMBERS[number % len(_NUMBERS)]),
            *(quoted, quoted, quoted, quoted, latin, short, latin, quoted, four),
            *(_ENUMS[number % 4], _SETS[number // 4 % 4], str(number % 256), "NULL" if number % 3 else "'{}'"),
        ]
        statements.append(f"INSERT INTO t VALUES ({', '.join(values)})")
    return statements


def server_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


@dataclass
class Rows:
    """The table on the server and in silver."""

    server: Server
    database: str
    schema: TableSchema
    spark: SparkSession
    silver: str
    answers: dict[str, set[int] | ConfigError] = field(default_factory=dict)

    def of_server(self, expression: str) -> set[int]:
        settings = {"database": self.database, "init_command": "SET time_zone = '+00:00'"}
        with self.server.connect(**settings) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT id FROM t WHERE ({expression}\n)")
            return {row[0] for row in cursor.fetchall()}

    def of_silver(self, expression: str) -> set[int] | ConfigError:
        """The rows, or why there are none; the first to ask computes the answers to all expressions."""
        if not self.answers:
            for batch in range(0, len(EXPRESSIONS), _AT_ONCE):
                self._answer(EXPRESSIONS[batch : batch + _AT_ONCE])
        return self.answers[expression]

    def _translated(self, expression: str) -> str:
        return translate(expression, self.schema, lambda column: quote(column.name), flavor=self.server.flavor)

    def _answer(self, expressions: list[str]) -> None:
        conditions = {}
        for expression in expressions:
            try:
                conditions[expression] = self._translated(expression)
            except ConfigError as refused:
                self.answers[expression] = refused
        columns = [f"{condition} AS c{number}" for number, condition in enumerate(conditions.values())]
        found = self.spark.sql(f"SELECT id, {', '.join(columns)} FROM {self.silver}").collect()
        for number, expression in enumerate(conditions):
            self.answers[expression] = {row["id"] for row in found if row[f"c{number}"]}


RowsOf = Callable[[str], Rows]


@pytest.fixture(scope="module")
def rows_of(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> RowsOf:
    """The rows of a server, written, landed and applied when first asked for."""
    folder: Path = tmp_path_factory.mktemp("expressions")
    pipeline = Pipeline(spark, folder / "lake")

    def make(name: str) -> Rows:
        server: Server = request.getfixturevalue(name)
        database = server.fresh_database("expressions")
        settings = {"database": database, "init_command": "SET time_zone = '+00:00', sql_mode = ''"}
        with server.connect(**settings) as connection, connection.cursor() as cursor:
            for statement in _statements(server):
                cursor.execute(statement)
        (structure,) = structures_of(server, database)
        archive = record(server, folder / name)
        pipeline.catch_up(archive, name, [database], server.flavor, lambda: [structure])
        assert pipeline.refused == {}
        session = clone_session(spark)
        if name != "mysql80":
            # Compiling conditions takes longer than a few rows do: once is enough.
            session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        place = pipeline.lakehouse.silver(database, "t")
        return Rows(server, database, structure, session, place)

    return Once(make)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize(
    "name", ["mysql80", *(pytest.param(name, marks=pytest.mark.long) for name in ("mysql57", "mariadb"))]
)
def test_silver_has_the_rows_of_where(name: str, expression: str, rows_of: RowsOf) -> None:
    """A translated expression is true for the rows for which the server's WHERE is."""
    rows = rows_of(name)
    assert rows.of_silver(expression) == rows.of_server(expression)
