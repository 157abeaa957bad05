"""A thread's session on the target: what is repeated, when it gives up, and its end by another thread."""

import socket
import threading
from dataclasses import replace

import pymysql
import pytest

from dmdelta.errors import Fenced, SinkError, TargetUnavailable
from dmdelta.model.retry import Retry
from dmdelta.sink.target.connection import execute, shut_down
from dmdelta.sink.target.target_session import TargetSession
from tests.support.logged import logged
from tests.unit.sink.fake_target import LOST, SERVER, SOON, WAIT, FakeTarget, lost

SLOW = Retry(attempts=30, first=WAIT, longest=WAIT)


@pytest.fixture
def target(monkeypatch):
    with FakeTarget(monkeypatch) as made:
        yield made


@pytest.fixture
def session():
    return TargetSession(SERVER, retry=SOON)


def run(session, sql="DO 1"):
    return session.attempt(lambda _: execute(session.connection(), sql))


def refuse_connections(target, count):
    left = [1] * count

    def connecting():
        if left:
            left.pop()
            raise TargetUnavailable("down", hint="none", code=2003)

    target.connecting = connecting


def test_a_connection_is_kept(target, session):
    """It is opened by the first use; `close` ends it, and the next use opens another one."""
    run(session)
    run(session)
    session.close()
    session.close()
    run(session)
    assert [len(statements) for statements in target.statements] == [2, 1]
    assert [connection.closed for connection in target.connections] == [True, False]


def test_a_transient_failure_is_repeated_on_another_connection(target, session):
    """With the number of failures so far; the failed connection is closed, and its transaction with it."""
    target.answer = lambda connection, sql: lost() if len(target.connections) < 3 else ()
    failures = []

    def act(failed):
        failures.append(failed)
        return execute(session.connection(), "DO 1")

    with logged("dmdelta.sink") as lines:
        session.attempt(act)
    assert failures == [0, 1, 2]
    assert [connection.closed for connection in target.connections] == [True, True, False]
    assert [(text, context["code"]) for _, text, context in lines] == [("attempt failed, retrying", 2013)] * 2


def test_a_refused_connection_is_repeated(target, session):
    """A restart of the target lasts some seconds, in which it refuses connections."""
    refuse_connections(target, 3)
    run(session)
    assert target.statements == [["DO 1"]]


@pytest.mark.parametrize("refused", [True, False], ids=["connection", "statement"])
def test_the_last_attempt(target, session, refused):
    """A target that does not come back is reported as such."""
    if refused:
        refuse_connections(target, 9)
    target.answer = lambda *_: lost()
    session.retry = replace(SOON, attempts=3)
    with pytest.raises(TargetUnavailable):
        run(session)
    assert len(target.connections) == (0 if refused else 3)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [(pymysql.err.IntegrityError(1062, "Duplicate entry 'x' for key 'u'"), SinkError), (Fenced("taken"), Fenced)],
)
def test_a_permanent_failure_is_not_repeated(target, session, raised, expected):
    """The target refuses, or another run has taken over: the transaction ends at once."""

    def answer(connection, sql):
        raise raised

    target.answer = answer
    with pytest.raises(expected):
        run(session)
    assert [connection.closed for connection in target.connections] == [True]


def test_an_error_names_where_it_happened(target, session):
    """In the words of the caller; values of rows are left out if the statement has any."""

    def answer(connection, sql):
        raise pymysql.err.ProgrammingError(1064, "syntax near 'SECRET'")

    target.answer = answer
    with pytest.raises(SinkError, match=r"^table t, refuses: syntax near …"):
        session.attempt(lambda _: execute(session.connection(), "DO 1"), "table t,", quotes_rows=True)
    with pytest.raises(SinkError, match=rf"^{SERVER} refuses: syntax near 'SECRET'"):
        run(session)


def in_thread(session):
    """Run a statement in another thread; returns it, and a list for its error."""
    errors = []

    def act():
        try:
            run(session)
        except TargetUnavailable as error:
            errors.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    return thread, errors


def test_a_session_that_hangs_is_cut_off(target, session):
    """Its thread gets an error at once, does not connect again, and sends nothing more: not even later."""
    hanging = threading.Event()

    def answer(connection, sql):
        hanging.set()
        connection.hang()

    target.answer = answer
    thread, errors = in_thread(session)
    assert hanging.wait(WAIT)
    session.cut_off()
    thread.join(WAIT)
    assert [error.context["code"] for error in errors] == [LOST[0]]
    with pytest.raises(TargetUnavailable, match="ended its sessions"):
        run(session)
    assert target.statements == [["DO 1"]]


def test_a_session_is_cut_off_while_it_connects(target, session):
    """The new connection is closed without a statement."""
    connecting, going = threading.Event(), threading.Event()

    def connect():
        connecting.set()
        assert going.wait(WAIT)

    target.connecting = connect
    thread, errors = in_thread(session)
    assert connecting.wait(WAIT)
    session.cut_off()
    going.set()
    thread.join(WAIT)
    assert len(errors) == 1
    assert [(one.closed, one.statements) for one in target.connections] == [(True, [])]


@pytest.mark.parametrize("end", [lambda session: session.cut_off(), lambda session: session.stopping.set()])
def test_an_end_does_not_wait_for_the_back_off(target, session, end):
    """Neither a stop nor `cut_off` is followed by another attempt."""
    failed = threading.Event()

    def answer(connection, sql):
        failed.set()
        lost()

    target.answer, session.retry = answer, SLOW
    thread, errors = in_thread(session)
    assert failed.wait(WAIT)
    end(session)
    thread.join(WAIT / 2)
    assert not thread.is_alive()
    assert (len(errors), len(target.connections)) == (1, 1)


def test_an_attempt_in_a_stop(target, session):
    """It is executed, but not repeated."""
    session.stopping.set()
    run(session)
    target.answer = lambda *_: lost()
    with pytest.raises(TargetUnavailable):
        run(session)
    assert len(target.connections) == 1


class EncryptedSocket(socket.socket):
    """Like `ssl.SSLSocket`, whose `shutdown` first drops TLS."""

    encrypted = True

    def shutdown(self, how):
        self.encrypted = False
        super().shutdown(how)


def test_an_encrypted_session_stays_encrypted_while_it_is_shut_down():
    """The socket is shut down below TLS: the thread that sends meanwhile sends nothing in plain text."""
    own, other = socket.socketpair()
    with EncryptedSocket(fileno=own.detach()) as own, other:
        connection = pymysql.connect(defer_connect=True)
        connection._sock = own
        shut_down(connection)
        assert own.encrypted
        assert other.recv(1) == b""
        with pytest.raises(OSError, match="Broken pipe"):
            own.sendall(b"x")
        connection._sock = None
    shut_down(None)
