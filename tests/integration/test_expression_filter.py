"""Expression filters against a real server: the rows of MySQL's WHERE are the rows of the translated condition."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dmdelta.errors import ConfigError
from dmdelta.lakehouse.session import clone_session
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.rules.expressions.translate import translate
from tests.support.catalog import structures_of
from tests.support.expressions import EXPRESSIONS
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

    def of_server(self) -> dict[str, set[int]]:
        """The rows for which each WHERE is true."""
        found = dict[str, set[int]]()
        settings = {"database": self.database, "init_command": "SET time_zone = '+00:00'"}
        with self.server.connect(**settings) as connection, connection.cursor() as cursor:
            for expression in EXPRESSIONS:
                cursor.execute(f"SELECT id FROM t WHERE ({expression}\n)")
                found[expression] = {row[0] for row in cursor.fetchall()}
        return found

    def of_silver(self) -> dict[str, set[int] | ConfigError]:
        """The rows for which each translated condition is true, or why there are none."""
        found = dict[str, set[int] | ConfigError]()
        for first in range(0, len(EXPRESSIONS), _AT_ONCE):
            found |= self._answers(EXPRESSIONS[first : first + _AT_ONCE])
        return found

    def _translated(self, expression: str) -> str:
        return translate(expression, self.schema, lambda column: quote(column.name), flavor=self.server.flavor)

    def _answers(self, expressions: list[str]) -> dict[str, set[int] | ConfigError]:
        answers = dict[str, set[int] | ConfigError]()
        conditions = {}
        for expression in expressions:
            try:
                conditions[expression] = self._translated(expression)
            except ConfigError as refused:
                answers[expression] = refused
        columns = [f"{condition} AS c{number}" for number, condition in enumerate(conditions.values())]
        found = self.spark.sql(f"SELECT id, {', '.join(columns)} FROM {self.silver}").collect()
        for number, expression in enumerate(conditions):
            answers[expression] = {row["id"] for row in found if row[f"c{number}"]}
        return answers


def rows_on(server: Server, spark: SparkSession, folder: Path) -> Rows:
    """The rows of a server, written, landed and applied."""
    pipeline = Pipeline(spark, folder / "lake")
    database = server.fresh_database("expressions")
    settings = {"database": database, "init_command": "SET time_zone = '+00:00', sql_mode = ''"}
    with server.connect(**settings) as connection, connection.cursor() as cursor:
        for statement in _statements(server):
            cursor.execute(statement)
    (structure,) = structures_of(server, database)
    archive = record(server, folder / "archive")
    pipeline.catch_up(archive, "s1", [database], server.flavor, lambda: [structure])
    assert pipeline.refused == {}
    session = clone_session(spark)
    if server.name != "mysql80":
        # Compiling conditions takes longer than evaluating a few rows: once is enough.
        session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return Rows(server, database, structure, session, pipeline.lakehouse.silver(database, "t"))


@pytest.mark.parametrize(
    "name", ["mysql80", *(pytest.param(name, marks=pytest.mark.long) for name in ("mysql57", "mariadb"))]
)
def test_silver_has_the_rows_of_where(
    name: str, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    """A translated expression is true for the rows for which the server's WHERE is: each of EXPRESSIONS."""
    rows = rows_on(request.getfixturevalue(name), spark, tmp_path)
    expected, found = rows.of_server(), rows.of_silver()
    wrong = [f"{one}: {found[one]!r} instead of {expected[one]}" for one in EXPRESSIONS if found[one] != expected[one]]
    assert not wrong, f"{len(wrong)} of {len(EXPRESSIONS)} expressions:\n" + "\n".join(wrong)
