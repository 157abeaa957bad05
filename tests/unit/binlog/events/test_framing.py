"""Events in a file: where they begin and end, and how damage is detected."""

import struct
from unittest.mock import patch

import pytest

from dmdelta.binlog.events import framing
from dmdelta.binlog.events.header import EventType
from dmdelta.errors import CorruptBinlog
from tests.support.changes import (
    Log,
    decode_bytes,
    event_bytes,
    names_field,
    payload_body,
    query_body,
    rows_body,
    rows_of,
)

FLAGS_AT = 4 + 17


def a_log() -> Log:
    """Transactions of different lengths."""
    log = Log()
    for number in range(40):
        image = b"\0" + struct.pack("<iB", number, 7 * number % 80) + b"x" * (7 * number % 80)
        log.transaction(
            ((3, b""), (15, b"\x50\0")), names_field(("id", "v")), (EventType.WRITE_ROWS, rows_body(image, 2))
        )
    return log


def resized(log: Log, size: int) -> bytes:
    """The file with another size in the header of its second event."""
    second = 4 + struct.unpack_from("<I", log.data, 4 + 9)[0]
    return log.data[: second + 9] + struct.pack("<I", size) + log.data[second + 13 :]


@pytest.mark.parametrize("size", [*range(130, 160), 1000])
def test_a_file_is_read_in_pieces_of_any_size(size: int) -> None:
    """An event may be cut anywhere: in its header, its body or its checksum."""
    log = a_log()
    wanted = log.changes()
    assert len(rows_of(wanted)) == 40
    with patch.object(framing, "READ_SIZE", size):
        assert log.changes() == wanted


@pytest.mark.parametrize("size", [0, 18, 19, 22, 2**20, 2**32 - 1])
def test_an_event_of_an_impossible_size(size: int) -> None:
    """Smaller than a header with a checksum, or beyond the segment: the error names its size."""
    log = Log().query("BEGIN")
    with pytest.raises(CorruptBinlog, match=f"has an event of {size} bytes that does not fit"):
        decode_bytes(resized(log, size), log.segment())


@pytest.mark.parametrize(("flag", "valid"), [(0, True), (1, True), (2, False), (3, False)])
def test_a_file_that_is_still_written_to(flag: int, valid: bool) -> None:  # noqa: FBT001 - a table
    """The server sets a flag in the first event without changing the checksum."""
    log = Log().query("BEGIN").query("COMMIT")
    data = bytearray(log.data)
    data[FLAGS_AT] |= flag
    if valid:
        assert decode_bytes(bytes(data), log.segment()) == []
    else:
        with pytest.raises(CorruptBinlog, match="checksum"):
            decode_bytes(bytes(data), log.segment())


def test_a_checksum_that_differs() -> None:
    """A single bit is enough."""
    log = Log().query("BEGIN")
    with pytest.raises(CorruptBinlog, match="fails its checksum"):
        decode_bytes(log.data[:-1] + bytes((log.data[-1] ^ 1,)), log.segment())


@pytest.mark.parametrize("checksum", [True, False])
def test_a_checksum_of_a_compressed_transaction(checksum: bool) -> None:  # noqa: FBT001 - a parameter
    """It is verified after the transaction is read; a log without checksums has none."""
    begin = event_bytes(EventType.QUERY, query_body(b"BEGIN", "s"), checksum=False)
    log = Log(checksum=checksum).add(EventType.TRANSACTION_PAYLOAD, payload_body(begin)).query("COMMIT")
    assert log.changes() == []
    if checksum:
        log = Log().add(EventType.TRANSACTION_PAYLOAD, payload_body(begin))
        with pytest.raises(CorruptBinlog, match="fails its checksum"):
            decode_bytes(log.data[:-1] + bytes((log.data[-1] ^ 1,)), log.segment())


@pytest.mark.parametrize("kind", [EventType.FORMAT_DESCRIPTION, EventType.ROTATE])
def test_a_repeated_first_event_may_have_another_checksum(kind: EventType) -> None:
    """Its flag of a file in use is not covered; every other event has to match its checksum."""
    log = Log().add(kind, bytes(20))
    log.data = log.data[:-1] + bytes((log.data[-1] ^ 1,))
    log.query("CREATE USER a").query("DROP USER a")
    if kind == EventType.FORMAT_DESCRIPTION:
        assert log.changes() == []
    else:
        with pytest.raises(CorruptBinlog, match="fails its checksum"):
            log.changes()
