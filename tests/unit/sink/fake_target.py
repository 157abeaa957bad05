"""A target without a server: it answers each statement as a test says."""

import socket
import threading

import pymysql
import pytest

from dmdelta.errors import TargetUnavailable
from dmdelta.model.retry import Retry
from dmdelta.sink.target import target_session
from dmdelta.sink.target.connection import TargetServer

SERVER = TargetServer("127.0.0.1", 1, "u", "p")
SOON = Retry(attempts=5, first=0.001, longest=0.002)
WAIT = 30.0
LOST = (2013, "Lost connection to MySQL server during query")


def lost():
    raise pymysql.err.OperationalError(*LOST)


class FakeConnection:
    """Lists its statements. It has a socket, as `shut_down` expects it; its other end is the server's."""

    def __init__(self, target):
        self.target, self.statements, self.closed = target, [], False
        self._sock, self.server_end = socket.socketpair()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def cursor(self):
        return self

    def execute(self, sql, _=None):
        self.statements.append(sql)
        self.rows = self.target.answer(self, sql) or ()
        return len(self.rows)

    def fetchall(self):
        return self.rows

    def commit(self):
        self.execute("COMMIT")

    def rollback(self):
        self.execute("ROLLBACK")

    def close(self):
        self.closed = True
        for end in (self._sock, self.server_end):
            end.close()

    def hang(self):
        """Wait for an answer, which comes only if the socket is shut down."""
        assert self._sock.recv(1) == b""
        lost()


class FakeTarget:
    """In a `with` block, which closes the sockets of its connections.

    Attributes:
        answer: called with the connection and a statement; returns its rows, or raises the driver's error.
        connecting: called before each connection is opened.
    """

    def __init__(self, monkeypatch, answer=lambda connection, sql: ()):
        self.answer, self.connecting, self.connections = answer, lambda: None, []
        monkeypatch.setattr(target_session, "connect", self.connect)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.connections:
            for end in (connection._sock, connection.server_end):
                end.close()

    def connect(self, server, *, autocommit=True):
        self.connecting()
        self.connections.append(FakeConnection(self))
        return self.connections[-1]

    @property
    def statements(self):
        """The statements of each connection."""
        return [connection.statements for connection in self.connections]


def error_of_cut_off(target, act, cut_off):
    """Cut off what another thread does while the target hangs; returns the error that ends it."""
    hanging, answer, errors = threading.Event(), target.answer, []

    def hang(connection, sql):
        answer(connection, sql)
        hanging.set()
        connection.hang()

    def run():
        with pytest.raises(TargetUnavailable) as caught:
            act()
        errors.append(caught.value)

    target.answer = hang
    thread = threading.Thread(target=run)
    thread.start()
    assert hanging.wait(WAIT)
    cut_off()
    thread.join(WAIT)
    (error,) = errors
    return error
