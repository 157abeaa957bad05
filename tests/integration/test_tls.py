"""TLS to real servers: a verified server is reached, all others receive neither name nor password."""

from contextlib import closing
from pathlib import Path

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.errors import DmdeltaError, Retryable, SinkError, SourceError
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.tls import Tls
from dmdelta.sink.target.connection import TargetServer, connect
from dmdelta.source.connection import open_connection
from dmdelta.source.relay.process import start_relay, wait_for
from tests.support.certificates import HERE, Authority
from tests.support.diff import assert_same
from tests.support.middleman import Relay
from tests.support.relaying import catch_up, endpoint_of, files_differ, relay_task
from tests.support.servers import Server, running
from tests.support.sinking import table_differences
from tests.support.task import SinkTask

SELF_MADE = {"ca": "ca", "cert": "client-cert", "key": "client-key"}
"""Files that MySQL 8.0 creates in its data folder."""


class Secured:
    """A server with TLS and a certificate of the test's authority; `ca` is what clients trust."""

    def __init__(self, server: Server, authority: Authority, folder: Path) -> None:
        self.server, self.authority, self.folder = server, authority, folder
        self.ca = str(authority.ca)

    def present(self, certificate) -> None:
        """Have the server present this certificate from now on."""
        for there, made in (("cert.pem", certificate.cert), ("key.pem", certificate.key)):
            (self.folder / there).write_bytes(made.read_bytes())
        self.server.execute("ALTER INSTANCE RELOAD TLS" if self.server.flavor == "mysql" else "FLUSH SSL")

    def to_source(self, tls, **changes):
        return open_connection(endpoint_of(self.server, tls=tls, **changes))

    def to_target(self, tls, **changes):
        place = {"host": self.server.host, "port": self.server.port, "user": self.server.user, **changes}
        return connect(TargetServer(password=self.server.password, tls=tls, **place))


@pytest.fixture(scope="module", params=["mysql80", "mariadb"])
def secured(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder / "ca")
    right = authority.issue("right", HERE)
    files = {"ssl_ca": str(authority.ca), "ssl_cert": str(folder / "cert.pem"), "ssl_key": str(folder / "key.pem")}
    (folder / "cert.pem").write_bytes(right.cert.read_bytes())
    (folder / "key.pem").write_bytes(right.key.read_bytes())
    with running(request.param, **files) as server:
        server.execute(
            f"CREATE USER 'known'@'%' IDENTIFIED BY '{server.password}' REQUIRE X509",
            "GRANT SELECT, REPLICATION CLIENT ON *.* TO 'known'@'%'",
        )
        yield Secured(server, authority, folder)


@pytest.fixture
def honest(secured):
    """With the right certificate."""
    secured.present(secured.authority.issue("right", HERE))
    return secured


def cipher(connection):
    with closing(connection), connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        return cursor.fetchone()[1]


def assert_refused(secured, tls, said, hint, **changes):
    """By source and sink: without a retry, with address and next step, and before the user name is sent."""
    for way, kind in ((secured.to_source, SourceError), (secured.to_target, SinkError)):
        with Relay(secured.server.port) as relay, pytest.raises(kind) as caught:
            way(tls, port=relay.port, **changes)
        assert not isinstance(caught.value, Retryable)
        assert f":{relay.port}" in caught.value.message
        assert said in caught.value.message
        assert hint in caught.value.hint
        assert relay.heard
        assert secured.server.user.encode() not in relay.heard


@pytest.mark.parametrize("host", HERE)
def test_a_verified_server_is_reached_encrypted(honest, host):
    """By address and by name, source and sink."""
    assert cipher(honest.to_source(Tls(honest.ca), host=host))
    assert cipher(honest.to_target(Tls(honest.ca), host=host))


def test_another_authority_is_refused(secured, tmp_path):
    """Also one with the same name, and with or without verification of the host name."""
    secured.present(Authority(tmp_path / "other", "Somebody Else").issue("server", HERE))
    assert_refused(secured, Tls(secured.ca), "certificate was rejected", "security.ssl-ca")
    secured.present(Authority(tmp_path / "same").issue("server", HERE))
    assert_refused(secured, Tls(secured.ca, verify_host=False), "certificate was rejected", "security.ssl-ca")


def test_another_name_is_refused_unless_names_are_not_verified(secured):
    """`ssl-verify-host: false` is for servers with self-made certificates."""
    secured.present(secured.authority.issue("elsewhere", ("db.example", "192.0.2.1")))
    for host, said in (("localhost", "Hostname mismatch"), ("127.0.0.1", "IP address mismatch")):
        assert_refused(secured, Tls(secured.ca), said, "ssl-verify-host", host=host)
    assert cipher(secured.to_source(Tls(secured.ca, verify_host=False)))
    assert cipher(secured.to_target(Tls(secured.ca, verify_host=False)))


@pytest.mark.parametrize(("days", "said", "hint"), [((-9, -1), "expired", "renew"), ((1, 9), "not yet", "clocks")])
def test_a_certificate_of_another_time_is_refused(secured, days, said, hint):
    """Expired, or not valid yet."""
    secured.present(secured.authority.issue("old", HERE, days=days))
    assert_refused(secured, Tls(secured.ca), said, hint)


