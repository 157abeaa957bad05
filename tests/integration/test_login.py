"""Log-in with each authentication plugin of the servers, with TLS and without: the password is never sent in clear."""

from contextlib import closing

import pytest

from dmdelta.errors import Retryable, SinkError, SourceError
from dmdelta.model.tls import Tls
from dmdelta.sink.target.connection import TargetServer, connect
from dmdelta.source.connection import open_connection, query
from dmdelta.source.endpoint import Endpoint
from tests.support.middleman import Relay

PASSWORD = "pä55 'wörd\" \\ ☃"
KEY_IS_ASKED_FOR = b"\x01\x00\x00\x03\x02"
"""The packet of full authentication without TLS that requests the server's public key."""
PLUGINS = [
    ("mysql80", "WITH caching_sha2_password BY"),
    ("mysql80", "WITH sha256_password BY"),
    ("mysql80", "WITH mysql_native_password BY"),
    ("mysql57", "WITH mysql_native_password BY"),
    ("mariadb", "BY"),
]


def to_source(port, tls=None, password=PASSWORD):
    return open_connection(Endpoint("127.0.0.1", port, "reader", password, tls))


def to_target(port, tls=None, password=PASSWORD):
    return connect(TargetServer("127.0.0.1", port, "reader", password, tls=tls))


@pytest.fixture(params=PLUGINS, ids=" ".join)
def server(request):
    """With an account of that plugin that has not logged in yet."""
    name, identified = request.param
    server = request.getfixturevalue(name)
    make_account(server, identified)
    yield server
    server.execute("DROP USER 'reader'@'%'")


@pytest.fixture
def sha2(mysql80):
    make_account(mysql80, "WITH caching_sha2_password BY")
    yield mysql80
    mysql80.execute("DROP USER 'reader'@'%'")


def make_account(server, identified):
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE USER 'reader'@'%%' IDENTIFIED {identified} %s", (PASSWORD,))


@pytest.mark.parametrize(("way", "kind"), [(to_source, SourceError), (to_target, SinkError)])
def test_each_plugin_logs_in_without_tls(server, way, kind):
    """The password, whatever its characters, is not sent in clear; a wrong one is refused without a retry."""
    with Relay(server.port) as line:
        way(line.port).close()
        with pytest.raises(kind, match="Access denied") as caught:
            way(line.port, password="not-" + PASSWORD)
    assert not isinstance(caught.value, Retryable)
    assert "wörd" not in str(caught.value)
    for written in (PASSWORD.encode(), "wörd".encode(), "wörd".encode("latin1")):
        assert written not in line.heard


@pytest.mark.parametrize("way", [to_source, to_target])
def test_the_server_s_cache_of_passwords_may_be_empty(sha2, way):
    """caching_sha2_password without TLS: the server's key is requested at first and after FLUSH PRIVILEGES only."""
    asked = []
    for flush in (False, False, True):
        if flush:
            sha2.execute("FLUSH PRIVILEGES")
        with Relay(sha2.port) as line:
            way(line.port).close()
        asked.append(KEY_IS_ASKED_FOR in line.heard)
    assert asked == [True, False, True]


@pytest.mark.parametrize("way", [to_source, to_target])
def test_with_tls_no_key_is_needed(sha2, way):
    """With an empty cache and with a filled one; a wrong password is refused."""
    tls = Tls(str(sha2.datadir / "ca.pem"), verify_host=False)
    for _ in range(2):
        with closing(way(sha2.port, tls)) as connection:
            assert query(connection, "SELECT current_user()") == [("reader@%",)]
    sha2.execute("FLUSH PRIVILEGES")
    with pytest.raises((SourceError, SinkError), match="Access denied"):
        way(sha2.port, tls, "wrong")
    way(sha2.port, tls).close()
