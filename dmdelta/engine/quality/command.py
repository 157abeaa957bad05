"""`dmdelta quality`: what is expected of tables, and whether it is so."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dmdelta.bronze.landing import landed_batches, newest_landed
from dmdelta.bronze.retention import assert_kept
from dmdelta.checkpoint.store import load_points
from dmdelta.config import QualityConfig, TaskSpec
from dmdelta.engine.history.positions import LandedLogOf, Side, find_place
from dmdelta.engine.history.states import ReplayedHistory, SilverHistory
from dmdelta.engine.quality.evaluation import TableEvaluation, TableResult
from dmdelta.engine.quality.foreign_keys import ForeignKeyEvaluation
from dmdelta.engine.task.mapping import endpoint_of
from dmdelta.engine.task.source import TaskSource, open_task_source
from dmdelta.engine.task.task import open_suites
from dmdelta.errors import ConfigError
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.quality.results import ResultStore, Scope
from dmdelta.silver.table.table import Condition, silver_condition


@dataclass(frozen=True, slots=True)
class QualityRequest:
    """What to judge.

    Attributes:
        table: `schema.table` at the source, with `*` and `?` for several.
        begin, end: places in the log as people write them (`find_place`); None for all of silver as it is.
        last: so many of the batches that landed last, in place of `begin` and `end`.
        images: judge each row that the range wrote, each time it did, instead of silver.
        replay: rebuild the range's state from bronze; silver's history is not needed.
    """

    table: str = "*"
    source: str | None = None
    begin: str | None = None
    end: str | None = None
    last: int | None = None
    images: bool = False
    replay: bool = False


def evaluate_tables(
    spec: TaskSpec, request: QualityRequest, report: Callable[[TableResult], object]
) -> list[TableResult]:
    """Judge tables one after the other, and write down what was found.

    Args:
        report: told of each table.

    Raises:
        ConfigError: there is no such table or place, or a suite does not fit.
        QualityError: silver's history does not go back to the range, or bronze does not have it.
        DmdeltaError: as `open_task_source`.
    """
    source = open_task_source(spec, request.source)
    task, side = source.task, source.side
    begin, end = _range(source, request)
    if begin is not None:
        assert_kept(task.spark, source.landing, begin)
    store = ResultStore(task.spark, task.lakehouse, spec.name, task.run)
    history = ReplayedHistory(task, side) if request.replay else SilverHistory(task, side)
    judgement = open_judgement(spec, source, history)
    found: list[TableResult] = []
    try:
        for name in source.tables_like(request.table):
            if not request.replay and silver_condition(task.spark, side.table(name)) is not Condition.PRESENT:
                continue
            judged = judgement.evaluate(name, _scope(request, begin), begin, end)
            store.add(judged.judged, judged.results)
            found.append(judged)
            report(judged)
    finally:
        history.close()
    if not found:
        raise ConfigError(f"silver has no table {request.table}", hint="names are as the source writes them")
    return found


def write_docs(folder: Path, found: Sequence[TableResult]) -> Path | None:
    """Write Great Expectations' Data Docs of what was judged: the page to open, or None where no table has a suite.

    Raises:
        ConfigError: the folder cannot be written.
    """
    validations = [validation for one in found for validation in one.validations]
    if not validations:
        return None
    # Great Expectations is there only where a suite is.
    from dmdelta.quality.data_docs import write_data_docs  # noqa: PLC0415

    return write_data_docs(folder, validations)


def open_judgement(spec: TaskSpec, source: TaskSource, history: SilverHistory | ReplayedHistory) -> TableEvaluation:
    """What judges the tables of a source as a history has them.

    Raises:
        ConfigError: a suite is wrong.
    """
    task, side = source.task, source.side
    keys = ForeignKeyEvaluation(task.spark, side, history, endpoint_of(source.config), _sources(source))
    return TableEvaluation(task, side, keys, (spec.quality or QualityConfig()).freshness, open_suites(spec))


def _sources(source: TaskSource) -> Mapping[TableName, Sequence[TableName]]:
    """By the name of a silver table, the tables of a source whose rows it has."""
    found: dict[TableName, list[TableName]] = {}
    for name in source.known_tables():
        found.setdefault(source.side.table(name).route.name, []).append(name)
    return found


def _scope(request: QualityRequest, begin: Position | None) -> Scope:
    if begin is None:
        return Scope.TABLE
    return Scope.IMAGES if request.images else Scope.REPLAY if request.replay else Scope.RANGE


def _range(source: TaskSource, request: QualityRequest) -> tuple[Position | None, Position]:
    """From where to where of the log; all tables are at the end, or behind it."""
    task, landing = source.task, source.landing
    landed = newest_landed(task.spark, landing)
    stored = load_points(task.spark, task.lakehouse, task.spec.name, source.config.source_id)
    if landed is None or (stored is None and not request.replay):
        raise ConfigError(f"nothing of {source.config.source_id} is in silver", hint="run the task first")
    applied = landed.end if stored is None or request.replay else stored.global_point.position
    if request.last is not None:
        batches = [batch for batch in landed_batches(task.spark, landing, None) if batch.end <= applied]
        chosen = [batch for batch in batches if batch.begin != batch.end][-request.last :]
        if not chosen:
            raise ConfigError("no batch is in silver", hint="run the task first")
        return chosen[0].begin, chosen[-1].end
    places = LandedLogOf(task.spark, landing, landed.end)
    end = min(applied, find_place(places, request.end, Side.TO)) if request.end is not None else applied
    if request.begin is None:
        if request.end is not None or request.images or request.replay:
            raise ConfigError("a range has a begin", hint="give --from, or --last")
        return None, end
    begin = find_place(places, request.begin, Side.FROM)
    if begin >= end:
        source_end = "bronze" if request.replay else "silver"
        raise ConfigError(f"the range begins at {begin} and {source_end} ends at {end}", hint="correct --from or --to")
    return begin, end
