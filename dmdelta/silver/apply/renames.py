"""RENAME TABLE: tables that one statement renames into each other are applied together, up to the statement and after.

The location of a silver table depends on its name, so a rename copies rows: from the version that the other table had
at the statement. That version follows from the table's own commits, even after later commits, so a crash is safe.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from dmdelta.ddl.parse.event_types import ddl_events
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.ddl.tracking.effects import Altered, Renamed, content_after
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.ddl.types.silver_types import OWN_COLUMNS
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.changes import Change
from dmdelta.lakehouse.commits import overwrite
from dmdelta.lakehouse.history import OwnCommit, newest_commits, own_commits
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.rules import Action, Role, SourceRules
from dmdelta.silver.apply.context import ApplyContext, open_context
from dmdelta.silver.apply.gate import has_quarantined
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.schema.evolution import UNMARK, clustering, plan_change, plan_creation, plan_drop
from dmdelta.silver.schema.lookup import structure_at
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents
from dmdelta.silver.schema.schema_ranges import refusal
from dmdelta.silver.table.state import may_be_ahead
from dmdelta.silver.table.table import Condition, create_silver
from dmdelta.silver.table.target import Target

_RENAMES = "rename_table"


@dataclass(frozen=True, slots=True)
class Renaming:
    """A statement that renames tables.

    Attributes:
        default_schema: the database of names without one.
        sources: for every table whose content changes, the table that had this content before; None for a name that
            is free afterwards.
        refused: why silver cannot follow the statement; '' if it can.
    """

    event: StructureEvent
    default_schema: str
    sources: Mapping[TableName, TableName | None]
    refused: str = ""

    @property
    def at(self) -> Position:
        return self.event.position


def plan_groups(tables: Sequence[TableEvents]) -> list[list[TableEvents]]:
    """Group tables that a statement of the range renames into each other; every other table is a group of its own."""
    group_of: dict[TableName, list[TableEvents]] = {table.name: [table] for table in tables}
    for table in tables:
        for name in _renamed_with(table):
            ours, theirs = group_of[table.name], group_of.get(name)
            if theirs is None or theirs is ours:
                continue
            ours += theirs
            group_of.update({member.name: ours for member in theirs})
    return list({id(group): group for group in group_of.values()}.values())


def plan_renamings(tables: Sequence[TableEvents], rules: SourceRules, *, mariadb: bool) -> list[Renaming]:
    """The statements of a range that rename tables of a group, in order.

    Excludes those that the rules ignore, and the cut-over of an online DDL, which moves no rows.
    """
    statements: dict[Position, list[tuple[TableName, StructureEvent]]] = defaultdict(list)
    for table in tables:
        for event in table.structure:
            if event.op is Op.DDL and any(target.op == _RENAMES for target in statement_targets(event.text, "")):
                statements[event.position].append((table.name, event))
    planned = [_renaming(*_as_executed(rows), rules, mariadb=mariadb) for _, rows in sorted(statements.items())]
    return [renaming for renaming in planned if renaming is not None]


def _as_executed(rows: Sequence[tuple[TableName, StructureEvent]]) -> tuple[TableName, StructureEvent]:
    """Select the bronze row of a statement (one row per table) that has the default schema of the statement.

    With the default schema, the statement's unqualified names resolve to all of these tables.
    """
    names = {name for name, _ in rows}

    def named(row: tuple[TableName, StructureEvent]) -> int:
        targets = statement_targets(row[1].text, row[0][0])
        return len(names & {(target.schema, target.table) for target in targets})

    return max(rows, key=named)


def carry_over(spark: SparkSession, request: ApplyRequest, renaming: Renaming) -> None:
    """Apply a RENAME to a replay table, which contains the source's rows already. Idempotent.

    A replay collects a table's rows in one Delta table, whatever the source table's name is. Only the statement's
    changes besides the RENAME remain to be applied.

    Args:
        request: the request for the table under its new name; it begins at the statement.

    Raises:
        UnsupportedSchemaChange: silver cannot apply the statement.
        Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
    """
    at, source = renaming.at, renaming.sources[request.name]
    work = open_context(spark, request)
    if (
        source is None
        or work.condition is not Condition.PRESENT
        or (work.ddl_applied_to is not None and work.ddl_applied_to >= at)
    ):
        return
    before = structure_at(spark, request.context, source, at)
    if before is not None:
        work.make(_altered(work, replace(before, schema=request.schema, table=request.table), renaming), at, at)


def _renaming(name: TableName, event: StructureEvent, rules: SourceRules, *, mariadb: bool) -> Renaming | None:
    effects = statement_effects(event.text, name[0], lambda _: None, mariadb=mariadb)
    every = [effect for effect in effects if isinstance(effect, Renamed)]
    renames = [effect for effect in every if _counts(effect, event, rules)]
    if not renames:
        return None
    refused = rules.online.misfit([(effect.table, effect.to) for effect in every])
    content = content_after(renames)
    moved = {table: source for table, source in content.items() if source != table}
    free = dict.fromkeys(effect.table for effect in renames if effect.table not in content)
    return Renaming(event, name[0], {**moved, **free}, refused)


def _counts(effect: Renamed, event: StructureEvent, rules: SourceRules) -> bool:
    if any(rules.online.role(*name) is not Role.REAL for name in (effect.table, effect.to)):
        return False
    if event.position in rules.operators:
        return False
    return rules.decide(effect.table, ddl_events(event.text), event.text) is Action.DO


def rename_tables(spark: SparkSession, requests: Mapping[TableName, ApplyRequest], renaming: Renaming) -> None:
    """Give every table the content that it has after a statement.

    Raises:
        UnsupportedSchemaChange: silver cannot follow the statement for a table; no table is changed.
    """
    at = renaming.at
    moves = []
    for name, source in renaming.sources.items():
        request = requests.get(name)
        if request is None or request.begin > at:
            continue  # not a table of this task, or already past the statement
        work = open_context(spark, replace(request, begin=at, known=None, applied=None, newest=None))
        if work.ddl_applied_to is None or work.ddl_applied_to < at:
            reason = renaming.refused or _unclear(spark, request, source, requests, at)
            if reason:
                raise refusal(name, renaming.event, reason)
            moves.append((work, requests[source] if source is not None else None))
    for work, origin in moves:
        if origin is not None:
            _take_over(work, origin, renaming)
        elif work.condition is Condition.PRESENT:
            work.make(plan_drop(at), at, at)


def _unclear(
    spark: SparkSession,
    request: ApplyRequest,
    source: TableName | None,
    requests: Mapping[TableName, ApplyRequest],
    at: Position,
) -> str:
    """Why silver cannot give a table the rows that `source` had before the statement; '' if it can."""
    origin = requests.get(source) if source is not None else None
    if request.target.merged or (origin is not None and origin.target.merged):
        return "a renamed shard cannot be distinguished from a new shard"
    if has_quarantined(spark, request.context, request.target):
        return "it has quarantined rows: see dmdelta quality release"
    if source is None:
        return ""
    if origin is None:
        return f"it gets the rows of {'.'.join(source)}, which is not in silver"
    if any(_may_be_ahead(spark, each, at) for each in (request, origin)):
        return "it was renamed while a snapshot read the tables, or in log that is read again"
    return ""


def _may_be_ahead(spark: SparkSession, request: ApplyRequest, at: Position) -> bool:
    """Whether a table may contain changes after the statement. After a crash it may contain the statement itself."""
    overlaps = request.overlap_until is not None and at < request.overlap_until
    return overlaps and may_be_ahead(spark, request.target, at, completed=False)


def _take_over(work: ApplyContext, source: ApplyRequest, renaming: Renaming) -> None:
    """Copy the rows that another table had before the statement, and apply the statement's other changes."""
    at, request, spark = renaming.at, work.request, work.spark
    before = structure_at(spark, source.context, source.name, at)
    if before is None:
        if work.condition is Condition.PRESENT:
            work.make(plan_drop(at), at, at)
        return
    schema = replace(before, schema=request.schema, table=request.table)
    changes = _altered(work, schema, renaming)
    version = _version_before(spark, source, at)
    if work.condition is Condition.ABSENT:
        tag = None if version is not None else replace(work.tag(at, at, last=False), rest=changes)
        create_silver(spark, request.target, schema, tag)
        if version is None:
            work.make(changes, at, at)
            return
    elif version is None:
        work.make((*plan_creation(request.target.silver_schema(schema), at, fits=False), *changes), at, at)
        return
    replaced = (
        (*clustering(request.target.silver_schema(schema)), UNMARK) if work.condition is not Condition.ABSENT else ()
    )
    rest = (*replaced, *changes)
    reach(CrashPoint.SILVER_BEFORE_CHANGE)
    rows = _content(spark, source.target, version, request.target)
    tag = replace(work.tag(at, at, last=False), rest=rest)
    overwrite(spark, rows, request.target.place, tag, columns_too=work.condition is not Condition.ABSENT)
    reach(CrashPoint.SILVER_AFTER_CHANGE)
    work.make(rest, at, at)


