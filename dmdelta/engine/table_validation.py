"""The comparison of one table with its source, both as they are at one position of the log.

docs/decisions/0009-reconciliation.md has the reasons.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from dmdelta.bronze.landing import LandingSource, newest_landed
from dmdelta.engine.fixing import fix_rows
from dmdelta.engine.requests import SilverSide
from dmdelta.engine.table_replay import TableReplay
from dmdelta.engine.task import Task
from dmdelta.errors import QualityError
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableName
from dmdelta.quality.reconcile import (
    Comparison,
    Kind,
    add_sums,
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
from dmdelta.silver.repair import standing
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.steady import SteadyTable, open_steady

TRIES = 10
POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ValidateRequest:
    """What to compare.

    Attributes:
        table: `schema.table`, with `*` and `?` for several.
        threads: connections that read the source at the same time.
        limit: rows of each table that are shown with their values.
        wait: seconds to wait for what the source has to land.
        fix: put silver right.
    """

    table: str = "*"
    source: str | None = None
    threads: int = 2
    limit: int = 20
    wait: float = 60.0
    fix: bool = False


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs.

    Attributes:
        key: its canonical text (`dmdelta.quality.canonical`).
        values: by column that differs, the source's and silver's text; None where there is no row.
    """

    kind: Kind
    key: str
    values: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Validated:
    """What comparing a table has found.

    Attributes:
        position: where in the log both sides were compared.
        rows, silver_rows: how many there are.
        not_looked_at: buckets of rows that differ, beyond those whose rows were compared one by one.
        uncompared: columns that only one side has, or whose type has no canonical text.
        differences: the first rows that differ, with their values.
        fixed: silver was put right.
    """

    source: str
    table: str
    position: Position
    rows: int
    silver_rows: int
    missing: int = 0
    extra: int = 0
    different: int = 0
    not_looked_at: int = 0
    uncompared: tuple[str, ...] = ()
    differences: tuple[RowDifference, ...] = ()
    fixed: bool = False

    @property
    def is_clean(self) -> bool:
        """Nothing differs, in all columns."""
        return not (self.missing or self.extra or self.different or self.not_looked_at or self.uncompared)


@dataclass(frozen=True, slots=True)
class _Found:
    """What sums and hashes have found; the fields are those of `Validated`."""

    rows: int
    silver_rows: int
    kinds: Mapping[str, Kind]
    not_looked_at: int


