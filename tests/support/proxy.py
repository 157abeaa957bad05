"""A faulty network between the task and its server: a TCP proxy that drops, delays and damages packets.

Wire format: MySQL client/server protocol, "Packets" (3-byte length, sequence number) and "COM_BINLOG_DUMP response"
(one status byte, then the event with its 19-byte header). Neither TLS nor compression.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from tests.support.servers import Server

_COM_BINLOG_DUMP, _COM_BINLOG_DUMP_GTID = 0x12, 0x1E
_FILE_BEGIN = 4
_HEADER = 19
_CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Event:
    """One packet of a binlog stream: the type of the event (that it begins) and the payload, status byte first."""

    kind: int
    payload: bytes

    @property
    def artificial(self) -> bool:
        """The server created the event for this stream: it is not in a file."""
        return self.payload[1:5] == bytes(4)


Meddle = Callable[["Link", Event], bool]
"""Called for each event before it is forwarded; True: the event is handled and not forwarded."""


@dataclass
class Link:
    """One connection through the proxy; `streams`: a relay resumes the binlog stream on it."""

    client: socket.socket
    server: socket.socket
    streams: bool = False

    def send(self, payload: bytes, sequence: int = 0) -> None:
        """Send a packet to the client. Clients do not check the sequence number in a binlog stream."""
        self.client.sendall(_packet(payload, sequence))

    def send_half(self, payload: bytes) -> None:
        """Send the first half of a packet."""
        self.client.sendall(_packet(payload)[: len(payload) // 2])

    def send_slowly(self, payload: bytes, seconds: float = 4.0) -> None:
        """Send a packet in forty pieces."""
        data = _packet(payload)
        size = len(data) // 40 + 1
        for at in range(0, len(data), size):
            self.client.sendall(data[at : at + size])
            time.sleep(seconds / 40)

    def cut(self) -> None:
        """Close the connection in both directions."""
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def _asks_for_more(data: bytes) -> bool:
    """A request for a binlog stream within a file: a relay that only reads a file's head starts at its beginning."""
    if len(data) < 9 or data[3] != 0:
        return False
    within = int.from_bytes(data[5:9], "little") > _FILE_BEGIN
    return data[4] == _COM_BINLOG_DUMP_GTID or (data[4] == _COM_BINLOG_DUMP and within)


def _packet(payload: bytes, sequence: int = 0) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([sequence]) + payload


@dataclass
class Proxy:
    """Listens on its own port in a `with` block.

    Attributes:
        meddle: called for every event of a binlog stream; None: all are forwarded.
        links: the open connections.
    """

    upstream: Server
    meddle: Meddle | None = None
    links: list[Link] = field(default_factory=list)

    def __enter__(self) -> "Proxy":  # noqa: PYI034 (Self needs Python 3.11)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.meddle = None
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # otherwise accept waits for another connection
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Close every connection; new ones are accepted."""
        while self.links:
            self.links.pop().cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.upstream.port), _CONNECT_SECONDS)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            link = Link(client, server)
            self.links.append(link)
            for way in (self._ask, self._answer):
                threading.Thread(target=self._pass, args=(way, link), daemon=True).start()

    def _pass(self, way: Callable[[Link], None], link: Link) -> None:
        with contextlib.suppress(OSError):
            way(link)
        link.cut()

    def _ask(self, link: Link) -> None:
        while data := link.client.recv(1 << 16):
            link.streams = link.streams or _asks_for_more(data)
            link.server.sendall(data)

    def _answer(self, link: Link) -> None:
        stream = link.server.makefile("rb")
        while len(head := stream.read(4)) == 4:
            size, sequence = int.from_bytes(head[:3], "little"), head[3]
            payload = stream.read(size)
            if link.streams and self.meddle is not None and len(payload) > _HEADER and payload[0] == 0:
                event = Event(payload[5], payload)
                if self.meddle(link, event):
                    continue
            link.send(payload, sequence)


@dataclass
class Once:
    """Acts on the first event that `wanted` selects, and on no later one.

    Attributes:
        act: the action, a `Meddle`.
        done: set once the action has started.
    """

    wanted: Callable[[Event], bool]
    act: Meddle
    done: threading.Event = field(default_factory=threading.Event)

    def __call__(self, link: Link, event: Event) -> bool:
        if self.done.is_set() or not self.wanted(event):
            return False
        self.done.set()
        return self.act(link, event)
