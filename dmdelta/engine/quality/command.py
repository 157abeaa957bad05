"""`dmdelta quality`: evaluates expectations on silver tables."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from dmdelta.bronze.landed_ranges import landed_batches
from dmdelta.bronze.progress import newest_landed
from dmdelta.bronze.retention import assert_kept
from dmdelta.checkpoint.store import load_points
from dmdelta.config import QualityConfig, SourceConfig, TaskSpec
from dmdelta.engine.history.positions import LandedPositions, Side, find_place, time_of
from dmdelta.engine.history.states import ReplayedHistory, SilverHistory
from dmdelta.engine.quality.evaluation import TableEvaluation, TableResult
from dmdelta.engine.quality.foreign_keys import ForeignKeyEvaluation
from dmdelta.engine.task.mapping import endpoint_of
from dmdelta.engine.task.source import TaskSource, source_of_task
from dmdelta.engine.task.task import Stage, ignored, named_source, open_suites, open_task
from dmdelta.errors import ConfigError
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.quality.results import ResultStore, Scope
from dmdelta.quality.suite import Suites

log = get_logger(__name__)
Report = Callable[[TableResult], object]


@dataclass(frozen=True, slots=True)
class QualityRequest:
    """What to evaluate.

    Attributes:
        table: `schema.table` at the source; `*` and `?` match several.
        source: None: all sources of the task.
        begin, end: places in the log (`find_place`); None for the current rows of silver. Places other than times need
            `source` if the task has several.
        last: number of the newest batches of each source to evaluate, instead of `begin` and `end`.
        images: evaluate every row image in the range, instead of silver's rows.
        replay: rebuild the range's state from bronze; does not require silver's history.
    """

    table: str = "*"
    source: str | None = None
    begin: str | None = None
    end: str | None = None
    last: int | None = None
    images: bool = False
    replay: bool = False


def evaluate_tables(
    spec: TaskSpec, request: QualityRequest, report: Report, stage: Stage = ignored
) -> list[TableResult]:
    """Evaluate tables one after the other, and store the results.

    A source without the table, or without data in the range, is left out if another source has them. A table whose rows
    at the range's end are unknown is not evaluated, if another one is.

    Args:
        report: called with the result of each table.
        stage: called when the tables are looked up, and for each table.

    Raises:
        ConfigError: there is no such source, table or place, or a suite does not fit its table.
        QualityError: silver's history does not go back to the range, bronze does not have it, or a snapshot was reading
            each table at its end.
        DmdeltaError: as `open_task` and `source_of_task`.
    """
    covered = split_by_source(spec, request)
    with ThreadPoolExecutor(1) as pool:  # Great Expectations takes seconds to import, as Spark does to start
        loaded = pool.submit(open_suites, spec)
        task = open_task(spec, writing=False, beside_run=True)
        stage("looking up tables")
        sources = [(source_of_task(task, config), asked) for config, asked in covered]
        suites = loaded.result()
    store = ResultStore(task.spark, task.lakehouse, spec.name, task.run)
    results: list[TableResult] = []

    def add(result: TableResult) -> None:
        store.add(result.subject, result.results)
        results.append(result)
        report(result)

    for part in parts_of(sources):
        _evaluate(part, suites, add, stage)
    if not results:
        raise ConfigError(f"silver has no table {request.table}", hint="use its name at the source: schema.table")
    assert_evaluated(results)
    return results


def assert_evaluated(results: Sequence[TableResult]) -> None:
    """Assert that the rows of a table were known.

    Raises:
        QualityError: those of none were; the error of the first one.
    """
    errors = [result.error for result in results if result.error is not None]
    if errors and len(errors) == len(results):
        raise errors[0]


def split_by_source(spec: TaskSpec, request: QualityRequest) -> list[tuple[SourceConfig, QualityRequest]]:
    """The sources that a request covers, and the request for each.

    Raises:
        ConfigError: there is no such source, or the range of several sources has a place that is not a time.
    """
    if request.source is not None or len(spec.sources) == 1:
        return [(named_source(spec, request.source), request)]
    names = ", ".join(source.source_id for source in spec.sources)
    for place in filter(None, (request.begin, request.end)):
        if time_of(place) is None:
            raise ConfigError(
                f"{place} is a place in the log of one source, and the task has the sources {names}",
                hint="select one of them with --source, or use a time",
            )
    return [(config, replace(request, source=config.source_id)) for config in spec.sources]


@dataclass(frozen=True, slots=True)
class SourcePart:
    """What a request evaluates of one source.

    Attributes:
        begin: None for the current rows of silver.
        known: the source's known tables.
        names: the tables to evaluate.
    """

    source: TaskSource
    request: QualityRequest
    begin: Position | None
    end: Position
    known: Sequence[TableName]
    names: Sequence[TableName]


def parts_of(sources: Sequence[tuple[TaskSource, QualityRequest]]) -> list[SourcePart]:
    """What to evaluate of each source that has anything: a warning names those without data or changes in the range.

    Raises:
        ConfigError: no source has; the error of the first one.
        DmdeltaError: bronze does not have a source's range; a table cannot be read.
    """
    parts: list[SourcePart] = []
    errors: list[ConfigError] = []
    idle: list[tuple[str, str]] = []
    for source, request in sources:
        try:
            begin, end = _kept_range(source, request)
        except ConfigError as error:
            errors.append(error)
            idle.append((source.config.source_id, error.message))
            continue
        known = source.known_tables()
        try:
            names = source.tables_like(request.table, known)
        except ConfigError as error:
            errors.append(error)
            continue
        parts.append(SourcePart(source, request, begin, end, known, names))
    if not parts:
        raise errors[0]
    for source_id, why in idle:
        log.warning("source not evaluated", source=source_id, why=why)
    return parts


def _kept_range(source: TaskSource, request: QualityRequest) -> tuple[Position | None, Position]:
    begin, end = _range(source, request)
    if begin is not None:
        assert_kept(source.task.spark, source.landing, begin)
    return begin, end


def _evaluate(part: SourcePart, suites: Suites, add: Report, stage: Stage) -> None:
    source, request, names = part.source, part.request, part.names
    task, context = source.task, source.context
    history = ReplayedHistory(task, context, frozenset(names)) if request.replay else SilverHistory(task, context)
    evaluation = open_evaluation(source, history, part.known, suites)
    try:
        for number, name in enumerate(names, 1):
            stage(f"evaluating {'.'.join(name)} ({number} of {len(names)})")
            if request.replay or source.is_in_silver(name):
                add(evaluation.evaluate(name, _scope(request, part.begin), part.begin, part.end))
    finally:
        history.close()


def write_docs(folder: Path, results: Sequence[TableResult]) -> Path | None:
    """Write Great Expectations' Data Docs of results. Returns the index page, or None if no table has a suite.

    Raises:
        ConfigError: the folder cannot be written.
    """
    validations = [validation for result in results for validation in result.validations]
    if not validations:
        return None
    # Great Expectations is an optional dependency, which suites require.
    from dmdelta.quality.data_docs import write_data_docs  # noqa: PLC0415

    return write_data_docs(folder, validations)


def open_evaluation(
    source: TaskSource, history: SilverHistory | ReplayedHistory, known: Sequence[TableName], suites: Suites
) -> TableEvaluation:
    """The evaluation of a source's tables, with their states from a history.

    Args:
        known: the source's known tables.
    """
    task, context = source.task, source.context
    keys = ForeignKeyEvaluation(task.spark, context, history, endpoint_of(source.config), _sources(source, known))
    return TableEvaluation(task, context, keys, (task.spec.quality or QualityConfig()).freshness, suites)


def _sources(source: TaskSource, known: Sequence[TableName]) -> Mapping[TableName, Sequence[TableName]]:
    """The source tables that are routed to each silver table, by its name."""
    sources: dict[TableName, list[TableName]] = {}
    for name in known:
        sources.setdefault(source.context.table(name).route.name, []).append(name)
    return sources


def _scope(request: QualityRequest, begin: Position | None) -> Scope:
    if begin is None:
        return Scope.TABLE
    return Scope.IMAGES if request.images else Scope.REPLAY if request.replay else Scope.RANGE


def _range(source: TaskSource, request: QualityRequest) -> tuple[Position | None, Position]:
    """The range of the log to evaluate; every table has reached its end."""
    task, landing = source.task, source.landing
    landed = newest_landed(task.spark, landing)
    stored = load_points(task.spark, task.lakehouse, task.spec.name, source.config.source_id)
    if landed is None or (stored is None and not request.replay):
        raise ConfigError(f"silver has no data of {source.config.source_id} yet", hint="run the task first")
    applied = landed.end if stored is None or request.replay else stored.global_point.position
    if request.last is not None:
        batches = [batch for batch in landed_batches(task.spark, landing) if batch.end <= applied]
        chosen = [batch for batch in batches if batch.begin != batch.end][-request.last :]
        if not chosen:
            raise ConfigError(
                "bronze's history has no batch that silver has applied", hint="run the task first, or use --from"
            )
        return chosen[0].begin, chosen[-1].end
    places = LandedPositions(task.spark, landing, landed.end)
    end = min(applied, find_place(places, request.end, Side.TO)) if request.end is not None else applied
    if request.begin is None:
        if request.end is not None or request.images or request.replay:
            raise ConfigError("the range has no begin", hint="pass --from or --last")
        return None, end
    begin = find_place(places, request.begin, Side.FROM)
    if begin >= end:
        source_end = "bronze" if request.replay else "silver"
        raise ConfigError(f"the range begins at {begin} and {source_end} ends at {end}", hint="correct --from or --to")
    return begin, end
