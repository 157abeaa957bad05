"""Reads a group of segments: bytes in, Arrow record batches out. Runs on the executors."""

import gc
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import BinaryIO

import pyarrow as pa

from dmdelta.binlog.rows.decode import decode_segment
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.bronze.arrow import to_record_batch
from dmdelta.ddl.parse.session import without_session
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.errors import CorruptBinlog, DmdeltaError, to_wire
from dmdelta.model.recorded import RecordedStructures
from dmdelta.model.schema import StructureFrom, TableName, TableSchema
from dmdelta.model.segment import Segment
from dmdelta.rules.block_allow_list import BlockAllowList
from dmdelta.rules.online_ddl import OnlineDdl
from dmdelta.segments import open_segment, skipped_in


def read_group(
    segments: Sequence[Segment], options: Mapping[str, str], recorded: RecordedStructures | None = None
) -> Iterator[pa.RecordBatch]:
    """Decode a group's segments in order, in bounded memory.

    Args:
        options: the data source's.
        recorded: the structures recorded before the group, which are updated; None: those of the options.
    """
    if recorded is None:
        recorded = RecordedStructures.from_json(options["recorded"]) if "recorded" in options else RecordedStructures()
    decode_options = _decode_options(options, recorded)
    landed_at = datetime.fromisoformat(options["landed-at"]) if "landed-at" in options else None
    with decoding():
        for segment in segments:
            with _opened(segment) as stream:
                for batch in decode_segment(stream, segment, decode_options):
                    yield to_record_batch(batch, segment, landed_at)


@contextmanager
def decoding() -> Iterator[None]:
    """Context for decoding on an executor: disables garbage collection, and formats errors for the driver."""
    # A batch is hundreds of thousands of objects without cycles: searching for cycles would take a sixth of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    except DmdeltaError as error:
        # Only the text of an error reaches the driver: use a format that the driver can parse.
        raise RuntimeError(to_wire(error)) from error
    finally:
        if collecting:
            gc.enable()


def _opened(segment: Segment) -> BinaryIO:
    try:
        return open_segment(segment)
    except FileNotFoundError as error:
        raise CorruptBinlog(
            f"segment {error.filename} does not exist",
            hint="it was purged before it landed; restore it from the source or an archive",
        ) from error


def _decode_options(options: Mapping[str, str], recorded: RecordedStructures) -> DecodeOptions:
    known: dict[tuple[str, str], list[TableSchema]] = defaultdict(list)
    for text in json.loads(options.get("schemas", "[]")):
        schema = TableSchema.from_json(text)
        known[schema.schema, schema.table].append(schema)
    structures: dict[TableName, list[StructureFrom]] = defaultdict(list)
    for text in json.loads(options.get("structures", "[]")):
        change = StructureFrom.from_json(text)
        structures[change.table].append(change)
    rules = options.get("block-allow-list")
    allow_list = BlockAllowList.from_json(rules) if rules else BlockAllowList()
    online = OnlineDdl.from_json(options.get("online-ddl", "{}"))
    return DecodeOptions(
        wanted=partial(online.rows_wanted, allow_list.wanted),
        known_schemas=known,
        structures=structures,
        statement_targets=statement_targets,
        without_session=without_session,
        wanted_statements=partial(online.wanted, allow_list.wanted),
        recorded=recorded,
        skipped=skipped_in,
    )
