"""Converts DECIMAL's binary format to VARIANT.

Format: strings/decimal.cc, `bin2decimal`: groups of nine digits in four bytes, big endian; shorter groups at both ends;
the first bit is the inverted sign, negative values have all bits inverted.
"""

from collections.abc import Callable

from dmdelta.binlog.values.variant import decimal_piece, string_piece
from dmdelta.errors import CorruptBinlog

MAX_PRECISION = 38
"""Digits of the largest VARIANT decimal."""
MOST_DIGITS = 65
"""Digits of MySQL's largest DECIMAL."""
_GROUP = 9
_GROUP_SIZE = 4
_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def decimal_size(precision: int, scale: int) -> int:
    """Bytes of a DECIMAL(precision, scale)."""
    whole, fraction = divmod(precision - scale, _GROUP), divmod(scale, _GROUP)
    return _SIZES[whole[1]] + (whole[0] + fraction[0]) * _GROUP_SIZE + _SIZES[fraction[1]]


def _groups(precision: int, scale: int) -> list[tuple[int, int, int]]:
    """(first byte, end byte, digits) of every group."""
    whole, fraction = divmod(precision - scale, _GROUP), divmod(scale, _GROUP)
    digits = [whole[1]] + [_GROUP] * (whole[0] + fraction[0]) + [fraction[1]]
    groups, at = [], 0
    for count in digits:
        if count:
            groups.append((at, at + _SIZES[count], count))
            at += _SIZES[count]
    return groups


def unscaled_of(precision: int, scale: int) -> Callable[[bytes], int]:
    """The reader of a DECIMAL(precision, scale): its digits as one integer.

    It raises CorruptBinlog for bytes that are not digits.
    """
    groups = [(first, end, 10**digits) for first, end, digits in _groups(precision, scale)]
    size = decimal_size(precision, scale)
    sign_bit = 0x80 << (8 * (size - 1))
    mask = (1 << (8 * size)) - 1

    def convert(raw: bytes) -> int:
        bits = int.from_bytes(raw, "big")
        negative = not bits & sign_bit
        bits ^= sign_bit
        if negative:
            bits ^= mask
        plain = bits.to_bytes(size, "big")
        value = 0
        for first, end, power in groups:
            group = int.from_bytes(plain[first:end], "big")
            if group >= power:
                raise CorruptBinlog(
                    "a decimal contains bytes that are not digits", hint="report this event to the project"
                )
            value = value * power + group
        return -value if negative else value

    return convert


def decimal_text(unscaled: int, scale: int) -> str:
    """In MySQL's format: all `scale` digits, at least one before the decimal point."""
    digits = f"{abs(unscaled):0{scale + 1}d}"
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return "-" + text if unscaled < 0 else text


def decimal_of(precision: int, scale: int) -> Callable[[bytes], bytes]:
    """The converter of a DECIMAL column to VARIANT: a decimal up to 38 digits, MySQL's text above."""
    unscaled = unscaled_of(precision, scale)
    if precision > MAX_PRECISION:
        return lambda raw: string_piece(decimal_text(unscaled(raw), scale).encode())
    return lambda raw: decimal_piece(unscaled(raw), scale, precision)


def decimal_text_of(precision: int, scale: int) -> Callable[[bytes], bytes]:
    """The converter of MySQL's text of a DECIMAL(precision, scale): as `decimal_of`."""
    if precision > MAX_PRECISION:
        return string_piece
    return lambda raw: decimal_piece(int(raw.replace(b".", b"")), scale, precision)
