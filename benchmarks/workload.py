"""The workload of the rivals' measurements: a sysbench table, inserts in 50-row statements, one-row updates."""

import random
from pathlib import Path

from tests.support.servers import Server

TABLE = "sbtest1"
CREATE = (
    f"CREATE TABLE {TABLE} (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL,"
    " KEY k_1 (k))"
)
ROWS_PER_INSERT = 50
STATEMENTS_PER_TRANSACTION = 100


def write_sysbench(server: Server, rows: int, seed: int = 1) -> str:
    """Insert `rows` rows, then update each once, in transactions; the name of the database they are in."""
    rng = random.Random(seed)
    database = server.fresh_database("sbtest")

    def digits(length: int) -> str:
        return "".join(rng.choices("0123456789-", k=length))

    with server.connect(database=database, autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(CREATE)
        for first in range(1, rows + 1, ROWS_PER_INSERT):
            batch = [(i, rng.randrange(rows), digits(119), digits(59)) for i in range(first, first + ROWS_PER_INSERT)]
            cursor.executemany(f"INSERT INTO {TABLE} VALUES (%s, %s, %s, %s)", batch)
            connection.commit()
        for row in range(1, rows + 1):
            cursor.execute(f"UPDATE {TABLE} SET k = %s, c = %s WHERE id = %s", (rng.randrange(rows), digits(119), row))
            if row % STATEMENTS_PER_TRANSACTION == 0:
                connection.commit()
        connection.commit()
    return database


def rotated_files(server: Server) -> list[Path]:
    """Close the current binlog file; the files that are now complete."""
    server.execute("FLUSH BINARY LOGS")
    return server.binlog_files()[:-1]


def write_table(server: Server, rows: int) -> str:
    """A sysbench table of `rows` rows, made inside the server; the name of the database it is in."""
    database = server.fresh_database("sbtest")
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute(CREATE)
        cursor.execute(
            f"INSERT INTO {TABLE} VALUES (1, 1, RPAD('', 119, SHA2('c', 512)), RPAD('', 59, SHA2('p', 512)))"
        )
        count = 1
        while count < rows:
            cursor.execute(
                f"INSERT INTO {TABLE} SELECT id + {count}, FLOOR(RAND() * {rows}),"
                f" RPAD(SHA2(CONCAT(id, '-{count}'), 512), 119, SHA2(RAND(), 224)), LEFT(SHA2(id + {count}, 512), 59)"
                f" FROM {TABLE} WHERE id <= {rows - count}"
            )
            count = min(2 * count, rows)
        cursor.execute(f"ANALYZE TABLE {TABLE}")
        cursor.fetchall()
    return database
