"""Requests snapshots of tables: the implementation of `dmdelta snapshot`."""

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass

from dmdelta.bronze.progress import newest_landed
from dmdelta.config import SourceConfig
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.mapping import FIRST_TRY, endpoint_of
from dmdelta.engine.task.task import Task
from dmdelta.errors import ConfigError
from dmdelta.model.schema import TableName
from dmdelta.source.catalog import read_schemas
from dmdelta.source.connection import open_connection
from dmdelta.source.server import server_identity


@dataclass(frozen=True, slots=True)
class RequestedTable:
    """A table that a source's next ad-hoc snapshot reads."""

    source: str
    table: str


def request_snapshot(task: Task, tables: Sequence[str]) -> list[RequestedTable]:
    """Request that tables (`schema.table`) are read from their sources again. A running task starts within seconds.

    Raises:
        ConfigError: a table is not selected, does not exist, or the task has never run.
        SourceError, SourceUnavailable: a source does not answer.
        LakehouseError: the request cannot be recorded.
    """
    spec = task.spec
    wanted = {_name(task, table) for table in tables}
    tables_of = {source.source_id: _tables_of(source, wanted) for source in spec.sources}
    missing = wanted.difference(*tables_of.values())
    if missing:
        listed = ", ".join(sorted(".".join(name) for name in missing))
        raise ConfigError(f"no server of the task has {listed}", hint="use the names at the source")
    for source in spec.sources:
        _request(task, source, tables_of[source.source_id])
    return [RequestedTable(source, ".".join(name)) for source, names in tables_of.items() for name in sorted(names)]


def _name(task: Task, table: str) -> TableName:
    schema, point, name = table.partition(".")
    if not point or not any(task.rules(source.source_id).wanted(schema, name) for source in task.spec.sources):
        raise ConfigError(
            f"{table} is not selected by the task", hint="write it as schema.table, and add it to the block-allow-list"
        )
    return schema, name


def _tables_of(source: SourceConfig, names: Collection[TableName]) -> set[TableName]:
    endpoint = endpoint_of(source)
    if endpoint is None:
        return set()
    with closing(open_connection(endpoint, FIRST_TRY)) as connection:
        return {schema.name for schema in read_schemas(connection, lambda schema, table: (schema, table) in names)}


def _request(task: Task, source: SourceConfig, names: Collection[TableName]) -> None:
    endpoint = endpoint_of(source)
    if endpoint is None or not names:
        return
    with closing(open_connection(endpoint, FIRST_TRY)) as connection:
        flavor = server_identity(connection).flavor
    if newest_landed(task.spark, task.landing_source(source.source_id, flavor)) is None:
        raise ConfigError(
            f"the task {task.spec.name} has never run with {source.source_id}",
            hint="run it: with task-mode all or full, its first run reads every table",
        )
    store = ChunkStore(task.spark, task.lakehouse, task.spec.name, source.source_id, task.run)
    store.open()
    store.request(names)
