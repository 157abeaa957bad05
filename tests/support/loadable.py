"""A database for full loads: tables of every type and every kind of key, an empty one and a big one."""

from tests.support.servers import Server
from tests.support.type_families import FAMILIES, SQL_MODE, TIME_ZONE, matrices

TABLES = {
    "nothing": "id INT PRIMARY KEY, v VARCHAR(10)",
    "words": "word VARCHAR(30) CHARACTER SET latin1 PRIMARY KEY, n INT",
    "pairs": "a CHAR(8) NOT NULL, b DECIMAL(6,2) NOT NULL, v INT, UNIQUE KEY (b, a)",
    "states": "state ENUM('on','off','broken') PRIMARY KEY, n INT",
    "notes": "text VARCHAR(20), n INT",
    "old_notes": "text VARCHAR(20), n INT",
    "big": "id INT AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, s TINYINT UNSIGNED, u BIGINT UNSIGNED, f FLOAT, "
    "d DOUBLE, p DECIMAL(12,3), t VARCHAR(20) CHARACTER SET utf8mb4, l VARCHAR(20) CHARACTER SET latin1, "
    "w VARCHAR(9) CHARACTER SET utf16, b VARBINARY(9), at DATETIME(6), stamp TIMESTAMP(3) NULL, day DATE, y YEAR, "
    "e ENUM('on','öff'), j JSON",
}
_BIG_ROW = (
    "18446744073709551615, 1.25, -2.5e200, -123456789.125, 'grün 🌱', 'ÿes', 'weit', X'00FF', "
    "'2026-11-21 08:30:15.000007', '2026-11-21 08:30:15.5', '2026-11-21', 2026, 'öff', '{\"a\": [1, null]}'"
)
"""Values of the columns of `big` after its numbers."""
_BIG = "u, f, d, p, t, l, w, b, at, stamp, day, y, e, j"
"""`notes` and `old_notes` have no key; the engine of the latter has no snapshots."""


def fill(server: Server, database: str, big: int, *, every_type: bool = True) -> None:
    """Create and fill the tables, `big` with that many rows. `every_type`: also a table of each type family."""
    session = server.connect(database=database, sql_mode=SQL_MODE, init_command=f"SET time_zone = '{TIME_ZONE}'")
    with session as connection, connection.cursor() as cursor:
        families = [family for family in FAMILIES if every_type and server.name in family.servers]
        for table in matrices(families):
            for statement in (table.create(), *table.inserts()):
                cursor.execute(statement)
        for name, columns in TABLES.items():
            cursor.execute(f"CREATE TABLE {name} ({columns}){' ENGINE=MyISAM' if name == 'old_notes' else ''}")
        cursor.executemany("INSERT INTO words VALUES (%s, %s)", [(f"wörd {n}", n) for n in range(300)])
        cursor.executemany("INSERT INTO pairs VALUES (%s, %s, %s)", [(f"a{n % 7}", n / 4, n) for n in range(300)])
        cursor.executemany("INSERT INTO states VALUES (%s, %s)", [("on", 1), ("off", None), ("broken", 3)])
        for name in ("notes", "old_notes"):
            cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s)", [(f"t{n % 5}", n % 3) for n in range(60)])
        cursor.execute("INSERT INTO big (k, s) VALUES (1, 1)")
        cursor.execute(f"INSERT INTO big VALUES (2, 2, 2, {_BIG_ROW}), (3, 3, 3, {', '.join(['NULL'] * 14)})")
        cursor.execute("UPDATE big SET at = '0000-00-00', day = '0000-00-00', j = 'null' WHERE id = 1")
        rows = 3
        while rows < big:
            key = f"k + {rows}"
            cursor.execute(
                f"INSERT INTO big (k, s, {_BIG}) SELECT {key}, ({key}) % 251, {_BIG} FROM big LIMIT {big - rows}"
            )
            rows = min(2 * rows, big)
        cursor.execute("ANALYZE TABLE big")
        cursor.fetchall()


STATEMENTS = (
    "UPDATE words SET n = n + 1 WHERE n % 3 = 0",
    "DELETE FROM words WHERE n % 5 = 1",
    "UPDATE pairs SET b = -b WHERE v % 4 = 2",
    "DELETE FROM notes WHERE n = 1 LIMIT 3",
    "INSERT INTO notes VALUES ('t1', 1), ('t1', 1)",
    "UPDATE notes SET n = 9 WHERE text = 't2' LIMIT 2",
    "INSERT INTO old_notes VALUES ('t1', 1)",
    "DELETE FROM old_notes WHERE n = 2 LIMIT 2",
    "UPDATE big SET k = -k WHERE id % 997 = 0",
    "UPDATE big SET id = -id WHERE id % 4999 = 0 AND id > 0",
    "DELETE FROM big WHERE id % 1999 = 7",
    "INSERT INTO big (k) SELECT k FROM big WHERE id BETWEEN 1 AND 50",
)
"""Statements that are executed repeatedly while the tables are read."""
