"""The target's tables as the sink knows them: read when first needed, made where they are missing, forgotten at DDL."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pymysql

from dmdelta.errors import SinkError
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.schema import ConstantColumn, TableName, TableSchema
from dmdelta.rules import Route
from dmdelta.sink.connection import TargetServer, ask, code_of, connect, execute, is_retryable, translated
from dmdelta.sink.creation import create_table
from dmdelta.sink.plan import TablePlan, plan_table
from dmdelta.sink.statement_plan import ALREADY, IN_DOUBT, STRANGE
from dmdelta.sink.statements import quoted
from dmdelta.sink.target import TargetTable, read_cascades, read_collations, read_target

if TYPE_CHECKING:
    from pymysql.connections import Connection

log = get_logger(__name__)
ATTEMPTS = 10


@dataclass(slots=True)
class Tables:
    """For one thread. Every method may raise SinkError: the target refuses or does not answer.

    Attributes:
        fresh: tables without a row when they were first looked at in this run: nothing was executed on them before.
    """

    server: TargetServer
    fresh: set[TableName] = field(default_factory=set)
    _connection: "Connection[Any] | None" = None
    _known: dict[TableName, TargetTable] = field(default_factory=dict)
    _plans: dict[tuple[TableName, int], TablePlan] = field(default_factory=dict)
    _cascades: dict[TableName, str] | None = None
    _collations: frozenset[str] = frozenset()

    def plan(self, source: TableName, version: int, schema: TableSchema, route: Route) -> TablePlan:
        """How rows of a source table under one structure are written; makes the table if it is missing."""
        known = self._plans.get((source, version))
        if known is None:
            constants = tuple(ConstantColumn(name, "varchar", value=value) for name, value in route.extracted)
            seen = replace(schema, schema=route.schema, table=route.table, columns=(*schema.columns, *constants))
            target = self._known.get(route.name) or self._open_table(seen, merged=route.merged)
            checks = self.server.foreign_key_checks
            cascades = self._joined_by_cascades().get(target.name, "") if checks else ""
            known = plan_table(source, seen, target, foreign_keys=checks, cascades=cascades, tidb=self.server.tidb)
            self._plans[source, version] = known
            log.info("sink table", table=known.shape.table, keyed=bool(known.identity), whole=known.whole)
        return known

    def has(self, name: TableName) -> bool:
        """Whether the table is there."""
        return self._ask_table(name) is not None

    def change(self, sql: str, *, in_doubt: bool) -> None:
        """Execute a statement that changes a structure; that it is as it should be already is no error.

        Args:
            in_doubt: it may have been executed before.
        """
        tolerated = IN_DOUBT if in_doubt else ALREADY
        for failures in range(1, ATTEMPTS + 1):
            try:
                execute(self._open(), sql)
                break
            except (pymysql.err.MySQLError, OSError) as error:
                if code_of(error) in tolerated:
                    log.warning("the target was so already", code=code_of(error))
                    break
                if not is_retryable(error) or failures == ATTEMPTS:
                    raise translated(error, f"{self.server}, statement {sql[:200]!r},") from error
                self.close()
                in_doubt, tolerated = True, IN_DOUBT
        self.forget()

    def make(self, sql: str, database: str, *, in_doubt: bool) -> None:
        """Execute a CREATE TABLE. One in words that the target does not have is left out: as the log describes it, the
        table is made with its first row.

        Args:
            database: the table's, made if it is not there.
            in_doubt: it may have been executed before.
        """
        self._execute(f"CREATE DATABASE IF NOT EXISTS {quoted(database)}")
        try:
            self.change(sql, in_doubt=in_doubt)
        except SinkError as error:
            if error.context.get("code") not in STRANGE:
                raise
            log.warning("the target cannot make a table: its first row does, without indexes", why=error.message)

    def forget(self) -> None:
        """Structures have changed."""
        self._known.clear()
        self._plans.clear()
        self._cascades = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open_table(self, schema: TableSchema, *, merged: bool) -> TargetTable:
        target = self._ask_table(schema.name)
        if target is None:
            reach(CrashPoint.SINK_BEFORE_CREATE)
            self._execute(f"CREATE DATABASE IF NOT EXISTS {quoted(schema.schema)}")
            self._execute(create_table(schema, self._collations_there(), tidb=self.server.tidb))
            reach(CrashPoint.SINK_AFTER_CREATE)
            log.info("table made in the target", table=quoted(*schema.name))
            target = self._ask_table(schema.name)
            assert target is not None
        if not merged and not self._rows(f"SELECT 1 FROM {quoted(*schema.name)} LIMIT 1"):
            self.fresh.add(schema.name)
        self._known[schema.name] = target
        return target

    def _ask_table(self, name: TableName) -> TargetTable | None:
        target = read_target(self._rows, *name)
        if target is not None and target.name != name and self._keeps_case():
            raise SinkError(
                f"the target takes the table {'.'.join(name)} for its {'.'.join(target.name)}",
                hint="give one of them another name with a route: the target does not mind case",
            )
        return target

    def _joined_by_cascades(self) -> dict[TableName, str]:
        if self._cascades is None:
            self._cascades = read_cascades(self._rows)
        return self._cascades

    def _collations_there(self) -> frozenset[str]:
        if not self._collations:
            self._collations = read_collations(self._rows)
        return self._collations

    def _keeps_case(self) -> bool:
        """Names are kept as they are written and compared without case: TiDB knows nothing else."""
        ((setting,),) = self._rows("SELECT @@lower_case_table_names")
        return int(setting) == 2

    def _rows(self, sql: str, arguments: tuple[Any, ...] | None = None) -> list[tuple[Any, ...]]:
        try:
            return ask(self._open(), sql, arguments)
        except (pymysql.err.MySQLError, OSError) as error:
            self.close()
            raise translated(error, str(self.server)) from error

    def _execute(self, sql: str) -> None:
        try:
            execute(self._open(), sql)
        except (pymysql.err.MySQLError, OSError) as error:
            self.close()
            raise translated(error, str(self.server)) from error

    def _open(self) -> "Connection[Any]":
        if self._connection is None:
            self._connection = connect(self.server)
        return self._connection
