"""The tables of a source that the validator can compare, and those that it cannot, with the reason."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.validation.row_compare import RowComparer
from dmdelta.errors import ConfigError, LakehouseError, Retryable, SchemaError, SourceError
from dmdelta.lakehouse.spark_errors import is_absent, wrapped
from dmdelta.logging import get_logger
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.quality.row_compare import RowLook, TableFacts, plan_look
from dmdelta.rules.comparable_rows import plan_comparable_rows
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.table.shard_rows import OwnRows, own_rows
from dmdelta.silver.table.table import Condition, silver_condition
from dmdelta.source.catalog import read_schemas

if TYPE_CHECKING:
    from pymysql.connections import Connection

log = get_logger(__name__)
_PART = "(a part)"
NOTHING = ""
"""The reason for a table that neither side has: it is not reported."""


@dataclass(slots=True)
class ComparableTables:
    """
    Attributes:
        fast: only compare whether rows exist.
        skipped: tables (`schema.table`), columns and parts of the log that are not compared, with the reason.
        stop: cancels the comparison.
    """

    spark: SparkSession
    context: SilverContext
    fast: bool
    skipped: dict[str, str] = field(default_factory=dict)
    stop: StopRequest = field(default_factory=StopRequest)
    _connection: "Connection[Any] | None" = None
    _comparers: dict[TableName, RowComparer | str] = field(default_factory=dict)

    @property
    def connection(self) -> "Connection[Any]":
        assert self._connection is not None, "connect first"
        return self._connection

    def connect(self, connection: "Connection[Any]", stop: StopRequest) -> None:
        """Use a connection to the source from now on, until a stop is requested."""
        self._connection, self.stop = connection, stop
        self._comparers.clear()

    def forget(self, name: TableName) -> None:
        """Discard a table's schema, so that the next comparison reads it again."""
        self._comparers.pop(name, None)

    def open(self, names: Collection[TableName]) -> None:
        """Read the schemas of tables that are not known yet, in one query.

        Raises:
            LakehouseError, SourceError, SourceUnavailable: silver or the source cannot be read.
        """
        missing = set(names) - self._comparers.keys()
        if not missing:
            return
        read = read_schemas(self.connection, lambda schema, table: (schema, table) in missing)
        schemas = {schema.name: schema for schema in read}
        for name in missing:
            schema = schemas.get(name)
            planned = _plan_comparison(self.spark, self.context, name, schema, fast=self.fast)
            if isinstance(planned, str) or schema is None:
                self._comparers[name] = str(planned)
            else:
                self._comparers[name] = RowComparer(self.spark, self.context, self.connection, schema, planned)

    def use(self, name: TableName, work: Callable[[RowComparer], None], what: str) -> None:
        """Compare rows of a table; on an error, retry once with its current schema, then report it as skipped.

        Args:
            what: describes the rows that are compared.

        Raises:
            DmdeltaError: a transient failure, or any error after a stop is requested.
        """
        for is_last in (False, True):
            self.open({name})
            comparer = self._comparer_of(name)
            if comparer is None:
                return
            try:
                work(comparer)
            except (LakehouseError, SchemaError, SourceError) as error:
                if isinstance(error, Retryable) or self.stop.requested:
                    raise
                self.forget(name)
                if is_last:
                    self._skip((*name, _PART), f"{what}: {error.message}")
            else:
                return

    def _comparer_of(self, name: TableName) -> RowComparer | None:
        """The comparer of a table; None if it cannot be compared, which is reported as skipped."""
        comparer = self._comparers[name]
        if not isinstance(comparer, str):
            uncompared = {".".join((*name, column)): column for column in comparer.look.uncompared}
            self._unskip(name, {*uncompared, ".".join((*name, _PART))})
            for column in uncompared.values():
                self._skip((*name, column), "the column has no canonical text on both sides, or silver lacks it")
            return comparer
        if comparer == NOTHING:
            self._unskip(name)
        else:
            self._skip(name, comparer)
        self.forget(name)  # the next comparison may find another schema
        return None

    def _unskip(self, name: TableName, still: Collection[str] = ()) -> None:
        """Stop reporting a table and its columns as skipped, except those in `still`."""
        own = ".".join(name)
        for shown in [each for each in self.skipped if each == own or each.startswith(f"{own}.")]:
            if shown not in still:
                self.skipped.pop(shown)

    def _skip(self, name: Sequence[str], why: str) -> None:
        shown = ".".join(name)
        if self.skipped.get(shown) != why:
            log.warning("not validated", source=self.context.source_id, table=shown, why=why)
            self.skipped[shown] = why


def _facts(spark: SparkSession, context: SilverContext, name: TableName, schema: TableSchema | None) -> TableFacts:
    target, compared = context.table(name), plan_comparable_rows(context.rules, name)
    if silver_condition(spark, target) is not Condition.PRESENT:
        return TableFacts(schema, None, compared)
    with wrapped(target.place, "reading"):
        try:
            rows = spark.table(target.place)
            own = own_rows(target, schema, rows) if schema is not None else OwnRows(rows)
            return TableFacts(schema, tuple(own.rows.columns), compared, own.absent)
        except Exception as error:
            if is_absent(error):
                return TableFacts(schema, None, compared)
            raise


def _plan_comparison(
    spark: SparkSession, context: SilverContext, name: TableName, schema: TableSchema | None, *, fast: bool
) -> RowLook | str:
    facts = _facts(spark, context, name, schema)
    if schema is None and facts.columns is None:
        return NOTHING
    try:
        return plan_look(facts, context.flavor, fast=fast)
    except ConfigError as error:
        return error.message
