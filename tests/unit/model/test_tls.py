"""TLS before a connection is established: unusable files, servers without TLS, and servers that request a password."""

import ssl

import pytest

from dmdelta.errors import ConfigError, DmdeltaError, SinkError, SourceError, SourceUnavailable, TargetUnavailable
from dmdelta.model.tls import Tls, driver_options
from dmdelta.sink.target.connection import TargetServer, connect
from dmdelta.source.connection import open_connection
from dmdelta.source.endpoint import Endpoint
from tests.support.certificates import Authority
from tests.support.middleman import Impostor

PASSWORD = "n0t-to-be-seen"
WAYS = {
    "source": lambda port, tls=None: open_connection(Endpoint("127.0.0.1", port, "me", PASSWORD, tls)),
    "sink": lambda port, tls=None: connect(TargetServer("127.0.0.1", port, "me", PASSWORD, tls=tls)),
}


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "ca")


def refusal(tls):
    with pytest.raises(ConfigError) as caught:
        driver_options(tls)
    assert caught.value.hint
    return caught.value.message


def test_an_unusable_file_is_named_with_its_spec_key(authority, tmp_path):
    """A missing file, a file without a certificate, a key of another certificate."""
    mine, other = authority.issue("mine"), authority.issue("other")
    ca, nothing = str(authority.ca), tmp_path / "nothing.pem"
    assert "security.ssl-ca" in refusal(Tls(str(nothing)))
    assert str(nothing) in refusal(Tls(str(nothing)))
    nothing.write_text("no certificate")
    assert str(nothing) in refusal(Tls(str(nothing)))
    assert str(tmp_path) in refusal(Tls(str(tmp_path)))
    assert "security.ssl-cert" in refusal(Tls(ca, str(nothing), str(mine.key)))
    assert str(other.key) in refusal(Tls(ca, str(mine.cert), str(other.key)))
    assert str(tmp_path / "none.key") in refusal(Tls(ca, str(mine.cert), str(tmp_path / "none.key")))


def test_an_encrypted_key_is_refused_without_a_prompt(authority):
    """Without a terminal, a service would hang at the prompt."""
    locked = authority.issue("locked", passphrase=b"secret")
    assert "is encrypted" in refusal(Tls(str(authority.ca), str(locked.cert), str(locked.key)))


@pytest.mark.parametrize("verify_host", [True, False])
def test_the_server_certificate_is_always_verified(authority, verify_host):
    """`ssl-verify-host: false` disables the host name check, not the CA check."""
    context = driver_options(Tls(str(authority.ca), verify_host=verify_host))["ssl"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname is verify_host
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert context.verify_flags == ssl.create_default_context().verify_flags & ~ssl.VERIFY_X509_STRICT


def test_the_host_name_is_verified_by_default(authority):
    """A spec disables it explicitly."""
    assert driver_options(Tls(str(authority.ca)))["ssl"].check_hostname


def test_the_reason_of_an_unusable_file_is_shown_without_its_number(authority, tmp_path):
    """The system's text, or OpenSSL's if there is none."""
    ca, nothing = str(authority.ca), str(tmp_path / "nothing.pem")
    assert refusal(Tls(nothing)).endswith(": No such file or directory")
    assert refusal(Tls(ca, nothing, nothing)).endswith(": No such file or directory")


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_sent_to_a_server_without_tls(way, authority):
    """If TLS is required, not even the account's name is sent."""
    with Impostor("mysql_native_password") as impostor, pytest.raises((SourceError, SinkError)) as caught:
        WAYS[way](impostor.port, Tls(str(authority.ca)))
    assert not isinstance(caught.value, SourceUnavailable | TargetUnavailable)
    assert f"127.0.0.1:{impostor.port}" in caught.value.message
    assert "does not offer TLS" in caught.value.hint
    assert impostor.heard == b""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("plugin", "begin"), [("mysql_clear_password", b""), ("dialog", b"\x04Password: ")])
def test_a_password_is_never_sent_in_clear_text(way, plugin, begin):
    """Any server can request it, and without TLS its identity is unknown."""
    with Impostor(plugin, begin) as impostor, pytest.raises(DmdeltaError, match="clear text") as caught:
        WAYS[way](impostor.port)
    assert "security.ssl-ca" in caught.value.hint
    assert impostor.answers == b""
    assert PASSWORD.encode() not in impostor.heard


@pytest.mark.parametrize("way", WAYS)
def test_a_missing_package_of_a_plugin_is_named(way):
    """PyMySQL implements MariaDB's ed25519 with PyNaCl."""
    with Impostor("client_ed25519") as impostor, pytest.raises(DmdeltaError, match="pynacl") as caught:
        WAYS[way](impostor.port)
    assert not isinstance(caught.value, SourceUnavailable | TargetUnavailable)
    assert "install" in caught.value.hint
    assert impostor.answers == b""
