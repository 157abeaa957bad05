"""What applying is asked to do, and what it did."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dmdelta.lakehouse.commits import CommitTag, OwnCommit
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.sharding import Waiting
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.strategy import Mode, Step
from dmdelta.silver.schema.range_profile import TableEvents
from dmdelta.silver.table.target import Target

STEP_BITS = 16
LAST_STEP = (1 << STEP_BITS) - 1
"""The step ordinal of the commit that completes a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRequest:
    """What to apply: [begin, end) of one source table.

    Attributes:
        batch: the landing batch that ends at `end`.
        known: the table's structure at `begin`, None to look it up.
        events: what the range holds (`tables_with_events`), None to look it up.
        applied: the transaction version of the table's newest own commit, None to look it up.
        newest: that commit itself, where `known` is None and it was looked up a moment ago.
        safe_until: what begins before it may be in silver already; a commit that ends before it says so, too.
        whole: the range ends where the batch ends; False for a part of it, up to a rename.
        ddl_applied_to: statements up to there are in silver, and `known` is the structure behind them; None: none.
        later_name: what the table is called where its rows go, if a RENAME gave it another name behind the range.
    """

    context: SilverContext
    schema: str
    table: str
    begin: Position
    end: Position
    batch: int
    mode: Mode = Mode.NORMAL
    known: TableSchema | None = None
    events: TableEvents | None = None
    applied: int | None = None
    newest: OwnCommit | None = None
    safe_until: Position | None = None
    whole: bool = True
    ddl_applied_to: Position | None = None
    later_name: TableName | None = None

    @property
    def name(self) -> TableName:
        return (self.schema, self.table)

    @property
    def target(self) -> Target:
        """Where the rows go.

        Raises:
            ConfigError: two routes match the table.
        """
        return self.context.table(self.later_name or self.name)


def read_request(context: SilverContext, name: TableName, begin: Position, end: Position) -> ApplyRequest:
    """The request that stands for a range of a table where nothing is applied to its silver table."""
    schema, table = name
    return ApplyRequest(context=context.uncoordinated, schema=schema, table=table, begin=begin, end=end, batch=0)


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What was done.

    Attributes:
        rows: row changes read from bronze, by op, before compaction.
        steps: the commits, in order.
        commit: the last one, None if nothing changed.
        structure: the source table's structure at the end, None if the log never told it.
        waits: what it waits with at the end, which then lies before that of the range.
        clashes: keys of a shard's new rows that other shards have, too.
        failures: rows that fail what they should fulfil, by its name.
    """

    schema: str
    table: str
    end: Position
    rows: Mapping[Op, int]
    steps: tuple[Step, ...]
    commit: OwnCommit | None
    structure: TableSchema | None
    waits: Waiting | None = None
    clashes: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)

    @property
    def row_count(self) -> int:
        return sum(self.rows.values())

    @property
    def delta_version(self) -> int | None:
        """The silver table's Delta version after the last commit."""
        return self.commit.version if self.commit else None

    @property
    def table_info(self) -> str | None:
        return self.structure.to_json() if self.structure else None


def tag_of(request: ApplyRequest, ordinal: int, begin: Position, end: Position) -> CommitTag:
    """The tag of one commit of a request: the `ordinal`th, after which the table is at `end`."""
    version = (request.batch << STEP_BITS) | ordinal
    inherited = request.safe_until if request.safe_until is not None and end < request.safe_until else None
    context = request.context
    return CommitTag(
        request.target.app, version, context.task, context.source_id, context.run, begin, end, safe_until=inherited
    )


def last_tag(request: ApplyRequest) -> CommitTag:
    """The tag of the commit that completes a request."""
    return tag_of(request, LAST_STEP, request.begin, request.end)
