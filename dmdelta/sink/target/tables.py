"""The target's tables: read when first needed, created if missing, reread after DDL."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import pymysql

from dmdelta.ddl.parse.defaults import altered_table
from dmdelta.ddl.parse.session import without_nulls
from dmdelta.errors import SinkError
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import Column, ConstantColumn, TableName, TableSchema
from dmdelta.rules import Route
from dmdelta.sink.plan.creation import ColumnChange, add_columns, column_statement, create_table
from dmdelta.sink.plan.ddl import ALREADY, IN_DOUBT, STRANGE
from dmdelta.sink.plan.foreign_keys import ALONE, ForeignKeys, read_foreign_keys
from dmdelta.sink.plan.repetition import assert_repeatable
from dmdelta.sink.plan.single_actions import Already, Rest, plan_rest
from dmdelta.sink.plan.table_mapping import TablePlan, plan_table
from dmdelta.sink.plan.target_table import PRIMARY, TargetTable, read_collations, read_target
from dmdelta.sink.target.connection import REFUSED, TARGET_RETRY, TargetServer, ask, code_of, execute
from dmdelta.sink.target.metadata import FLUSHER, Metadata
from dmdelta.sink.target.target_session import TargetSession

if TYPE_CHECKING:
    from pymysql.connections import Connection

log = get_logger(__name__)
Result = TypeVar("Result")
RETRY = replace(TARGET_RETRY, attempts=10)
"""About 30 s: a stop waits for the thread that executes statements."""
_NULL_IN_KEY = 1171


@dataclass(slots=True)
class Tables:
    """Not thread-safe. Every method may raise SinkError: the target refuses a statement or does not answer.

    Attributes:
        metadata: its owner row is checked before anything is repeated; None: no other sink can take over.
        fresh: tables that were empty when first read in this run: nothing was executed on them before.
    """

    server: TargetServer
    metadata: Metadata | None = None
    fresh: set[TableName] = field(default_factory=set)
    _session: TargetSession = field(init=False)
    _known: dict[TableName, TargetTable] = field(default_factory=dict)
    _plans: dict[tuple[TableName, int], TablePlan] = field(default_factory=dict)
    _foreign_keys: ForeignKeys | None = None
    _collations: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._session = TargetSession(self.server, autocommit=True, retry=RETRY)

    def plan(
        self,
        source: TableName,
        version: int,
        schema: TableSchema,
        route: Route,
        *,
        reloaded: bool = False,
        loaded: bool = False,
    ) -> TablePlan:
        """How rows of a source table under one structure are written; creates what is missing: the table, and columns
        of an empty table.

        Args:
            reloaded: the table's rows are replaced next: it gets the columns that it lacks, whether it is empty or not.
            loaded: the rows are those of a full load: a merged table gets the columns that only this shard has.
        """
        known = self._plans.get((source, version)) if not reloaded else None
        if known is None:
            constants = tuple(ConstantColumn(name, "varchar", value=value) for name, value in route.extracted)
            routed = replace(schema, schema=route.schema, table=route.table, columns=(*schema.columns, *constants))
            opened = self._known.get(route.name) if not reloaded else None
            target = opened or self._open_table(routed, merged=route.merged, reloaded=reloaded)
            if loaded and route.merged:
                target = self._known[route.name] = self._with_columns(schema.columns, target)
            checks = self.server.foreign_key_checks
            connected = self._checked_foreign_keys().of(target.name) if checks else ALONE
            known = plan_table(source, routed, target, foreign_keys=checks, connected=connected, tidb=self.server.tidb)
            self._plans[source, version] = known
            log.info("sink table", table=known.shape.table, keyed=bool(known.identity), whole=known.whole)
            if schema.primary_key and not known.identity:
                log.warning(
                    "the target's table lacks a key: rows are found by all columns, and safe mode may duplicate them",
                    table=known.shape.table,
                    fix="ALTER TABLE … ADD PRIMARY KEY in the target, as the source has",
                )
        return known

    def has(self, name: TableName) -> bool:
        """Whether the table exists."""
        return self._read_table(name) is not None

    def columns(self, name: TableName) -> tuple[str, ...]:
        """The names of a table's columns, as they are now; empty if it does not exist."""
        target = self._read_table(name)
        return tuple(column.name for column in target.columns.values()) if target is not None else ()

    def change_columns(self, change: ColumnChange, name: TableName, columns: Sequence[Column]) -> None:
        """Add columns to a table, or give them these types; they allow NULL."""
        for column in columns:
            one = TableSchema(*name, (column,))
            sql = column_statement(change, one, self._target_collations(), tidb=self.server.tidb)
            self.change(sql, in_doubt=True)

    def change(self, sql: str, *, in_doubt: bool, shared: bool = False) -> None:
        """Execute DDL; if the target already is in the resulting state, that is no error. If it already has the effect
        of some actions of a statement, it executes the others.

        Args:
            in_doubt: it may have been executed before.
            shared: the same statement of another source table may have been executed.
        """
        try:
            already = self._change(sql, in_doubt=in_doubt)
        except SinkError as error:
            if error.context.get("code") != _NULL_IN_KEY or (plain := self._without_nulls(sql)) == sql:
                raise
            self.change(plain, in_doubt=in_doubt, shared=shared)
            return
        if already is not None:
            name, _ = altered_table(sql, "") or (None, ())
            columns = self.columns(name) if name is not None else ()
            rest = plan_rest(sql, replace(already, shared=shared), columns)
            _log_rest(rest, already)
            for one in rest.statements:
                self.change(one, in_doubt=already.in_doubt, shared=shared)
                reach(CrashPoint.SINK_BETWEEN_ACTIONS)
        self.forget()

    def _change(self, sql: str, *, in_doubt: bool) -> Already | None:
        """Execute a statement; returns why the target refuses it if that may be because of its effect."""
        sent = in_doubt

        def act(failures: int) -> Already | None:
            nonlocal sent
            connection, doubt = self._connection(failures), sent
            if doubt:
                assert_repeatable(sql)
            sent = True
            try:
                execute(connection, sql)
            except pymysql.err.MySQLError as error:
                if code_of(error) not in (IN_DOUBT if doubt else ALREADY):
                    sent = doubt or code_of(error) not in REFUSED
                    raise
                return Already(code_of(error), doubt)
            return None

        return self._session.attempt(act, f"{self.server}, statement {sql[:200]!r},")

    def make(self, sql: str, database: str, *, in_doubt: bool) -> None:
        """Execute a CREATE TABLE. If the target does not support it, it is skipped: the table is then created with its
        first row, from the structure in the log.

        Args:
            database: the table's, created if it does not exist.
            in_doubt: it may have been executed before.
        """
        self._execute(f"CREATE DATABASE IF NOT EXISTS {quoted_name(database)}")
        try:
            self.change(sql, in_doubt=in_doubt)
        except SinkError as error:
            if error.context.get("code") not in STRANGE:
                raise
            log.warning(
                "table not supported by the target: it is created with its first row, without indexes",
                why=error.message,
            )

    def forget(self) -> None:
        """Forget the structures: they have changed."""
        self._known.clear()
        self._plans.clear()
        self._foreign_keys = None

    def close(self) -> None:
        """Close the connection; the next statement opens another one."""
        self._session.close()

    def cut_off(self) -> None:
        """End the session of a statement that does not end; no other is executed. Another thread may call it."""
        self._session.cut_off()

    def _without_nulls(self, sql: str) -> str:
        """An ALTER TABLE without NULL for TIMESTAMPs of the target's primary key."""
        name, _ = altered_table(sql, "") or (None, ())
        target = self._read_table(name) if name is not None else None
        keys = [key for key in target.keys if key.name == PRIMARY] if target is not None else []
        return without_nulls(sql, {column.lower() for key in keys for column, _ in key.parts if column})

    def _open_table(self, schema: TableSchema, *, merged: bool, reloaded: bool) -> TargetTable:
        target = self._read_table(schema.name) or self._create(schema, merged=merged)
        empty = not self._rows(f"SELECT 1 FROM {quoted_name(*schema.name)} LIMIT 1")
        if empty or reloaded:
            target = self._completed(schema, target, merged=merged, empty=empty)
        if empty and not merged:
            self.fresh.add(schema.name)
        self._known[schema.name] = target
        return target

    def _create(self, schema: TableSchema, *, merged: bool) -> TargetTable:
        reach(CrashPoint.SINK_BEFORE_CREATE)
        self._execute(f"CREATE DATABASE IF NOT EXISTS {quoted_name(schema.schema)}")
        self._execute(create_table(schema, self._target_collations(), tidb=self.server.tidb, merged=merged))
        reach(CrashPoint.SINK_AFTER_CREATE)
        log.info("table created in the target", table=quoted_name(*schema.name))
        target = self._read_table(schema.name)
        assert target is not None
        return target

    def _completed(self, schema: TableSchema, target: TargetTable, *, merged: bool, empty: bool) -> TargetTable:
        """The table with all columns of a structure: those that a route extracts are not in the source's statement."""
        if merged:
            target = self._with_columns([one for one in schema.columns if not isinstance(one, ConstantColumn)], target)
        if all(column.name.lower() in target.columns for column in schema.columns):
            return target
        for sql in add_columns(schema, target, self._target_collations(), tidb=self.server.tidb, empty=empty):
            self.change(sql, in_doubt=True)
        log.info("columns added in the target", table=quoted_name(*schema.name), had=len(target.columns))
        completed = self._read_table(schema.name)
        assert completed is not None
        return completed

    def _with_columns(self, columns: Sequence[Column], target: TargetTable) -> TargetTable:
        """A merged table with the columns of a shard. The sink of another source may have added some of them."""
        current = self._read_table(target.name) or target
        missing = [column for column in columns if column.name.lower() not in current.columns]
        if not missing:
            return current
        self.change_columns("ADD", target.name, missing)
        log.info("columns added in the target", table=quoted_name(*target.name), had=len(current.columns))
        return self._read_table(target.name) or current

    def _read_table(self, name: TableName) -> TargetTable | None:
        target = read_target(self._rows, *name)
        if target is not None and target.name != name and self._preserves_case():
            raise SinkError(
                f"the target treats the table {'.'.join(name)} as its table {'.'.join(target.name)}",
                hint="rename one of them with a route: the target's table names are case-insensitive",
            )
        return target

    def _checked_foreign_keys(self) -> ForeignKeys:
        if self._foreign_keys is None:
            self._foreign_keys = read_foreign_keys(self._rows)
        return self._foreign_keys

    def _target_collations(self) -> frozenset[str]:
        if not self._collations:
            self._collations = read_collations(self._rows)
        return self._collations

    def _preserves_case(self) -> bool:
        """Names keep their case but are compared without it: TiDB always does so."""
        ((setting,),) = self._rows("SELECT @@lower_case_table_names")
        return int(setting) == 2

    def _rows(self, sql: str, arguments: tuple[Any, ...] | None = None) -> list[tuple[Any, ...]]:
        return self._attempt(lambda connection: ask(connection, sql, arguments))

    def _execute(self, sql: str) -> None:
        self._attempt(lambda connection: execute(connection, sql))

    def _attempt(self, act: "Callable[[Connection[Any]], Result]") -> Result:
        return self._session.attempt(lambda failures: act(self._connection(failures)))

    def _connection(self, failures: int) -> "Connection[Any]":
        """The open connection; after a failure the sink may no longer own the target.

        Raises:
            Fenced: another run has taken over.
        """
        connection = self._session.connection()
        if failures and self.metadata is not None:
            self.metadata.fence(connection, FLUSHER)
        return connection


def _log_rest(rest: Rest, already: Already) -> None:
    if rest.left_out:
        log.warning(
            "actions of a refused statement left out: the target may have executed them before",
            actions=[action[:200] for action in rest.left_out],
            fix="compare the table with the source's, and execute on the target what it lacks of them",
        )
    if rest.statements:
        log.warning("statement refused: its actions are executed one by one", code=already.code)
    elif not rest.left_out:
        log.warning("statement already applied on the target", code=already.code)
