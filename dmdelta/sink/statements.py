"""Executes statements on the target, each with a checkpoint before it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from dmdelta.changelog.context import SourceContext
from dmdelta.errors import SinkError
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.plan.checkpoint import AboutTo, PushedPoint
from dmdelta.sink.plan.ddl import plan_statement
from dmdelta.sink.plan.repetition import plan_parts
from dmdelta.sink.plan.target_statement import StatementContext, TargetStatement
from dmdelta.sink.read.range_survey import BronzeLog
from dmdelta.sink.read.slices import Statement
from dmdelta.sink.settings import StructureAt, unknown_structure
from dmdelta.sink.target.tables import Tables

log = get_logger(__name__)


@dataclass(slots=True)
class Statements:
    """
    Attributes:
        structure_at: looks up the structures by which filters decide.
        about_to: what an earlier run was about to execute at the checkpoint; None: nothing.
        written_at: when the newest checkpoint of a statement was written (monotonic clock).
    """

    source: SourceContext
    log: BronzeLog
    tables: Tables
    progress: Progress
    flusher: Flusher
    structure_at: StructureAt = unknown_structure
    about_to: AboutTo | None = None
    written_at: float = field(default_factory=time.monotonic)

    def plan(self, statement: Statement) -> list[TargetStatement]:
        """The statements for the target, with the operator override at that position.

        Raises:
            SinkError, SchemaError: the target cannot have the statement.
        """
        at = statement.position
        context = StatementContext(
            self.source.rules,
            lambda table: self.log.statements_on(table, at),
            self.log.tables_of,
            self.tables.server.tidb,
            lambda table: self.structure_at(table, at),
        )
        operator = self.source.rules.operators.get(at)
        texts = operator.followed(statement.text) if operator is not None else (statement.text,)
        return [one for text in texts if text for one in plan_statement(text, statement.schema, context)]

    def change(self, planned: Sequence[TargetStatement], at: Position, *, loaded: bool) -> None:
        """Execute the parts of a statement that an earlier run has not executed for certain.

        Args:
            loaded: a full load may have read the tables after the statement.

        Raises:
            SinkError: the target refuses a part, or may have executed one that cannot be executed twice.
        """
        for part in plan_parts(planned, at, self.about_to, loaded=loaded):
            one = part.statement
            if self._lacks_table(one):
                log.info("statement skipped: the table does not exist yet", table=_shown(one), position=str(at))
                continue
            self.write_point(at, part.about_to)
            self._execute(one, in_doubt=part.in_doubt)
            if not loaded:
                self._check_renamed(one)
            log.info("statement executed", position=str(at))
        self.about_to = None

    def repeat(self, planned: list[TargetStatement]) -> None:
        """Execute a statement that may have been executed before; its checkpoint is written by the caller."""
        for one in planned:
            if not self._lacks_table(one):
                self._execute(one, in_doubt=True)

    def write_point(self, at: Position, about_to: AboutTo | None = None) -> None:
        """Write a checkpoint: everything before `at` is in the target. Raises as `Flusher.write`."""
        checkpoint = self.progress.checkpoint(PushedPoint(at, at), "ddl", about_to=about_to)
        assert checkpoint is not None, "a statement has a position"
        self.flusher.write(checkpoint)
        self.written_at = time.monotonic()

    def keep_point(self, at: Position) -> None:
        """Write a checkpoint that keeps how far the statement at its position may have been executed."""
        self.write_point(at, self.about_to)

    def _lacks_table(self, one: TargetStatement) -> bool:
        return one.needs is not None and not self.tables.has(one.needs)

    def _execute(self, one: TargetStatement, *, in_doubt: bool) -> None:
        reach(CrashPoint.SINK_BEFORE_STATEMENT)
        if one.within is not None:
            self.tables.make(one.sql, one.within, in_doubt=in_doubt)
        else:
            self.tables.change(one.sql, in_doubt=in_doubt, shared=one.merged)
        reach(CrashPoint.SINK_AFTER_STATEMENT)

    def _check_renamed(self, one: TargetStatement) -> None:
        """A table of the new name is the result only if none has the former name."""
        if one.needs is None or one.renamed is None or not self.tables.has(one.needs):
            return
        if [part.lower() for part in one.needs] != [part.lower() for part in one.renamed]:
            raise SinkError(
                f"the target cannot rename {'.'.join(one.needs)}: it has another table {'.'.join(one.renamed)}",
                hint="drop or rename that table in the target, then run dmdelta resume",
            )


def position_after(at: Position, statement: Statement) -> Position:
    """Where the log continues after a statement; row changes with an operator override follow at the same position."""
    return Position(at.epoch, at.binlog_file, at.offset + (1 if statement.text else 0))


def _shown(one: TargetStatement) -> str:
    return ".".join(one.needs or ())
