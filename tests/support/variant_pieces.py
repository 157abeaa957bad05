"""VARIANT values that the codec only writes as a part of rows, from the Parquet VARIANT specification."""

import struct

_INT8 = 0x0C


def int8_piece(value: int) -> bytes:
    """A number of one byte, as of a TINYINT."""
    return struct.pack("<Bb", _INT8, value)
