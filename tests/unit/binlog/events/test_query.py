"""Query events: the statement, its default schema, and the session's character sets."""

import struct
import zlib

import pytest

from dmdelta.binlog.events.header import EventType
from dmdelta.binlog.events.query import parse_query
from dmdelta.binlog.events.quoting import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from dmdelta.errors import CorruptBinlog

FLAGS, SQL_MODE = b"\x00" + bytes(4), b"\x01" + b"\x04" * 8
CATALOG, AUTO_INCREMENT = b"\x02\x03std\x00", b"\x03" + b"\x04" * 4
TIME_ZONE, CATALOG_NZ = b"\x05\x06+00:00", b"\x06\x03std"
UNKNOWN = b"\x7f" + bytes(4)


def charsets(client: int, server: int) -> bytes:
    """The status variable of the session's client, connection and server collation."""
    return b"\x04" + struct.pack("<HHH", client, 0x0404, server)


def mode(bits: int) -> bytes:
    """The status variable of the session's sql_mode."""
    return b"\x01" + bits.to_bytes(8, "little")


def query_event(
    sql: bytes, status: bytes = b"", schema: bytes = b"shop", *, kind: int = EventType.QUERY, cut: int = 0
) -> bytes:
    """A whole event, without its last `cut` bytes."""
    body = struct.pack("<IIBHH", 1, 2, len(schema), 0, len(status)) + status + schema + b"\0" + sql
    event = struct.pack("<IBIIIH", 1, kind, 1, 19 + len(body), 0, 0) + body
    return event[: len(event) - cut]


@pytest.mark.parametrize(
    ("status", "server"),
    [
        (b"", 0),
        (charsets(45, 8), 8),
        (charsets(45, 255), 255),
        (charsets(8, 0x0135), 0x0135),
        (FLAGS + SQL_MODE + CATALOG_NZ + AUTO_INCREMENT + charsets(45, 309), 309),
        (CATALOG + TIME_ZONE + charsets(45, 309), 309),
        (FLAGS + UNKNOWN + charsets(45, 309), 0),
        (FLAGS + SQL_MODE, 0),
    ],
    ids=["none", "8", "255", "two bytes", "MySQL's order", "of old servers", "after an unknown one", "not logged"],
)
def test_the_servers_collation_is_a_status_variable(status: bytes, server: int) -> None:
    """Variables before it are skipped by their sizes; the size of an unknown one is not known."""
    assert parse_query(query_event(b"CREATE DATABASE d", status))[:3] == ("shop", "CREATE DATABASE d", server)


@pytest.mark.parametrize(
    ("sql", "status", "text"),
    [
        ("é".encode(), b"", "é"),
        ("é".encode(), charsets(45, 8), "é"),
        (b"\xe9", charsets(8, 45), "é"),
        (b"\xe9", FLAGS + CATALOG + charsets(51, 8), "й"),
        ("é".encode(), charsets(63, 8), "é"),
        ("é".encode() + b"\xff", charsets(45, 8), "é\ufffd"),
        ("名".encode("gb18030"), charsets(248, 8), "名"),
        ("é".encode(), charsets(309, 8), "é"),
        ("é".encode(), UNKNOWN + charsets(8, 8), "é"),
    ],
    ids=["not logged", "utf8mb4", "latin1", "cp1251", "binary", "invalid bytes", "gb18030", "two bytes", "unknown"],
)
def test_a_statement_is_in_the_clients_character_set(sql: bytes, status: bytes, text: str) -> None:
    """UTF-8 if it is not logged, or binary; bytes of another character set do not stop the task."""
    assert parse_query(query_event(b"DROP TABLE " + sql, status)).sql == f"DROP TABLE {text}"


