"""The target's tables as the sink knows them: read when first needed, made where they are missing, forgotten at DDL."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pymysql

from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.schema import ConstantColumn, TableName, TableSchema
from dmdelta.rules import Route
from dmdelta.sink.connection import TargetServer, ask, code_of, connect, execute, is_retryable, translated
from dmdelta.sink.creation import create_table
from dmdelta.sink.plan import TablePlan, plan_table
from dmdelta.sink.statement_plan import ALREADY, IN_DOUBT
from dmdelta.sink.statements import quoted
from dmdelta.sink.target import TargetTable, read_target

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

    def plan(self, source: TableName, version: int, schema: TableSchema, route: Route) -> TablePlan:
        """How rows of a source table under one structure are written; makes the table if it is missing."""
        known = self._plans.get((source, version))
        if known is None:
            constants = tuple(ConstantColumn(name, "varchar", value=value) for name, value in route.extracted)
            seen = replace(schema, schema=route.schema, table=route.table, columns=(*schema.columns, *constants))
            target = self._known.get(route.name) or self._open_table(seen, merged=route.merged)
            known = plan_table(source, seen, target, foreign_keys=self.server.foreign_key_checks)
            self._plans[source, version] = known
            log.info("sink table", table=known.shape.table, keyed=bool(known.identity), whole=known.whole)
        return known

    def has(self, name: TableName) -> bool:
        """Whether the table is there."""
        return self._ask_table(name) is not None

    def make_database(self, name: str) -> None:
        """Make a database if it is not there."""
        self._execute(f"CREATE DATABASE IF NOT EXISTS {quoted(name)}")

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

    def forget(self) -> None:
        """Structures have changed."""
        self._known.clear()
        self._plans.clear()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open_table(self, schema: TableSchema, *, merged: bool) -> TargetTable:
        target = self._ask_table(schema.name)
        if target is None:
            reach(CrashPoint.SINK_BEFORE_CREATE)
            self.make_database(schema.schema)
            self._execute(create_table(schema))
            reach(CrashPoint.SINK_AFTER_CREATE)
            log.info("table made in the target", table=quoted(*schema.name))
            target = self._ask_table(schema.name)
            assert target is not None
        if not merged and not self._rows(f"SELECT 1 FROM {quoted(*schema.name)} LIMIT 1"):
            self.fresh.add(schema.name)
        self._known[schema.name] = target
        return target

    def _ask_table(self, name: TableName) -> TargetTable | None:
        return read_target(self._rows, *name)

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
