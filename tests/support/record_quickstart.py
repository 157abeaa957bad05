"""Records the binlogs of the quickstart from real servers: `python -m tests.support.record_quickstart`.

A shop on MySQL 8.0 (two files: a rotation) and a boutique on MariaDB (one file), with inserts, updates, key changes, deletes, JSON,
decimals, and a compressed part each. `_break_contracts` adds rows that violate the contracts in schemas/. Statements
are the same in every run; commit times and GTIDs are not.
"""

import shutil
from pathlib import Path

from tests.support.servers import Server, running
from tests.support.shop import Clerk
from tests.support.workload import create_tables

TARGET = Path(__file__).resolve().parents[2] / "pipelines" / "quickstart-binlogs"
MOST_BYTES = 150_000
STEPS = 90


class TidyClerk(Clerk):
    """A clerk that never leaves an order without its customer; the only such orders are intentional."""

    def leave(self) -> None:
        """Delete a customer, after its orders and their items."""
        if len(self._customers) > 3:
            gone = self._customers.pop(self._random.randrange(len(self._customers)))
            self._cursor.execute("SELECT id FROM orders WHERE customer_id = %s", (gone,))
            for (order,) in self._cursor.fetchall():
                del self._orders[order]
                self._run("DELETE FROM order_items WHERE order_id = %s", (order,))
                self._run("DELETE FROM orders WHERE id = %s", (order,))
            self._run("DELETE FROM customers WHERE id = %s", (gone,))
        self._commit()


def main() -> None:
    with running("mysql80", server_id="101") as server:
        _record(server, "shop", _work_on_mysql)
    with running("mariadb", server_id="202") as server:
        _record(server, "boutique", _work_on_mariadb)


def _record(server: Server, database: str, work) -> None:
    server.execute(f"CREATE database {database} CHARACTER SET utf8mb4")
    create_tables(server, database)
    with server.connect(database=database, autocommit=False) as connection, connection.cursor() as cursor:
        work(server, TidyClerk(cursor, seed=2026), cursor)
    target = TARGET / server.flavor
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    server.stop()
    for file in sorted(server.datadir.glob("binlog.0*")):
        assert file.stat().st_size < MOST_BYTES, f"{file.name} has {file.stat().st_size} bytes: fewer steps"
        shutil.copyfile(file, target / file.name)
        print(f"{target / file.name}: {file.stat().st_size} bytes")


def _work_on_mysql(server: Server, clerk: Clerk, cursor) -> None:
    clerk.open_shop(customers=12, products=20)
    _steps(clerk, STEPS)
    server.execute("FLUSH BINARY LOGS")
    _steps(clerk, STEPS)
    _break_contracts(cursor)
    cursor.execute("SET SESSION binlog_transaction_compression = ON")
    _steps(clerk, STEPS // 3)
    cursor.execute("SET SESSION binlog_transaction_compression = OFF")
    clerk.place_order()


def _work_on_mariadb(server: Server, clerk: Clerk, cursor) -> None:
    clerk.open_shop(customers=12, products=20)
    _steps(clerk, STEPS)
    _break_contracts(cursor)
    server.execute("SET GLOBAL log_bin_compress_min_len = 64", "SET GLOBAL log_bin_compress = ON")
    _steps(clerk, STEPS // 3)
    server.execute("SET GLOBAL log_bin_compress = OFF")
    clerk.place_order()


def _break_contracts(cursor) -> None:
    """A malformed e-mail address, a negative total, and an order whose customer is deleted. None of the rows changes again."""
    customer = "INSERT INTO customers VALUES (%s, %s, %s, 'basic', '', 0, '2026-03-01', NULL)"
    order = "INSERT INTO orders VALUES (%s, %s, 'new', %s, '2026-03-02', NULL, NULL)"
    transactions = (
        ((customer, (9001, "Grace Hopper", "grace.hopper at example.org")),),
        ((customer, (9002, "Alan Turing", "alan@example.org")), (order, (9101, 9002, 64))),
        ((order, (9102, 9002, "-25.5")),),
        ((customer, (9003, "Edsger Dijkstra", "edsger@example.org")), (order, (9103, 9003, 120))),
        (("DELETE FROM customers WHERE id = %s", (9003,)),),
    )
    for statements in transactions:
        for statement, values in statements:
            cursor.execute(statement, values)
        cursor.connection.commit()


def _steps(clerk: Clerk, count: int) -> None:
    for _ in range(count):
        clerk.step()


if __name__ == "__main__":
    main()
