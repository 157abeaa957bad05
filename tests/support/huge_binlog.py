"""A binlog file of more than 4 GiB: one transaction, mostly of a table that is not replicated."""

import threading
from concurrent.futures import ThreadPoolExecutor

from tests.support.servers import Server

WRAP = 2**32
"""Positions in events have 32 bits."""
KEPT = "kept"
_STATEMENT_BYTES = 16 * (8 << 20)
_STATEMENTS = WRAP // _STATEMENT_BYTES
_NOISE = "INSERT INTO noise (body) SELECT REPEAT(CHAR(65 + n), 8 << 20) FROM (" + " UNION ALL ".join(
    f"SELECT {number} AS n" for number in range(16)
)
_ENGINES = {"mysql": "BLACKHOLE", "mariadb": "InnoDB ROW_FORMAT=COMPRESSED"}
"""Engines whose rows use hardly any disk space outside the log."""
_WRITERS = 4
_HEAD_START = 0.3
"""Seconds; the large transaction must be the first in its commit group."""
_NAP_SECONDS = 0.02
_TOGETHER = {
    "mysql": ("SET GLOBAL sync_binlog = 1", "SET GLOBAL binlog_group_commit_sync_delay = 1000000"),
    "mariadb": ("SET GLOBAL binlog_commit_wait_count = 3", "SET GLOBAL binlog_commit_wait_usec = 5000000"),
}
"""Settings with which a server commits other transactions into the old file: MySQL in the group that is written while
the first one is synced, MariaDB in the group of the large transaction.
"""
_ALONE = {
    "mysql": ("SET GLOBAL sync_binlog = 0", "SET GLOBAL binlog_group_commit_sync_delay = 0"),
    "mariadb": ("SET GLOBAL binlog_commit_wait_count = 0", "SET GLOBAL binlog_commit_wait_usec = 100000"),
}


def create_tables(server: Server, database: str) -> None:
    """Create the replicated table `kept`, and `noise`."""
    server.execute(
        f"CREATE TABLE {KEPT} (id INT NOT NULL PRIMARY KEY AUTO_INCREMENT, place VARCHAR(20) NOT NULL)",
        f"CREATE TABLE noise (id INT NOT NULL PRIMARY KEY AUTO_INCREMENT, body LONGBLOB) ENGINE={_ENGINES[server.flavor]}",
        database=database,
    )


def write_beyond_4_gib(server: Server, database: str) -> tuple[str, int]:
    """Write a transaction of more than 4 GiB, and rows of `kept` before, in and after it; returns file and size.

    The server rotates the file after such a transaction; transactions that commit meanwhile are still in the old file.
    """
    server.execute(f"INSERT INTO {KEPT} (place) VALUES ('before')", database=database)
    committing = threading.Event()
    over = threading.Event()
    with ThreadPoolExecutor(_WRITERS) as pool:
        writers = [pool.submit(_write_meanwhile, server, database, committing, over) for _ in range(_WRITERS)]
        try:
            _write_one_transaction(server, database, committing)
        finally:
            committing.set()
            over.set()
        for writer in writers:
            writer.result()
    server.execute(*_ALONE[server.flavor])
    ((name, size),) = [(str(name), int(size)) for name, size, *_ in server.query("SHOW BINARY LOGS") if size > WRAP]
    return name, size


def _write_one_transaction(server: Server, database: str, committing: threading.Event) -> None:
    places = {0: "first", _STATEMENTS // 2: "half", _STATEMENTS: "beyond"}
    ids = {}
    with server.connect(database=database, autocommit=False, read_timeout=600) as connection:
        with connection.cursor() as cursor:
            for number in range(_STATEMENTS + 1):
                if number in places:
                    cursor.execute(f"INSERT INTO {KEPT} (place) VALUES ('{places[number]}')")
                    ids[places[number]] = cursor.lastrowid
                cursor.execute(f"{_NOISE}) AS numbers")
            # By key: a condition on another column would lock all rows, and the writers would wait for the commit.
            cursor.execute(f"UPDATE {KEPT} SET place = 'changed beyond' WHERE id = {ids['half']}")
            cursor.execute(f"INSERT INTO {KEPT} (place) VALUES ('last')")
        server.execute(*_TOGETHER[server.flavor])
        committing.set()
        connection.commit()


def _write_meanwhile(server: Server, database: str, committing: threading.Event, over: threading.Event) -> None:
    committing.wait()
    over.wait(_HEAD_START)
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        while not over.wait(_NAP_SECONDS):
            cursor.execute(f"INSERT INTO {KEPT} (place) VALUES ('meanwhile')")
