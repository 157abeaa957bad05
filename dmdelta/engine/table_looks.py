"""The tables of a source as they are looked at, and those that are not, with the reason."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from dmdelta.engine.requests import SilverSide
from dmdelta.engine.stop import StopRequest
from dmdelta.engine.table_look import TableLook
from dmdelta.errors import LakehouseError, Retryable, SchemaError, SourceError
from dmdelta.lakehouse.foreign import is_absent, wrapped
from dmdelta.logging import get_logger
from dmdelta.model.schema import TableName
from dmdelta.quality.row_look import TableFacts, plan_look
from dmdelta.rules.filters import Action
from dmdelta.silver.table import Condition, silver_condition
from dmdelta.source.catalog import read_schemas

if TYPE_CHECKING:
    from pymysql.connections import Connection

log = get_logger(__name__)
_PART = "(a part)"
NOTHING = ""
"""Why a table is not looked at that neither side has: there is nothing to say of it."""


@dataclass(slots=True)
class TableLooks:
    """
    Attributes:
        fast: only whether rows are there.
        skipped: tables (`schema.table`), columns of theirs and parts of their log that are not looked at, and why.
        stop: what is under way is given up when it comes.
    """

    spark: SparkSession
    side: SilverSide
    fast: bool
    skipped: dict[str, str] = field(default_factory=dict)
    stop: StopRequest = field(default_factory=StopRequest)
    _connection: "Connection[Any] | None" = None
    _looks: dict[TableName, TableLook | str] = field(default_factory=dict)

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
            merged, schema = self.side.table(name).merged, schemas.get(name)
            columns = None if merged else _silver_columns(self.spark, self.side, name)
            facts = TableFacts(merged, _is_filtered(self.side, name), schema, columns)
            gone = schema is None and columns is None
            planned = NOTHING if gone else plan_look(facts, self.side.flavor, fast=self.fast)
            if isinstance(planned, str) or schema is None:
                self._looks[name] = str(planned)
            else:
                self._looks[name] = TableLook(self.spark, self.side, self.connection, schema, planned)

    def use(self, name: TableName, work: Callable[[TableLook], None], what: str) -> None:
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

    def _look_of(self, name: TableName) -> TableLook | None:
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


def _silver_columns(spark: SparkSession, side: SilverSide, name: TableName) -> tuple[str, ...] | None:
    target = side.table(name)
    if silver_condition(spark, target) is not Condition.PRESENT:
        return None
    with wrapped(target.place, "looking at"):
        try:
            return tuple(spark.table(target.place).columns)
        except Exception as error:
            if is_absent(error):
                return None
            raise


def _is_filtered(side: SilverSide, name: TableName) -> bool:
    expressions = {(rule.schema_.lower(), rule.table.lower()) for rule in side.rules.expressions}
    events = set(side.rules.row_events(*name).values())
    return (name[0].lower(), name[1].lower()) in expressions or Action.IGNORE in events
