"""`dmdelta replay`: which tables and which range of a source's log are replayed."""

from dmdelta.bronze.landing import newest_landed
from dmdelta.bronze.retention import assert_kept
from dmdelta.config import TaskSpec
from dmdelta.engine.log_places import LandedLogOf, Side, find_place
from dmdelta.engine.table_replay import Replayed, ReplayRequest, ReplayTo, TableReplay
from dmdelta.engine.table_scratch import Report
from dmdelta.engine.task_source import open_task_source
from dmdelta.errors import ConfigError


def replay(spec: TaskSpec, request: ReplayRequest, report: Report) -> list[Replayed]:
    """Carry a replay out, for each table in turn. One that was killed goes on when it is asked for again.

    Raises:
        ConfigError: a place or a table is not there, or what is asked for does not go together.
        QualityError: bronze does not have what it takes.
        DmdeltaError: as `dmdelta.silver.apply_table`.
    """
    _assert_sense(request)
    source = open_task_source(spec, request.source)
    spark = source.task.spark
    landed = newest_landed(spark, source.landing)
    if landed is None:
        raise ConfigError(f"nothing of {source.config.source_id} has landed", hint="run the task first")
    places = LandedLogOf(spark, source.landing, landed.end)
    begin = find_place(places, request.begin, Side.FROM) if request.begin is not None else None
    end = find_place(places, request.end, Side.TO) if request.end is not None else None
    if begin is not None and end is not None and begin >= end:
        raise ConfigError(f"the range ends at {end}, before it begins at {begin}", hint="mend --from or --to")
    if begin is not None:
        assert_kept(spark, source.landing, begin)
    names = source.tables_like(request.table)
    if request.to is ReplayTo.NEW and len(names) > 1:
        raise ConfigError(f"{request.table} stands for {len(names)} tables", hint="--into takes one")
    return [TableReplay(source.task, source.side, name, report).run(request, begin, end, landed.end) for name in names]


def _assert_sense(request: ReplayRequest) -> None:
    if request.to is ReplayTo.LIVE and (request.begin is None or request.end is None):
        raise ConfigError("a replay into the live table needs a range", hint="give --from and --to, or --rebuild")
    if request.to is ReplayTo.NEW and (request.begin is not None or request.end is None):
        raise ConfigError("--into makes a table as it was at one position", hint="give --to alone")
    if request.to is ReplayTo.REBUILD and (request.begin is not None or request.end is not None):
        raise ConfigError("--rebuild makes the table as it is now", hint="leave --from and --to out")
