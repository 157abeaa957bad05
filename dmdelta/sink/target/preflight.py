"""Checks a target before a task runs: the server, and what its account may do."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pymysql

from dmdelta.model.mysql_sql import quoted_name, text
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.rules.patterns import matches_grant
from dmdelta.sink.plan.table_checks import TargetCheck, TargetTables
from dmdelta.sink.plan.target_table import read_collations
from dmdelta.sink.target.connection import CHARSET, SQL_MODE, TargetServer, ask, session, translated

ON_TABLES = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "INDEX")
"""Privileges on the schemas that the sink writes to."""
ON_METADATA = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE")
PACKET_BYTES = 16 << 20
"""A statement has up to 1 MiB of text, or one row; smaller limits stop the sink at rows that the source accepts."""
HARMFUL_MODES = frozenset(
    {"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "TIME_TRUNCATE_FRACTIONAL"}
)
"""Modes that change how the sink's texts are read, or that refuse dates which the source accepts."""
_NEEDED_MODES = frozenset(SQL_MODE.split(","))
_FACTS = """SELECT VERSION(), CURRENT_USER(), @@max_allowed_packet, @@sql_mode, @@character_set_client,
    @@character_set_connection, @@character_set_results"""
_REQUIRED = """SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA IN %s
    AND IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL AND EXTRA NOT LIKE '%%auto_increment%%'
    AND EXTRA NOT LIKE '%%GENERATED%%' AND COALESCE(GENERATION_EXPRESSION, '') = ''"""
