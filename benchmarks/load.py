"""A steady load on several tables of a server."""

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.servers import Server

ROWS_A_TRANSACTION = 10
ROWS_A_STATEMENT = 500


@dataclass(frozen=True, slots=True)
class Load:
    """What is written.

    Attributes:
        rows: row changes per second over all tables.
        present: rows of each table before the load.
    """

    tables: int
    rows: int
    present: int = 1


class Writer:
    """Inserts, updates and deletes (five, four and one of ten changes) on random tables, at a steady rate."""

    def __init__(self, server: Server, database: str, load: Load) -> None:
        self.server, self.database, self.load = server, database, load
        self.written = 0
        self.behind = 0.0
        """The most seconds by which a transaction was later than planned: the server or the machine is overloaded."""
        self._next = [load.present] * load.tables

    @property
    def tables(self) -> list[str]:
        """The names of the tables."""
        return [f"t{number}" for number in range(self.load.tables)]

    def create(self) -> None:
        """Create the tables with their first rows."""
        columns = "(id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)"
        for table in self.tables:
            self.server.execute(f"CREATE TABLE {table} {columns}", database=self.database)
            for first in range(0, self.load.present, ROWS_A_STATEMENT):
                keys = range(first, min(first + ROWS_A_STATEMENT, self.load.present))
                rows = ", ".join(f"({key}, 0, 'c', 'p')" for key in keys)
                self.server.execute(f"INSERT INTO {table} VALUES {rows}", database=self.database)

    def write(self, stop: threading.Event) -> None:
        """Write until `stop` is set."""
        rng, every = random.Random(1), ROWS_A_TRANSACTION / self.load.rows
        due = time.monotonic()
        with self.server.connect(database=self.database, autocommit=False) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                early = due - time.monotonic()
                self.behind = max(self.behind, -early)
                time.sleep(max(0.0, early))
                for statement in self._transaction(rng):
                    cursor.execute(statement)
                connection.commit()
                self.written += ROWS_A_TRANSACTION
                due += every

    def _transaction(self, rng: random.Random) -> Iterator[str]:
        table = rng.randrange(self.load.tables)
        first = self._next[table]
        self._next[table] += 5
        text = f"{rng.random():.18f}" * 5
        yield f"INSERT INTO t{table} VALUES " + ", ".join(f"({first + n}, {n}, '{text}', 'p')" for n in range(5))
        for n in range(4):
            yield f"UPDATE t{table} SET k = k + 1, c = '{text}' WHERE id = {first + n}"
        yield f"DELETE FROM t{table} WHERE id = {first + 4}"
