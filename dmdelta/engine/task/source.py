"""A source of a task, for commands that read its tables, or repair them while the task is paused."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pyspark.sql import Row

from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.landed_structures import landed_structures
from dmdelta.changelog.ranges import of_source
from dmdelta.checkpoint import load_points
from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.task.mapping import flavor_of_source, relay_task
from dmdelta.engine.task.overrides import read_operators
from dmdelta.engine.task.task import Task, named_source, open_task
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.schema import TableName
from dmdelta.model.spark_sql import literal
from dmdelta.sharding import Coordination
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.former_names import renamings_among
from dmdelta.silver.table.table import Condition, silver_condition

Landed = Sequence[Mapping[str, Any]] | None
"""The result of `landed_structures`."""


@dataclass(frozen=True, slots=True)
class TaskSource:
    """A source's part of the lakehouse."""

    task: Task
    config: SourceConfig
    landing: SourceContext
    context: SilverContext

    @property
    def relay_folder(self) -> Path:
        """The folder of the source's relay. It may be on another machine."""
        return relay_task(self.task.spec, self.config, until_caught_up=True).folder

    def tables_like(self, pattern: str, known: Sequence[TableName] | None = None) -> list[TableName]:
        """The known tables that match a pattern (`*`, `?`), by their own name or by that of their merged table.

        Args:
            known: `known_tables`, where they were looked up already.

        Raises:
            ConfigError: none matches.
        """
        matching = [
            name
            for name in (self.known_tables() if known is None else known)
            if fnmatchcase(".".join(name), pattern) or fnmatchcase(self._merged_name(name), pattern)
        ]
        if not matching:
            raise ConfigError(f"bronze has no table {pattern}", hint="use the names at the source: schema.table")
        return matching

    def known_tables(self) -> list[TableName]:
        """The tables that the rules include and the task's records know: those of bronze and those of silver.

        A table that the log knows by a RENAME alone is one of them.

        Raises:
            LakehouseError: bronze or dm_meta cannot be read.
        """
        landed = landed_structures(self.task.spark, self.context)
        return self._included({*self._in_bronze(landed, Op.SCHEMA), *self._renamed(landed), *self.applied_tables()})

    def mentioned_tables(self) -> list[TableName]:
        """The known tables and those that a statement of the log names, whether or not they ever were there.

        Raises:
            LakehouseError: bronze or dm_meta cannot be read.
        """
        landed = landed_structures(self.task.spark, self.context)
        return self._included({*self._in_bronze(landed, Op.SCHEMA, Op.DDL), *self.applied_tables()})

    def applied_tables(self) -> list[TableName]:
        """The tables that silver was written for, whether or not the rules still include them.

        Raises:
            LakehouseError: dm_meta cannot be read.
        """
        stored = load_points(self.task.spark, self.task.lakehouse, self.task.spec.name, self.context.source_id)
        return sorted(stored.tables) if stored is not None else []

    def is_in_silver(self, name: TableName) -> bool:
        """Whether silver has the table.

        Raises:
            LakehouseError: it cannot be read.
        """
        return silver_condition(self.task.spark, self.context.table(name)) is Condition.PRESENT

    def _in_bronze(self, landed: Landed, *ops: Op) -> set[TableName]:
        """The tables with structures or statements."""
        bronze = self.task.lakehouse.bronze
        rows: Sequence[Row | Mapping[str, Any]] = [row for row in landed or () if row["op"] in ops]
        if landed is None:
            listed = ", ".join(literal(op.value) for op in ops)
            with wrapped(bronze, "reading"):
                rows = self.task.spark.sql(
                    f"""SELECT DISTINCT schema_name, table_name FROM {bronze}
                    WHERE {of_source(self.context.source_id)} AND op IN ({listed})"""
                ).collect()
        return {(str(row["schema_name"]), str(row["table_name"])) for row in rows if row["table_name"] is not None}

    def _renamed(self, landed: Landed) -> set[TableName]:
        """The names that RENAME statements gave."""
        renamings = renamings_among(landed, self.task.spark, self.context, None)
        return {name for one in renamings for name, source in one.sources.items() if source is not None}

    def _included(self, names: Iterable[TableName]) -> list[TableName]:
        return sorted(name for name in names if self.context.rules.wanted(*name))

    def _merged_name(self, name: TableName) -> str:
        target = self.context.table(name)
        return ".".join(target.route.name) if target.merged else ""


def open_task_source(spec: TaskSpec, source_id: str | None) -> TaskSource:
    """Start Spark and open the lakehouse.

    Raises:
        ConfigError: as `named_source`.
        SourceError, SourceUnavailable: the spec does not set the flavor, and the server does not answer.
        DmdeltaError: as `open_task`.
    """
    return source_of_task(open_task(spec, writing=False), named_source(spec, source_id))


def source_of_task(task: Task, config: SourceConfig) -> TaskSource:
    """The same for an open task.

    Raises:
        SourceError, SourceUnavailable: the spec does not set the flavor, and the server does not answer.
        LakehouseError: dm_meta cannot be read.
    """
    flavor = flavor_of_source(config)
    operators = read_operators(task.spark, task.lakehouse, task.spec.name, config.source_id)
    context = task.silver_context(config.source_id, flavor, operators, Coordination())
    return TaskSource(task, config, task.landing_source(config.source_id, flavor), context)