@pytest.mark.parametrize(
    ("sql", "status", "text"),
    [
        (b"DROP TABLE\xa0t", charsets(8, 8), "DROP TABLE t"),
        (b"DROP TABLE\xfft", charsets(40, 8), "DROP TABLE t"),
        (b"DROP TABLE `\xa0`", charsets(8, 8), "DROP TABLE `\u00a0`"),
        (b"x '\\'\xa0'\xa0'", FLAGS + mode(NO_BACKSLASH_ESCAPES) + charsets(8, 8), "x '\\\\' '\u00a0'"),
        ("DROP TABLE t\u00a0u".encode(), charsets(45, 8), "DROP TABLE t\u00a0u"),
        ("DROP TABLE t\u00a0u".encode("gb18030"), charsets(248, 8), "DROP TABLE t\u00a0u"),
        ("DROP TABLE t\u00a0u".encode(), charsets(63, 8), "DROP TABLE t\u00a0u"),
    ],
    ids=["latin1", "cp852", "a name", "with its sql_mode", "utf8mb4", "gb18030", "binary"],
)
def test_a_no_break_space_is_a_blank_in_a_single_byte_character_set(sql: bytes, status: bytes, text: str) -> None:
    """To a server it is part of a name in others; the statement is stored in UTF-8."""
    assert parse_query(query_event(sql, status)).sql == text


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (
            FLAGS + mode(NO_BACKSLASH_ESCAPES) + CATALOG_NZ + charsets(45, 8),
            r"""ALTER TABLE "t" ADD x CHAR DEFAULT '\\'""",
        ),
        (FLAGS + mode(ANSI_QUOTES), r"""ALTER TABLE `t` ADD x CHAR DEFAULT '\'"""),
        (mode(ANSI_QUOTES | NO_BACKSLASH_ESCAPES | 0xFF << 32), r"""ALTER TABLE `t` ADD x CHAR DEFAULT '\\'"""),
        (FLAGS + mode(0), r"""ALTER TABLE "t" ADD x CHAR DEFAULT '\'"""),
        (FLAGS + charsets(45, 8), r"""ALTER TABLE "t" ADD x CHAR DEFAULT '\'"""),
        (b"", r"""ALTER TABLE "t" ADD x CHAR DEFAULT '\'"""),
    ],
    ids=["NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "both", "neither", "not logged", "nothing logged"],
)
def test_a_statement_has_the_quotes_of_the_default_mode(status: bytes, text: str) -> None:
    """The session's sql_mode determines what its quotes and backslashes mean."""
    assert parse_query(query_event(rb"""ALTER TABLE "t" ADD x CHAR DEFAULT '\'""", status)).sql == text


MYSQL80 = FLAGS + mode(0) + CATALOG_NZ + AUTO_INCREMENT + charsets(45, 8) + TIME_ZONE
BETWEEN = b"\x07" + bytes(2) + b"\x08" + bytes(2) + b"\x09" + bytes(8) + b"\x0a" + bytes(4) + b"\x0b\x01u\x02hh"
DATABASES, MANY, MICROSECONDS = b"\x0c\x02a\0bb\0", b"\x0c\xfe", b"\x0d" + bytes(3)


@pytest.mark.parametrize(
    ("status", "explicit"),
    [
        (MYSQL80 + DATABASES + b"\x10\x01\x11" + bytes(8), True),
        (MYSQL80 + DATABASES + b"\x10\x00\x11" + bytes(8), False),
        (MYSQL80 + BETWEEN + MANY + MICROSECONDS + b"\x10\x01", True),
        (MYSQL80 + DATABASES, False),
        (MYSQL80 + UNKNOWN + b"\x10\x01", False),
        (b"\x00\x00\x00\x00\x01" + mode(0), True),
        (b"\x00\xff\xff\xff\xfe" + mode(0), False),
        (CATALOG + b"\x10\x01", True),
        (b"", False),
    ],
    ids=["ON", "OFF", "all before it", "not logged", "after an unknown one", "MariaDB's ON", "its OFF", "old", "none"],
)
def test_explicit_defaults_for_timestamp(status: bytes, *, explicit: bool) -> None:
    """MySQL logs it for statements that define a TIMESTAMP, MariaDB as a flag of each statement."""
    assert parse_query(query_event(b"ALTER TABLE t ADD a Timestamp", status)).explicit_timestamps is explicit
    assert not parse_query(query_event(b"ALTER TABLE t ADD a INT", status)).explicit_timestamps


@pytest.mark.parametrize("schema", ["", "s", "é" * 40])
def test_the_default_schema_is_named_in_utf8(schema: str) -> None:
    """It may be empty, and has the length that the event states."""
    assert parse_query(query_event(b"COMMIT", charsets(8, 8), schema.encode()))[:3] == (schema, "COMMIT", 8)


def test_a_compressed_statement_is_decompressed() -> None:
    """MariaDB compresses only the text."""
    text = b"ALTER TABLE t ADD b INT"
    packed = b"\x81" + bytes((len(text),)) + zlib.compress(text)
    found = parse_query(query_event(packed, charsets(45, 8), kind=EventType.MARIADB_QUERY_COMPRESSED))
    assert found[:3] == ("shop", text.decode(), 8)


@pytest.mark.parametrize(
    "event",
    [
        query_event(b"")[:30],
        query_event(b"", b"\x04" + bytes(4), b"")[: 19 + 13 + 5],
        query_event(b"", b"\x05", b"")[: 19 + 13 + 1],
        query_event(b"COMMIT", schema=b"\xff"),
    ],
    ids=["in its fixed part", "in the collations", "in the time zone", "a schema that is not UTF-8"],
)
def test_a_truncated_event_is_damage(event: bytes) -> None:
    """Wherever it ends."""
    with pytest.raises(CorruptBinlog, match="cannot read a query event"):
        parse_query(event)
