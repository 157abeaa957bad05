"""Reads the changes of a slice, one list per target table."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.ranges import of_source, of_table, row_changes
from dmdelta.changelog.row_filters import ignored_ops, left_out_rows
from dmdelta.model.change import Op
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.rules.operators import Verb
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.read.change_reader import TableChanges, read_changes
from dmdelta.sink.read.image_query import Rendering
from dmdelta.sink.read.range_survey import BronzeLog
from dmdelta.sink.read.slices import Rows, Slice
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.target.tables import Tables

TABLES_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class SliceReader:
    """
    Attributes:
        executed: changes to skip.
    """

    spark: SparkSession
    log: BronzeLog
    tables: Tables
    source: SourceContext
    settings: SinkSettings
    executed: ExecutedEvents

    def read(self, part: Slice) -> list[list[TableChanges]]:
        """The changes for each table of the target, by source table and structure.

        Raises:
            SinkError: the target refuses a statement, or its table is incompatible.
            SchemaError: a filter of the spec stops the sink, or bronze lacks a structure.
            LakehouseError: bronze cannot be read.
        """
        rows = [one for one in part.rows if self.source.rules.wanted(*one.name) and self._counts(one)]
        if not rows:
            return []
        groups = self.log.groups(part.begin, part.end) if part.commits else ()
        versions = {one.version for one in rows if one.version is not None}
        schemas = self.log.structures(versions, part.begin, part.end)
        wanted: list[Rendering] = []
        for one in rows:
            assert one.version is not None
            route = self.source.rules.route(*one.name)
            plan = self.tables.plan(one.name, one.version, schemas[one.version], route)
            if not one.ops:
                continue  # an empty table, which now exists in the target
            where = " AND ".join([*self._where(part, one), row_changes(part.begin, part.end, groups)])
            conditions = self._conditions(one, schemas[one.version])
            wanted.append(
                Rendering(
                    plan,
                    " AND ".join([where, *conditions]),
                    one.ops,
                    groups,
                    partial=bool(one.partial),
                    assigned=not (self.settings.multiple_rows and plan.shape.assigned),
                    moves=bool(one.moves),
                )
            )
        with ThreadPoolExecutor(TABLES_AT_ONCE, thread_name_prefix="sink-read") as pool:
            read = list(pool.map(lambda one: self._read(one, part), wanted))
        by_table: dict[TableName, list[TableChanges]] = defaultdict(list)
        for changes in read:
            by_table[changes.plan.schema.name].append(changes)
        return list(by_table.values())

    def _read(self, wanted: Rendering, part: Slice) -> TableChanges:
        return read_changes(self.spark, self.log.bronze, wanted, part.begin.epoch, self.executed)

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
