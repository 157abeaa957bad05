"""Partial JSON updates: an after image whose JSON columns are diffs against the before image.

Format: sql/rpl_record.cc and sql-common/json_diff.cc of MySQL 8.0.
"""

from typing import NamedTuple

from dmdelta.binlog.image import ImageDecoder
from dmdelta.errors import UnsupportedEvent


class PartialPlace(NamedTuple):
    """Where the before image begins and ends."""

    before: int
    after: int


def partial_after(
    event: bytes, place: PartialPlace, first: ImageDecoder, second: ImageDecoder
) -> tuple[dict[int, bytes], int]:
    raise UnsupportedEvent("partial JSON", hint=f"set binlog_row_value_options=''{event, place, first, second}")
