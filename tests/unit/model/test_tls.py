"""TLS before anybody is reached: files that cannot be used, servers that offer none, and one that wants too much."""

import ssl

import pytest

from dmdelta.errors import ConfigError, DmdeltaError, SinkError, SourceError, SourceUnavailable, TargetUnavailable
from dmdelta.model.tls import Tls, driver_options
from dmdelta.sink.connection import TargetServer, connect
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


def test_files_that_cannot_be_used_are_named_with_their_key(authority, tmp_path):
    """One that is not there, one without a certificate, a key of another certificate."""
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


def test_an_encrypted_key_is_refused_without_asking_at_the_terminal(authority):
    """A service would hang there."""
    locked = authority.issue("locked", passphrase=b"secret")
    assert "is encrypted" in refusal(Tls(str(authority.ca), str(locked.cert), str(locked.key)))


@pytest.mark.parametrize("verify_host", [True, False])
def test_a_server_s_certificate_is_always_verified(authority, verify_host):
    """`ssl-verify-host: false` leaves out the name, not the CA."""
    context = driver_options(Tls(str(authority.ca), verify_host=verify_host))["ssl"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname is verify_host
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_offers_no_tls_hears_nothing(way, authority):
    """Neither the account's name nor anything else, when TLS is asked for."""
    with Impostor("mysql_native_password") as impostor, pytest.raises((SourceError, SinkError)) as caught:
        WAYS[way](impostor.port, Tls(str(authority.ca)))
    assert not isinstance(caught.value, SourceUnavailable | TargetUnavailable)
    assert f"127.0.0.1:{impostor.port}" in caught.value.message
    assert "offers no TLS" in caught.value.hint
    assert impostor.heard == b""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("plugin", "begin"), [("mysql_clear_password", b""), ("dialog", b"\x04Password: ")])
def test_a_password_never_goes_out_in_the_clear(way, plugin, begin):
    """Whoever answers may ask for it so, and without TLS nobody knows who that is."""
    with Impostor(plugin, begin) as impostor, pytest.raises(DmdeltaError, match="clear text") as caught:
        WAYS[way](impostor.port)
    assert "security.ssl-ca" in caught.value.hint
    assert impostor.answers == b""
    assert PASSWORD.encode() not in impostor.heard


@pytest.mark.parametrize("way", WAYS)
def test_a_plugin_that_needs_a_package_names_it(way):
    """MariaDB's ed25519 is PyMySQL's to do, with PyNaCl."""
    with Impostor("client_ed25519") as impostor, pytest.raises(DmdeltaError, match="pynacl") as caught:
        WAYS[way](impostor.port)
    assert not isinstance(caught.value, SourceUnavailable | TargetUnavailable)
    assert "install" in caught.value.hint
    assert impostor.answers == b""
