"""Changes a loadable database while it is read."""

import random
import threading

from tests.support.loadable import STATEMENTS
from tests.support.servers import Server


class Meddler:
    """Runs the statements in rounds in its own thread; each statement is a transaction.

    Attributes:
        rounds: how often all of them have run.
    """

    def __init__(self, server: Server, database: str, seed: int) -> None:
        self.rounds = 0
        self._random = random.Random(seed)
        self._server = server
        self._database = database
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._meddle, daemon=True)

    def __enter__(self) -> "Meddler":  # noqa: PYI034 (Self needs Python 3.11)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop after the current statement.

        Raises:
            BaseException: the error of a statement.
        """
        self._over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _meddle(self) -> None:
        try:
            with self._server.connect(database=self._database, autocommit=True) as connection:
                while True:
                    for statement in self._random.sample(STATEMENTS, len(STATEMENTS)):
                        with connection.cursor() as cursor:
                            cursor.execute(statement)
                        if self._over.wait(self._random.uniform(0.05, 0.35)):
                            return
                    self.rounds += 1
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread by stop()
            self._failure = error
