"""`dmdelta verify`: compares bronze with its sources' logs, decoded by mysql-replication."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from dmdelta.bronze.progress import landing_app
from dmdelta.bronze.retention import assert_kept, expired_to
from dmdelta.changelog.context import SourceContext
from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.history.positions import LandedPositions, Side, find_place
from dmdelta.engine.task.task import Task, named_source, open_task
from dmdelta.engine.verify.bronze_rows import BronzeStretches, Range, clipped, plan_ranges
from dmdelta.engine.verify.source_log import LogPart, Origin, SourceLog, find_log, plan_parts
from dmdelta.errors import ConfigError, PositionLost
from dmdelta.lakehouse.history import own_commits
from dmdelta.lakehouse.tables import table_state
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.verification.compare import EventComparison
from dmdelta.verification.decoder import Decoder
from dmdelta.verification.events import LoggedEvent, without_skipped
from dmdelta.verification.raw_events import RawEvent
from dmdelta.verification.results import Difference, DifferenceCounts, TableResult

STRETCH_BYTES = 8 << 20
"""Bytes of log that are compared at a time; bounds the memory."""
STRETCH_UNREAD = 5_000
"""Maximum number of unread events at a time: their places are listed in a query."""
LOG_IS_GONE = "log that neither the server nor the relay has any more"


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What to verify.

    Attributes:
        table: `schema.table` at the source; `*` and `?` match several.
        source: None: all sources of the task.
        begin, end: places in the log (`find_place`); None: the begin and end of bronze.
    """

    table: str = "*"
    source: str | None = None
    begin: str | None = None
    end: str | None = None


@dataclass(frozen=True, slots=True)
class VerifiedRange:
    """A part of a source's log that was read, and its origin."""

    source: str
    begin: Position
    end: Position
    read_from: Origin


@dataclass(frozen=True, slots=True)
class Verified:
    """The result for one source.

    Attributes:
        differences: the first differences of each table; `tables` has their number.
    """

    source: str
    ranges: Sequence[VerifiedRange]
    tables: Sequence[TableResult]
    differences: Sequence[Difference]

    @property
    def is_clean(self) -> bool:
        """Whether no difference was found in the covered events."""
        return not any(table.differences for table in self.tables)


Report = Callable[[str, Position, Position], object]
"""(source, position up to which it was compared, end of the range)."""


def verify(spec: TaskSpec, request: VerifyRequest, report: Report) -> list[Verified]:
    """Compare bronze with the logs of a task's sources.

    Args:
        report: called with the progress.

    Raises:
        ConfigError: there is no such place, source or table, or nothing has landed.
        QualityError: the begin of the range has expired from bronze.
        PositionLost: no part of the range is available any longer.
        SourceError, SourceUnavailable: the log cannot be read. LakehouseError: bronze cannot be read.
    """
    if request.source is None and (request.begin is not None or request.end is not None):
        named_source(spec, None)  # a place belongs to one source's log
    sources = spec.sources if request.source is None else [named_source(spec, request.source)]
    task = open_task(spec, writing=False, beside_run=True)
    if table_state(task.spark, task.lakehouse.bronze) is None:
        raise ConfigError("nothing has landed", hint="run the task first: dmdelta run SPEC")
    results = [_verify_source(task, source, request, report) for source in sources]
    if request.table != "*" and not any(table.table for result in results for table in result.tables):
        raise ConfigError(
            f"neither bronze nor the log has a table {request.table}",
            hint="use the table's name at the source: schema.table",
        )
    return results


def _verify_source(task: Task, config: SourceConfig, request: VerifyRequest, report: Report) -> Verified:
    spark, source_id = task.spark, config.source_id
    commits = own_commits(spark, task.lakehouse.bronze, landing_app(task.spec.name, source_id))
    landed = [commit.tag for commit in commits][::-1]
    end = next((tag.end for tag in reversed(landed) if tag.end.chunk is None), None)
    if end is None:  # or only a snapshot has landed, whose rows are in no log
        raise ConfigError(f"nothing of {source_id}'s log has landed", hint="run the task first: dmdelta run SPEC")
    log = find_log(task.spec, config, end.epoch)
    landing = task.landing_source(source_id, log.flavor)
    bronze = BronzeStretches(spark, landing)
    held = bronze.held() if landed[0].version > 1 else ()  # the history lacks older commits
    ranges = plan_ranges(landed, held, expired_to(spark, landing))
    wanted = _range(task, landing, request, end)
    if request.table != "*":
        bronze.tables = [name for name in bronze.known_tables() if _fits(name, request.table)]
    boundaries = {place for tag in landed for place in (tag.begin, tag.end)}
    check = _SourceCheck(landing, log, bronze, request.table, boundaries, report)
    for one in clipped(ranges, *wanted):
        check.run(one, end if wanted[1] is None else wanted[1])
    if check.ranges and all(one.read_from is Origin.NONE for one in check.ranges):
        raise PositionLost(
            f"the log of {source_id} from {check.ranges[0].begin} on is no longer available",
            hint="neither the server nor the relay has it any longer: verify a newer range, or an archive of the files",
        )
    return Verified(source_id, check.ranges, check.counters.tables(), check.counters.differences())


