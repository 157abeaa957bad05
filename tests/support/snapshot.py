"""Rows as a snapshot reads them, without Spark."""

from collections.abc import Iterator
from typing import Any

from dmdelta.binlog.resultset.column_reader import ColumnReader
from dmdelta.binlog.resultset.row_reader import RowReader
from dmdelta.model.schema import Column, TableSchema
from dmdelta.source.snapshot.chunk import Chunk, RowPackets, read_chunk
from tests.support.catalog import structures_of
from tests.support.diff import Difference
from tests.support.relaying import endpoint_of
from tests.support.replay import Image, Tables, image_of, plain, same_as_document
from tests.support.servers import Server


def read_rows(server: Server, schema: TableSchema) -> Iterator[Image]:
    """All rows of a table, read as one chunk; checks that reading by column gives the same values."""
    images, columns = RowReader(schema), ColumnReader(schema)
    for read in read_chunk(endpoint_of(server), Chunk(1, schema), server.flavor):
        if isinstance(read, RowPackets):
            rows, metadata = images.read(read.data, read.end)
            columns.clear()
            columns.read(read.data, read.end)
            for number, row in enumerate(rows):
                image = image_of(row, metadata)
                assert image is not None
                for place, column in enumerate(schema.columns):
                    alone = _alone(columns, place, number, column)
                    assert _same(alone, image.get(column.name), document=False), (schema, column, alone, image)
                yield image


def _alone(reader: ColumnReader, place: int, number: int, column: Column) -> Any:
    """A column's value, read as when bypassing bronze."""
    value = reader.columns[place][number]
    if value is None:
        return None
    if not reader.plain[place]:
        return image_of(value, reader.metadata)
    return value.decode() if isinstance(value, bytes) and column.charset not in (None, "binary") else value


def snapshot_differences(server: Server, database: str, table: str, state: Tables) -> list[Difference]:
    """The differences between a table's snapshot and the replayed log, including types; documents compare as values."""
    (schema,) = (found for found in structures_of(server, database) if found.table == table)
    documents = {column.name for column in schema.columns if column.type == "json"}
    read = {row["id"]: row for row in read_rows(server, schema)}
    logged = {row["id"]: row for row in state.rows.get((database, table), {}).values()}
    lines = [Difference(table, "not in the snapshot", key=(key,)) for key in logged.keys() - read.keys()]
    lines += [Difference(table, "in the snapshot only", key=(key,)) for key in read.keys() - logged.keys()]
    for key in read.keys() & logged.keys():
        for column in read[key].keys() | logged[key].keys():
            ours, theirs = read[key].get(column, "absent"), logged[key].get(column, "absent")
            if not _same(ours, theirs, document=column in documents):
                lines.append(Difference(table, f"read {ours!r:.200}, logged {theirs!r:.200}", column, (key,)))
    return lines


def _same(read: Any, logged: Any, *, document: bool) -> bool:
    if document:  # its text does not distinguish decimals from doubles, or dates from strings
        return same_as_document(logged, plain(read))
    return type(read) is type(logged) and bool(read == logged)
