"""TLS settings for connections to a server, the diagnosis of TLS errors, and the bytes of a password."""

import ssl
from dataclasses import dataclass
from typing import Any

from dmdelta.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Tls:
    """Verified TLS.

    Attributes:
        ca: path of the CA certificate (PEM) that the server's certificate must chain to.
        cert: path of the client certificate, for accounts that require one.
        key: path of its private key.
        verify_host: whether the certificate must match the host name; certificates that servers generate do not.
    """

    ca: str
    cert: str | None = None
    key: str | None = None
    verify_host: bool = True


class _RefusedPlugin:
    """Replaces PyMySQL's plugins that send the password in clear text."""

    def __init__(self, connection: Any) -> None:
        self._where = f"{connection.host}:{connection.port}"

    def authenticate(self, _: object) -> None:
        raise ConfigError(
            f"{self._where} requests the password in clear text on a connection without TLS; it was not sent",
            hint="set security.ssl-ca in the spec; if this is new, suspect a man-in-the-middle attack",
        )


_NOT_IN_CLEAR = {"mysql_clear_password": _RefusedPlugin, "dialog": _RefusedPlugin}


def driver_options(tls: Tls | None) -> dict[str, Any]:
    """PyMySQL's connection options; None: not encrypted, even if the server supports TLS.

    Raises:
        ConfigError: a file cannot be read or has the wrong content.
    """
    if tls is None:
        return {"ssl_disabled": True, "auth_plugin_map": _NOT_IN_CLEAR}
    return {"ssl": _context(tls)}


def password_bytes(password: str) -> bytes:
    """The password as a server stores it; PyMySQL would encode it as Latin-1. Non-UTF-8 bytes of the environment are
    kept.

    Raises:
        UnicodeEncodeError: text that no server can have stored.
    """
    return password.encode("utf-8", "surrogateescape")


def _context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca)
    except OSError as error:
        raise ConfigError(
            f"security.ssl-ca: no CA certificate can be read from {tls.ca}: {error.strerror or error}",
            hint="set it to the PEM file of the CA that signed the server's certificate",
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python 3.13 sets this flag, which rejects the certificates that servers generate for themselves.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = tls.verify_host
    if tls.cert is not None:
        _load_client_certificate(context, tls.cert, tls.key)
    return context


def _load_client_certificate(context: ssl.SSLContext, cert: str, key: str | None) -> None:
    def no_passphrase() -> str:
        # Without this callback OpenSSL prompts on the terminal, which a service does not have.
        raise ConfigError(
            f"security.ssl-key: {key} is encrypted, and dmdelta cannot prompt for its passphrase",
            hint="write a decrypted key with `openssl pkey -in KEY -out PLAIN`, readable only by dmdelta's user",
        )

    try:
        context.load_cert_chain(cert, key, password=no_passphrase)
    except OSError as error:
        raise ConfigError(
            f"security.ssl-cert, ssl-key: {cert} and {key} cannot be read as a certificate and its private key: "
            f"{error.strerror or error}",
            hint="both must be PEM files, and the key must belong to the certificate",
        ) from error


_NAME_HINT = (
    "set `host` in the spec to a name in the certificate, or ssl-verify-host to false if the CA is this server's own"
)
_VERIFY_HINTS: dict[int | None, str] = {
    9: "the certificate is not valid yet: compare the clocks of both machines",
    10: "renew the server's certificate; if it should not have expired, compare the clocks of both machines",
    62: _NAME_HINT,
    64: _NAME_HINT,
}
_CLIENT_REJECTED = ("ALERT_UNKNOWN_CA", "ALERT_DECRYPT_ERROR", "_CERTIFICATE")
_VERSIONS = ("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "WRONG_VERSION_NUMBER", "WRONG_SSL_VERSION")
SSL_REQUIRED = 2026
"""PyMySQL's error number for a server that does not support TLS."""
NO_TLS_HINT = (
    "the server does not offer TLS, or the offer was removed in transit: nothing was sent. Set ssl_cert on the server"
)
CUT_OFF_HINT = "; if this persists, the server may reject the client certificate: check ssl-cert and ssl-key"
"""With TLS 1.3 the server verifies it last: the connection is often closed before the reason arrives."""


def tls_trouble(error: BaseException) -> tuple[str, str] | None:
    """The TLS problem and the next step; None if a retry may help, or if TLS is not the cause."""
    for cause in (error, getattr(error, "original_exception", None), error.__context__):
        if isinstance(cause, ssl.SSLCertVerificationError):
            what = getattr(cause, "verify_message", "") or str(cause)
            default = "security.ssl-ca must contain the CA that signed the server's certificate"
            hint = _VERIFY_HINTS.get(getattr(cause, "verify_code", None), default)
            return f"the server's certificate was rejected: {what}", hint
        reason = cause.reason or "" if isinstance(cause, ssl.SSLError) else ""
        if "ALERT" in reason and any(word in reason for word in _CLIENT_REJECTED):
            return (
                f"the server rejected the client certificate: {cause}",
                "a CA that the server trusts must have signed ssl-cert",
            )
        if any(word in reason for word in _VERSIONS):
            return f"no common TLS version: {cause}", "TLS 1.2 or newer is required: the server may be too old"
    return None
