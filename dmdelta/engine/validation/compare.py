"""Compares one table with its source, both as of one position of the log.

docs/decisions/0009-reconciliation.md has the reasons.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from dmdelta.bronze.retention import expired_to
from dmdelta.changelog.ranges import of_source, of_table
from dmdelta.engine.replay.table import TableReplay
from dmdelta.engine.task.source import TaskSource
from dmdelta.engine.task.task import Task
from dmdelta.engine.validation.fix import fix_rows
from dmdelta.engine.validation.landed_position import POLL_SECONDS, await_landed
from dmdelta.engine.validation.results import RowDifference, Validated, ValidateRequest, outcome_of
from dmdelta.errors import ConfigError, QualityError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableName
from dmdelta.quality.filtered_rows import left_out_rows
from dmdelta.quality.reconcile import (
    Comparison,
    Kind,
    add_sums,
    compared_rows,
    count_query,
    differing_documents,
    differing_rows,
    plan_comparison,
    plan_suspects,
    silver_hashes,
    silver_sums,
    silver_values,
    source_documents_query,
    source_rows_query,
    source_sums_query,
    source_values_query,
)
from dmdelta.rules.comparable_rows import ComparableRows
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.repair import table_version
from dmdelta.silver.table.shard_rows import OwnRows, own_rows
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.snapshot.consistent_read import ConsistentTable, open_consistent

TRIES = 10
Values = dict[str, dict[str, tuple[str | None, str | None]]]
"""Both sides' texts, by key and differing column."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of comparing sums and hashes; the fields are those of `Validated`."""

    rows: int
    silver_rows: int
    kinds: Mapping[str, Kind]
    not_looked_at: int
    left_out_rows: int = 0


