"""`dmdelta validate`: which tables are compared with their source, one after the other."""

from collections.abc import Callable

from dmdelta.config import TaskSpec
from dmdelta.engine.relaying import endpoint_of
from dmdelta.engine.table_validation import TableValidation, Validated, ValidateRequest
from dmdelta.engine.task import named_source
from dmdelta.engine.task_source import TaskSource, open_task_source
from dmdelta.errors import ConfigError
from dmdelta.logging import get_logger
from dmdelta.model.schema import TableName
from dmdelta.silver.table import Condition, silver_condition

log = get_logger(__name__)


def validate(spec: TaskSpec, request: ValidateRequest, report: Callable[[Validated], object]) -> list[Validated]:
    """Compare tables with their source, one after the other, and put them right if that is asked for.

    Args:
        report: told of each table.

    Raises:
        ConfigError: there is no such table, or the source is an archive.
        QualityError: bronze does not come to where the source is.
        SourceError, SourceUnavailable: the source cannot be read.
        DmdeltaError: as `dmdelta.engine.table_replay`.
    """
    config = named_source(spec, request.source)
    endpoint = endpoint_of(config)
    if endpoint is None:
        raise ConfigError(f"{config.source_id} is an archive", hint="only a server can be compared with")
    source = open_task_source(spec, config.source_id)
    found: list[Validated] = []
    for name in _own_tables(source, request.table):
        found.append(TableValidation(source.task, source.side, source.landing, endpoint, name, request).run())
        report(found[-1])
    return found


def _own_tables(source: TaskSource, pattern: str) -> list[TableName]:
    """The tables that fit, are not dropped, and have a silver table of their own."""
    found, side, spark = source.tables_like(pattern), source.side, source.task.spark
    merged = [name for name in found if side.table(name).merged]
    if merged:
        log.warning("merged tables are not compared", tables=[".".join(name) for name in merged])
    names = [
        name
        for name in found
        if name not in merged and silver_condition(spark, side.table(name)) is not Condition.DROPPED
    ]
    if not names:
        raise ConfigError(
            f"no table of {pattern} has a silver table of its own", hint="merged and dropped tables do not"
        )
    return names
