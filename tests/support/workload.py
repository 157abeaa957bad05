"""Writers that keep changing a database while the pipeline runs.

`with Workload(server, database, seed=7) as work: …` starts them; leaving the block stops them and re-raises a
writer's error. `work.transactions` and `work.rows` count what was committed.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

import pymysql

from tests.support.servers import Server
from tests.support.shop import KEYLESS, TABLES, Clerk

STOP_SECONDS = 30


class Workload:
    """`writers` clerks, each in its own thread, with at most `per_second` transactions each.

    Args:
        keyless: also write a table without a key.
        setup: statements every writer's session begins with, such as `SET SESSION binlog_transaction_compression = ON`.
    """

    def __init__(
        self,
        server: Server,
        database: str,
        *,
        seed: int = 1,
        writers: int = 2,
        per_second: float = 50.0,
        keyless: bool = False,
        setup: tuple[str, ...] = (),
    ) -> None:
        self.tables = [*TABLES, *KEYLESS] if keyless else list(TABLES)
        self._server = server
        self._database = database
        self._seed = seed
        self._pause = 1.0 / per_second
        self._keyless = keyless
        self._setup = setup
        self._stopping = threading.Event()
        self._failures: list[BaseException] = []
        self._clerks: list[Clerk] = []
        self._turns = [threading.Lock() for _ in range(writers)]
        self._threads = [threading.Thread(target=self._write, args=(lane,), daemon=True) for lane in range(writers)]

    @property
    def transactions(self) -> int:
        """Committed so far."""
        return sum(clerk.transactions for clerk in self._clerks)

    @property
    def rows(self) -> int:
        """Row changes committed so far."""
        return sum(clerk.rows for clerk in self._clerks)

    def create_tables(self) -> None:
        """Create the shop's tables."""
        create_tables(self._server, self._database, keyless=self._keyless)

    def start(self) -> "Workload":
        """Create the tables and start the writers."""
        self.create_tables()
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        """Stop at a transaction boundary.

        Raises:
            BaseException: the error of a writer.
        """
        self._stopping.set()
        for thread in self._threads:
            thread.join(STOP_SECONDS)
            assert not thread.is_alive(), "a writer does not stop: the server hangs"
        if self._failures:
            raise self._failures[0]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause all writers during the block: each waits at a transaction boundary."""
        with ExitStack() as turns:
            for turn in self._turns:
                turns.enter_context(turn)
            yield

    def wait_for(self, transactions: int, seconds: float = 60.0) -> None:
        """Wait until this many transactions are committed."""
        end = time.monotonic() + seconds
        while self.transactions < transactions and not self._failures:
            assert time.monotonic() < end, f"only {self.transactions} of {transactions} transactions in {seconds} s"
            time.sleep(0.01)
        if self._failures:
            raise self._failures[0]

    def __enter__(self):
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _write(self, lane: int) -> None:
        try:
            with (
                self._server.connect(database=self._database, autocommit=False) as connection,
                connection.cursor() as cursor,
            ):
                for statement in self._setup:
                    cursor.execute(statement)
                clerk = Clerk(cursor, self._seed, lane, keyless=self._keyless)
                self._clerks.append(clerk)
                clerk.open_shop()
                while not self._stopping.wait(self._pause):
                    with self._turns[lane]:
                        _step(clerk, connection)
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread by stop()
            self._failures.append(error)


def _step(clerk: Clerk, connection: Any) -> None:
    try:
        clerk.step()
    except pymysql.err.OperationalError as error:
        # Lock waits and deadlocks of keyless tables, which are scanned completely: the transaction was rolled back.
        if error.args[0] not in (1205, 1213):
            raise
        connection.rollback()


def create_tables(server: Server, database: str, *, keyless: bool = False) -> None:
    """Create the shop's tables in `database`."""
    statements = {**TABLES, **KEYLESS} if keyless else TABLES
    server.execute(*statements.values(), database=database)


def write_steps(
    server: Server, database: str, steps: int, *, seed: int = 1, lane: int = 0, keyless: bool = False
) -> Clerk:
    """Open the shop and run `steps` transactions in this thread; the tables must exist, the lane's keys must not."""
    with server.connect(database=database, autocommit=False) as connection, connection.cursor() as cursor:
        clerk = Clerk(cursor, seed, lane, keyless=keyless)
        clerk.open_shop()
        for _ in range(steps):
            clerk.step()
    return clerk