@dataclass(frozen=True, slots=True)
class TableValidation:
    """The comparison of one table.

    Attributes:
        compared: the rows that are compared.
    """

    source: TaskSource
    endpoint: Endpoint
    name: TableName
    compared: ComparableRows
    request: ValidateRequest

    @property
    def task(self) -> Task:
        return self.source.task

    @property
    def context(self) -> SilverContext:
        return self.source.context

    @property
    def replay(self) -> TableReplay:
        return TableReplay(self.task, self.context, self.name, lambda _: None)

    def run(self) -> Validated:
        """Compare.

        Raises:
            NotLanded: bronze does not reach the source's position.
            DmdeltaError: silver or the source cannot be read, or silver does not reach the source's position.
        """
        target = self.context.table(self.name)
        for _ in range(TRIES):
            at = table_version(self.task.spark, target)  # read before the source, so that silver is never ahead of it
            with open_consistent(self.endpoint, self.name, self.context.flavor, self.request.threads) as table:
                position = await_landed(self.source, table.position, self.request.wait)
                rows = self.replay.rows_as_of(at, position)
                if rows is not None:
                    return self._compare(table, position, own_rows(target, table.schema, rows))
            time.sleep(POLL_SECONDS)
        raise QualityError(
            f"silver does not reach the source's position of {'.'.join(self.name)}",
            hint="run the task, or compare at a time with less load. `dmdelta status SPEC` shows stopped tables",
        )

    def _compare(self, table: ConsistentTable, position: Position, silver: OwnRows) -> Validated:
        comparison = self._comparison(table, silver)
        found = self._differing_rows(table, comparison, silver.rows)
        documents, compared = self._documents(table, comparison, silver.rows)
        texts = self._values(table, comparison, silver.rows, list(found.kinds)[: self.request.limit])
        differences = [
            *(RowDifference(kind, key, texts.get(key, {})) for key, kind in found.kinds.items()),
            *(
                RowDifference(Kind.DIFFERENT, key, values)
                for key, values in documents.items()
                if key not in found.kinds
            ),
        ]
        counts = Counter(difference.kind for difference in differences)
        names = {column.name for column in (*comparison.columns, *compared)}
        uncompared = tuple(column.name for column in table.schema.columns if column.name not in names)
        uncompared += self._only_in_silver(table, silver)
        fixed, refused = self._fix(table, comparison, differences)
        return Validated(
            source=self.context.source_id,
            table=".".join(self.name),
            status=outcome_of(differs=bool(differences or found.not_looked_at), uncompared=bool(uncompared)),
            reason=refused,
            position=position,
            rows=found.rows,
            silver_rows=found.silver_rows,
            missing=counts[Kind.MISSING],
            extra=counts[Kind.EXTRA],
            different=counts[Kind.DIFFERENT],
            not_looked_at=found.not_looked_at,
            left_out_rows=found.left_out_rows,
            uncompared=uncompared,
            differences=tuple(differences[: self.request.limit]),
            fixed=fixed,
        )

    def _comparison(self, table: ConsistentTable, silver: OwnRows) -> Comparison:
        return plan_comparison(
            table.schema,
            silver.rows.columns,
            self.context.flavor,
            table.rows,
            left_out=left_out_rows(self.compared, table.schema, self.context.flavor),
            absent=silver.absent,
        )

    def _differing_rows(self, table: ConsistentTable, comparison: Comparison, rows: DataFrame) -> _Found:
        """Compare the sums of both sides, then the rows of the buckets whose sums differ."""
        source = add_sums(table.ask([(source_sums_query(comparison, table.name, part), ()) for part in table.parts]))
        silver = silver_sums(comparison, rows)
        suspects = plan_suspects(source, silver)
        kinds: dict[str, Kind] = {}
        outdated = 0
        if suspects.buckets:
            queries = [(source_rows_query(comparison, table.name, p, suspects.buckets), ()) for p in table.parts]
            hashes = [(str(row[0]), int(row[1]), int(row[2])) for part in table.ask(queries) for row in part]
            compared = compared_rows(hashes, silver_hashes(comparison, rows, suspects.buckets))
            kinds, outdated = differing_rows(compared.source, compared.silver), compared.outdated
        if Kind.EXTRA in kinds.values() and self._may_be_outdated(keyless=not table.schema.primary_key):
            outdated += sum(kind is Kind.EXTRA for kind in kinds.values())
            kinds = {key: kind for key, kind in kinds.items() if kind is not Kind.EXTRA}
        counts = [sum(count for count, _ in sums.values()) for sums in (source, silver)]
        return _Found(counts[0], counts[1] - outdated, kinds, suspects.left, self._left_out(table, comparison))

    def _left_out(self, table: ConsistentTable, comparison: Comparison) -> int:
        """The number of the source's rows that are not compared."""
        if comparison.left_out is None:
            return 0
        counts = [(count_query(table.name, part, comparison.left_out.source), ()) for part in table.parts]
        return sum(int(row[0]) for part in table.ask(counts) for row in part)

    def _may_be_outdated(self, *, keyless: bool) -> bool:
        """Whether a row that only silver has may be an outdated one that a filter left there, whatever its values."""
        if not self.compared.outdated:
            return False
        spark, bronze = self.task.spark, self.task.lakehouse.bronze
        if keyless or self.compared.deletes or expired_to(spark, self.source.landing) is not None:
            return True
        rows = f"{of_source(self.context.source_id)} AND {of_table(*self.name)} AND op = 'update'"
        with wrapped(bronze, "reading"):
            return not spark.sql(f"SELECT 1 FROM {bronze} WHERE {rows} AND key_changed LIMIT 1").isEmpty()

    def _fix(
        self, table: ConsistentTable, comparison: Comparison, differences: list[RowDifference]
    ) -> tuple[bool, str | None]:
        """Repair silver if requested. Returns whether it was repaired, and why not."""
        if not self.request.fix or not differences:
            return False, None
        keys = [difference.key for difference in differences]
        try:
            fix_rows(self.source, self.endpoint, comparison, table, keys)
        except (ConfigError, QualityError) as error:
            return False, f"{error.message}: {error.hint}"
        return True, None

    def _only_in_silver(self, table: ConsistentTable, silver: OwnRows) -> tuple[str, ...]:
        own = {column.name for column in (*table.schema.columns, *self.context.table(self.name).constants)}
        own.update(silver.absent)
        return tuple(name for name in silver.rows.columns if name not in own and not name.startswith("_dm_"))

    def _documents(
        self, table: ConsistentTable, comparison: Comparison, rows: DataFrame
    ) -> tuple[Values, list[Column]]:
        """Compare JSON documents: those that differ, and the JSON columns that were compared."""
        columns = [column for column in table.schema.columns if column.type == "json" and column.name in rows.columns]
        if not columns or not table.schema.primary_key:
            return {}, []
        found: Values = {}
        for part in table.parts:
            (documents,) = table.ask([(source_documents_query(comparison, columns, table.name, part), ())])
            found |= differing_documents(comparison, columns, rows, documents)
        return found, columns

    def _values(self, table: ConsistentTable, comparison: Comparison, rows: DataFrame, keys: list[str]) -> Values:
        if not keys:
            return {}
        queries = [(source_values_query(comparison, table.name, part, keys), keys) for part in table.parts]
        source = {str(row[0]): row[1:] for part in table.ask(queries) for row in part}
        silver = silver_values(comparison, rows, keys)
        nothing = (None,) * len(comparison.values())
        found: Values = {}
        for key in keys:
            pairs = zip(source.get(key, nothing), silver.get(key, nothing), strict=True)
            named = zip((name for name, _ in comparison.values()), pairs, strict=True)
            found[key] = {name: pair for name, pair in named if pair[0] != pair[1]}
        return found
