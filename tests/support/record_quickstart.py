"""Records the binlogs of the quickstart from real servers: `python -m tests.support.record_quickstart`.

A shop on MySQL 8.0 (two files: a rotation) and a boutique on MariaDB (one file), with inserts, updates, key changes, deletes, JSON,
decimals, and a compressed part each. The statements are the same at every run; times of commit and GTIDs are not.
"""

import shutil
from pathlib import Path

from tests.support.servers import Server, running
from tests.support.shop import Clerk
from tests.support.workload import create_tables

TARGET = Path(__file__).resolve().parents[2] / "pipelines" / "quickstart-binlogs"
MOST_BYTES = 150_000
STEPS = 90


def main() -> None:
    with running("mysql80", server_id="101") as server:
        _record(server, "shop", _work_on_mysql)
    with running("mariadb", server_id="202") as server:
        _record(server, "boutique", _work_on_mariadb)


def _record(server: Server, database: str, work) -> None:
    server.execute(f"CREATE database {database} CHARACTER SET utf8mb4")
    create_tables(server, database)
    with server.connect(database=database, autocommit=False) as connection, connection.cursor() as cursor:
        work(server, Clerk(cursor, seed=2026), cursor)
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
    cursor.execute("SET SESSION binlog_transaction_compression = ON")
    _steps(clerk, STEPS // 3)
    cursor.execute("SET SESSION binlog_transaction_compression = OFF")
    clerk.place_order()


def _work_on_mariadb(server: Server, clerk: Clerk, cursor) -> None:
    clerk.open_shop(customers=12, products=20)
    _steps(clerk, STEPS)
    server.execute("SET GLOBAL log_bin_compress_min_len = 64", "SET GLOBAL log_bin_compress = ON")
    _steps(clerk, STEPS // 3)
    server.execute("SET GLOBAL log_bin_compress = OFF")
    clerk.place_order()


def _steps(clerk: Clerk, count: int) -> None:
    for _ in range(count):
        clerk.step()


if __name__ == "__main__":
    main()
