"""The request and the result of applying a range to a silver table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from dmdelta.lakehouse.commits import CommitTag, OwnCommit
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.sharding import Waiting
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.strategy import Mode, Step
from dmdelta.silver.schema.range_profile import StructuresBefore, TableEvents
from dmdelta.silver.table.target import Target

STEP_BITS = 16
LAST_STEP = (1 << STEP_BITS) - 1
"""The step ordinal of the commit that completes a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRequest:
    """Apply [begin, end) of one source table.

    Attributes:
        batch: the landing batch that ends at `end`.
        known: the table's structure at `begin`; None to look it up.
        events: the table's events in the range (`tables_with_events`); None to look them up.
        applied: the transaction version of the table's newest own commit; None to look it up.
        after: the table's Delta version after that commit; None: unknown.
        newest: that commit, if it was just looked up and `known` is None.
        safe_until: events before this position may be in silver already; a commit that ends before it records it.
        overlap_until: the same limit, also of a full load and of log that is read again; a RENAME before it is unclear.
        whole: the range ends where the batch ends; False for a part of the batch, up to a RENAME.
        ddl_applied_to: statements up to this position are applied, and `known` is the structure after them; None: none.
        later_name: the table's name in silver, if a RENAME after the range gave it another name.
        earlier: the structures and statements before `begin`, if they are known; None to look them up.
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
    after: int | None = None
    newest: OwnCommit | None = None
    safe_until: Position | None = None
    overlap_until: Position | None = None
    whole: bool = True
    ddl_applied_to: Position | None = None
    later_name: TableName | None = None
    earlier: StructuresBefore | None = None

    @property
    def name(self) -> TableName:
        return (self.schema, self.table)

    @property
    def target(self) -> Target:
        """The silver table of the rows.

        Raises:
            ConfigError: two routes match the table.
        """
        return self.context.table(self.later_name or self.name)


def read_request(context: SilverContext, name: TableName, begin: Position, end: Position) -> ApplyRequest:
    """A request for reading a range of a table, without applying it to silver."""
    schema, table = name
    return ApplyRequest(context=context.uncoordinated, schema=schema, table=table, begin=begin, end=end, batch=0)


class RowsPath(Enum):
    """Where the rows of a range were read from."""

    MEMORY = "memory"
    """All from the landed batches that are still in memory."""
    BRONZE = "bronze"
    """Some or all from bronze."""


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """The result of a request.

    Attributes:
        rows: row changes read from bronze, by op, before compaction.
        steps: the operations of the commits, in order.
        commit: the last commit; None if nothing changed.
        structure: the source table's structure at `end`; None if the log does not contain it.
        waits: the statement that the shard waits with at `end`, which is then before the range's end.
        clashes: how many keys of a shard's new rows exist in other shards, too.
        failures: the number of failing rows by the name of the expectation.
        path: where the rows were read from; None if there were none.
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
    path: RowsPath | None = None

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
    """The tag of the `ordinal`th commit of a request, after which the table is at `end`."""
    version = (request.batch << STEP_BITS) | ordinal
    inherited = request.safe_until if request.safe_until is not None and end < request.safe_until else None
    context = request.context
    return CommitTag(
        app=request.target.app,
        version=version,
        task=context.task,
        source=context.source_id,
        run=context.run,
        begin=begin,
        end=end,
        safe_until=inherited,
    )


def leaves_whole(tag: CommitTag) -> bool:
    """Whether the table equals the source table after a commit: it completes a range, or repairs the table."""
    return tag.repaired or tag.version & LAST_STEP == LAST_STEP


def last_tag(request: ApplyRequest) -> CommitTag:
    """The tag of the commit that completes a request."""
    return tag_of(request, LAST_STEP, request.begin, request.end)
