"""Changes a loadable database for as long as it is read."""

import itertools
import threading

from tests.support.loadable import STATEMENTS
from tests.support.servers import Server


class Meddler:
    """Runs the statements one after the other, each a transaction, in a thread of its own."""

    def __init__(self, server: Server, database: str, pause: float = 0.2) -> None:
        self.rounds = 0
        self._server = server
        self._database = database
        self._pause = pause
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._meddle, daemon=True)

    def __enter__(self) -> "Meddler":  # noqa: PYI034 (Self needs Python 3.11)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """After the statement under way.

        Raises:
            BaseException: what a statement failed with.
        """
        self._over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _meddle(self) -> None:
        try:
            with self._server.connect(database=self._database, autocommit=True) as connection:
                for statement in itertools.cycle(STATEMENTS):
                    with connection.cursor() as cursor:
                        cursor.execute(statement)
                    self.rounds += statement is STATEMENTS[-1]
                    if self._over.wait(self._pause):
                        return
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread by stop()
            self._failure = error
