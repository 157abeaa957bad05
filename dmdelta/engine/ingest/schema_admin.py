"""The tracked structures of a task, and corrections of them: the implementation of `dmdelta binlog-schema`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any

from dmdelta.bronze.progress import landing_app
from dmdelta.checkpoint.points import ORIGIN
from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.ddl.tracking.effects import Created, Unread
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.ddl.tracking.tracked_structures import Origin, Structures
from dmdelta.ddl.types.type_words import is_text
from dmdelta.engine.ingest.schema_history import DELETE, HistoryRow, SchemaHistory, structures_at
from dmdelta.engine.task.mapping import flavor_of_source
from dmdelta.engine.task.task import Task, named_source, open_task
from dmdelta.errors import ConfigError, SchemaError
from dmdelta.lakehouse.history import newest_own_commit
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableName, TableSchema


@dataclass(frozen=True, slots=True)
class ShownStructure:
    """A line of `binlog-schema list`.

    Attributes:
        table: `schema.table`; for a database `schema`.
        since: the position from which it is valid.
        columns: names and types; empty if the table was dropped or its structure is unknown.
        charset: the default character set of new columns.
    """

    source: str
    table: str
    since: str
    origin: str
    columns: Sequence[str]
    key: Sequence[str]
    charset: str | None
    at: datetime
    structure: TableSchema | None

    def brief(self) -> dict[str, Any]:
        """The fields that fit on a line."""
        line = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "structure"}
        return {**line, "columns": ", ".join(self.columns), "key": ", ".join(self.key)}


def list_structures(
    spec: TaskSpec, source_id: str | None, table: TableName | None, *, everything: bool = False
) -> list[ShownStructure]:
    """The structures at the end of bronze, by source and table.

    Args:
        source_id: None for all sources.
        table: None for all tables.
        everything: the whole history, in log order.

    Raises:
        ConfigError: the task has no such source.
        LakehouseError: the history cannot be read.
    """
    sources = spec.sources if source_id is None else [named_source(spec, source_id)]
    task = open_task(spec, writing=False, beside_run=True)
    shown: list[ShownStructure] = []
    for source in sources:
        rows = _history(task, source).rows()
        end = _end(task, source)
        kept = [row for row in rows if row.counts(end)] if everything else _newest(rows, end)
        shown += [_shown(source.source_id, row) for row in kept if table in (None, (row.schema, row.table))]
    return shown


def update_structure(spec: TaskSpec, source_id: str | None, table: TableName, statement: str) -> ShownStructure:
    """Set a table's structure to a CREATE TABLE, from the end of bronze on; takes effect at the task's next start.

    Raises:
        ConfigError: the task has no such source, or several and none is named; or the statement does not create the
            table.
        SchemaError: the statement does not define the whole structure.
        SourceError, SourceUnavailable: the source does not answer.
        LakehouseError: it cannot be recorded.
    """
    source = named_source(spec, source_id)
    flavor = flavor_of_source(source)
    task = open_task(spec, writing=False, beside_run=True)
    history, end = _history(task, source), _end(task, source)
    known = structures_at(history.rows(), end, Structures())
    schema, charset = defined_structure(statement, table, known.charset_of, mariadb=flavor == "mariadb")
    row = HistoryRow(
        position=end,
        schema=table[0],
        table=table[1],
        structure=schema,
        charset=charset,
        origin=Origin.UPDATE.value,
        at=datetime.now(timezone.utc),
    )
    history.append([row])
    return _shown(source.source_id, row)


def delete_structure(spec: TaskSpec, source_id: str | None, table: TableName) -> ShownStructure:
    """Delete a table's structure: from the task's next start on it is read from information_schema again.

    Raises:
        ConfigError: the task has no such source, or several and none is named.
        LakehouseError: it cannot be recorded.
    """
    source = named_source(spec, source_id)
    task = open_task(spec, writing=False, beside_run=True)
    row = HistoryRow(
        position=_end(task, source),
        schema=table[0],
        table=table[1],
        structure=None,
        charset=None,
        origin=DELETE,
        at=datetime.now(timezone.utc),
    )
    _history(task, source).append([row])
    return _shown(source.source_id, row)


def defined_structure(
    statement: str, table: TableName, charset_of: Callable[[str, str | None], str | None], *, mariadb: bool
) -> tuple[TableSchema, str | None]:
    """The structure and the default character set that a CREATE TABLE of `table` defines.

    Raises:
        ConfigError: it is not such a statement.
        SchemaError: it does not define the whole structure.
    """
    effects = statement_effects(statement, table[0], lambda _: None, mariadb=mariadb, charset_of=charset_of)
    effect = effects[-1] if effects else None
    if isinstance(effect, Unread):
        raise SchemaError(
            f"the statement cannot be parsed: {effect.reason}", hint="use the output of SHOW CREATE TABLE"
        )
    if not isinstance(effect, Created) or effect.table[1].lower() != table[1].lower():
        raise ConfigError(
            f"this is not a CREATE TABLE of {'.'.join(table)}", hint="use the output of SHOW CREATE TABLE"
        )
    if effect.schema is None:
        raise SchemaError("the statement does not define all columns", hint="use the output of SHOW CREATE TABLE")
    open_ = [column.name for column in effect.schema.columns if is_text(column) and column.charset is None]
    if open_:
        raise SchemaError(
            f"the character set of {', '.join(open_)} is not defined", hint="end the statement with DEFAULT CHARSET=…"
        )
    return TableSchema(*table, effect.schema.columns, effect.schema.primary_key), effect.charset


def _newest(rows: Sequence[HistoryRow], end: Position) -> list[HistoryRow]:
    """The newest valid row for each table and database, without dropped ones."""
    newest: dict[tuple[str | None, str | None], HistoryRow] = {}
    for row in rows:
        if row.counts(end):
            newest = {} if row.schema is None else newest
            newest[row.schema, row.table] = row
    kept = (row for row in newest.values() if row.structure is not None or row.origin == DELETE or row.table is None)
    return sorted((row for row in kept if row.schema), key=lambda row: (row.schema or "", row.table or ""))


def _shown(source_id: str, row: HistoryRow) -> ShownStructure:
    schema = row.structure
    return ShownStructure(
        source=source_id,
        table=".".join(name for name in (row.schema, row.table) if name),
        since=str(row.position),
        origin=row.origin,
        columns=[_written(column) for column in schema.columns] if schema else [],
        key=schema.primary_key if schema else [],
        charset=row.charset,
        at=row.at,
        structure=schema,
    )


def _written(column: Column) -> str:
    """A column as text: `id bigint unsigned`, `v varchar latin1`."""
    words: list[Any] = [column.name, column.type, "unsigned" if column.unsigned else "", column.charset or ""]
    return " ".join(word for word in words if word)


def _history(task: Task, source: SourceConfig) -> SchemaHistory:
    return SchemaHistory(task.spark, task.lakehouse, task.spec.name, source.source_id)


def _end(task: Task, source: SourceConfig) -> Position:
    """The end of bronze."""
    landing = task.landing_source(source.source_id, source.flavor or "mysql")
    commit = newest_own_commit(task.spark, landing.bronze, landing_app(landing.task, landing.source_id))
    return commit.tag.end if commit is not None else ORIGIN