_OLDEST = {"mysql": (5, 7), "mariadb": (10, 2), "tidb": (6, 1)}
_GRANT = re.compile(r"^GRANT (.+?) ON (?:TABLE )?(`(?:[^`]|``)+`\.\S+|\S+) TO ", re.IGNORECASE)
_REVOKE = re.compile(r"^REVOKE (.+?) ON `((?:[^`]|``)+)`\.\* FROM ", re.IGNORECASE)
"""MySQL 8's partial revokes."""
_ROLE = re.compile(r"^GRANT [`'\"]?[^ ]+[`'\"]? TO ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """
    Attributes:
        version: as the server reports it.
        account: `user@host`, as the server has authenticated it.
        grants: the lines of SHOW GRANTS.
        max_allowed_packet: bytes.
        sql_mode: of a session of the sink.
        charsets: character sets of the session: client, connection, results.
    """

    version: str
    account: str
    grants: tuple[str, ...]
    max_allowed_packet: int
    sql_mode: str = SQL_MODE
    charsets: tuple[str, ...] = (CHARSET,)


def read_target_facts(server: TargetServer) -> TargetFacts:
    """Ask a target.

    Raises:
        TargetUnavailable: it does not answer. SinkError: it refuses the connection.
        ConfigError: a certificate cannot be read.
    """
    with session(server) as connection:
        try:
            ((version, account, packet, mode, *charsets),) = ask(connection, _FACTS)
            grants = tuple(str(line) for (line,) in ask(connection, "SHOW GRANTS"))
        except (pymysql.err.MySQLError, OSError) as error:
            raise translated(error, str(server)) from error
    return TargetFacts(str(version), str(account), grants, int(packet), str(mode), tuple(map(str, charsets)))


def read_target_tables(server: TargetServer, tables: Iterable[TableSchema]) -> TargetTables:
    """The target's collations and, of the tables that exist, the columns that need a value.

    Args:
        tables: those of the sink's tables that exist.

    Raises: as `read_target_facts`.
    """
    by_name = {table.name: table for table in tables}
    required: dict[TableName, list[str]] = {}
    with session(server) as connection:
        try:
            collations = read_collations(lambda *asked: ask(connection, *asked))
            schemas = sorted({schema for schema, _ in by_name})
            for schema, table, column in ask(connection, _REQUIRED, (schemas,)) if schemas else ():
                required.setdefault((schema, table), []).append(column)
        except (pymysql.err.MySQLError, OSError) as error:
            raise translated(error, str(server)) from error
    return TargetTables(by_name, {name: found for name, found in required.items() if name in by_name}, collations)


def plan_target_checks(facts: TargetFacts, *, tidb: bool, schemas: Iterable[str], metadata: str) -> list[TargetCheck]:
    """Evaluate a target.

    Args:
        tidb: the spec's `kind` is `tidb`.
        schemas: where the sink writes rows.
        metadata: the schema of its own tables.
    """
    return [
        _version(facts.version, tidb=tidb),
        *_privileges(facts, schemas, metadata),
        _sql_mode(facts.sql_mode),
        _charsets(facts.charsets),
        _packet(facts.max_allowed_packet),
    ]


def _version(version: str, *, tidb: bool) -> TargetCheck:
    lower = version.lower()
    server = "tidb" if "tidb" in lower else "mariadb" if "mariadb" in lower else "mysql"
    if tidb != (server == "tidb"):
        kind = "tidb" if server == "tidb" else "mysql"
        return TargetCheck("version", False, f"the server is {version}", f"set kind: {kind} of the sink", stops=True)
    # TiDB reports MySQL's version before its own.
    numbers = re.search(r"(\d+)\.(\d+)", lower.partition("tidb-")[2] if server == "tidb" else lower)
    oldest = _OLDEST[server]
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < oldest:
        fix = f"upgrade the target to {'.'.join(map(str, oldest))} or later"
        return TargetCheck("version", False, f"{version} is not tested", fix)
    return TargetCheck("version", True, version)


def _privileges(facts: TargetFacts, schemas: Iterable[str], metadata: str) -> Iterator[TargetCheck]:
    """One check for each missing privilege; a role may hold it, which only an attempt would show."""
    grants, account = facts.grants, "@".join(text(part) for part in facts.account.rsplit("@", 1))
    roles = any(_GRANT.match(line) is None and _ROLE.match(line) for line in grants)
    needed = {metadata: ON_METADATA} | dict.fromkeys(sorted(schemas), ON_TABLES)
    missing = False
    for schema, privileges in needed.items():
        held = _held(grants, schema)
        for privilege in privileges:
            if privilege in held:
                continue
            missing = True
            message = f"not granted on {schema}" + (", unless by a role" if roles else "")
            fix = f"GRANT {privilege} ON {quoted_name(schema)}.* TO {account}"
            yield TargetCheck(f"privilege {privilege.lower()}", False, message, fix, stops=not roles)
    if not missing:
        yield TargetCheck("privileges", True, f"granted on {', '.join(needed)}")


def _held(grants: Sequence[str], schema: str) -> set[str]:
    """The privileges on all schemas, or on this one: by its name, or by a pattern with % and _."""
    held: set[str] = set()
    revoked = {
        name for match in filter(None, map(_REVOKE.match, grants)) if match[2] == schema for name in _names(match[1])
    }
    for match in filter(None, map(_GRANT.match, grants)):
        database = match[2].rpartition(".")[0].strip("`").replace("``", "`")
        if match[2].endswith(".*") and (database == "*" or matches_grant(database, schema)):
            held |= _names(match[1])
    return (held | set(ON_TABLES) if "ALL PRIVILEGES" in held else held) - revoked


def _names(privileges: str) -> set[str]:
    return {name.strip().upper() for name in privileges.split(",")}


def _sql_mode(mode: str) -> TargetCheck:
    """Values and texts of the sink are written for its own mode."""
    modes = frozenset(filter(None, mode.split(",")))
    lacking, harmful = sorted(_NEEDED_MODES - modes), sorted(modes & HARMFUL_MODES)
    if not lacking and not harmful:
        return TargetCheck("sql_mode", True, "the sink's own")
    parts = [f"lacks {', '.join(lacking)}"] * bool(lacking) + [f"has {', '.join(harmful)}"] * bool(harmful)
    fix = "let the sink connect without a proxy or an init_connect that changes sql_mode"
    return TargetCheck("sql_mode", False, f"a session of the sink {' and '.join(parts)}", fix, stops=True)


def _charsets(charsets: Sequence[str]) -> TargetCheck:
    if set(charsets) == {CHARSET}:
        return TargetCheck("session_charset", True, CHARSET)
    fix = "let the sink connect without skip-character-set-client-handshake, a proxy or an init_connect that changes it"
    message = f"a session of the sink has {', '.join(sorted(set(charsets)))} instead of {CHARSET}: text would change"
    return TargetCheck("session_charset", False, message, fix, stops=True)


def _packet(size: int) -> TargetCheck:
    name, message = "max_allowed_packet", f"{size:,} bytes"
    if size >= PACKET_BYTES:
        return TargetCheck(name, True, message)
    return TargetCheck(
        name, False, f"{message}: a longer row stops the sink", f"SET GLOBAL max_allowed_packet = {PACKET_BYTES << 2}"
    )