@dataclass(frozen=True, slots=True)
class TableValidation:
    """The comparison of one table."""

    task: Task
    side: SilverSide
    landing: LandingSource
    endpoint: Endpoint
    name: TableName
    request: ValidateRequest

    @property
    def replay(self) -> TableReplay:
        return TableReplay(self.task, self.side, self.name, lambda _: None)

    def run(self) -> Validated:
        target = self.side.table(self.name)
        for _ in range(TRIES):
            at = standing(self.task.spark, target)  # before the source is looked at: it is never ahead of it
            with open_steady(self.endpoint, self.name, self.side.flavor, self.request.threads) as table:
                position = self._landed(table)
                rows = self.replay.rows_as_of(at, position)
                if rows is not None:
                    return self._compare(table, position, rows)
            time.sleep(POLL_SECONDS)
        raise QualityError(
            f"silver does not come to where {'.'.join(self.name)} is", hint="run the task; compare in a quieter hour"
        )

    def _landed(self, table: SteadyTable) -> Position:
        """Where the source's table is, once all before it has landed."""
        deadline = time.monotonic() + self.request.wait
        while True:
            landed = newest_landed(self.task.spark, self.landing)
            if landed is None:
                raise QualityError(f"nothing of {self.side.source_id} has landed", hint="run the task first")
            position = Position(landed.end.epoch, table.position.binlog_file, table.position.offset)
            if landed.end >= position:
                return position
            if time.monotonic() > deadline:
                raise QualityError(
                    f"the source is at {position}, bronze ends at {landed.end}",
                    hint="is the task running? `dmdelta run SPEC --until-caught-up`, then compare",
                )
            time.sleep(POLL_SECONDS)

    def _compare(self, table: SteadyTable, position: Position, rows: DataFrame) -> Validated:
        comparison = plan_comparison(table.schema, rows.columns, self.side.flavor, table.rows)
        found = self._differing_rows(table, comparison, rows)
        documents, compared = self._documents(table, comparison, rows)
        values = self._values(table, comparison, rows, list(found.kinds)[: self.request.limit])
        differences = [
            *(RowDifference(kind, key, values.get(key, {})) for key, kind in found.kinds.items()),
            *(RowDifference(Kind.DIFFERENT, key, told) for key, told in documents.items() if key not in found.kinds),
        ]
        counts = Counter(difference.kind for difference in differences)
        fixes = self.request.fix and bool(differences)
        if fixes:
            keys = [difference.key for difference in differences]
            fix_rows(self.task, self.side, self.endpoint, comparison, table.schema, keys)
        names = {*comparison.columns, *compared}
        uncompared = tuple(column.name for column in table.schema.columns if column not in names)
        return Validated(
            self.side.source_id,
            ".".join(self.name),
            position,
            found.rows,
            found.silver_rows,
            counts[Kind.MISSING],
            counts[Kind.EXTRA],
            counts[Kind.DIFFERENT],
            found.not_looked_at,
            uncompared + self._only_in_silver(table, rows),
            tuple(differences[: self.request.limit]),
            fixes,
        )

    def _differing_rows(self, table: SteadyTable, comparison: Comparison, rows: DataFrame) -> _Found:
        """Sums of both sides, then the rows of the buckets whose sums differ."""
        source = add_sums(table.ask([(source_sums_query(comparison, table.name, part), ()) for part in table.parts]))
        silver = silver_sums(comparison, rows)
        suspects = plan_suspects(source, silver)
        kinds: dict[str, Kind] = {}
        if suspects.buckets:
            queries = [(source_rows_query(comparison, table.name, p, suspects.buckets), ()) for p in table.parts]
            told = [row for part in table.ask(queries) for row in part]
            kinds = differing_rows(told, silver_hashes(comparison, rows, suspects.buckets))
        counts = [sum(count for count, _ in sums.values()) for sums in (source, silver)]
        return _Found(counts[0], counts[1], kinds, suspects.left)

    def _only_in_silver(self, table: SteadyTable, rows: DataFrame) -> tuple[str, ...]:
        own = {column.name for column in (*table.schema.columns, *self.side.table(self.name).constants)}
        return tuple(name for name in rows.columns if name not in own and not name.startswith("_dm_"))

    def _documents(
        self, table: SteadyTable, comparison: Comparison, rows: DataFrame
    ) -> tuple[dict[str, dict[str, tuple[str | None, str | None]]], list[Column]]:
        """JSON documents that differ, and the columns of JSON that were compared."""
        columns = [column for column in table.schema.columns if column.type == "json" and column.name in rows.columns]
        if not columns or not table.schema.primary_key:
            return {}, []
        found: dict[str, dict[str, tuple[str | None, str | None]]] = {}
        for part in table.parts:
            (told,) = table.ask([(source_documents_query(comparison, columns, table.name, part), ())])
            found |= differing_documents(comparison, columns, rows, told)
        return found, columns

    def _values(
        self, table: SteadyTable, comparison: Comparison, rows: DataFrame, keys: list[str]
    ) -> dict[str, dict[str, tuple[str | None, str | None]]]:
        """By key and column that differs, both sides' texts."""
        if not keys:
            return {}
        queries = [(source_values_query(comparison, table.name, part, keys), keys) for part in table.parts]
        source = {str(row[0]): row[1:] for part in table.ask(queries) for row in part}
        silver = silver_values(comparison, rows, keys)
        nothing = (None,) * len(comparison.columns)
        found: dict[str, dict[str, tuple[str | None, str | None]]] = {}
        for key in keys:
            pairs = zip(source.get(key, nothing), silver.get(key, nothing), strict=True)
            named = zip((name for name, _ in comparison.values()), pairs, strict=True)
            found[key] = {name: pair for name, pair in named if pair[0] != pair[1]}
        return found