def _range(
    task: Task, landing: SourceContext, request: VerifyRequest, end: Position
) -> tuple[Position | None, Position | None]:
    places = LandedPositions(task.spark, landing, end)
    begin = find_place(places, request.begin, Side.FROM) if request.begin is not None else None
    until = find_place(places, request.end, Side.TO) if request.end is not None else None
    if begin is not None:
        assert_kept(task.spark, landing, begin)
        if until is not None and begin >= until:
            raise ConfigError(f"the range ends at {until}, before it begins at {begin}", hint="correct --from or --to")
    return begin, until


def _fits(table: TableName, pattern: str) -> bool:
    return fnmatchcase(".".join(table), pattern)


@dataclass(slots=True)
class _SourceCheck:
    """The check of one source.

    Attributes:
        boundaries: positions where transactions begin, from the landing commits.
    """

    landing: SourceContext
    log: SourceLog
    bronze: BronzeStretches
    pattern: str
    boundaries: Collection[Position]
    report: Report
    ranges: list[VerifiedRange] = field(default_factory=list)
    counters: DifferenceCounts = field(init=False)
    _comparison: EventComparison = field(init=False)

    def __post_init__(self) -> None:
        self.counters = DifferenceCounts(self.landing.source_id)
        self._comparison = EventComparison(self._is_wanted, self.counters)

    def run(self, one: Range, end: Position) -> None:
        """Compare a range of the log, part by part."""
        begin, until = one
        self.counters.epoch = begin.epoch
        window = _Window(begin)
        for part in plan_parts(begin, until, self.log.parts):
            self._note(part)
            if part.origin is Origin.NONE:
                self._compare(window, part.begin, end)
                self._leave_out(part)
                window = _Window(part.end)
                continue
            for raw, event in self._events(part):
                window.take(raw, event)
                if window.is_full and raw.end is not None:
                    upto = Position(part.begin.epoch, raw.file, min(raw.end, part.end.offset))
                    self._compare(window, upto, end)
                    window = _Window(upto)
        self._compare(window, until, end)

    def _note(self, part: LogPart) -> None:
        last = self.ranges[-1] if self.ranges else None
        begin = part.begin
        if last is not None and last.read_from is part.origin and last.end.epoch == part.begin.epoch:
            self.ranges.pop()
            begin = last.begin
        self.ranges.append(VerifiedRange(self.landing.source_id, begin, part.end, part.origin))

    def _leave_out(self, part: LogPart) -> None:
        for count in self.bronze.count(part.begin, part.end):
            missed = self.counters.of(count.table)
            missed.unread_events[LOG_IS_GONE] += 1
            missed.unread_rows[LOG_IS_GONE] += count.rows

    def _compare(self, window: "_Window", upto: Position, end: Position) -> None:
        if window.begin < upto:
            rows, counts = self.bronze.read(window.begin, upto, window.unread)
            self._comparison.compare(window.events, rows, counts)
        self.report(self.landing.source_id, upto, end)

    def _events(self, part: LogPart) -> Iterator[tuple[RawEvent, LoggedEvent | None]]:
        """The events of a part, with the row changes of the requested tables."""
        decoder = Decoder(mariadb=self.log.flavor == "mariadb")
        skipped = self.log.skipped.get(part.begin.epoch)
        for raw in self.log.events(part, from_start=part.begin not in self.boundaries):
            if raw.start is not None and raw.start >= part.end.offset:
                break
            event = decoder.feed(raw)
            if raw.start is None or raw.start < part.begin.offset:
                continue
            gtids = skipped.at(raw.file, raw.start) if skipped is not None else None
            event = without_skipped(event, gtids) if event is not None and gtids is not None else event
            requested = event is not None and (event.table is None or _fits(event.table, self.pattern))
            yield raw, event if requested else None

    def _is_wanted(self, table: TableName) -> bool:
        return self.landing.rules.wanted(*table)


@dataclass(slots=True)
class _Window:
    """The part of the log that is compared at a time."""

    begin: Position
    events: list[LoggedEvent] = field(default_factory=list)
    unread: list[Position] = field(default_factory=list)
    size: int = 0

    def take(self, raw: RawEvent, event: LoggedEvent | None) -> None:
        self.size += len(raw.data)
        if event is not None:
            self.events.append(event)
            if event.unread is not None:
                self.unread.append(Position(self.begin.epoch, *event.place))

    @property
    def is_full(self) -> bool:
        return self.size >= STRETCH_BYTES or len(self.unread) >= STRETCH_UNREAD
