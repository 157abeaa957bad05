"""Lists the tables of a source, with the reason for each that the validator cannot compare, before any row changes."""

from collections.abc import Collection
from contextlib import closing

from dmdelta.config import SourceConfig
from dmdelta.engine.task.mapping import endpoint_of
from dmdelta.engine.task.source import TaskSource, source_of_task
from dmdelta.engine.task.task import Task
from dmdelta.errors import ConfigError, SourceError
from dmdelta.logging import get_logger
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.quality.row_compare import TableFacts, plan_look
from dmdelta.rules.comparable_rows import plan_comparable_rows
from dmdelta.source.catalog import read_schemas
from dmdelta.source.connection import open_connection
from dmdelta.source.endpoint import Endpoint

log = get_logger(__name__)


def validated_tables(task: Task, config: SourceConfig, compared: Collection[str]) -> dict[str, str | None]:
    """Why the rows of each table (`schema.table`) are not compared; None: they are.

    Empty if the source does not answer. Reads the checkpoint, not bronze: a table is known once it has been flushed.

    Args:
        compared: the tables that the validator has compared rows of.

    Raises:
        LakehouseError: dm_meta or silver cannot be read.
    """
    endpoint = endpoint_of(config)
    if endpoint is None:
        return {}
    try:
        source = source_of_task(task, config)
        schemas = _schemas(source, endpoint)
    except SourceError as error:
        log.warning("the source does not answer, listing the tables of silver", source=config.source_id, why=str(error))
        return {}
    applied = {name for name in source.applied_tables() if source.context.rules.wanted(*name)}
    known = {".".join(name) for name in applied} | set(compared)
    silver_alone = [name for name in applied - schemas.keys() if source.is_in_silver(name)]
    reasons: dict[str, str | None] = {".".join(name): "the source has no such table" for name in silver_alone}
    return reasons | {".".join(name): _reason(source, schema, known) for name, schema in schemas.items()}


def _schemas(source: TaskSource, endpoint: Endpoint) -> dict[TableName, TableSchema]:
    with closing(open_connection(endpoint)) as connection:
        return {schema.name: schema for schema in read_schemas(connection, source.context.rules.wanted)}


def _reason(source: TaskSource, schema: TableSchema, known: Collection[str]) -> str | None:
    """Assumes that silver has the source's columns: reading the schema of every silver table would be slow."""
    columns = tuple(column.name for column in schema.columns) if ".".join(schema.name) in known else None
    facts = TableFacts(schema, columns, plan_comparable_rows(source.context.rules, schema.name))
    try:
        planned = plan_look(facts, source.context.flavor, fast=source.task.spec.validator.mode == "fast")
    except ConfigError as error:
        return error.message
    return planned if isinstance(planned, str) else None
