"""An account's privileges according to its own SHOW GRANTS, and what it lacks for a relay and for a snapshot."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dmdelta.model.gtid import Flavor
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import SYSTEM_SCHEMAS, TableSchema
from dmdelta.rules.block_allow_list import TablePatterns
from dmdelta.rules.patterns import is_exact, matches_grant
from dmdelta.source.connection import query
from dmdelta.source.preflight.finding import SHOWN, Finding, Level, listed

if TYPE_CHECKING:
    from pymysql.connections import Connection

_GRANT = re.compile(r"^GRANT (.+?) ON (`(?:[^`]|``)+`\.\S+|\S+) TO ", re.IGNORECASE)
_REVOKE = re.compile(r"^REVOKE (.+?) ON (\S+) FROM ", re.IGNORECASE)
_ROLE = re.compile(r"^GRANT [`'\"]?[^ ]+[`'\"]? TO ", re.IGNORECASE)
_READS = {"SELECT", "ALL PRIVILEGES"}
_LOCKS = re.compile(r"\b(LOCK TABLES|ALL PRIVILEGES)\b", re.IGNORECASE)


def grants_of(connection: "Connection[Any]") -> tuple[str, ...]:
    """The lines of SHOW GRANTS.

    Raises:
        SourceUnavailable: the server does not answer.
    """
    return tuple(str(row[0]) for row in query(connection, "SHOW GRANTS"))


def privilege_findings(grants: Sequence[str], flavor: Flavor, *, names_in_log: bool) -> list[Finding]:
    """Whether the account may read the log and, if the log names no columns, the table structures."""
    held, select, roles = _granted(grants)
    needed = {"REPLICATION SLAVE": {"REPLICATION SLAVE", "REPLICATION REPLICA"}}
    monitor = {"REPLICATION CLIENT", "BINLOG MONITOR", "SUPER"}
    needed["BINLOG MONITOR" if flavor == "mariadb" else "REPLICATION CLIENT"] = monitor
    findings = []
    for privilege, names in needed.items():
        name = f"privilege {privilege.lower()}"
        if held & (names | {"ALL PRIVILEGES"}):
            findings.append(Finding(name, Level.PASS, "granted"))
            continue
        level = Level.WARN if roles else Level.FAIL
        message = "not granted" + (", unless by a role" if roles else "")
        findings.append(Finding(name, level, message, f"GRANT {privilege} ON *.* TO <account>"))
    if select:
        findings.append(Finding("privilege select", Level.PASS, "granted"))
    else:
        level = Level.WARN if names_in_log or roles else Level.FAIL
        message = "not granted: table structures cannot be read from information_schema"
        findings.append(Finding("privilege select", level, message, "GRANT SELECT ON *.* TO <account>"))
    return findings


def load_finding(
    grants: Sequence[str], places: TablePatterns, tables: Sequence[TableSchema], *, alone: bool
) -> Finding:
    """Whether the selected tables may be read for a full load: a table without SELECT is not even visible.

    Args:
        places: the patterns of the selected schemas and tables.
        tables: the selected tables that are visible.
        alone: the task has no other source, where the places that are named may be instead.
    """
    name = "privilege to load"
    _, select, roles = _granted(grants)
    if not select:
        message = "SELECT is not granted: no table would be loaded"
        return Finding(name, Level.WARN if roles else Level.FAIL, message, "GRANT SELECT ON the schemas to <account>")
    lacking = [place for place in places if not _may_select(grants, *place)]
    if not lacking:
        return Finding(name, Level.PASS, "granted")
    visible = {(table.schema.lower(), which) for table in tables for which in (table.table.lower(), "*")}
    exact = [(schema.lower(), table.lower()) for schema, table in lacking if is_exact(schema)]
    named = {(schema, table if is_exact(table) else "*") for schema, table in exact}
    hidden = bool(named - visible)
    message = f"SELECT is not granted on {listed(['.'.join(place) for place in lacking])}"
    message += ("" if not roles else ", unless by a role") + ": tables there that are not visible would not be loaded"
    objects = list(dict.fromkeys(_object(*place) for place in lacking))[:SHOWN]
    fix = "; ".join(f"GRANT SELECT ON {one} TO <account>" for one in objects)
    return Finding(name, Level.FAIL if hidden and alone and not roles else Level.WARN, message, fix)


def _object(schema: str, table: str) -> str:
    """What to grant on, for patterns of the spec."""
    if not is_exact(schema):
        return "*.*"
    return quoted_name(schema, table) if is_exact(table) else f"{quoted_name(schema)}.*"


def _may_select(grants: Sequence[str], schema: str, table: str) -> bool:
    """Whether SELECT is held on the whole of a named schema, or on a named table; for a pattern of schemas, on all."""
    exact = is_exact(schema)
    for match in filter(None, map(_REVOKE.match, grants)):  # from a privilege on *.*
        of_system = any(_grants_schema(match[2], each) for each in SYSTEM_SCHEMAS)
        if _names(match[1]) & _READS and (_grants_schema(match[2], schema) if exact else not of_system):
            return False
    granted = [match[2] for match in filter(None, map(_GRANT.match, grants)) if _names(match[1]) & _READS]
    if not exact:
        return "*.*" in granted
    return any(_grants_schema(one, schema) or one.lower() == quoted_name(schema, table).lower() for one in granted)


def lock_tables_finding(tables: Sequence[TableSchema], grants: Sequence[str]) -> Finding:
    """Whether the tables without a key may be locked, which their snapshot requires."""
    name = "privilege lock tables"
    missing = sorted({t.schema for t in tables if not t.primary_key and not _may_lock(grants, t.schema)})
    if not missing:
        return Finding(name, Level.PASS, "granted where a table has no key")
    message = f"not granted on {listed(missing)}: a table without a key is locked briefly while its snapshot is opened"
    # A role may hold the privilege: only an attempt would show it.
    level = Level.FAIL if all(_GRANT.match(line) for line in grants) else Level.WARN
    return Finding(name, level, message, "GRANT LOCK TABLES ON the schema to <account>")


def reload_finding(grants: Sequence[str]) -> Finding:
    """Whether all tables may be locked while the readers open one snapshot."""
    name = "privilege reload"
    held, _, roles = _granted(grants)
    if held & {"RELOAD", "FLUSH_TABLES", "ALL PRIVILEGES"}:
        return Finding(name, Level.PASS, "granted")
    message = "not granted: consistency: snapshot locks all tables briefly"
    return Finding(name, Level.WARN if roles else Level.FAIL, message, "GRANT RELOAD ON *.* TO <account>")


def _granted(grants: Sequence[str]) -> tuple[set[str], bool, bool]:
    """Privileges on *.*, whether SELECT is held anywhere, and whether there are roles that may hold more."""
    everywhere: set[str] = set()
    select = roles = False
    for line in grants:
        match = _GRANT.match(line)
        if match is None:
            roles = roles or bool(_ROLE.match(line))
            continue
        names = {re.sub(r"\s*\(.*", "", name).strip().upper() for name in match.group(1).split(",")}
        select = select or bool(names & {"SELECT", "ALL PRIVILEGES"})
        if match.group(2) == "*.*":
            everywhere |= names
    return everywhere, select, roles


def _may_lock(grants: Sequence[str], schema: str) -> bool:
    """Whether LOCK TABLES is held on all schemas, or on this one."""
    matches = filter(None, map(_GRANT.match, grants))
    return any(_LOCKS.search(match[1]) and _grants_schema(match[2], schema) for match in matches)


def _grants_schema(granted: str, schema: str) -> bool:
    """Whether the object of a GRANT includes a whole schema: `*.*`, its name, or a pattern with % and _."""
    if granted == "*.*":
        return True
    database = granted.rpartition(".")[0].strip("`").replace("``", "`")
    return granted.endswith(".*") and matches_grant(database.lower(), schema.lower())


def _names(privileges: str) -> set[str]:
    """The privileges of a GRANT on whole tables: without those on single columns."""
    whole = re.sub(r"\w+ \([^)]*\)", "", privileges)
    return {name.strip().upper() for name in whole.split(",")}
