"""The recorded plans of snapshots: each is read as it was written, whatever version created the table."""

import pytest

from dmdelta.engine.snapshot.plan import PlannedSnapshot
from dmdelta.engine.snapshot.store import SNAPSHOT, ChunkStore
from dmdelta.lakehouse.access.spark import metadata_frame
from dmdelta.lakehouse.metadata_table import create_metadata
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.source.snapshot.chunk import Chunk

CHUNKS = tuple(Chunk(number, TableSchema("d", "a", (Column("id", "int"),), ("id",)), rows=5) for number in (1, 2))
BEGIN = Position(2, "b.000001", 4)
OLDER = {name: kind for name, kind in SNAPSHOT.columns.items() if name != "server_uuid"}


@pytest.fixture
def store(spark, lakehouse):
    return ChunkStore(spark, lakehouse, "t", "s", "r")


@pytest.mark.parametrize("chunks", [CHUNKS, ()])
def test_a_plan_is_read_as_it_was_written(store, chunks):
    """Including its server, and without chunks."""
    snapshot = PlannedSnapshot(1, BEGIN, parse_gtid_set("0-1-7", "mariadb"), chunks, "mariadb-1")
    store.open()
    store.plan(snapshot)
    assert store.load(1, "mariadb") == snapshot


def test_a_plan_of_an_older_version_has_no_server(spark, lakehouse, store):
    """Its snapshot continues, and a replay reads it before anything has opened the table for writing."""
    name = lakehouse.metadata("t_snapshot")
    create_metadata(spark, lakehouse, name, OLDER, "t")
    fields = {"id": "s", "kind": "planned", "epoch": 1, "log_epoch": 2, "binlog_name": "b.000001", "binlog_pos": 4}
    rows = [{**fields, "chunk": chunk.number, "chunk_info": chunk.to_json()} for chunk in CHUNKS]
    metadata_frame(spark, OLDER, rows).writeTo(name).append()
    assert store.load(1, "mysql") == PlannedSnapshot(1, BEGIN, None, CHUNKS)
    store.open()
    assert store.load(1, "mysql") == PlannedSnapshot(1, BEGIN, None, CHUNKS)
