"""Decoding of small batches on the driver: it takes less time there than Spark needs to start a task."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, cast

import pyarrow as pa

from dmdelta.bronze.arrow import LANDED_ARROW_SCHEMA
from dmdelta.bronze.segment_reader import read_group
from dmdelta.model.recorded import RecordedStructures
from dmdelta.model.segment import Segment

SMALL_BYTES = 32 << 20
"""Maximum bytes of the log in a batch that is decoded on the driver."""
DECODED_BYTES = 64 << 20
"""The same limit for its decoded rows: compressed transactions grow, and narrow rows have their row's metadata."""


def decode_small(
    segments: Sequence[Segment], options: Mapping[str, str], recorded: RecordedStructures | None = None
) -> Any | None:
    """The rows of segments as an Arrow table in bronze's columns; None if they are not small.

    Args:
        options: the data source's, with `landed-at`.
        recorded: the structures recorded before the segments; updated to those after them. None: those of the options.

    Raises:
        RuntimeError: a dmdelta error of the decoder as text, as from an executor.
    """
    if sum(segment.size for segment in segments) > SMALL_BYTES:
        return None
    batches, size = [], 0
    # Closed, because the rest of a batch that is too large is not decoded here.
    with closing(cast("Generator[Any, None, None]", read_group(segments, options, recorded))) as decoded:
        for batch in decoded:
            batches.append(batch)
            size += batch.nbytes
            if size > DECODED_BYTES:
                return None
    return pa.Table.from_batches(batches, LANDED_ARROW_SCHEMA)
