"""The format description event: the first event of a binlog file, which determines how to read the others.

Format: MySQL internals, FORMAT_DESCRIPTION_EVENT; MySQL >= 5.6.1 and MariaDB >= 5.3 end it with the checksum algorithm
(1 byte) and the event's own checksum, which covers the header with the in-use flag cleared.
"""

from dataclasses import dataclass
from struct import Struct
from zlib import crc32

from dmdelta.binlog.events.header import CHECKSUM_SIZE, HEADER_SIZE, EventFlag, EventType
from dmdelta.errors import CorruptBinlog, UnsupportedEvent

_FIXED = Struct("<H50sIB")
_LENGTHS_AT = HEADER_SIZE + _FIXED.size
_FLAGS_AT = HEADER_SIZE - 2
CHECKSUM_NONE = 0
CHECKSUM_CRC32 = 1


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """The content of a file's first event.

    Attributes:
        server_version: as reported by the server: `8.0.31`, `10.11.6-MariaDB-log`.
        checksum: events end in a CRC32 of 4 bytes.
    """

    server_version: str
    checksum: bool

    @property
    def is_mariadb(self) -> bool:
        return "mariadb" in self.server_version.lower()

    @property
    def trailer(self) -> int:
        """Bytes of the checksum at the end of every event."""
        return CHECKSUM_SIZE if self.checksum else 0


def parse_format_description(event: bytes, where: str = "binlog") -> FormatDescription:
    """Parse a whole event, including header and checksum.

    Raises:
        CorruptBinlog: not a format description event, truncated, or its checksum does not match.
        UnsupportedEvent: a binlog version other than 4, or a checksum algorithm other than none and CRC32.
    """
    if len(event) < _LENGTHS_AT + CHECKSUM_SIZE + 1 or event[4] != EventType.FORMAT_DESCRIPTION:
        raise CorruptBinlog(
            f"{where} does not start with a format description event", hint="check that it is a binlog file"
        )
    version, name, _created, header_size = _FIXED.unpack_from(event, HEADER_SIZE)
    if version != 4 or header_size != HEADER_SIZE:
        raise UnsupportedEvent(f"{where} has binlog version {version}", hint="MySQL 5.7 and newer write version 4")
    server_version = name.rstrip(b"\0").decode("ascii", "replace")
    algorithm = event[-CHECKSUM_SIZE - 1]
    if algorithm not in (CHECKSUM_NONE, CHECKSUM_CRC32):
        raise UnsupportedEvent(
            f"{where} uses checksum algorithm {algorithm}", hint="set binlog_checksum to CRC32 or NONE"
        )
    if algorithm == CHECKSUM_CRC32:
        _check(event, where)
    return FormatDescription(server_version, algorithm == CHECKSUM_CRC32)


def _check(event: bytes, where: str) -> None:
    covered = bytearray(event[:-CHECKSUM_SIZE])
    covered[_FLAGS_AT] &= ~int(EventFlag.BINLOG_IN_USE)
    if crc32(covered) != int.from_bytes(event[-CHECKSUM_SIZE:], "little"):
        raise CorruptBinlog(
            f"{where}: the format description event fails its checksum",
            hint="the file is damaged: fetch it again from the server",
        )
