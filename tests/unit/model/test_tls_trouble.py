"""The diagnosis of TLS errors."""

import ssl

import pytest

from dmdelta.model.tls import password_bytes, tls_trouble


def failure(reason: str | None) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] failed")
    error.reason = reason
    return error


def unverified(code: int, message: str = "why") -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, message
    return error


@pytest.mark.parametrize(
    "reason",
    [
        "TLSV1_ALERT_UNKNOWN_CA",
        "TLSV1_ALERT_DECRYPT_ERROR",
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
    ],
)
def test_a_rejected_client_certificate(reason: str) -> None:
    """The server sends an alert, and the hint names the key in the spec."""
    what, hint = tls_trouble(failure(reason)) or ("", "")
    assert "rejected the client certificate" in what
    assert reason in what
    assert "ssl-cert" in hint


@pytest.mark.parametrize(
    "reason",
    ["UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "WRONG_VERSION_NUMBER", "WRONG_SSL_VERSION"],
)
def test_no_common_version(reason: str) -> None:
    what, hint = tls_trouble(failure(reason)) or ("", "")
    assert "no common TLS version" in what
    assert "TLS 1.2" in hint


@pytest.mark.parametrize(
    "error",
    [
        failure("UNEXPECTED_EOF_WHILE_READING"),
        failure("TLSV1_ALERT_INTERNAL_ERROR"),
        failure("UNKNOWN_CERTIFICATE_TYPE"),
        failure(""),
        failure(None),
        ConnectionResetError("reset"),
        ValueError("_CERTIFICATE ALERT"),
    ],
    ids=repr,
)
def test_other_errors_are_no_trouble_with_tls(error: Exception) -> None:
    """A retry may help, or TLS is not the cause."""
    assert tls_trouble(error) is None


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (9, "not valid yet"),
        (10, "renew"),
        (62, "ssl-verify-host"),
        (64, "ssl-verify-host"),
        (0, "security.ssl-ca"),
        (18, "security.ssl-ca"),
        (20, "security.ssl-ca"),
    ],
)
def test_a_rejected_server_certificate(code: int, hint: str) -> None:
    """OpenSSL's code determines the hint: clocks, host name or CA."""
    what, found = tls_trouble(unverified(code)) or ("", "")
    assert what == "the server's certificate was rejected: why"
    assert hint in found


def test_an_error_without_details_is_shown_itself() -> None:
    """Its text replaces the missing message."""
    what, hint = tls_trouble(ssl.SSLCertVerificationError(1, "certificate verify failed")) or ("", "")
    assert "certificate verify failed" in what
    assert "security.ssl-ca" in hint


def test_the_cause_of_an_error_is_found() -> None:
    """PyMySQL wraps it in an attribute or raises its own error from it."""
    wrapped = ConnectionError("lost")
    wrapped.original_exception = failure("WRONG_VERSION_NUMBER")  # type: ignore[attr-defined]
    chained = ConnectionError("lost")
    chained.__context__ = unverified(10)
    assert "no common TLS version" in (tls_trouble(wrapped) or ("",))[0]
    assert "was rejected" in (tls_trouble(chained) or ("",))[0]


@pytest.mark.parametrize(
    ("password", "expected"), [("", b""), ("geheim", b"geheim"), ("Größe", "Größe".encode()), ("\udcff", b"\xff")]
)
def test_a_password_is_utf8(password: str, expected: bytes) -> None:
    """Other bytes of the environment are kept."""
    assert password_bytes(password) == expected


def test_a_password_that_no_server_stores_is_an_error() -> None:
    with pytest.raises(UnicodeEncodeError):
        password_bytes("\ud800")
