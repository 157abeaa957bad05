"""The first event of a file: the server's version, and whether events have checksums."""

import struct
import zlib

import pytest

from dmdelta.binlog.events.format_description import FormatDescription, parse_format_description
from dmdelta.errors import CorruptBinlog, UnsupportedEvent

LENGTHS = bytes(range(1, 42))


def described(
    *, kind: int = 15, version: int = 4, name: bytes = b"8.0.31", header: int = 19, checksum: int = 1, flags: int = 0
) -> bytes:
    """A whole event; its checksum is that of the same event without the flag of a file in use."""
    body = struct.pack("<H50sIB", version, name, 7, header) + LENGTHS + bytes((checksum,))
    size = 19 + len(body) + 4
    heads = [struct.pack("<IBIIIH", 1, kind, 1, size, 0, one) for one in (flags, flags & ~1)]
    return heads[0] + body + struct.pack("<I", zlib.crc32(heads[1] + body))


@pytest.mark.parametrize(("checksum", "trailer"), [(0, 0), (1, 4)])
@pytest.mark.parametrize(
    ("name", "mariadb"), [(b"8.0.31", False), (b"10.11.6-MariaDB-log", True), (b"5.5.5-10.4.1-mariadb", True)]
)
def test_the_event_describes_all_others(name: bytes, mariadb: bool, checksum: int, trailer: int) -> None:  # noqa: FBT001
    """Version and checksum."""
    found = parse_format_description(described(name=name, checksum=checksum))
    assert found == FormatDescription(name.decode(), checksum == 1)
    assert (found.is_mariadb, found.trailer) == (mariadb, trailer)


@pytest.mark.parametrize("flags", [0, 1, 2, 3, 0x40, 0x80, 0xC1, 0xFF])
def test_the_checksum_ignores_that_the_file_is_in_use(flags: int) -> None:
    """The server sets and clears this flag alone without another checksum."""
    assert parse_format_description(described(flags=flags)).checksum


@pytest.mark.parametrize("place", [0, 17, 18, 21, 60, -6, -4, -1])
def test_any_other_bit_is_covered_by_the_checksum(place: int) -> None:
    """One changed bit is damage, also in the checksum itself."""
    event = bytearray(described())
    event[place] ^= 4
    with pytest.raises(CorruptBinlog, match="made: the format description event fails its checksum"):
        parse_format_description(bytes(event), "made")


@pytest.mark.parametrize(("version", "header"), [(3, 19), (5, 19), (4, 18), (4, 20)])
def test_other_versions_of_the_format_are_refused(version: int, header: int) -> None:
    """Binlogs of MySQL 4 and older have other headers."""
    with pytest.raises(UnsupportedEvent, match=f"made has binlog version {version}"):
        parse_format_description(described(version=version, header=header), "made")


@pytest.mark.parametrize("checksum", [2, 254, 255])
def test_other_checksums_are_refused(checksum: int) -> None:
    """Only none and CRC32 exist."""
    with pytest.raises(UnsupportedEvent, match=f"made uses checksum algorithm {checksum}"):
        parse_format_description(described(checksum=checksum), "made")


def test_another_event_is_not_a_format_description() -> None:
    """A file starts with this event."""
    with pytest.raises(CorruptBinlog, match="made does not start with a format description event"):
        parse_format_description(described(kind=16), "made")


def test_the_smallest_event_has_no_lengths() -> None:
    """57 bytes, the checksum's algorithm and the checksum; one byte less is not enough."""
    whole = described(checksum=0)
    smallest = whole[:76] + b"\x00" + bytes(4)
    assert not parse_format_description(smallest).checksum
    with pytest.raises(CorruptBinlog, match="does not start with"):
        parse_format_description(smallest[:-1])
