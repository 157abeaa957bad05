"""Read-only queries of bronze and of the flushed checkpoint."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dmdelta.config import TaskSpec
from dmdelta.engine.task.task import Stage, ignored, open_task
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.history import commits
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import seq_of
from dmdelta.model.spark_sql import literal

_POSITION = re.compile(r"^(?:(\d+)/)?([^/:]+\.\d+):(\d+)$")
_COLUMNS = """source_id, concat(epoch, '/', binlog_file, ':', binlog_pos) AS position, gtid,
date_format(committed_at, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'") AS committed_at,
concat_ws('.', schema_name, table_name) AS table, op, xid, to_json(before) AS before, to_json(after) AS after, ddl"""


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which bronze rows to show.

    Attributes:
        table: `schema.table`; None for all.
        start: `binlog.000001:4` or `epoch/binlog.000001:4`: the first position.
        op: None for all except the structure rows that landing adds.
    """

    table: str | None = None
    start: str | None = None
    op: Op | None = None
    limit: int = 20


def events(spec: TaskSpec, query: EventQuery, stage: Stage = ignored) -> list[dict[str, Any]]:
    """The first matching rows of bronze, in the order of each source's log; none if nothing has landed.

    Args:
        stage: called once the query begins.

    Raises:
        ConfigError: the table or position has an invalid format.
        LakehouseError: bronze cannot be read.
    """
    condition = " AND ".join(plan_conditions(query))
    task = open_task(spec, writing=False, beside_run=True)
    stage("reading bronze")
    bronze = task.lakehouse.bronze
    if not commits(task.spark, bronze, 1):  # without a query, under a local root
        return []
    sources = ", ".join(literal(source.source_id) for source in spec.sources)
    matching = f"FROM {bronze} WHERE source_id IN ({sources}) AND {condition}"
    first = f"ORDER BY source_id, epoch, seq, row LIMIT {query.limit}"
    with wrapped(bronze, "reading"):
        # Without the images, which are nearly all of bronze.
        found = task.spark.sql(f"SELECT source_id, epoch, seq, row {matching} {first}").collect()
        if not found:
            return []
        ranges = plan_ranges((row["source_id"], row["epoch"], row["seq"]) for row in found)
        rows = task.spark.sql(f"SELECT {_COLUMNS} {matching} AND ({ranges}) {first}").collect()
        return [row.asDict() for row in rows]


def plan_ranges(places: Iterable[tuple[str, int, int]]) -> str:
    """The SQL condition for the range of each source and epoch.

    Args:
        places: source, epoch and `seq` of each row.
    """
    ranges: dict[tuple[str, int], list[int]] = {}
    for source_id, epoch, seq in places:
        ranges.setdefault((source_id, epoch), []).append(seq)
    return " OR ".join(
        f"source_id = {literal(source_id)} AND epoch = {epoch} AND seq BETWEEN {min(seqs)}L AND {max(seqs)}L"
        for (source_id, epoch), seqs in ranges.items()
    )


def plan_conditions(query: EventQuery) -> list[str]:
    """The SQL conditions of a query.

    Raises:
        ConfigError: the table or position has an invalid format.
    """
    conditions = [f"op = {literal(query.op.value)}" if query.op else f"op <> {literal(Op.SCHEMA.value)}"]
    if query.table is not None:
        schema, dot, table = query.table.partition(".")
        if not dot:
            raise ConfigError(f"{query.table!r} is not a table", hint="write --table schema.table")
        conditions.append(f"schema_name = {literal(schema)} AND table_name = {literal(table)}")
    if query.start is not None:
        match = _POSITION.match(query.start)
        if match is None:
            raise ConfigError(f"{query.start!r} is not a position", hint="write --from binlog.000001:4")
        seq = seq_of(match[2], int(match[3]))
        epoch = match[1]
        conditions.append(
            f"seq >= {seq}" if epoch is None else f"(epoch > {epoch} OR epoch = {epoch} AND seq >= {seq})"
        )
    return conditions
