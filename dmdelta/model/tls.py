"""TLS towards a server."""

from dataclasses import dataclass
from typing import Any


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


def driver_options(tls: Tls | None) -> dict[str, Any]:
    """PyMySQL's options for it; None: not encrypted, even if the server offers it."""
    if tls is None:
        return {"ssl_disabled": True}
    return {
        "ssl_ca": tls.ca,
        "ssl_cert": tls.cert,
        "ssl_key": tls.key,
        "ssl_verify_cert": True,
        "ssl_verify_identity": tls.verify_host,
    }
