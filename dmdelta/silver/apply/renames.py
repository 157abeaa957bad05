"""Tables that change names with each other: they are applied together, up to each such statement and behind it.

A silver table has its files where its name says, so what is renamed is copied: from the version that the other table
had at the statement. Its own commits tell which that is, whatever was done to it since: a crash repeats nothing.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
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
from dmdelta.lakehouse.history import own_commits
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.rules import Action, Role, SourceRules
from dmdelta.silver.apply.apply import apply_table
from dmdelta.silver.apply.context import ApplyContext, open_context
from dmdelta.silver.apply.gate import keeps_apart
from dmdelta.silver.apply.request import ApplyRequest, ApplyResult
from dmdelta.silver.schema.evolution import UNMARK, clustering, plan_change, plan_creation, plan_drop
from dmdelta.silver.schema.lookup import structure_at
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents
from dmdelta.silver.schema.schema_ranges import refusal
from dmdelta.silver.table.table import Condition, create_silver
from dmdelta.silver.table.target import Target

_RENAMES = "rename_table"


@dataclass(frozen=True, slots=True)
class Renaming:
    """A statement that renames tables.

    Attributes:
        default_schema: the database of names without one.
        sources: for every table whose content changes, the table that it had the content of before; None for a name
            that is free afterwards.
    """

    event: StructureEvent
    default_schema: str
    sources: Mapping[TableName, TableName | None]

    @property
    def at(self) -> Position:
        return self.event.position


def plan_groups(tables: Sequence[TableEvents]) -> list[list[TableEvents]]:
    """Tables that a statement of the range renames into each other are together, every other one is alone."""
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
    """The statements of a range that rename tables of a group, in their order.

    Those that the rules leave out are not among them, nor the cut-over of an online DDL: its rows stay where they are.
    """
    found: dict[Position, list[tuple[TableName, StructureEvent]]] = defaultdict(list)
    for table in tables:
        for event in table.structure:
            if event.op is Op.DDL and any(target.op == _RENAMES for target in statement_targets(event.text, "")):
                found[event.position].append((table.name, event))
    planned = [_renaming(*_as_executed(rows), rules, mariadb=mariadb) for _, rows in sorted(found.items())]
    return [renaming for renaming in planned if renaming is not None]


def _as_executed(rows: Sequence[tuple[TableName, StructureEvent]]) -> tuple[TableName, StructureEvent]:
    """Of a statement's rows, one for each of its tables, one whose schema is that of names without one.

    It is the schema by which the statement names all of these tables.
    """
    names = {name for name, _ in rows}

    def named(row: tuple[TableName, StructureEvent]) -> int:
        targets = statement_targets(row[1].text, row[0][0])
        return len(names & {(target.schema, target.table) for target in targets})

    return max(rows, key=named)


def apply_group(
    spark: SparkSession, tables: Sequence[TableEvents], requests: Sequence[ApplyRequest]
) -> list[ApplyResult]:
    """Apply a range to tables that are renamed into each other; one table alone is just applied.

    Args:
        tables: what the range holds of each table.
        requests: for the same tables; one that begins where the range ends, or behind, has nothing left to do.

    Raises:
        DmdeltaError: as `apply_table`.
    """
    waiting = {request.name: request for request in requests}
    for renaming in plan_renamings(tables, requests[0].context.rules, mariadb=requests[0].context.flavor == "mariadb"):
        at = renaming.at
        for name, request in waiting.items():
            if request.begin < at:
                apply_table(spark, replace(request, end=at, events=None, whole=False))
                waiting[name] = replace(request, begin=at, known=None, applied=None, newest=None)
        _rename(spark, waiting, renaming)
        for name, request in waiting.items():
            if request.begin == at:
                waiting[name] = replace(request, known=None, applied=None, newest=None, ddl_applied_to=at, events=None)
    return [apply_table(spark, request) for request in waiting.values() if request.begin < request.end]


def carry_over(spark: SparkSession, request: ApplyRequest, renaming: Renaming) -> None:
    """Follow a statement that renames tables with a table that holds the source's rows already. Can be repeated.

    A replay collects a table's rows in one place, whatever the table's name is: what the statement does besides the
    RENAME is all that is left to do.

    Args:
        request: of the table under the name that it has behind the statement; begins there.

    Raises:
        UnsupportedSchemaChange: silver cannot follow.
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
    renames = [effect for effect in effects if isinstance(effect, Renamed) and _counts(effect, event, rules)]
    if not renames:
        return None
    content = content_after(renames)
    moved = {table: source for table, source in content.items() if source != table}
    free = dict.fromkeys(effect.table for effect in renames if effect.table not in content)
    return Renaming(event, name[0], {**moved, **free})


