"""How one logs in to a server: by TLS that is verified, or refused with what is wrong; and a password's bytes."""

import ssl
from dataclasses import dataclass
from typing import Any

from dmdelta.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Tls:
    """
    Attributes:
        ca: path of the CA certificate (PEM) that the server's certificate must chain to.
        cert: path of the client certificate, for accounts that demand one.
        key: path of its private key.
        verify_host: the certificate must name the host; servers' self-made certificates do not.
    """

    ca: str
    cert: str | None = None
    key: str | None = None
    verify_host: bool = True


class _RefusedPlugin:
    """What PyMySQL asks in the place of a plugin that sends the password as it is."""

    def __init__(self, connection: Any) -> None:
        self._where = f"{connection.host}:{connection.port}"

    def authenticate(self, _: object) -> None:
        raise ConfigError(
            f"{self._where} asks for the password in clear text, on a connection without TLS: it was not sent",
            hint="set security.ssl-ca in the spec; if the server never asked so before, somebody may stand between",
        )


_NOT_IN_CLEAR = {"mysql_clear_password": _RefusedPlugin, "dialog": _RefusedPlugin}


def driver_options(tls: Tls | None) -> dict[str, Any]:
    """PyMySQL's options for it; None: not encrypted, even if the server offers it.

    Raises:
        ConfigError: a file cannot be read, or does not hold what it should.
    """
    if tls is None:
        return {"ssl_disabled": True, "auth_plugin_map": _NOT_IN_CLEAR}
    return {"ssl": _context(tls)}


def password_bytes(password: str) -> bytes:
    """As a server stores it, where PyMySQL would make Latin-1 of it. Bytes of the environment that are no UTF-8 stay.

    Raises:
        UnicodeEncodeError: no text of any server.
    """
    return password.encode("utf-8", "surrogateescape")


def _context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca)
    except OSError as error:
        raise ConfigError(
            f"security.ssl-ca: no CA certificate can be read from {tls.ca}: {error.strerror or error}",
            hint="name the PEM file of the CA that has signed the server's certificate",
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python 3.13 sets it; certificates that servers make for themselves do not pass.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = tls.verify_host
    if tls.cert is not None:
        _load_client_certificate(context, tls.cert, tls.key)
    return context


def _load_client_certificate(context: ssl.SSLContext, cert: str, key: str | None) -> None:
    def no_passphrase() -> str:
        # Without this function OpenSSL would ask at the terminal, and a service has none.
        raise ConfigError(
            f"security.ssl-key: {key} is encrypted, and nobody is there to be asked for its passphrase",
            hint="`openssl pkey -in KEY -out PLAIN` makes one without; give only dmdelta's user the right to read it",
        )

    try:
        context.load_cert_chain(cert, key, password=no_passphrase)
    except OSError as error:
        raise ConfigError(
            f"security.ssl-cert, ssl-key: {cert} and {key} cannot be read as a certificate and its private key: "
            f"{error.strerror or error}",
            hint="both are PEM files, and belong together",
        ) from error


_NAME_HINT = (
    "`host` in the spec must be a name that the certificate has; ssl-verify-host: false if the CA is this server's"
)
_VERIFY_HINTS = {
    9: "it is not valid yet: compare the clocks of both machines",
    10: "have the server's certificate renewed; if it is not that old, compare the clocks of both machines",
    62: _NAME_HINT,
    64: _NAME_HINT,
}
_ABOUT_US = ("ALERT_UNKNOWN_CA", "ALERT_DECRYPT_ERROR", "_CERTIFICATE")
_VERSIONS = ("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "WRONG_VERSION_NUMBER", "WRONG_SSL_VERSION")
SSL_REQUIRED = 2026
"""PyMySQL's number for a server that offers no TLS."""
NO_TLS_HINT = "the server offers no TLS, or somebody took the offer away: nothing was sent. Set ssl_cert on the server"
CUT_OFF_HINT = "; if it stays so, the server may refuse the client certificate: ssl-cert and ssl-key"
"""By TLS 1.3 a server looks at it last: often the line is cut before its reason has come."""


def tls_trouble(error: BaseException) -> tuple[str, str] | None:
    """What is wrong with TLS, and the next step; None if another try may help, or TLS is not the reason."""
    for found in (error, getattr(error, "original_exception", None), error.__context__):
        if isinstance(found, ssl.SSLCertVerificationError):
            what = getattr(found, "verify_message", "") or str(found)
            ours = "security.ssl-ca must hold the CA that has signed the server's certificate"
            return f"its certificate is refused: {what}", _VERIFY_HINTS.get(getattr(found, "verify_code", 0), ours)
        reason = found.reason or "" if isinstance(found, ssl.SSLError) else ""
        if "ALERT" in reason and any(word in reason for word in _ABOUT_US):
            return f"it refuses the client certificate: {found}", "a CA that it trusts must have signed ssl-cert"
        if any(word in reason for word in _VERSIONS):
            return f"no version of TLS in common: {found}", "TLS 1.2 or newer is needed: the server may be too old"
    return None
