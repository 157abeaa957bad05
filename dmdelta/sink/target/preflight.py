"""Checks a target before a task runs: the server, and what its account may do."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pymysql

from dmdelta.sink.plan.sql import quoted
from dmdelta.sink.target.connection import TargetServer, ask, session, translated

ON_TABLES = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "INDEX")
"""Privileges on the schemas that the sink writes to."""
ON_METADATA = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE")
PACKET_BYTES = 16 << 20
"""A statement has up to 1 MiB of text, or one row; smaller limits stop the sink at rows that the source accepts."""
_OLDEST = {"mysql": (5, 7), "mariadb": (10, 2), "tidb": (6, 1)}
_GRANT = re.compile(r"^GRANT (.+?) ON (?:TABLE )?(`(?:[^`]|``)+`\.\S+|\S+) TO ", re.IGNORECASE)
_ROLE = re.compile(r"^GRANT [`'\"]?[^ ]+[`'\"]? TO ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """
    Attributes:
        version: as the server reports it.
        grants: the lines of SHOW GRANTS.
        max_allowed_packet: bytes.
    """

    version: str
    grants: tuple[str, ...]
    max_allowed_packet: int


@dataclass(frozen=True, slots=True)
class TargetCheck:
    """The result of one check; `fix` is empty if it passes, `stops`: the sink cannot run."""

    name: str
    passes: bool
    message: str
    fix: str = ""
    stops: bool = False


def read_target_facts(server: TargetServer) -> TargetFacts:
    """Ask a target.

    Raises:
        TargetUnavailable: it does not answer. SinkError: it refuses the connection.
        ConfigError: a certificate cannot be read.
    """
    with session(server) as connection:
        try:
            ((version, packet),) = ask(connection, "SELECT VERSION(), @@max_allowed_packet")
            grants = tuple(str(line) for (line,) in ask(connection, "SHOW GRANTS"))
        except (pymysql.err.MySQLError, OSError) as error:
            raise translated(error, str(server)) from error
    return TargetFacts(str(version), grants, int(packet))


def plan_target_checks(facts: TargetFacts, *, tidb: bool, schemas: Iterable[str], metadata: str) -> list[TargetCheck]:
    """Evaluate a target.

    Args:
        tidb: the spec's `kind` is `tidb`.
        schemas: where the sink writes rows.
        metadata: the schema of its own tables.
    """
    return [
        _version(facts.version, tidb=tidb),
        *_privileges(facts.grants, schemas, metadata),
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


def _privileges(grants: Sequence[str], schemas: Iterable[str], metadata: str) -> Iterator[TargetCheck]:
    """One check for each missing privilege; a role may hold it, which only an attempt would show."""
    roles = any(_GRANT.match(line) is None and _ROLE.match(line) for line in grants)
    needed = dict.fromkeys(sorted(schemas), ON_TABLES) | {metadata: ON_METADATA}
    missing = False
    for schema, privileges in needed.items():
        held = _held(grants, schema)
        for privilege in privileges:
            if "ALL PRIVILEGES" in held or privilege in held:
                continue
            missing = True
            message = f"not granted on {schema}" + (", unless by a role" if roles else "")
            fix = f"GRANT {privilege} ON {quoted(schema)}.* TO <account>"
            yield TargetCheck(f"privilege {privilege.lower()}", False, message, fix, stops=not roles)
    if not missing:
        yield TargetCheck("privileges", True, f"granted on {', '.join(needed)}")


def _held(grants: Sequence[str], schema: str) -> set[str]:
    """The privileges on all schemas, or on this one: by its name, or by a pattern with % and _."""
    held: set[str] = set()
    for match in filter(None, map(_GRANT.match, grants)):
        database = match[2].rpartition(".")[0].strip("`").replace("``", "`")
        if match[2].endswith(".*") and (database == "*" or _is_like(schema, database)):
            held |= {name.strip().upper() for name in match[1].split(",")}
    return held


def _is_like(schema: str, pattern: str) -> bool:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    text = "".join(re.escape(one[1]) if one[0] == "\\" and one[1:] else wild.get(one, re.escape(one)) for one in parts)
    return re.fullmatch(text, schema, re.DOTALL) is not None


def _packet(size: int) -> TargetCheck:
    name, message = "max_allowed_packet", f"{size:,} bytes"
    if size >= PACKET_BYTES:
        return TargetCheck(name, True, message)
    return TargetCheck(
        name, False, f"{message}: a longer row stops the sink", f"SET GLOBAL max_allowed_packet = {PACKET_BYTES << 2}"
    )
