"""`dmdelta replay`: resolves the tables and the range of a source's log, and replays them."""

from dmdelta.bronze.progress import newest_landed
from dmdelta.bronze.retention import assert_kept
from dmdelta.config import TaskSpec
from dmdelta.engine.history.positions import LandedPositions, Side, find_place
from dmdelta.engine.history.scratch import Report
from dmdelta.engine.history.states import SilverHistory
from dmdelta.engine.quality.command import open_evaluation
from dmdelta.engine.replay.check import ReplayCheck
from dmdelta.engine.replay.repair import Replayed
from dmdelta.engine.replay.table import ReplayRequest, ReplayTo, TableReplay
from dmdelta.engine.task.source import TaskSource, open_task_source
from dmdelta.engine.task.task import open_suites
from dmdelta.errors import ConfigError
from dmdelta.quality.results import ResultStore


def replay(spec: TaskSpec, request: ReplayRequest, report: Report) -> list[Replayed]:
    """Replay each table in turn. Repeating a request that was killed resumes it.

    Raises:
        ConfigError: a place or a table does not exist, or options conflict.
        QualityError: bronze does not have the range, or the result fails an expectation (`check`).
        DmdeltaError: as `dmdelta.silver.apply.apply.apply_table`.
    """
    _assert_consistent(request)
    source = open_task_source(spec, request.source)
    spark = source.task.spark
    landed = newest_landed(spark, source.landing)
    if landed is None:
        raise ConfigError(f"no data of {source.config.source_id} has landed", hint="run the task first")
    places = LandedPositions(spark, source.landing, landed.end)
    begin = find_place(places, request.begin, Side.FROM) if request.begin is not None else None
    end = find_place(places, request.end, Side.TO) if request.end is not None else None
    if begin is not None and end is not None and begin >= end:
        raise ConfigError(f"the range ends at {end}, before it begins at {begin}", hint="correct --from or --to")
    if begin is not None:
        assert_kept(spark, source.landing, begin)
    names = source.tables_like(request.table)
    if request.to is ReplayTo.NEW and len(names) > 1:
        raise ConfigError(f"{request.table} matches {len(names)} tables", hint="--into requires exactly one")
    if request.to is not ReplayTo.NEW and len(names) > 1:  # a pattern may match tables that were dropped or renamed
        names = [name for name in names if source.is_in_silver(name)]
    check = _check_of(spec, source) if request.check else None
    return [
        TableReplay(source.task, source.context, name, report, check).run(request, begin, end, landed.end)
        for name in names
    ]


def _check_of(spec: TaskSpec, source: TaskSource) -> ReplayCheck:
    task = source.task
    history, known = SilverHistory(task, source.context), source.known_tables()
    evaluation = open_evaluation(source, history, known, open_suites(spec))
    return ReplayCheck(evaluation, ResultStore(task.spark, task.lakehouse, spec.name, task.run))


def _assert_consistent(request: ReplayRequest) -> None:
    if request.to is ReplayTo.LIVE and (request.begin is None or request.end is None):
        raise ConfigError("a replay into the live table needs a range", hint="pass --from and --to, or --rebuild")
    if request.to is ReplayTo.NEW and (request.begin is not None or request.end is None):
        raise ConfigError("--into creates a table as of one position", hint="pass --to only")
    if request.to is ReplayTo.REBUILD and (request.begin is not None or request.end is not None):
        raise ConfigError("--rebuild replays the table's whole history", hint="omit --from and --to")
