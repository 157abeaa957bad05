"""Checks the selected tables, and the server they are on, before a task runs: DM's prechecks.

Each finding names the tables it concerns. Nothing here reads a row.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dmdelta.binlog.values.charsets import decoder_of
from dmdelta.ddl.types.silver_types import OWN_COLUMNS, SHARD, silver_type
from dmdelta.errors import SchemaError, UnsupportedEvent
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import SYSTEM_SCHEMAS, Column, TableSchema
from dmdelta.rules import SourceRules
from dmdelta.rules.block_allow_list import TablePatterns
from dmdelta.source.catalog import SEQUENCE, SYSTEM_VERSIONED, read_schemas, table_names
from dmdelta.source.connection import query, query_named, unless_refused
from dmdelta.source.preflight.expression_checks import check_expressions
from dmdelta.source.preflight.finding import Finding, Level, listed
from dmdelta.source.preflight.privileges import grants_of, load_finding, lock_tables_finding, reload_finding
from dmdelta.source.preflight.time_zone import Zone, read_zone, zone_finding
from dmdelta.source.server import ServerIdentity, server_identity, status_statement

if TYPE_CHECKING:
    from pymysql.connections import Connection

CONNECTIONS = 5
"""A source takes two for its relay, one for its catalog, one for checks, one for its validator."""
_LOGS_CASCADES = (9, 6, 0)
"""From this version on, MySQL's SQL layer, not InnoDB, executes cascades, so that they are logged."""
_CHILDREN = """
SELECT DISTINCT table_schema, table_name FROM information_schema.key_column_usage
WHERE referenced_table_name IS NOT NULL AND table_schema NOT IN %s
"""
_CASCADE = re.compile(r" ON (DELETE|UPDATE) (CASCADE|SET NULL|SET DEFAULT)")

