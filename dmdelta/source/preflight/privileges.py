"""An account's privileges according to its own SHOW GRANTS, and what it lacks for a relay and for a snapshot."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import TableSchema
from dmdelta.source.connection import query, quoted
from dmdelta.source.preflight.finding import Finding, Level, listed

if TYPE_CHECKING:
    from pymysql.connections import Connection

_GRANT = re.compile(r"^GRANT (.+?) ON (`(?:[^`]|``)+`\.\S+|\S+) TO ", re.IGNORECASE)
_ROLE = re.compile(r"^GRANT [`'\"]?[^ ]+[`'\"]? TO ", re.IGNORECASE)
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


def load_finding(grants: Sequence[str]) -> Finding:
    """Whether tables may be read for a full load: an account without SELECT does not even see that they exist."""
    _, select, roles = _granted(grants)
    if select:
        return Finding("privilege to load", Level.PASS, "granted")
    level = Level.WARN if roles else Level.FAIL
    message = "SELECT is not granted: no table would be loaded"
    return Finding("privilege to load", level, message, "GRANT SELECT ON the schemas to <account>")


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
    """Whether LOCK TABLES is held on all schemas, or on this one by its name."""
    matches = (_GRANT.match(line) for line in grants)
    held = {match[2].replace("\\", "") for match in matches if match and _LOCKS.search(match[1])}
    return bool(held & {"*.*", f"{quoted(schema)}.*"})
