"""`dmdelta replay`: which tables and which range of a source's log are replayed."""

from fnmatch import fnmatchcase

from dmdelta.bronze.landing import newest_landed
from dmdelta.changelog.ranges import of_source
from dmdelta.config import TaskSpec
from dmdelta.engine.binlog_operators import read_operators
from dmdelta.engine.log_places import LandedLogOf, Side, find_place
from dmdelta.engine.relaying import flavor_of_source
from dmdelta.engine.requests import SilverSide
from dmdelta.engine.table_replay import Replayed, ReplayRequest, ReplayTo, Report, TableReplay
from dmdelta.engine.task import Task, named_source, open_task
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.foreign import wrapped
from dmdelta.model.schema import TableName
from dmdelta.sharding import Coordination


def replay(spec: TaskSpec, request: ReplayRequest, report: Report) -> list[Replayed]:
    """Carry a replay out, for each table in turn. One that was killed goes on when it is asked for again.

    Raises:
        ConfigError: a place or a table is not there, or what is asked for does not go together.
        QualityError: bronze does not have what it takes.
        DmdeltaError: as `dmdelta.silver.apply_table`.
    """
    _assert_sense(request)
    source = named_source(spec, request.source)
    flavor = flavor_of_source(spec, source)
    task = open_task(spec, writing=False)
    landing = task.landing_source(source.source_id, flavor)
    landed = newest_landed(task.spark, landing)
    if landed is None:
        raise ConfigError(f"nothing of {source.source_id} has landed", hint="run the task first")
    places = LandedLogOf(task.spark, landing, landed.end)
    begin = find_place(places, request.begin, Side.FROM) if request.begin is not None else None
    end = find_place(places, request.end, Side.TO) if request.end is not None else None
    if begin is not None and end is not None and begin >= end:
        raise ConfigError(f"the range ends at {end}, before it begins at {begin}", hint="mend --from or --to")
    operators = read_operators(task.spark, task.lakehouse, spec.name, source.source_id)
    side = task.silver_side(source.source_id, flavor, operators, Coordination())
    names = tables_like(task, side, request.table)
    if request.to is ReplayTo.NEW and len(names) > 1:
        raise ConfigError(f"{request.table} stands for {len(names)} tables", hint="--into takes one")
    return [TableReplay(task, side, name, report).run(request, begin, end, landed.end) for name in names]


def _assert_sense(request: ReplayRequest) -> None:
    if request.to is ReplayTo.LIVE and (request.begin is None or request.end is None):
        raise ConfigError("a replay into the live table needs a range", hint="give --from and --to, or --rebuild")
    if request.to is ReplayTo.NEW and (request.begin is not None or request.end is None):
        raise ConfigError("--into makes a table as it was at one position", hint="give --to alone")
    if request.to is ReplayTo.REBUILD and (request.begin is not None or request.end is not None):
        raise ConfigError("--rebuild makes the table as it is now", hint="leave --from and --to out")


def tables_like(task: Task, side: SilverSide, pattern: str) -> list[TableName]:
    """The tables of a source that bronze has heard of and that fit."""
    bronze = task.lakehouse.bronze
    with wrapped(bronze, "reading"):
        rows = task.spark.sql(
            f"""SELECT DISTINCT schema_name, table_name FROM {bronze}
            WHERE {of_source(side.source_id)} AND op = 'schema' AND table_name IS NOT NULL"""
        ).collect()
    names = sorted((str(row["schema_name"]), str(row["table_name"])) for row in rows)
    found = [name for name in names if fnmatchcase(".".join(name), pattern) and side.rules.wanted(*name)]
    if not found:
        raise ConfigError(f"bronze has no table {pattern}", hint="names are as the source writes them: schema.table")
    return found
