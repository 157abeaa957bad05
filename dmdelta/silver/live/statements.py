"""The state of a source table after a statement, without applying it: what `follow_statement` does, as a query."""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from dmdelta.ddl.tracking.effects import Altered, Created, Dropped, Effect, Renamed, Truncated
from dmdelta.errors import SchemaError, UnsupportedSchemaChange
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.live.memory_changes import keeps_key
from dmdelta.silver.live.state import LiveState, no_rows, not_readable, refused
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.schema.evolution import older_than, plan_columns_after
from dmdelta.silver.schema.schema_ranges import SchemaRange


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements on a table in a range."""

    spark: SparkSession
    request: ApplyRequest

    def after(self, state: LiveState, piece: SchemaRange) -> LiveState:
        """The state after the statement at the end of a schema range.

        Raises:
            NotReadable: silver cannot apply it, or a query cannot.
            LakehouseError: silver or bronze cannot be read.
        """
        assert piece.then is not None
        name, at = self.request.name, piece.end
        if piece.then.refused:
            raise not_readable(name, f"a statement cannot be applied: {piece.then.refused}", at)
        for effect in piece.then.effects:
            try:
                state = self._after_effect(state, effect, at)
            except SchemaError as error:
                raise refused(name, error, at) from error
        return state

    def _after_effect(self, state: LiveState, effect: Effect, at: Position) -> LiveState:
        """
        Raises:
            SchemaError: silver cannot apply the effect, or a query cannot.
        """
        request = self.request
        if request.target.merged and not (isinstance(effect, Created) and state.is_empty):
            raise UnsupportedSchemaChange("a statement on a shard of a merged table is not in silver yet")
        if isinstance(effect, Created):
            if effect.schema is None:
                return LiveState(None)
            if request.target.merged:
                return state
            return LiveState(no_rows(self.spark, request.target.silver_schema(effect.schema)), is_empty=True)
        if state.rows is None:
            return state
        if isinstance(effect, Dropped):
            return LiveState(None)
        if isinstance(effect, Truncated):
            found = state.complete()
            assert found.rows is not None
            return replace(found, rows=found.rows.where(f"NOT ({older_than(at)})"))
        if isinstance(effect, Renamed):
            raise UnsupportedSchemaChange("an operator override cannot contain a RENAME")
        if isinstance(effect, Altered):
            return self._altered(state, effect)
        raise UnsupportedSchemaChange(effect.reason)

    def _altered(self, state: LiveState, effect: Altered) -> LiveState:
        request = self.request
        if request.context.rules.leave_statements_out:
            raise UnsupportedSchemaChange("filters or overrides exclude statements, and this one is not in silver yet")
        if not keeps_key(effect):
            state = state.complete()
        assert state.rows is not None
        columns = self._columns(state, effect)
        changes = state.changes.altered(tuple(columns)) if state.changes is not None else None
        return replace(state, rows=state.rows.selectExpr(*columns), changes=changes)

    def _columns(self, state: LiveState, effect: Altered) -> list[str]:
        """Silver's columns (SQL) after an ALTER.

        Raises:
            SchemaError: silver cannot apply it.
        """
        request = self.request
        assert state.rows is not None
        if request.mode is Mode.SAFE and not self._is_before(state.rows, effect):
            raise UnsupportedSchemaChange("it is unknown whether silver contains a statement that a snapshot overlaps")
        mariadb = request.context.flavor == "mariadb"
        columns, unknown = plan_columns_after(request.target.seen_change(effect), mariadb=mariadb)
        if unknown and not state.is_empty:
            found = state.complete()
            assert found.rows is not None
            with wrapped(request.target.place, "reading"):
                if not found.rows.isEmpty():
                    raise UnsupportedSchemaChange(unknown)
        return columns

    def _is_before(self, rows: DataFrame, effect: Altered) -> bool:
        """Whether the columns of silver show that it does not contain an ALTER yet."""
        target = self.request.target
        before = no_rows(self.spark, target.silver_schema(effect.before))
        shapes = [{field.name: field.dataType for field in frame.schema.fields} for frame in (rows, before)]
        return shapes[0] == shapes[1] and effect.reused_name is None