def _counts(effect: Renamed, event: StructureEvent, rules: SourceRules) -> bool:
    if any(rules.online.role(*name) is not Role.REAL for name in (effect.table, effect.to)):
        return False
    if event.position in rules.operators:
        return False
    return rules.decide(effect.table, ddl_events(event.text), event.text) is Action.DO


def _rename(spark: SparkSession, requests: Mapping[TableName, ApplyRequest], renaming: Renaming) -> None:
    """Give every table the content that it has behind a statement."""
    at = renaming.at
    for name, source in renaming.sources.items():
        request = requests.get(name)
        if request is None or request.begin > at:
            continue  # no table of ours, or one that is farther already
        if request.target.merged or (source is not None and source in requests and requests[source].target.merged):
            raise refusal(name, renaming.event, "a shard that gets another name cannot be told from a new one")
        work = open_context(spark, replace(request, begin=at, known=None, applied=None, newest=None))
        if work.ddl_applied_to is not None and work.ddl_applied_to >= at:
            continue
        if keeps_apart(spark, request):
            raise refusal(name, renaming.event, "rows of it are in quarantine: see dmdelta quality release")
        if source is None:
            if work.condition is Condition.PRESENT:
                work.make(plan_drop(at), at, at)
        elif source not in requests:
            reason = f"it takes over the rows of {'.'.join(source)}, of which nothing is known"
            raise refusal(name, renaming.event, reason)
        elif request.safe_until is not None and at < request.safe_until:
            raise refusal(name, renaming.event, "it was renamed while a snapshot was read")
        else:
            _take_over(work, requests[source], renaming)


def _take_over(work: ApplyContext, source: ApplyRequest, renaming: Renaming) -> None:
    """Copy what another table held ahead of the statement, as the statement leaves it."""
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
    anew = (*clustering(request.target.silver_schema(schema)), UNMARK) if work.condition is not Condition.ABSENT else ()
    rest = (*anew, *changes)
    reach(CrashPoint.SILVER_BEFORE_CHANGE)
    rows = _content(spark, source.target, version, request.target)
    tag = replace(work.tag(at, at, last=False), rest=rest)
    overwrite(spark, rows, request.target.place, tag, columns_too=work.condition is not Condition.ABSENT)
    reach(CrashPoint.SILVER_AFTER_CHANGE)
    work.make(rest, at, at)


def _content(spark: SparkSession, target: Target, version: int, receiver: Target) -> DataFrame:
    """The rows of a version of a silver table, with the receiver's constant columns in the place of its own."""
    given = {column.name for column in target.constants}
    with wrapped(target.place, "reading"):
        rows = spark.sql(f"SELECT * FROM {target.place} VERSION AS OF {version}")
        kept = [quote(name) for name in rows.columns if name not in given and name not in OWN_COLUMNS]
        return rows.selectExpr(*kept, *receiver.added, *OWN_COLUMNS)


def _altered(work: ApplyContext, schema: TableSchema, renaming: Renaming) -> tuple[Change, ...]:
    """What else the statement does to the table, under its new name."""
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
    """The Delta version of a silver table ahead of the statement at `at`; None if it had none."""
    app = request.context.table(request.name).app
    for commit in own_commits(spark, request.target.place, app):
        tag = commit.tag
        if tag.end < at or (tag.end == at and tag.rest is None):
            return commit.version
    return None


def _renamed_with(table: TableEvents) -> list[TableName]:
    statements = [event.text for event in table.structure if event.op is Op.DDL]
    found = [target for text in statements for target in statement_targets(text, table.schema)]
    return [(target.schema, target.table) for target in found if target.op == _RENAMES and target.table]
