"""Shard DDL in the target: a shard's statement is executed once, has been executed for another shard, or waits."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from dmdelta.ddl.tracking.effects import Altered, Created, Dropped, Effect, Renamed
from dmdelta.errors import SchemaError
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.rules import SourceRules
from dmdelta.sharding import Action, Columns, Coordination, Shard, Waiting, joining
from dmdelta.sink.plan.shard_columns import (
    ShardDdl,
    changes_columns,
    columns_after,
    comparable,
    merged_columns_of,
    plan_shard_ddl,
    target_types,
)
from dmdelta.sink.read.slices import Statement
from dmdelta.sink.settings import StructureAt
from dmdelta.sink.target.tables import Tables

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ShardEffects:
    """What a statement does to one source table.

    Attributes:
        effects: in order; the structures are complete.
        after: the structure after it; None if unknown or the table is dropped.
    """

    effects: tuple[Effect, ...]
    after: TableSchema | None


@dataclass(frozen=True, slots=True)
class ShardLog:
    """Looks up structures in bronze.

    Attributes:
        structure: of a table at a position.
        effects: of a statement on a table.
    """

    structure: StructureAt
    effects: Callable[[TableName, Statement], ShardEffects]


class Outcome(Enum):
    """What became of a shard's statement."""

    WAITS = "waits"
    DONE = "done"
    OWN = "own"
    """It concerns the shard alone, or no column: it is executed as it is."""