def test_a_removed_offer_of_tls_ends_the_connection(honest):
    """It does not continue in plain text: not a byte is sent."""
    for way in (honest.to_source, honest.to_target):
        with Relay(honest.server.port, without_tls=True) as between, pytest.raises(DmdeltaError) as caught:
            way(Tls(honest.ca), port=between.port)
        assert not isinstance(caught.value, Retryable)
        assert "removed in transit" in caught.value.hint
        assert between.heard == b""


def test_a_server_without_tls_is_refused_where_tls_is_required(mysql57, honest):
    """It has no certificate."""
    plain = Secured(mysql57, honest.authority, honest.folder)
    for way in (plain.to_source, plain.to_target):
        with pytest.raises(DmdeltaError) as caught:
            way(Tls(honest.ca))
        assert "does not offer TLS" in caught.value.hint


def test_a_required_client_certificate(honest, tmp_path):
    """It works; without one, or with that of another authority, the error has the next step."""
    mine, foreign = honest.authority.issue("client"), Authority(tmp_path / "other").issue("client")
    given = Tls(honest.ca, str(mine.cert), str(mine.key))
    for way, kind in ((honest.to_source, SourceError), (honest.to_target, SinkError)):
        assert cipher(way(given, user="known"))
        for tls in (Tls(honest.ca), Tls(honest.ca, str(foreign.cert), str(foreign.key))):
            with pytest.raises(kind, match=f":{honest.server.port}") as caught:
                way(tls, user="known")
            assert "ssl-cert" in caught.value.hint
            # With TLS 1.3 the connection may be cut before the server's error arrives: it is retried, as after any cut.
            assert tls.cert or not isinstance(caught.value, Retryable)


def test_a_server_that_requires_tls_is_reported(honest):
    """The hint names the missing key of the spec."""
    honest.server.execute("SET GLOBAL require_secure_transport = ON")
    try:
        for way in (honest.to_source, honest.to_target):
            with pytest.raises(DmdeltaError) as caught:
                way(None)
            assert not isinstance(caught.value, Retryable)
            assert "security.ssl-ca" in caught.value.hint
    finally:
        honest.server.execute("SET GLOBAL require_secure_transport = OFF")


def test_a_relay_process_verifies_as_well(secured, tmp_path):
    """The dump connection, too; its error reaches the parent process and ends the relay at once."""
    secured.present(secured.authority.issue("right", HERE))
    tls = Tls(secured.ca)
    task = relay_task(secured.server, tmp_path / "good", endpoint=endpoint_of(secured.server, tls=tls))
    catch_up(task)
    assert files_differ(task, secured.server) == []
    secured.present(secured.authority.issue("elsewhere", ("db.example",)))
    relay = start_relay(relay_task(secured.server, tmp_path / "bad", endpoint=endpoint_of(secured.server, tls=tls)))
    with pytest.raises(SourceError, match="mismatch") as caught:
        wait_for(relay, 60)
    assert not isinstance(caught.value, Retryable)


class SecuredTask(SinkTask):
    """A task whose accounts require client certificates, so that every connection needs one."""

    def write_spec(self):
        path = super().write_spec()
        spec = yaml.safe_load(path.read_text())
        spec["sources"][0]["security"] = self.settings["security"]
        path.write_text(yaml.safe_dump(spec))
        return path


@pytest.mark.parametrize("secured", ["mysql80", pytest.param("mariadb", marks=pytest.mark.long)], indirect=True)
def test_every_connection_of_a_task_is_encrypted(honest, mysql80, spark, tmp_path, capsys):
    """Check, load, log, sink and comparison, with accounts that require the certificate."""
    server, client = honest.server, honest.authority.issue("client")
    task = SecuredTask(tmp_path, server, server.fresh_database("tls"), mode="all", target=mysql80)
    task.settings["security"] = {"ssl-ca": honest.ca, "ssl-cert": str(client.cert), "ssl-key": str(client.key)}
    made = {f"ssl-{key}": str(mysql80.datadir / f"{file}.pem") for key, file in SELF_MADE.items()}
    task.sink = {"metadata": f"dm_{task.database}", "security": {**made, "ssl-verify-host": False}}
    task.write_spec()
    server.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)", database=task.database)
    server.execute("ALTER USER 'dmdelta'@'%' REQUIRE X509")
    mysql80.execute("ALTER USER 'sink'@'%' REQUIRE X509")
    try:
        with task.environment():
            assert execute(["check", str(task.spec)]) == 0, capsys.readouterr().out
        task.catch_up()
        with task.environment():
            assert execute(["validate", str(task.spec)]) == 0, capsys.readouterr().out
    finally:
        server.execute("ALTER USER 'dmdelta'@'%' REQUIRE NONE")
        mysql80.execute("ALTER USER 'sink'@'%' REQUIRE NONE")
    lakehouse = Lakehouse(root=str(task.root))
    assert_same(server, task.database, ["t"], lambda table: spark.table(lakehouse.silver(task.database, table)))
    assert table_differences(server, mysql80, task.database, "t") == []
