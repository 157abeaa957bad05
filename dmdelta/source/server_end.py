"""Where a server's log ends, looked up repeatedly beside the relay."""

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

from dmdelta.errors import DmdeltaError
from dmdelta.logging import get_logger
from dmdelta.source.connection import open_connection
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.server import ServerIdentity, log_end, server_identity

if TYPE_CHECKING:
    from pymysql.connections import Connection

log = get_logger(__name__)
LOOK_SECONDS = 5.0
"""How often the end is looked up: each time the server locks its log for a moment."""


class ServerEnd:
    """The end of a server's log, as a thread with a connection of its own last saw it while the `with` block runs.

    A relay that is slower than its server does not see how far it is behind. The thread's errors stop nothing: the
    dump connection reports a server that does not answer.

    Attributes:
        place: file and offset.
    """

    def __init__(self, endpoint: Endpoint, server: ServerIdentity, place: tuple[str, int]) -> None:
        self._endpoint = endpoint
        self._server = server
        self._over = threading.Event()
        self.place = place

    def __enter__(self) -> "ServerEnd":  # noqa: PYI034 (Self needs Python 3.11)
        threading.Thread(target=self._watch, name="server-end", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # Not awaited: a server that does not answer must not delay the next connection.
        self._over.set()

    def _watch(self) -> None:
        is_known = True
        while not self._over.wait(LOOK_SECONDS):
            try:
                with closing(open_connection(self._endpoint)) as connection:
                    self._follow(connection)
            except DmdeltaError as error:
                if is_known and not self._over.is_set():
                    log.warning("the server's end is unknown", source=str(self._endpoint), why=error.message)
                is_known = False
            else:
                is_known = True

    def _follow(self, connection: "Connection[Any]") -> None:
        """Look until the end of the block, unless the address now leads to another server."""
        if server_identity(connection).uuid != self._server.uuid:
            return
        while not self._over.is_set():
            self.place = log_end(connection, self._server)
            self._over.wait(LOOK_SECONDS)
