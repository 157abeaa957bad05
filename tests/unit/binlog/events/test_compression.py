"""Values of MariaDB's COMPRESSED columns."""

import zlib

import pytest

from dmdelta.binlog.events.compression import decompress_value
from dmdelta.errors import CorruptBinlog

TEXT = b"some text, " * 20


def value(text: bytes, width: int, *, raw: bool) -> bytes:
    """In the format of sql/field_comp.cc: the header has the format and the number of length bytes."""
    deflating = zlib.compressobj(wbits=-zlib.MAX_WBITS if raw else zlib.MAX_WBITS)
    stream = deflating.compress(text) + deflating.flush()
    return bytes((0x80 | 8 * raw | width,)) + len(text).to_bytes(width, "big") + stream


@pytest.mark.parametrize("raw", [False, True], ids=["zlib", "raw deflate"])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_a_value_of_either_format(width: int, *, raw: bool) -> None:
    """With any number of bytes for its length."""
    assert decompress_value(value(TEXT, width, raw=raw)) == TEXT


@pytest.mark.parametrize(("data", "plain"), [(b"", b""), (b"\0", b""), (b"\0abc", b"abc")])
def test_a_value_that_is_not_compressed(data: bytes, plain: bytes) -> None:
    assert decompress_value(data) == plain


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x11abc", "unknown header"),
        (b"\x92\0\3abc", "unknown header"),
        (b"\x82\0\3abc", "cannot be decompressed"),
        (value(TEXT, 2, raw=False)[:-1], "stated length of 220 bytes"),
        (b"\x81\xdb" + value(TEXT, 1, raw=False)[2:], "stated length of 219 bytes"),
        (b"\x81\xdd" + value(TEXT, 1, raw=False)[2:], "stated length of 221 bytes"),
    ],
)
def test_a_damaged_value_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(CorruptBinlog, match=message):
        decompress_value(data)
