"""Attackers between a client and its server: one intercepts and may strip TLS, one impersonates the server."""

import socket
import struct
import threading
from contextlib import suppress

CLIENT_SSL = 0x0800
_CAPABILITIES = 0xC00A_AA8D & ~CLIENT_SSL
"""Long passwords, protocol 4.1, plugins, secure connections: the capabilities of a current server, without TLS."""
_SALT = b"abcdefghijklmnopqrst"


class Middleman:
    """Listens on its own port in a `with` block.

    Attributes:
        heard: all bytes that clients have sent.
    """

    def __init__(self) -> None:
        self.heard = bytearray()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._threads: list[threading.Thread] = []
        self._open: list[socket.socket] = []

    def __enter__(self):
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(5)

    def serve(self, client: socket.socket) -> None:
        raise NotImplementedError

    def _start(self, target, *arguments) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._open.append(client)
                self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, struct.error):
            self.serve(client)
        client.close()

    def _hear(self, client: socket.socket) -> bytes:
        data = client.recv(65536)
        self.heard += data
        return data


class Relay(Middleman):
    """Forwards everything, except the server's TLS capability if it is to be stripped."""

    def __init__(self, port: int, *, without_tls: bool = False) -> None:
        super().__init__()
        self._target = port
        self._without_tls = without_tls

    def serve(self, client: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self._target)) as server:
            self._open.append(server)
            greeting = bytearray(server.recv(65536))
            if self._without_tls:
                greeting[greeting.index(0, 5) + 15] &= ~(CLIENT_SSL >> 8)
            client.sendall(greeting)
            self._start(self._answer, server, client)
            while data := self._hear(client):
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for its answer

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)


class Impostor(Middleman):
    """Pretends to be MySQL, and requests the password with a given authentication plugin.

    Attributes:
        answers: the bytes received after the request.
    """

    def __init__(self, plugin: str, begin: bytes = _SALT + b"\0") -> None:
        super().__init__()
        self.answers = bytearray()
        self._asked = b"\xfe" + plugin.encode() + b"\0" + begin

    def serve(self, client: socket.socket) -> None:
        greeting = b"\x0a8.0.31\0" + struct.pack("<I", 7) + _SALT[:8] + b"\0"
        greeting += struct.pack("<HBHHB", _CAPABILITIES & 0xFFFF, 255, 2, _CAPABILITIES >> 16, 21) + bytes(10)
        greeting += _SALT[8:] + b"\0mysql_native_password\0"
        client.sendall(struct.pack("<I", len(greeting)) + greeting)
        self._hear(client)
        client.sendall(struct.pack("<I", len(self._asked) | 2 << 24) + self._asked)
        while data := self._hear(client):
            self.answers += data
