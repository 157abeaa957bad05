"""Live reads of a task's tables, by their names in silver."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from dmdelta.bronze.datasource import register
from dmdelta.config import TaskSpec
from dmdelta.engine.apply.row_checks import TableChecks
from dmdelta.engine.live.known_log import KnownLog
from dmdelta.engine.live.place import live_position
from dmdelta.engine.live.source import LiveSource
from dmdelta.engine.task.live_settings import LiveSettings, RunSettings
from dmdelta.engine.task.overrides import read_operators
from dmdelta.engine.task.source import TaskSource, source_of_task
from dmdelta.engine.task.task import Task, open_suites, place_of
from dmdelta.errors import ConfigError
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.silver.live.state import LiveState, not_readable
from dmdelta.silver.table.shard_rows import as_held


@dataclass(slots=True)
class LiveTables:
    """The tables of a task, for live reads."""

    task: Task
    sources: Sequence[TaskSource]
    _known: dict[TableName, list[tuple[TaskSource, TableName]]] = field(default_factory=dict)
    _logs: dict[str, KnownLog] = field(default_factory=dict)

    @classmethod
    def of(cls, spark: SparkSession, spec: TaskSpec) -> "LiveTables":
        """Open the tables of a task with a session of the caller.

        Raises:
            ConfigError: a suite is invalid.
            SourceError, SourceUnavailable: the spec does not set the flavor, and the server does not answer.
            LakehouseError: dm_meta cannot be read.
        """
        register(spark)
        suites = open_suites(spec)
        task = Task(spec, spark, place_of(spec), uuid.uuid4().hex, LiveSettings(RunSettings.of(spec)), suites)
        sources = [source_of_task(task, config) for config in spec.sources]
        if suites.by_table:
            checks = TableChecks(spark, suites)
            sources = [replace(source, context=replace(source.context, checks=checks)) for source in sources]
        return cls(task, sources)

    def names(self) -> dict[TableName, list[tuple[TaskSource, TableName]]]:
        """The tables in silver, each with the source tables that are routed to it.

        Raises:
            LakehouseError: bronze or dm_meta cannot be read.
        """
        found: dict[TableName, list[tuple[TaskSource, TableName]]] = {}
        for source in self.sources:
            for name in source.known_tables():
                found.setdefault(source.context.table(name).route.name, []).append((source, name))
        self._known = found
        return found

    def positions(self, at: str | None) -> dict[str, Position]:
        """The position of each source, by its ID.

        Args:
            at: a place in the log; of a task with several sources a time. None: the end of bronze.

        Raises:
            ConfigError: bronze does not have the place.
            QualityError: the place may have expired from bronze.
            LakehouseError: bronze cannot be read.
        """
        return {source.config.source_id: live_position(source, at) for source in self.sources}

    def read(self, names: Sequence[str], at: str | None = None) -> dict[str, DataFrame]:
        """The rows of tables at one position of each source.

        Args:
            names: `schema.table` in silver.
            at: as for `positions`.

        Raises:
            ConfigError: the task has no such table, or bronze does not have the place.
            NotReadable: the rows of a table at the position are unknown.
            LakehouseError: a table cannot be read.
        """
        parts = self._source_tables(names)
        used = {source.config.source_id: source for found in parts.values() for source, _ in found}
        live = {source_id: self._live(source, at) for source_id, source in used.items()}
        for source_id, one in live.items():
            ours = [name for found in parts.values() for source, name in found if source.config.source_id == source_id]
            one.prepare(ours)
        return {name: _read(name, found, live) for name, found in parts.items()}

    def _live(self, source: TaskSource, at: str | None) -> LiveSource:
        known = self._logs.setdefault(source.config.source_id, KnownLog())
        current = _with_operators(source)
        reader = replace(current, context=replace(current.context, memory=known.memory))
        return LiveSource(reader, live_position(source, at), known)

    def _source_tables(self, names: Sequence[str]) -> dict[str, list[tuple[TaskSource, TableName]]]:
        """The source tables of each table. Those of a merged table are looked up again: shards may be new."""
        keys = {name: _parts(name) for name in names}
        known = [self._known.get(key, []) for key in keys.values()]
        if not all(len(found) == 1 and not found[0][0].context.table(found[0][1]).merged for found in known):
            self.names()
        absent = [name for name, key in keys.items() if key not in self._known]
        if absent:
            hint = "use the names of the tables in silver: schema.table"
            raise ConfigError(f"the task has no table {absent[0]}", hint=hint)
        return {name: self._known[key] for name, key in keys.items()}


def _with_operators(source: TaskSource) -> TaskSource:
    """The source with the operator overrides of now."""
    task, context = source.task, source.context
    operators = read_operators(task.spark, task.lakehouse, task.spec.name, context.source_id)
    return replace(source, context=replace(context, rules=replace(context.rules, operators=operators)))


def _parts(name: str) -> TableName:
    schema, _, table = name.partition(".")
    return schema, table


def _read(name: str, parts: Sequence[tuple[TaskSource, TableName]], live: Mapping[str, LiveSource]) -> DataFrame:
    states: list[LiveState] = [live[source.config.source_id].state(table) for source, table in parts]
    frames = [state.rows for state in states if state.rows is not None]
    if not frames:
        raise not_readable(_parts(name), "it does not exist", None)
    return reduce(lambda one, other: one.unionAll(as_held(other, one)), frames)
