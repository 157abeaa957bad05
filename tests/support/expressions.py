"""MySQL expressions, and the conditions that they are converted to: `tests/golden/rules/expressions.txt`.

The integration test of expression filters compares each condition with the rows of a server's WHERE. After a change,
run it, then record again: `python -m tests.support.expressions > tests/golden/rules/expressions.txt`.
"""

import re
from collections.abc import Iterator
from hashlib import sha256

from dmdelta.errors import ConfigError
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules.expressions.translate import translate

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
i * 0.0000000000000001 > 0
i * 100000000000.000001 = 100000000000.000001
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


def _text(name: str, collation: str, kind: str = "varchar", length: int = 160) -> Column:
    return Column(name, kind, length=length, charset=collation.partition("_")[0], collation=collation)


TABLE = TableSchema(
    "d",
    "t",
    (
        *(Column("id", "int", nullable=False), Column("i", "int"), Column("b", "bigint")),
        *(Column("u", "bigint", unsigned=True), Column("tiny", "tinyint", unsigned=True)),
        *(Column("d", "decimal", precision=10, scale=2), Column("d2", "decimal", precision=20, scale=6)),
        *(Column("f", "float"), Column("g", "double"), Column("y", "year"), Column("dt", "date")),
        *(Column("ts", "datetime", precision=3), Column("st", "timestamp"), Column("tm", "time", precision=1)),
        *(Column("flag", "tinyint"), _text("ai", "utf8mb4_0900_ai_ci"), _text("gen", "utf8mb4_general_ci")),
        *(_text("bin", "utf8mb4_bin"), _text("nopad", "utf8mb4_0900_bin"), _text("swe", "latin1_swedish_ci")),
        *(_text("c", "utf8mb4_general_ci", "char", 40), _text("lb", "latin1_bin", length=40)),
        *(Column("vb", "varbinary", length=20), Column("bn", "binary", length=4)),
        Column("e", "enum", charset="utf8mb4", members=("small", "Large", "x y"), collation="utf8mb4_general_ci"),
        Column("s", "set", charset="utf8mb4", members=("a", "b", "c"), collation="utf8mb4_bin"),
        *(Column("bits", "bit", length=8), Column("j", "json")),
    ),
    ("id",),
)
"""The table of the integration test."""


_LONG = re.compile(r"'(?:[^'\\\\]|\\\\.|'')*'")
"""A literal of Spark SQL; those of collations have thousands of characters."""
_LONG = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)


def conditions() -> Iterator[str]:
    """An ASCII line for each expression, and a second one if MariaDB differs; long literals as their digest."""
    for expression in EXPRESSIONS:
        found = dict.fromkeys((_condition(expression, "mysql"), _condition(expression, "mariadb")))
        for number, one in enumerate(found):
            line = f"{expression}{' (MariaDB)' * number} => {_LONG.sub(_shortened, one)}"
            yield line.encode("unicode_escape").decode()


def _shortened(found: re.Match[str]) -> str:
    return found[0] if len(found[0]) < 60 else f"'{len(found[0])}:{sha256(found[0].encode()).hexdigest()[:16]}'"


def _condition(expression: str, flavor: str) -> str:
    try:
        return translate(expression, TABLE, lambda column: f"`{column.name}`", flavor=flavor)  # type: ignore[arg-type]
    except ConfigError as refused:
        return f"refused: {refused.message}"


if __name__ == "__main__":
    print("\n".join(conditions()))