def _content(spark: SparkSession, target: Target, version: int, receiver: Target) -> DataFrame:
    """The rows of a version of a silver table, with the receiver's constant columns instead of its own."""
    constants = {column.name for column in target.constants}
    with wrapped(target.place, "reading"):
        rows = spark.sql(f"SELECT * FROM {target.place} VERSION AS OF {version}")
        kept = [quote(name) for name in rows.columns if name not in constants and name not in OWN_COLUMNS]
        return rows.selectExpr(*kept, *receiver.added, *OWN_COLUMNS)


def _altered(work: ApplyContext, schema: TableSchema, renaming: Renaming) -> tuple[Change, ...]:
    """The statement's changes of the table besides the RENAME, under the table's new name."""
    name, old = schema.name, {source: table for table, source in renaming.sources.items()}
    original = next((source for source in old if source is not None and old[source] == name), name)
    effects = statement_effects(
        renaming.event.text,
        renaming.default_schema,
        lambda table: schema if table == original else None,
        mariadb=work.request.context.flavor == "mariadb",
    )
    changes: tuple[Change, ...] = ()
    for effect in effects:
        if isinstance(effect, Altered):
            seen = work.request.target.seen_change(effect)
            plan = plan_change(seen, renaming.at, mariadb=work.request.context.flavor == "mariadb")
            if plan.unknown:
                raise refusal(name, renaming.event, plan.unknown)
            changes += plan.changes
    return changes


def _version_before(spark: SparkSession, request: ApplyRequest, at: Position) -> int | None:
    """The Delta version of a silver table before the statement at `at`; None if there is none."""
    place, app = request.target.place, request.context.table(request.name).app
    newest, _ = newest_commits(spark, place, app)
    return plan_version_before(own_commits(spark, place, app), newest, at)


def plan_version_before(commits: Iterable[OwnCommit], newest: int | None, at: Position) -> int | None:
    """The newest version of a silver table before the statement at `at`; None if its history has none.

    Versions between two of the table's own commits are part of it: they are repairs, released rows or compactions.

    Args:
        commits: the table's own commits, newest first.
        newest: the table's newest version by any writer; None if it does not exist.
    """
    version = newest
    for commit in commits:
        if commit.tag.precedes(at):
            return version
        version = commit.version - 1
    return None


def _renamed_with(table: TableEvents) -> list[TableName]:
    statements = [event.text for event in table.structure if event.op is Op.DDL]
    targets = [target for text in statements for target in statement_targets(text, table.schema)]
    return [(target.schema, target.table) for target in targets if target.op == _RENAMES and target.table]
