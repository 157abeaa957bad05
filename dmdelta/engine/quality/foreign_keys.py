"""Evaluates foreign keys of the source and of contracts in silver: finds rows that refer to a missing row."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from dmdelta.engine.history.states import PastState, ReplayedHistory, SilverHistory
from dmdelta.errors import QualityError, SourceError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.lakehouse.tables import table_state
from dmdelta.model.schema import ForeignKey, TableName
from dmdelta.model.spark_sql import quote
from dmdelta.quality.references import Reference, count_orphans, orphans, plan_reference, referring
from dmdelta.quality.results import SAMPLES, Result, plain
from dmdelta.quality.suite import Suite
from dmdelta.silver.apply.quarantine import Quarantine, silver_rows_of
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.deletions import removed_keys
from dmdelta.silver.history.range_changes import schema_at_end
from dmdelta.silver.schema.evolution import older_than
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.foreign_keys import read_foreign_keys


@dataclass(frozen=True, slots=True)
class Child:
    """A table whose foreign keys are evaluated.

    Attributes:
        touched: the rows whose newest version is from the evaluated range; None: all rows are evaluated.
    """

    state: PastState
    touched: DataFrame | None

    @property
    def request(self) -> ApplyRequest:
        return self.state.request

    @property
    def rows(self) -> DataFrame:
        return self.state.rows


@dataclass(frozen=True, slots=True)
class ForeignKeyEvaluation:
    """The evaluation of the foreign keys of one source's tables.

    Attributes:
        context: the silver tables of the source.
        history: provides the states of its tables.
        endpoint: the source's endpoint; None for an archive, which has no foreign keys.
        sources: the source tables that are routed to each silver table, by its name.
    """

    spark: SparkSession
    context: SilverContext
    history: SilverHistory | ReplayedHistory
    endpoint: Endpoint | None
    sources: Mapping[TableName, Sequence[TableName]]

    def evaluate(self, suite: Suite, child: Child) -> Iterator[Result]:
        """Evaluate the foreign keys of the contract, and those of the source that the contract lacks.

        Raises:
            QualityError: silver's history does not go back to the request's end.
            DmdeltaError: bronze, silver or the source cannot be read.
        """
        promised = suite.foreign_keys(child.request.target.route.name)
        for key in promised:
            yield self._evaluate(key, child, promised=True)
        if self.endpoint is None:
            return
        try:
            enforced = read_foreign_keys(self.endpoint, child.request.name)
        except SourceError as error:
            note = f"the source does not report them: {error.message}"
            yield Result("foreign keys", "warn", success=False, note=note)
            return
        known = {(key.parent, key.columns) for key in promised}
        for key in enforced:
            parent = self.context.table(key.parent).route.name
            if (parent, key.columns) not in known:
                yield self._evaluate(replace(key, parent=parent), child, promised=False)

    def _evaluate(self, key: ForeignKey, child: Child, *, promised: bool) -> Result:
        name = f"foreign key {key.name}"
        try:
            parents = self._parents(key, child)
        except QualityError as error:  # bronze, or silver's history, does not go back so far
            return Result(name, "warn", success=not promised, note=f"not evaluated: {error.message}")
        if parents is None:
            verb = "" if promised else "not evaluated: "
            return Result(name, "warn", success=not promised, note=f"{verb}{'.'.join(key.parent)} is not in silver")
        lacking = [
            f"{'.'.join(table)} has no column {column}"
            for table, column, columns in (
                *((child.request.target.route.name, own, child.rows.columns) for own, _ in key.columns),
                *((key.parent, theirs, parents.rows.columns) for _, theirs in key.columns),
            )
            if column not in columns
        ]
        if lacking:
            # The source reports its current keys: an earlier state of a table may lack their columns.
            verb = "" if promised else "not evaluated: "
            return Result(name, "warn", success=not promised, note=f"{verb}{'; '.join(lacking)}")
        reference = plan_reference(key, child.state.schema)
        result = _result(name, reference, self._attributable(reference, child, parents), parents, child.state.keys)
        if not result.success and reference.undecidable:
            return Result(name, "warn", success=not promised, note=f"not evaluated: {reference.undecidable}")
        return result

    def _parents(self, key: ForeignKey, child: Child) -> "_Parents | None":
        sources = self.sources.get(key.parent, ())
        if not sources:
            place = self.context.lakehouse.silver(*key.parent)
            if table_state(self.spark, place) is None:
                return None
            # The positions of another source's log cannot be compared with this one's.
            return _Parents(self.spark.table(place), note="compared with the current rows of another source's table")
        rows = self.history.parent_rows(sources, child.request)
        if rows is None:
            return None
        requests = [replace(child.request, schema=schema, table=table) for schema, table in sources]
        return _Parents(rows, self._quarantined(requests, rows), tuple(requests))

    def _quarantined(self, parents: Sequence[ApplyRequest], rows: DataFrame) -> DataFrame | None:
        """Rows that the source has and silver lacks because they fail an expectation."""
        quarantined = None
        for request in parents:
            quarantine = Quarantine.of(request.target)
            schema = schema_at_end(self.spark, request) if quarantine.has_rows(self.spark) else None
            if schema is None:
                continue
            old = quarantine.rows(self.spark).where(older_than(request.end))
            kept = silver_rows_of(old, schema).select(*map(quote, rows.columns))
            quarantined = kept if quarantined is None else quarantined.unionAll(kept)
        return quarantined

    def _attributable(self, reference: Reference, child: Child, parents: "_Parents") -> DataFrame:
        """The rows that a range wrote, and those whose parent it deleted; all rows if these cannot be listed."""
        begin = child.request.begin
        if child.touched is None or len(parents.requests) != 1:
            return child.rows
        (parent,) = parents.requests
        schema = schema_at_end(self.spark, parent)
        referenced = tuple(theirs for _, theirs in reference.key.columns)
        if schema is None or parent.target.merged or set(schema.primary_key) != set(referenced):
            return child.rows
        removed = removed_keys(self.spark, parent, schema)
        if removed is None:
            return child.rows
        if reference.undecidable:  # the rows that refer to a removed one cannot be listed
            return child.touched if removed.isEmpty() else child.rows
        return child.touched.unionAll(referring(child.rows.where(older_than(begin)), removed, reference, "left_semi"))


@dataclass(frozen=True, slots=True)
class _Parents:
    """A referenced silver table.

    Attributes:
        rows: its rows at the position of the evaluation.
        quarantined: further rows that the source has; None: there are none.
        requests: the source tables of the rows; empty for another source's table.
    """

    rows: DataFrame
    quarantined: DataFrame | None = None
    requests: tuple[ApplyRequest, ...] = ()
    note: str | None = None


def _result(name: str, reference: Reference, rows: DataFrame, parents: _Parents, keys: Sequence[str]) -> Result:
    note = parents.note
    with wrapped("silver", "reading"):
        evaluated, count, waiting = count_orphans(rows, parents.rows, parents.quarantined, reference)
        if waiting:
            note = f"{waiting:,} more refer to rows that are quarantined"
        failing = orphans(rows, parents.rows, reference)
        if parents.quarantined is not None:
            failing = orphans(failing, parents.quarantined, reference)
        sampled = failing.select(*map(quote, keys)).limit(SAMPLES).collect() if count and keys else []
    samples = tuple({column: plain(row[column]) for column in keys} for row in sampled)
    return Result(
        expectation=name,
        on_failure="warn",
        success=not count,
        evaluated=evaluated,
        unexpected=count,
        samples=samples,
        note=note,
    )