Wanted = Callable[[str, str], bool]
"""(schema, table) → it is selected."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source's tables are read for a full load.

    Attributes:
        loads: whether they are read at all.
        at_once: number of chunks read concurrently; None: a cluster decides.
        together: all of them in one snapshot, under a lock.
        alone: the task has no other source.
    """

    loads: bool = False
    at_once: int | None = 0
    together: bool = False
    alone: bool = True


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What the server reports about the selected tables.

    Attributes:
        tables: their structures.
        sequences, versioned: MariaDB's sequences and system-versioned tables, which are not among `tables`.
        cascading: children of foreign keys whose rows the server changes through cascades.
        unlogged: schemas with selected tables that the server's own filters exclude from its log.
        connections: (maximum allowed, connected now).
    """

    server: ServerIdentity
    tables: Sequence[TableSchema]
    cascading: Sequence[str]
    unlogged: Sequence[str]
    connections: tuple[int, int]
    zone: Zone
    sequences: Sequence[str] = ()
    versioned: Sequence[str] = ()


def check_tables(connection: "Connection[Any]", rules: SourceRules, reading: Reading) -> list[Finding]:
    """All findings for the selected tables and for their row filters.

    Raises:
        SourceUnavailable, SourceError: the server does not answer.
    """
    facts = table_facts(connection, rules.wanted)
    return [
        *table_findings(facts, reading),
        *_rights(facts.tables, reading, grants_of(connection), rules.allow_list.places),
        *check_expressions(rules.expressions, facts.tables, facts.server.flavor),
    ]


def _rights(
    tables: Sequence[TableSchema], reading: Reading, grants: Sequence[str], places: TablePatterns
) -> list[Finding]:
    if not reading.loads:
        return []
    locks = reload_finding(grants) if reading.together else lock_tables_finding(tables, grants)
    return [load_finding(grants, places, tables, alone=reading.alone), locks]


def table_facts(connection: "Connection[Any]", wanted: Wanted) -> TableFacts:
    """Query the server."""
    server, tables = server_identity(connection), read_schemas(connection, wanted)
    most = int(query(connection, "SELECT @@global.max_connections")[0][0])
    status = dict(query(connection, "SHOW GLOBAL STATUS LIKE 'Threads_connected'"))
    return TableFacts(
        server,
        tables,
        [f"{schema}.{table}" for schema, table in _cascading(connection, wanted)],
        _unlogged(connection, server, sorted({table.schema for table in tables})),
        (most, int(status["Threads_connected"])),
        read_zone(connection, wanted),
        sequences=_names_of(connection, wanted, server, SEQUENCE),
        versioned=_names_of(connection, wanted, server, SYSTEM_VERSIONED),
    )


def _names_of(connection: "Connection[Any]", wanted: Wanted, server: ServerIdentity, kind: str) -> list[str]:
    """The tables of a type that only MariaDB has."""
    if server.flavor != "mariadb":
        return []
    return sorted(f"{schema}.{table}" for schema, table in table_names(connection, wanted, (kind,)))


def _cascading(connection: "Connection[Any]", wanted: Wanted) -> list[tuple[str, str]]:
    """Children of cascading foreign keys, from SHOW CREATE TABLE: MariaDB shows the rules to few accounts."""
    children = [name for name in query(connection, _CHILDREN, (SYSTEM_SCHEMAS,)) if wanted(*name)]
    statements = {name: str(query(connection, f"SHOW CREATE TABLE {quoted_name(*name)}")[0][1]) for name in children}
    return sorted(name for name, statement in statements.items() if _CASCADE.search(statement))


def _unlogged(connection: "Connection[Any]", server: ServerIdentity, schemas: Sequence[str]) -> list[str]:
    """The `schemas` that --binlog-do-db and --binlog-ignore-db exclude from the log."""
    # Without the privilege, which is a finding of its own, the filters are unknown.
    rows = unless_refused(lambda: query_named(connection, status_statement(server))) or []
    do = {name for row in rows for name in str(row["binlog_do_db"] or "").split(",") if name}
    ignore = {name for row in rows for name in str(row["binlog_ignore_db"] or "").split(",") if name}
    return [name for name in schemas if (name not in do if do else name in ignore)]


def table_findings(facts: TableFacts, reading: Reading) -> list[Finding]:
    """Evaluate the facts."""
    return [
        _tables(facts),
        _binlog_db(facts),
        _table_schema(facts),
        _table_type(facts),
        _primary_key(facts),
        _foreign_key(facts),
        zone_finding(facts.zone, loads=reading.loads),
        _connections(facts, reading),
    ]


def _tables(facts: TableFacts) -> Finding:
    count = len(facts.tables)
    if count:
        left_out = f"; sequences are not replicated: {listed(facts.sequences)}" if facts.sequences else ""
        return Finding("tables", Level.PASS, f"{count:,} selected{left_out}")
    return Finding(
        "tables", Level.WARN, "no table is selected", "correct block-allow-list, or GRANT SELECT on the tables"
    )


def _binlog_db(facts: TableFacts) -> Finding:
    if not facts.unlogged:
        return Finding("binlog_db", Level.PASS, "every selected schema is in the binlog")
    message = f"the server excludes from its binlog: {listed(facts.unlogged)}"
    return Finding("binlog_db", Level.FAIL, message, "start it without --binlog-do-db and --binlog-ignore-db")


def _primary_key(facts: TableFacts) -> Finding:
    keyless = [str(table) for table in facts.tables if not table.primary_key]
    if not keyless:
        return Finding("primary_key", Level.PASS, "every table has a primary or a unique key")
    message = (
        f"without a primary or unique key: {listed(keyless)}: updates match whole rows, and ranges that are applied "
        "again in safe mode may duplicate rows"
    )
    return Finding("primary_key", Level.WARN, message, "ALTER TABLE … ADD PRIMARY KEY")


def _foreign_key(facts: TableFacts) -> Finding:
    if not facts.cascading:
        return Finding("foreign_key", Level.PASS, "no foreign key cascades")
    if facts.server.flavor == "mysql" and facts.server.version >= _LOGS_CASCADES:
        return Finding("foreign_key", Level.PASS, "the server logs the changes of cascades")
    message = (
        f"foreign keys with CASCADE or SET NULL change rows of {listed(facts.cascading)}, and the server does not log "
        "these changes: silver keeps the old rows"
    )
    return Finding("foreign_key", Level.WARN, message, "change such rows with explicit statements")


def _table_schema(facts: TableFacts) -> Finding:
    problems = [
        f"{table}.{column.name}: {problem}"
        for table in facts.tables
        for column in table.columns
        if (problem := column_problem(column))
    ]
    if not problems:
        return Finding("table_schema", Level.PASS, "silver supports every column's name, type and character set")
    message = f"silver does not support {listed(problems)}"
    fix = "rename or change the columns, or exclude their tables with the block-allow-list"
    return Finding("table_schema", Level.FAIL, message, fix)


def _table_type(facts: TableFacts) -> Finding:
    """Whether the log tells the rows of each table from the history of rows, and each table from a sequence."""
    like = [str(table) for table in facts.tables if facts.server.flavor == "mariadb" and table.is_sequence]
    fix = "exclude them with the block-allow-list"
    if facts.versioned:
        message = f"the log mixes rows and history of tables with system versioning: {listed(facts.versioned)}"
        return Finding("table_type", Level.FAIL, message, f"{fix}, or ALTER TABLE … DROP SYSTEM VERSIONING")
    if like:
        message = f"the log does not tell tables with the columns of a sequence from sequences: {listed(like)}"
        return Finding("table_type", Level.FAIL, message, f"{fix}, or rename a column")
    return Finding("table_type", Level.PASS, "silver supports every table's type")


def column_problem(column: Column) -> str | None:
    """Why silver does not support a column; None if it does."""
    if column.name.lower() in (*OWN_COLUMNS, SHARD):
        return "the name is reserved for silver's own columns"
    try:
        silver_type(column)
        if column.charset is not None:
            decoder_of(column.charset)
    except SchemaError:
        return f"the type {column.type} is unknown"
    except UnsupportedEvent:
        return f"the character set {column.charset} is unknown"
    return None


def _connections(facts: TableFacts, reading: Reading) -> Finding:
    most, now = facts.connections
    text, needed = f"{now} of {most} connections are in use", connections_of(facts.tables, reading)
    more = " and one more for each task that the cluster runs at once" if reading.at_once is None else ""
    if most - now >= needed:
        return Finding("conn_number", Level.PASS, f"{text}, the task needs up to {needed}{more}")
    message = f"{text}, the task needs up to {needed}{more}"
    return Finding("conn_number", Level.WARN, message, f"SET GLOBAL max_connections = {now + needed}")


def connections_of(tables: Sequence[TableSchema], reading: Reading) -> int:
    """The maximum number of connections that a source's task holds at once: its own, and those that read chunks.

    While a chunk of a table without a key is read, a second connection may hold the lock of the table.
    """
    readers = reading.at_once or 0
    keyless = sum(1 for table in tables if not table.primary_key)
    return CONNECTIONS + readers + min(readers, keyless)
