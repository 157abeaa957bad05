"""Partial JSON updates: an after image whose JSON columns are diffs against the before image."""

from dmdelta.binlog.image import ImageDecoder
from dmdelta.errors import UnsupportedEvent


def partial_after(
    event: bytes, begin: int, at: int, first: ImageDecoder, second: ImageDecoder
) -> tuple[dict[int, bytes], int]:
    raise UnsupportedEvent("partial JSON", hint="set binlog_row_value_options=''")
