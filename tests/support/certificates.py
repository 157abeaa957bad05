"""Certificates for tests: authorities, and certificates that they sign for servers and clients."""

import ipaddress
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HERE = ("127.0.0.1", "localhost")
"""The host name of a test server."""


@dataclass(frozen=True)
class Certificate:
    """PEM files: a certificate and its private key."""

    cert: Path
    key: Path


class Authority:
    """A CA whose files are in a folder. Two CAs of the same name differ only in their key."""

    def __init__(self, folder: Path, name: str = "Test CA") -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = _sign(subject, subject, self._key, self._key, (-1, 10), is_ca=True)
        self.ca = folder / "ca.pem"
        self.ca.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self,
        name: str,
        hosts: tuple[str, ...] = (),
        *,
        days: tuple[int, int] = (-1, 10),
        passphrase: bytes | None = None,
    ) -> Certificate:
        """A certificate for hosts, by name or address; validity is given in days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signed = _sign(subject, self._certificate.subject, key, self._key, days, hosts=hosts)
        place = self._folder / f"{name}-{secrets.token_hex(4)}.pem"
        made = Certificate(place, place.with_suffix(".key"))
        made.cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
        pkcs8 = serialization.PrivateFormat.PKCS8
        made.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, pkcs8, encryption))
        return made


def _sign(subject, issuer, key, signer, days, *, hosts=(), is_ca=False):
    now = datetime.now(timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _general(host):
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
