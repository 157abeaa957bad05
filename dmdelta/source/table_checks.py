"""What of the wanted tables, and of the server they are on, an operator should know before a task runs: DM's prechecks.

Each finding names the tables it is about. Nothing here reads a row.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dmdelta.model.schema import SYSTEM_SCHEMAS, TableSchema
from dmdelta.source.catalog import read_schemas
from dmdelta.source.connection import query, query_named, quoted, unless_refused
from dmdelta.source.preflight import GRANT, Finding, Level, grants_of
from dmdelta.source.server import ServerIdentity, server_identity, status_statement

if TYPE_CHECKING:
    from pymysql.connections import Connection

SHOWN = 5
"""So many names stand in a message; the number of the others behind them."""
CONNECTIONS = 4
"""A source takes two for its relay, one for its catalog, one for checks."""
_LOGS_CASCADES = (9, 6, 0)
"""From here on MySQL's SQL layer, not InnoDB, carries out cascades, so that they are in the log."""
_CHILDREN = """
SELECT DISTINCT table_schema, table_name FROM information_schema.key_column_usage
WHERE referenced_table_name IS NOT NULL AND table_schema NOT IN %s
"""
_LOCKS = re.compile(r"\b(LOCK TABLES|ALL PRIVILEGES)\b", re.IGNORECASE)
_CASCADE = re.compile(r" ON (DELETE|UPDATE) (CASCADE|SET NULL|SET DEFAULT)")

Wanted = Callable[[str, str], bool]
"""(schema, table) → it takes part."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What the server says of the tables that take part.

    Attributes:
        tables: their structures.
        cascading: children of foreign keys whose rows the server changes by itself.
        unlogged: schemas with tables that take part and that the server's own filters keep out of its log.
        connections: (most allowed, connected now).
    """

    server: ServerIdentity
    tables: Sequence[TableSchema]
    cascading: Sequence[str]
    unlogged: Sequence[str]
    connections: tuple[int, int]


def check_tables(connection: "Connection[Any]", wanted: Wanted, *, loads: bool) -> list[Finding]:
    """All findings for the tables that take part; `loads`: they are to be read as they are, too.

    Raises:
        SourceUnavailable, SourceError: the server does not answer.
    """
    facts = table_facts(connection, wanted)
    return [*table_findings(facts), *([_lock_tables(facts.tables, grants_of(connection))] if loads else [])]


def table_facts(connection: "Connection[Any]", wanted: Wanted) -> TableFacts:
    """Ask the server."""
    server, tables = server_identity(connection), read_schemas(connection, wanted)
    most = int(query(connection, "SELECT @@global.max_connections")[0][0])
    status = dict(query(connection, "SHOW GLOBAL STATUS LIKE 'Threads_connected'"))
    return TableFacts(
        server,
        tables,
        [f"{schema}.{table}" for schema, table in _cascading(connection, wanted)],
        _unlogged(connection, server, sorted({table.schema for table in tables})),
        (most, int(status["Threads_connected"])),
    )


def _cascading(connection: "Connection[Any]", wanted: Wanted) -> list[tuple[str, str]]:
    """Children of foreign keys that cascade, out of their own statements: MariaDB shows the rules to few accounts."""
    children = [name for name in query(connection, _CHILDREN, (SYSTEM_SCHEMAS,)) if wanted(*name)]
    made = {name: str(query(connection, f"SHOW CREATE TABLE {quoted(*name)}")[0][1]) for name in children}
    return sorted(name for name, statement in made.items() if _CASCADE.search(statement))


def _unlogged(connection: "Connection[Any]", server: ServerIdentity, schemas: Sequence[str]) -> list[str]:
    """Of `schemas`, those that --binlog-do-db and --binlog-ignore-db keep out of the log."""
    # Without the privilege, which is a finding of its own, there is nothing to tell.
    rows = unless_refused(lambda: query_named(connection, status_statement(server))) or []
    do = {name for row in rows for name in str(row["binlog_do_db"] or "").split(",") if name}
    ignore = {name for row in rows for name in str(row["binlog_ignore_db"] or "").split(",") if name}
    return [name for name in schemas if (name not in do if do else name in ignore)]


def table_findings(facts: TableFacts) -> list[Finding]:
    """Judge the facts."""
    return [_tables(facts), _binlog_db(facts), _primary_key(facts), _foreign_key(facts), _connections(facts)]


def _tables(facts: TableFacts) -> Finding:
    count = len(facts.tables)
    if count:
        return Finding("tables", Level.PASS, f"{count:,} take part")
    return Finding("tables", Level.WARN, "none takes part now", "mend block-allow-list, or GRANT SELECT on them")


def _binlog_db(facts: TableFacts) -> Finding:
    if not facts.unlogged:
        return Finding("binlog_db", Level.PASS, "every schema that takes part is in the binlog")
    message = f"the server keeps out of its binlog: {_listed(facts.unlogged)}"
    return Finding("binlog_db", Level.FAIL, message, "start it without --binlog-do-db and --binlog-ignore-db")


def _primary_key(facts: TableFacts) -> Finding:
    keyless = [str(table) for table in facts.tables if not table.primary_key]
    if not keyless:
        return Finding("primary_key", Level.PASS, "every table has a primary or a unique key")
    message = (
        f"without a primary or unique key: {_listed(keyless)}: updates match whole rows, and ranges that are applied "
        "again in safe mode may leave rows twice"
    )
    return Finding("primary_key", Level.WARN, message, "ALTER TABLE … ADD PRIMARY KEY")


def _lock_tables(tables: Sequence[TableSchema], grants: Sequence[str]) -> Finding:
    name = "privilege lock tables"
    missing = sorted({t.schema for t in tables if not t.primary_key and not _may_lock(grants, t.schema)})
    if not missing:
        return Finding(name, Level.PASS, "granted where a table has no key")
    message = f"not granted on {_listed(missing)}: a table without a key is locked for the moment its snapshot begins"
    # A role may hold it: only the attempt would tell.
    level = Level.FAIL if all(GRANT.match(line) for line in grants) else Level.WARN
    return Finding(name, level, message, "GRANT LOCK TABLES ON the schema to <account>")


def _may_lock(grants: Sequence[str], schema: str) -> bool:
    """Whether LOCK TABLES is held on all schemas, or on this one by its name."""
    found = (GRANT.match(line) for line in grants)
    held = {one[2].replace("\\", "") for one in found if one and _LOCKS.search(one[1])}
    return bool(held & {"*.*", f"`{schema}`.*"})


def _foreign_key(facts: TableFacts) -> Finding:
    if not facts.cascading:
        return Finding("foreign_key", Level.PASS, "no foreign key changes rows by itself")
    if facts.server.flavor == "mysql" and facts.server.version >= _LOGS_CASCADES:
        return Finding("foreign_key", Level.PASS, "the server logs what foreign keys change")
    message = (
        f"foreign keys with CASCADE or SET NULL change rows of {_listed(facts.cascading)}, and the server does not log "
        "it: those rows stay in silver as they were"
    )
    return Finding("foreign_key", Level.WARN, message, "change such rows by statements of their own")


def _connections(facts: TableFacts) -> Finding:
    most, now = facts.connections
    text = f"{now} of {most} connections are in use"
    if most - now >= CONNECTIONS:
        return Finding("conn_number", Level.PASS, text)
    return Finding("conn_number", Level.WARN, f"{text}, a task takes {CONNECTIONS}", "SET GLOBAL max_connections = …")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
