"""MySQL 9's GTID events with tags: fields in the servers' serialization format."""

import struct

import pytest

from dmdelta.binlog.events.gtid import TaggedGtid, parse_gtid, read_tagged
from dmdelta.errors import CorruptBinlog

UUID = bytes((0, 1, 126, 127, 128, 129, 254, 255, *range(8)))
NAME = "00017e7f-8081-feff-0001-020304050607"
NUMBERS = [0, 1, 127, 128, 2**14 - 1, 2**14, 2**28 - 1, 2**28, 2**49 - 1, 2**49, 2**56 - 1, 2**56, 2**63 - 1]
LAST_MOMENT = 253_402_300_799_999_999
"""The end of the year 9999."""


def unsigned(number: int) -> bytes:
    """As in mysql/serialization: the trailing ones of the first byte count the bytes that follow."""
    size = next((size for size in range(1, 9) if number < 1 << 7 * size), 9)
    if size == 9:
        return b"\xff" + number.to_bytes(8, "little")
    return (number << size | (1 << size - 1) - 1).to_bytes(size, "little")


def signed(number: int) -> bytes:
    """The sign is the lowest bit."""
    return unsigned(~number << 1 | 1 if number < 0 else number << 1)


def uuid(raw: bytes) -> bytes:
    return b"".join(map(unsigned, raw))


def text(value: str) -> bytes:
    return unsigned(len(value)) + value.encode()


def tagged_event(fields: dict[int, bytes], after: bytes = b"") -> bytes:
    """A whole event of fields by number; `after` follows the serialized ones."""
    content = b"".join(unsigned(number) + value for number, value in fields.items())
    head = next(
        unsigned(1) + unsigned(size) + unsigned(9)
        for size in range(len(content), len(content) + 20)
        if len(unsigned(1) + unsigned(size) + unsigned(9)) + len(content) == size
    )
    body = head + content + after
    return struct.pack("<IBIIIH", 1, 42, 1, 19 + len(body), 0, 0) + body


COMPLETE = {
    0: unsigned(1),
    1: uuid(UUID),
    2: signed(77),
    3: text("night"),
    4: signed(300),
    5: signed(301),
    6: unsigned(1_764_000_000_123_456),
    7: unsigned(1_763_000_000_654_321),
    8: unsigned(70_000),
    9: unsigned(5),
}


def test_all_fields_are_read() -> None:
    """By their numbers; the name has the tag."""
    found = read_tagged(tagged_event(COMPLETE))
    assert found == TaggedGtid(
        uuid=UUID,
        gno=77,
        tag="night",
        sequence=301,
        immediate_us=1_764_000_000_123_456,
        original_us=1_763_000_000_654_321,
        length=70_000,
    )
    assert found.name == f"{NAME}:night"


def test_missing_fields_are_empty() -> None:
    """The server omits fields with their default."""
    assert read_tagged(tagged_event({})) == (bytes(16), 0, "", 0, 0, 0, 0)
    assert read_tagged(tagged_event({})).name == "00000000-0000-0000-0000-000000000000"
    assert read_tagged(tagged_event({1: uuid(UUID)})).name == NAME


def test_fields_of_newer_servers_end_the_event() -> None:
    """Their sizes are unknown, and they follow the known ones."""
    assert read_tagged(tagged_event({1: uuid(UUID), 9: b"\x01", 8: unsigned(5)})) == (UUID, 0, "", 0, 0, 0, 0)


def test_bytes_after_the_stated_size_are_not_fields() -> None:
    """The event states how long its fields are."""
    assert read_tagged(tagged_event({2: signed(7)}, after=unsigned(8) + unsigned(5))) == (bytes(16), 7, "", 0, 0, 0, 0)


@pytest.mark.parametrize("number", [*NUMBERS, 2**63, 2**64 - 1])
def test_a_number_has_one_to_nine_bytes(number: int) -> None:
    """The field after it is found, too."""
    found = read_tagged(tagged_event({6: unsigned(number), 8: unsigned(3)}))
    assert (found.immediate_us, found.length) == (number, 3)


@pytest.mark.parametrize("number", [*NUMBERS, -1, -64, -65, -(2**63)])
def test_a_number_may_have_a_sign(number: int) -> None:
    """Down to the least of 64 bits."""
    found = read_tagged(tagged_event({2: signed(number), 5: signed(9)}))
    assert (found.gno, found.sequence) == (number, 9)


@pytest.mark.parametrize(
    ("without", "text", "committed"),
    [
        ((), f"{NAME}:night:77", 1_763_000_000_654_321),
        ((7,), f"{NAME}:night:77", 1_764_000_000_123_456),
        ((6, 7), f"{NAME}:night:77", None),
        ((3,), f"{NAME}:77", 1_763_000_000_654_321),
    ],
    ids=["complete", "of the first server", "without times", "without a tag"],
)
def test_the_gtid_has_the_tag_and_the_original_time(without: tuple[int, ...], text: str, committed: int | None) -> None:
    """A server that is no replica logs one time."""
    event = tagged_event({number: value for number, value in COMPLETE.items() if number not in without})
    assert parse_gtid(event) == (text, committed, False, None, False)


def test_a_time_after_the_year_9999_is_damage() -> None:
    """No type of the targets holds it."""
    assert parse_gtid(tagged_event({7: unsigned(LAST_MOMENT)})).committed_us == LAST_MOMENT
    with pytest.raises(CorruptBinlog, match="commit time is out of range"):
        parse_gtid(tagged_event({7: unsigned(LAST_MOMENT + 1)}))


@pytest.mark.parametrize("size", range(19, len(tagged_event(COMPLETE)) - 2))
def test_a_truncated_event_is_damage_or_lacks_whole_fields(size: int) -> None:
    """No number, name or text is read from half of its bytes."""
    event, ends, at = tagged_event(COMPLETE), [22], 22
    for number, value in COMPLETE.items():
        at += len(unsigned(number) + value)
        ends.append(at)
    if size in ends:
        whole = read_tagged(event)
        assert all(
            value in (kept, 0, "", bytes(16)) for value, kept in zip(read_tagged(event[:size]), whole, strict=True)
        )
    else:
        with pytest.raises(CorruptBinlog):
            parse_gtid(event[:size])
