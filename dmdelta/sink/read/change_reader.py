"""Reads a slice: Spark reads the images of a table's rows, Arrow renders their texts, column by column."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from pyspark.sql import SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.ranges import XaGroup, of_source, of_table, row_changes
from dmdelta.changelog.row_filters import ignored_ops, left_out_rows
from dmdelta.errors import SinkError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.rules.operators import Verb
from dmdelta.sink.change import ACTS, Change
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.plan.table_mapping import TablePlan
from dmdelta.sink.read.columns import Columns, rendered
from dmdelta.sink.read.image_query import Rendering, read_images
from dmdelta.sink.read.range_survey import BronzeLog
from dmdelta.sink.read.slices import Rows, Slice
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.target.tables import Tables


@dataclass(frozen=True, slots=True)
class TableChanges:
    """The changes of one source table in a slice.

    Attributes:
        columns: the changes in order; None if there are none.
        ascii: all keys are ASCII text.
        lacks_keys: the changes have only the key of the table, as their images lack values of others.
        marked: rows that silver quarantines are left out.
    """

    plan: TablePlan
    columns: Columns | None
    ascii: bool = True
    marked: bool = False
    lacks_keys: bool = False

    def __len__(self) -> int:
        return len(self.columns) if self.columns is not None else 0

    @property
    def moves_unknown(self) -> bool:
        """An update changes the key of a row that the target may lack: only safe mode then writes the new row."""
        return self.marked and self.columns is not None and bool(self.columns.was.null_count < len(self))

    def changes(self) -> list[tuple[int, Change]]:
        """The changes one by one, with the `seq` at which they take effect."""
        return changes_of(self.columns) if self.columns is not None else []


@dataclass(frozen=True, slots=True)
class Past:
    """What an earlier run has executed of a table, in one epoch.

    Attributes:
        executed: the recorded changes.
        point: the table point; None: none that is later than the global one.
    """

    epoch: int
    executed: ExecutedEvents
    point: Position | None = None

    def left(self, every: Columns) -> Columns:
        """The changes that remain."""
        remaining = every
        if self.point is not None:
            remaining = every.where(every.seq >= (self.point.seq if self.point.epoch == self.epoch else 0))
        if self.executed:
            events = zip(remaining.own.tolist(), remaining.row.tolist(), strict=True)
            remaining = remaining.where(np.array([not self.executed.has(self.epoch, one) for one in events], bool))
        return remaining


def read_changes(spark: SparkSession, bronze: str, wanted: Rendering, past: Past) -> TableChanges:
    """Read the changes of a table.

    Raises:
        LakehouseError: bronze cannot be read.
        SinkError: an image lacks the key that the target has.
    """
    with wrapped(bronze, "reading"):
        table = read_images(spark, bronze, wanted).toArrow()
    if not table.num_rows:
        return TableChanges(wanted.plan, None)
    changes = left_over(wanted.plan, rendered(table, wanted), past)
    return replace(changes, marked=wanted.mark is not None)


def left_over(plan: TablePlan, every: Columns, past: Past) -> TableChanges:
    """The changes without those that an earlier run has executed."""
    remaining = past.left(every)
    is_ascii = not plan.watched or _is_ascii(remaining)
    return TableChanges(plan, remaining, ascii=is_ascii, lacks_keys=remaining.lacks_keys)


def changes_of(columns: Columns) -> list[tuple[int, Change]]:
    """Changes one by one, with the `seq` at which they take effect."""
    count = len(columns)
    acts = [ACTS[number] for number in columns.acts.tolist()]
    sets = [None] * count if columns.sets is None else columns.sets.to_pylist()
    texts = [array.to_pylist() for array in (columns.identity, columns.was, columns.values)]
    events = [(event,) for event in zip(columns.own.tolist(), columns.row.tolist(), strict=True)]
    changes = map(Change, acts, *texts, sets, _keys(columns), events)
    return list(zip(columns.seq.tolist(), changes, strict=True))


def _keys(columns: Columns) -> Sequence[tuple[str, ...]]:
    every = [array.to_pylist() for array in (*columns.new, *columns.old)]
    return [tuple(dict.fromkeys(key for key in keys if key is not None)) for keys in zip(*every, strict=True)]


def _is_ascii(columns: Columns) -> bool:
    for array in (*columns.new, *columns.old):
        _, ends, data = array.buffers()
        if data is not None and len(array):
            offsets = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
            if (np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] > 0x7F).any():
                return False
    return True


TABLES_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class SliceReader:
    """
    Attributes:
        executed: changes to skip.
        points: the table points that are later than where the sink starts: changes before them are skipped.
        held: shards whose changes from a position on are not read, as they wait for other shards.
    """

    spark: SparkSession
    log: BronzeLog
    tables: Tables
    source: SourceContext
    settings: SinkSettings
    executed: ExecutedEvents
    points: Mapping[TableName, Position] = field(default_factory=dict)
    held: Mapping[TableName, Position] = field(default_factory=dict)

    def read(self, part: Slice) -> list[list[TableChanges]]:
        """The changes for each table of the target, by source table and structure.

        Raises:
            SinkError: the target refuses a statement, or its table is incompatible.
            QualityError: quality rules that keep rows out of the target cannot be evaluated.
            SchemaError: a filter of the spec stops the sink, or bronze lacks a structure.
            LakehouseError: bronze cannot be read.
        """
        rows = [one for one in part.rows if self.source.rules.wanted(*one.name) and self._counts(one)]
        rows = [one for one in rows if one.name not in self.points or self.points[one.name] < part.end]
        rows = [one for one in rows if one.name not in self.held or part.begin < self.held[one.name]]
        if not rows:
            return []
        groups = self.log.groups(part.begin, part.end) if part.commits else ()
        versions = {one.version for one in rows if one.version is not None}
        schemas = self.log.structures(versions, part.begin)
        wanted: list[Rendering] = []
        for one in rows:
            assert one.version is not None
            route = self.source.rules.route(*one.name)
            loaded = not one.ops or Op.READ.value in one.ops
            plan = self.tables.plan(one.name, one.version, schemas[one.version], route, loaded=loaded)
            if not one.ops:
                continue  # an empty table, which now exists in the target
            where = " AND ".join([*self._where(part, one), row_changes(part.begin, part.end, groups)])
            where = " AND ".join([where, *self._conditions(one, schemas[one.version])])
            wanted.append(self._rendering(plan, where, one, groups, schemas[one.version]))
        with ThreadPoolExecutor(TABLES_AT_ONCE, thread_name_prefix="sink-read") as pool:
            read = list(pool.map(lambda one: self._read(one, part), wanted))
        by_table: dict[TableName, list[TableChanges]] = defaultdict(list)
        for changes in read:
            by_table[changes.plan.schema.name].append(changes)
        return list(by_table.values())

    def _rendering(
        self, plan: TablePlan, where: str, rows: Rows, groups: Sequence[XaGroup], schema: TableSchema
    ) -> Rendering:
        decide = self.settings.quarantining
        mark = decide(rows.name, schema, partial=bool(rows.partial)) if decide is not None else None
        if mark is not None and plan.shape.keyless:
            raise SinkError(
                f"{plan.shape.table} has no key in the target: a row that quality rules keep out cannot be found there",
                hint="ALTER TABLE … ADD PRIMARY KEY in the target, as the source has, or set quality.sink: all",
            )
        return Rendering(
            plan,
            where,
            rows.ops | {"delete"} if mark is not None else rows.ops,
            tuple(groups),
            partial=bool(rows.partial),
            # The target may lack a row that is updated: then only complete values bring it.
            assigned=mark is None and not (self.settings.multiple_rows and plan.shape.assigned),
            moves=bool(rows.moves),
            mark=mark,
        )

    def _read(self, wanted: Rendering, part: Slice) -> TableChanges:
        past = Past(part.begin.epoch, self.executed, self.points.get(wanted.plan.source))
        return read_changes(self.spark, self.log.bronze, wanted, past)

    def _where(self, part: Slice, rows: Rows) -> list[str]:
        left_out = [
            position.seq
            for position, operator in self.source.rules.operators.items()
            if operator.verb is not Verb.INJECT and part.begin <= position < part.end
        ]
        skipped = [f"seq NOT IN ({', '.join(f'{seq}L' for seq in left_out)})"] if left_out else []
        version = f"schema_version = {rows.version}"
        return [of_source(self.source.source_id), of_table(*rows.name), version, *skipped]

    def _counts(self, rows: Rows) -> bool:
        ops = {Op(op) for op in rows.ops}
        return not ops or bool(ops - set(ignored_ops(self.source.rules, rows.name, ops)))

    def _conditions(self, rows: Rows, schema: TableSchema) -> list[str]:
        ops = [Op(op) for op in sorted(rows.ops)]
        ignored = ignored_ops(self.source.rules, rows.name, ops)
        parts = [f"op <> '{op.value}'" for op in ignored]
        for op in ops:
            left_out = left_out_rows(self.source.rules, self.source.flavor, schema, op, partial=bool(rows.partial))
            if left_out is not None and op not in ignored:
                parts.append(f"NOT (op = '{op.value}' AND ({left_out}))")
        return parts
