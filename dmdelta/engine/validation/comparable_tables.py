"""The tables of a source as they are looked at, and those that are not, with the reason."""

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
from dmdelta.silver.table.own_rows import OwnRows, own_rows
from dmdelta.silver.table.table import Condition, silver_condition
from dmdelta.source.catalog import read_schemas

if TYPE_CHECKING:
    from pymysql.connections import Connection

log = get_logger(__name__)
_PART = "(a part)"
NOTHING = ""
"""Why a table is not looked at that neither side has: there is nothing to say of it."""


@dataclass(slots=True)
class ComparableTables:
    """
    Attributes:
        fast: only whether rows are there.
        skipped: tables (`schema.table`), columns of theirs and parts of their log that are not looked at, and why.
        stop: what is under way is given up when it comes.
    """

    spark: SparkSession
    side: SilverContext
    fast: bool
    skipped: dict[str, str] = field(default_factory=dict)
    stop: StopRequest = field(default_factory=StopRequest)
    _connection: "Connection[Any] | None" = None
    _looks: dict[TableName, RowComparer | str] = field(default_factory=dict)

    @property
    def connection(self) -> "Connection[Any]":
        assert self._connection is not None, "connect first"
        return self._connection

    def connect(self, connection: "Connection[Any]", stop: StopRequest) -> None:
        """Go on with a connection to the source, until a stop."""
        self._connection, self.stop = connection, stop
        self._looks.clear()

    def forget(self, name: TableName) -> None:
        """Ask anew for a table's structure when it is looked at next."""
        self._looks.pop(name, None)

    def open(self, names: Collection[TableName]) -> None:
        """Ask for the structures of tables that are not known yet, all at once.

        Raises:
            LakehouseError, SourceError, SourceUnavailable: one of the sides cannot be read.
        """
        missing = set(names) - self._looks.keys()
        if not missing:
            return
        found = read_schemas(self.connection, lambda schema, table: (schema, table) in missing)
        schemas = {schema.name: schema for schema in found}
        for name in missing:
            schema = schemas.get(name)
            planned = _plan_table_look(self.spark, self.side, name, schema, fast=self.fast)
            if isinstance(planned, str) or schema is None:
                self._looks[name] = str(planned)
            else:
                self._looks[name] = RowComparer(self.spark, self.side, self.connection, schema, planned)

    def use(self, name: TableName, work: Callable[[RowComparer], None], what: str) -> None:
        """Look at a table. If that fails, once more with its structure as it is by now; then it is named.

        Args:
            what: is looked at, in words.

        Raises:
            DmdeltaError: what may pass, or it was given up.
        """
        for is_last in (False, True):
            self.open({name})
            look = self._look_of(name)
            if look is None:
                return
            try:
                work(look)
            except (LakehouseError, SchemaError, SourceError) as error:
                if isinstance(error, Retryable) or self.stop.requested:
                    raise
                self.forget(name)
                if is_last:
                    self._skip((*name, _PART), f"{what}: {error.message}")
            else:
                return

    def _look_of(self, name: TableName) -> RowComparer | None:
        """How a table is looked at; None, and named as such, if it is not."""
        look = self._looks[name]
        if not isinstance(look, str):
            left = {".".join((*name, column)): column for column in look.look.uncompared}
            self._unskip(name, {*left, ".".join((*name, _PART))})
            for column in left.values():
                self._skip((*name, column), "the column has no text that both sides write alike, or silver lacks it")
            return look
        if look == NOTHING:
            self._unskip(name)
        else:
            self._skip(name, look)
        self.forget(name)  # it may be otherwise next time
        return None

    def _unskip(self, name: TableName, still: Collection[str] = ()) -> None:
        """Say no longer that a table or a column of it is not looked at, but for those that `still` are."""
        own = ".".join(name)
        for shown in [each for each in self.skipped if each == own or each.startswith(f"{own}.")]:
            if shown not in still:
                self.skipped.pop(shown)

    def _skip(self, name: Sequence[str], why: str) -> None:
        shown = ".".join(name)
        if self.skipped.get(shown) != why:
            log.warning("not validated", source=self.side.source_id, table=shown, why=why)
            self.skipped[shown] = why


def _facts(spark: SparkSession, side: SilverContext, name: TableName, schema: TableSchema | None) -> TableFacts:
    target, compared = side.table(name), plan_comparable_rows(side.rules, name)
    if silver_condition(spark, target) is not Condition.PRESENT:
        return TableFacts(schema, None, compared)
    with wrapped(target.place, "looking at"):
        try:
            rows = spark.table(target.place)
            own = own_rows(target, schema, rows) if schema is not None else OwnRows(rows)
            return TableFacts(schema, tuple(own.rows.columns), compared, own.absent)
        except Exception as error:
            if is_absent(error):
                return TableFacts(schema, None, compared)
            raise


def _plan_table_look(
    spark: SparkSession, side: SilverContext, name: TableName, schema: TableSchema | None, *, fast: bool
) -> RowLook | str:
    facts = _facts(spark, side, name, schema)
    if schema is None and facts.columns is None:
        return NOTHING
    try:
        return plan_look(facts, side.flavor, fast=fast)
    except ConfigError as error:
        return error.message
