"""Decoded batches as Arrow record batches."""

from datetime import datetime, timezone

import pyarrow as pa

from dmdelta.binlog.rows.decode import decode_segment
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.bronze.arrow import ARROW_SCHEMA, to_record_batch
from dmdelta.bronze.schema import DECODED_SCHEMA
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.model.change import Op
from tests.support.changes import changes_of
from tests.support.golden import recording
from tests.support.variant_reader import read_variant

NAMES = [field.name for field in ARROW_SCHEMA]


def test_every_row_has_its_columns() -> None:
    """Runs are expanded to their rows: positions, names and images are those of the batch."""
    options = DecodeOptions(wanted=lambda schema, _: schema == "golden", statement_targets=statement_targets)
    seen = set()
    for segment in recording("mysql80").segments():
        with open(segment.path, "rb") as stream:
            for batch in decode_segment(stream, segment, options):
                rows = to_record_batch(batch, segment).to_pylist()
                for row, change in zip(rows, changes_of(batch), strict=True):
                    seen.add(change.op)
                    assert (row["seq"], row["row"], row["op"], row["gtid"]) == (
                        change.seq,
                        change.row,
                        change.op.value,
                        change.gtid,
                    )
                    assert (row["schema_name"], row["table_name"], row["xid"]) == (
                        change.schema,
                        change.table,
                        change.xid,
                    )
                    assert row["image"] == (None if change.image is None else list(change.image))
                    assert row["key_changed"] == change.moved
                    assert (row["ddl"], row["binlog_file"]) == (change.ddl, segment.binlog_file)
                    assert row["binlog_pos"] == change.seq & (1 << 40) - 1
                    for side, expected in (("before", change.before), ("after", change.after)):
                        found = row[side]
                        assert (found and read_variant(found["value"], found["metadata"])) == expected
                    assert datetime(2020, 1, 1, tzinfo=timezone.utc) < row["committed_at"]
    assert {Op.INSERT, Op.UPDATE, Op.DELETE, Op.DDL, Op.TRUNCATE, Op.SCHEMA, Op.XA_COMMIT, Op.XA_ROLLBACK} == seen


def test_the_columns_are_those_of_the_data_source() -> None:
    """Names and order match the schema declared to Spark; a VARIANT is marked on its metadata field."""
    declared = [column.strip().split(" ")[0].strip("`") for column in DECODED_SCHEMA.split(",") if column.strip()]
    assert declared == NAMES
    field = ARROW_SCHEMA.field("after").type.field("metadata")
    assert field.metadata == {b"variant": b"true"}
    assert not field.nullable
    assert ARROW_SCHEMA.field("committed_at").type == pa.timestamp("us", tz="UTC")
