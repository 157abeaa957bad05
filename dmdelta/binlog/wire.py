"""Small readers of MySQL's wire encodings: packed integers, big-endian numbers, bitmaps."""

from dmdelta.errors import CorruptBinlog


def packed_int(data: bytes, at: int) -> tuple[int, int]:
    """A length-encoded integer at `at`: (value, the offset after it).

    Raises:
        CorruptBinlog: not an integer, or the data is truncated.
    """
    first = data[at] if at < len(data) else 0xFF
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first, 0)
    if not size or at + 1 + size > len(data):
        raise CorruptBinlog("a length is damaged", hint="the event is damaged: fetch the file again", at=at)
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def packed_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """A length-encoded string at `at`: (bytes, the offset after it)."""
    size, at = packed_int(data, at)
    if at + size > len(data):
        raise CorruptBinlog("a string is truncated", hint="the event is damaged: fetch the file again", at=at)
    return data[at : at + size], at + size


def set_bits(bitmap: bytes, count: int) -> tuple[int, ...]:
    """The numbers of the set bits below `count`; the lowest bit of the first byte is 0."""
    return tuple(bit for bit in range(count) if bitmap[bit >> 3] & (1 << (bit & 7)))


def bitmap_size(count: int) -> int:
    """Bytes of a bitmap of `count` bits."""
    return (count + 7) >> 3