@dataclass(frozen=True, slots=True)
class SinkShards:
    """The shards of one source. The target's table and the shards' positions determine what waits: no state is stored.

    Attributes:
        coordination: of the task's sinks.
        sources: number of the task's sources: nothing is decided before the sinks of all have opened.
        expected: the structures of the source's tables in its catalog.
    """

    source_id: str
    rules: SourceRules
    coordination: Coordination
    sources: int
    log: ShardLog
    expected: Mapping[TableName, TableSchema]

    def coordinates(self, name: TableName) -> bool:
        """Whether a table is merged with others."""
        return self.rules.wanted(*name) and self.rules.route(*name).merged

    def register(self) -> None:
        """Make the shards known that the source has, so that those of other sources wait for them."""
        for name in filter(self.coordinates, self.expected):
            self.coordination.set_schema(*self._shard(name), None)

    def open(self, known: Collection[TableName], position: Position | None, held: Mapping[TableName, Position]) -> None:
        """Record where the shards continue: from now on their statements are decided.

        Args:
            known: tables with a point in the checkpoint.
            position: where the log of the shards continues that are not held.
        """
        for name in sorted(filter(self.coordinates, {*self.expected, *known})):
            at = held.get(name, position)
            structure = self.log.structure(name, at) if at is not None else None
            if structure is not None:
                self.coordination.set_schema(*self._shard(name), target_types(structure))
            elif name in self.expected:  # the others are dropped by then
                self.coordination.set_schema(*self._shard(name), None)
                self.coordination.expects(*self._shard(name), target_types(self.expected[name]))
        self.coordination.opens(self.source_id)

    def is_known(self, name: TableName) -> bool:
        """Whether the structure of a shard is known."""
        target, shard = self._shard(name)
        return self.coordination.structures(target).get(shard) is not None

    def joins(self, name: TableName, structure: TableSchema) -> None:
        """A shard has rows: from now on its structure is known."""
        self.coordination.set_schema(*self._shard(name), target_types(structure))

    def joins_at(self, name: TableName, at: Position) -> None:
        """A shard continues with the structure that the log has at a position, after an ad-hoc snapshot."""
        structure = self.log.structure(name, Position(at.epoch, at.binlog_file, at.offset + 1))
        if structure is not None:
            self.joins(name, structure)

    @property
    def decides(self) -> bool:
        """The shards of all sources are known."""
        return self.coordination.opened >= self.sources

    def released(self, held: Mapping[TableName, Position]) -> list[TableName]:
        """The held shards that may continue, or whose statement has not been considered in this run."""
        if not self.decides:
            return []
        continuing = self.coordination.released(self.source_id)
        return [name for name in held if name in continuing or not self._is_waiting(name)]

    def follow(self, name: TableName, statement: Statement, texts: Sequence[str], tables: Tables) -> Outcome:
        """Execute a shard's statement, if it need not wait and no other shard's has had its effect.

        Args:
            texts: the statements for the target.

        Raises:
            SinkError: the target refuses the statement.
            SchemaError: the sink cannot coordinate it.
        """
        (target, shard), found = self._shard(name), self.log.effects(name, statement)
        if not tables.has(target):
            return self._passes(target, shard, found)
        with self.coordination.turn(target):
            altered = self._altered(found.effects, target, tables)
            if altered is None or not changes_columns(altered):
                return self._passes(target, shard, found)
            self._assert_no_successor(name, found)
            if not self.decides:
                return Outcome.WAITS
            existing = self._existing(target, tables)
            waiting = Waiting(statement.position, statement.text, altered)
            verdict = self.coordination.ask(target, shard, waiting, existing)
            if verdict.action is not Action.EXEC:
                return Outcome.WAITS
            # A shard whose structure is unknown may have every column.
            others = [other or altered.before for other in verdict.others]
            kept = {column.name.lower() for other in others for column in other.columns}
            planned = plan_shard_ddl(altered, existing, texts, kept)
            self._execute(planned, found, target, tables)
            self.coordination.set_columns(target, columns_after(existing, planned.done))
            self._continue(target, shard, found, altered.after)
        return Outcome.DONE

    def _execute(self, planned: ShardDdl, found: ShardEffects, target: TableName, tables: Tables) -> None:
        created = next((one.schema for one in found.effects if isinstance(one, Created)), None)
        after = created or found.after
        reach(CrashPoint.SINK_BEFORE_STATEMENT)
        if created is not None:
            names = {operation.column for operation in planned.done}
            tables.change_columns("ADD", target, [one for one in created.columns if one.name.lower() in names])
        else:
            for text in planned.texts:
                tables.change(text, in_doubt=True)
        retyped = [column for column in after.columns if column.name.lower() in planned.retyped] if after else []
        tables.change_columns("MODIFY", target, retyped)
        reach(CrashPoint.SINK_AFTER_STATEMENT)
        tables.forget()
        log.info("shard statement executed", table=".".join(target), statements=len(planned.texts))

    def _altered(self, effects: Sequence[Effect], target: TableName, tables: Tables) -> Altered | None:
        """The change of the shard's structure; a created table joins with its initial structure."""
        changed: Altered | None = None
        for effect in effects:
            one: Altered | None = None
            if isinstance(effect, Altered):
                one = comparable(effect)
            elif isinstance(effect, Created) and effect.schema is not None:
                one = joining(target_types(effect.schema), self._existing(target, tables))
            if one is not None and changed is not None:
                raise SchemaError(f"a statement changes the shard {one.table} twice", hint="use dmdelta binlog replace")
            changed = changed or one
        if changed is not None and changed.reused_name:
            raise SchemaError(
                f"a statement on a shard of {'.'.join(target)} reuses the column name {changed.reused_name}",
                hint="use dmdelta binlog replace with statements that have other names",
            )
        return changed

    def _existing(self, target: TableName, tables: Tables) -> Columns:
        known = [schema for schema in self.coordination.structures(target).values() if schema is not None]
        return merged_columns_of(tables.columns(target), known, self.coordination.columns(target))

    def _assert_no_successor(self, name: TableName, found: ShardEffects) -> None:
        """Check that a statement which changes columns does not rename the shard to another one: while the former
        waits, the latter's rows would already have the columns.
        """
        names = [effect.to for effect in found.effects if isinstance(effect, Renamed) and effect.table == name]
        if any(map(self.coordinates, names)):
            raise SchemaError(
                f"a statement changes columns of the shard {'.'.join(name)} and renames it to {'.'.join(names[-1])}",
                hint="use dmdelta binlog replace with its other actions: the merged table needs no RENAME",
            )

    def _passes(self, target: TableName, shard: Shard, found: ShardEffects) -> Outcome:
        self._continue(target, shard, found, None)
        return Outcome.OWN

    def _continue(self, target: TableName, shard: Shard, found: ShardEffects, altered: TableSchema | None) -> None:
        """Record the structure of a shard after a statement; no other shard waits for one that is gone."""
        after, gone = found.after or altered, found.after is None and any(_leaves(one, shard) for one in found.effects)
        if gone:
            self.coordination.remove_shard(target, shard)
        elif after is not None:
            self.coordination.set_schema(target, shard, target_types(after))

    def _is_waiting(self, name: TableName) -> bool:
        target, shard = self._shard(name)
        return self.coordination.is_waiting(target, shard)

    def _shard(self, name: TableName) -> tuple[TableName, Shard]:
        return self.rules.route(*name).name, Shard(self.source_id, *name)


def _leaves(effect: Effect, shard: Shard) -> bool:
    """Whether the shard no longer exists under its name."""
    return isinstance(effect, Dropped) or (isinstance(effect, Renamed) and effect.table == shard.name)
