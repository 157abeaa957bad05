"""Preflight: checks a server's settings, the account and the start position, and says how to fix what fails."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dmdelta.model.gtid import missing_from, parse_gtid_set
from dmdelta.source.connection import query, query_named, unless_refused
from dmdelta.source.preflight.finding import Finding, Level
from dmdelta.source.preflight.privileges import grants_of, privilege_findings
from dmdelta.source.relay.purge import Known
from dmdelta.source.relay.reconnect import Continue, Lost, RelayState, plan_connect
from dmdelta.source.relay.relay_dir import load_state, with_gtids
from dmdelta.source.relay.relay_task import RelayTask, Start, StartAfter, StartAt, StartEdge
from dmdelta.source.server import ServerIdentity, ServerLog, server_identity, server_log

if TYPE_CHECKING:
    from pymysql.connections import Connection

VARIABLES = (
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "gtid_mode",
    "gtid_strict_mode",
    "binlog_expire_logs_seconds",
    "expire_logs_days",
    "log_replica_updates",
    "log_slave_updates",
)


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What the server reports.

    Attributes:
        variables: global variables by name; those that the server does not have are missing.
        grants: the lines of SHOW GRANTS.
        replicas: server ids of the connected replicas; None if the account may not list them.
        held: the binlog's files and GTID sets; None if there are none or the account may not list them.
        is_replica: it replicates from another server; None if the account may not see that, or it makes no difference.
    """

    server: ServerIdentity
    variables: dict[str, str]
    grants: tuple[str, ...]
    replicas: tuple[int, ...] | None
    held: ServerLog | None = field(default=None)
    is_replica: bool | None = None


@dataclass(frozen=True, slots=True)
class Intent:
    """What the relay is about to do.

    Attributes:
        server_id: the server id that it uses; None: a random one.
        start: where it starts, or the state from which it resumes.
        lag_seconds: how far it is behind, if known.
    """

    server_id: int | None = None
    start: Start | RelayState = StartEdge.OLDEST
    lag_seconds: float | None = None


def check_source(connection: "Connection[Any]", intent: Intent) -> list[Finding]:
    """All findings for a server.

    Raises:
        SourceUnavailable: it does not answer.
    """
    return findings_of(source_facts(connection), intent)


def check_relay(connection: "Connection[Any]", task: RelayTask, landed: Callable[[], Known | None]) -> list[Finding]:
    """All findings for a relay, which resumes where its folder ends, or starts at `task.start` if that is empty.

    Args:
        landed: looks up what has landed; called only if the server's files do not continue the folder.

    Raises:
        SourceUnavailable: the server does not answer.
        CorruptBinlog: the relay folder is damaged.
    """
    server_id = task.endpoint.server_id if task.endpoint else None
    state = load_state(task.folder, task.source_id)
    facts = source_facts(connection)
    if state is None:
        return findings_of(facts, Intent(server_id, task.start))
    if facts.held is not None and not isinstance(plan_connect(state, facts.held, state.created), Continue):
        state = with_gtids(state, task.folder, task.source_id, landed())
    return findings_of(facts, Intent(server_id, state))


def source_facts(connection: "Connection[Any]") -> SourceFacts:
    """Query the server; facts that the account may not see are None."""
    server = server_identity(connection)
    rows = query(connection, "SHOW GLOBAL VARIABLES WHERE Variable_name IN %s", (VARIABLES,))
    variables = {str(name).lower(): str(value) for name, value in rows}
    grants = grants_of(connection)
    newer = server.flavor == "mysql" and server.version >= (8, 0, 22)
    statement = "SHOW REPLICAS" if newer else "SHOW SLAVE HOSTS"
    connected = unless_refused(lambda: query_named(connection, statement))
    replicas = None if connected is None else tuple(int(row["server_id"]) for row in connected)
    held = unless_refused(lambda: server_log(connection, server))
    is_replica = None if _logs_replicated(variables) else _is_replica(connection, server)
    return SourceFacts(server, variables, grants, replicas, held, is_replica)


def _logs_replicated(variables: dict[str, str]) -> bool:
    """Whether a replica writes the changes that it receives to its own binlog."""
    value = variables.get("log_replica_updates") or variables.get("log_slave_updates") or "ON"
    return value.upper() in ("ON", "1")


def _is_replica(connection: "Connection[Any]", server: ServerIdentity) -> bool | None:
    """Whether it replicates from another server, also if that is stopped now; None if the account may not see it."""
    statement = "SHOW REPLICA STATUS" if server.version >= (8, 0, 22) else "SHOW SLAVE STATUS"
    if server.flavor == "mariadb":
        statement = "SHOW ALL SLAVES STATUS"  # the other one shows the default connection only
    rows = unless_refused(lambda: query_named(connection, statement))
    if rows is None and server.flavor == "mariadb" and not query(connection, "SELECT @@gtid_slave_pos")[0][0]:
        return False  # it has received no change yet
    return None if rows is None else bool(rows)


def findings_of(facts: SourceFacts, intent: Intent) -> list[Finding]:
    """Evaluate the facts, in the order in which an operator fixes them."""
    return [
        _version(facts),
        _log_bin(facts),
        _replicated(facts),
        _format(facts),
        _row_image(facts),
        _row_metadata(facts),
        _value_options(facts),
        *_privileges(facts),
        _server_id(facts, intent),
        _gtid(facts, intent),
        _retention(facts, intent),
        _start(facts, intent),
    ]


def _version(facts: SourceFacts) -> Finding:
    server = facts.server
    text = f"{server.flavor} {'.'.join(map(str, server.version))}"
    if server.version >= ((10, 2, 0) if server.flavor == "mariadb" else (5, 7, 0)):
        return Finding("version", Level.PASS, text)
    return Finding("version", Level.FAIL, f"{text} is too old", "use MySQL 5.7 or newer, MariaDB 10.2 or newer")


def _log_bin(facts: SourceFacts) -> Finding:
    if facts.variables.get("log_bin", "").upper() in ("ON", "1"):
        return Finding("log_bin", Level.PASS, "the binlog is on")
    return Finding("log_bin", Level.FAIL, "the server writes no binlog", "start it with --log-bin --server-id=1")


def _replicated(facts: SourceFacts) -> Finding:
    name = "log_replica_updates"
    if _logs_replicated(facts.variables):
        return Finding(name, Level.PASS, "replicated changes are in the binlog")
    if facts.is_replica is False:
        return Finding(name, Level.PASS, "OFF, and the server is no replica")
    variable = name if name in facts.variables else "log_slave_updates"
    fix = f"restart it with --{variable.replace('_', '-')}, or use its primary as the source"
    if facts.is_replica:
        message = "the server is a replica and does not log the changes that it receives: they would be missing"
        return Finding(name, Level.FAIL, message, fix)
    monitor = "SLAVE MONITOR" if facts.server.flavor == "mariadb" else "REPLICATION CLIENT"
    message = "OFF, and the account may not see whether the server is a replica, whose changes would be missing"
    return Finding(name, Level.WARN, message, f"GRANT {monitor} ON *.* TO <account>; if it is a replica: {fix}")


def _format(facts: SourceFacts) -> Finding:
    value = facts.variables.get("binlog_format", "ROW")  # newer servers have no other format and no variable
    if value.upper() == "ROW":
        return Finding("binlog_format", Level.PASS, "ROW")
    message = f"{value}: the log has statements instead of rows; the task stops at the first changed row"
    return Finding("binlog_format", Level.FAIL, message, "SET GLOBAL binlog_format = 'ROW', then reconnect all clients")


def _row_image(facts: SourceFacts) -> Finding:
    value = facts.variables.get("binlog_row_image", "FULL").upper()
    fix = "SET GLOBAL binlog_row_image = 'FULL'"
    if value == "FULL":
        return Finding("binlog_row_image", Level.PASS, value)
    message = (
        f"{value}: TEXT and BLOB columns that a statement does not set are not in the log: before images are partial; "
        "of an INSERT, nullable ones arrive as NULL, NOT NULL ones stop the task"
    )
    if value == "MINIMAL":
        message = (
            "MINIMAL: columns that an INSERT leaves out are not in the log: nullable ones arrive as NULL, not as their "
            "DEFAULT (unless it is an expression), NOT NULL ones stop the task"
        )
    return Finding("binlog_row_image", Level.WARN, message, fix)


def _row_metadata(facts: SourceFacts) -> Finding:
    value = facts.variables.get("binlog_row_metadata")
    name = "binlog_row_metadata"
    if value is None:
        message = "the server sends no column names: they are tracked from the statements in the log"
        return Finding(name, Level.WARN, message, "MySQL 8.0.1 and MariaDB 10.5 and newer send them")
    # MariaDB's NO_LOG has the same effect as MINIMAL.
    if value.upper() == "FULL":
        return Finding(name, Level.PASS, value)
    message = f"{value}: column names are not in the log, they are tracked from the statements in it"
    return Finding(name, Level.WARN, message, "SET GLOBAL binlog_row_metadata = 'FULL'")


def _value_options(facts: SourceFacts) -> Finding:
    value = facts.variables.get("binlog_row_value_options", "")
    name = "binlog_row_value_options"
    if not value:
        return Finding(name, Level.PASS, "no partial values")
    image = facts.variables.get("binlog_row_image", "FULL").upper()
    if image == "FULL":
        return Finding(name, Level.PASS, f"{value} with full before images")
    message = f"{value} with binlog_row_image={image}: partial JSON updates lack the document that they change"
    return Finding(name, Level.FAIL, message, "SET GLOBAL binlog_row_value_options = ''")


def _privileges(facts: SourceFacts) -> list[Finding]:
    names_in_log = facts.variables.get("binlog_row_metadata", "").upper() == "FULL"
    return privilege_findings(facts.grants, facts.server.flavor, names_in_log=names_in_log)


def _server_id(facts: SourceFacts, intent: Intent) -> Finding:
    ours = intent.server_id
    if ours is None:
        return Finding("server_id", Level.PASS, "a random one is used")
    fix = "choose another server-id in the spec, or omit it"
    if ours == facts.server.server_id:
        return Finding("server_id", Level.FAIL, f"{ours} is the server's own id", fix)
    if facts.replicas is None:
        return Finding("server_id", Level.WARN, f"{ours}: the account may not list the server's replicas", fix)
    if ours in facts.replicas:
        message = (
            f"{ours} belongs to a connected replica: the server would disconnect one of them (unless it is this task)"
        )
        return Finding("server_id", Level.WARN, message, fix)
    return Finding("server_id", Level.PASS, f"{ours} is not in use")


def _gtid(facts: SourceFacts, intent: Intent) -> Finding:
    if facts.server.flavor == "mariadb":
        return Finding("gtid_mode", Level.PASS, "MariaDB always writes GTIDs")
    value = facts.variables.get("gtid_mode", "OFF")
    if value.upper() == "ON":
        return Finding("gtid_mode", Level.PASS, "ON")
    fix = "SET GLOBAL enforce_gtid_consistency = ON, then gtid_mode step by step to ON (see MySQL's manual)"
    if isinstance(intent.start, StartAfter):
        return Finding("gtid_mode", Level.FAIL, f"{value}, but the start is a GTID set", fix)
    return Finding("gtid_mode", Level.WARN, f"{value}: a failover to another primary cannot be followed", fix)


def _retention(facts: SourceFacts, intent: Intent) -> Finding:
    seconds = retention_seconds(facts.variables)
    if not seconds:
        return Finding("retention", Level.PASS, "binlogs are kept until they are purged manually")
    text = f"binlogs are kept {seconds / 3600:.1f} h"
    fix = "SET GLOBAL binlog_expire_logs_seconds = 604800"
    if facts.server.flavor == "mysql" and facts.server.version < (8, 0, 1):
        fix = "SET GLOBAL expire_logs_days = 7"
    lag = intent.lag_seconds or 0.0
    if lag > seconds:
        return Finding("retention", Level.FAIL, f"{text}, the task is {lag / 3600:.1f} h behind", fix)
    if lag > seconds / 2:
        return Finding("retention", Level.WARN, f"{text}, the task is {lag / 3600:.1f} h behind", fix)
    if seconds < 86400:
        return Finding("retention", Level.WARN, f"{text}: an outage of a day loses the position", fix)
    return Finding("retention", Level.PASS, text)


def retention_seconds(variables: dict[str, str]) -> float:
    """How long a server keeps binlogs; 0: indefinitely."""
    seconds = float(variables.get("binlog_expire_logs_seconds") or 0)
    return seconds or float(variables.get("expire_logs_days") or 0) * 86400


def _start(facts: SourceFacts, intent: Intent) -> Finding:
    held, start = facts.held, intent.start
    if held is None:
        fix = "see log_bin and the privileges above"
        return Finding("start position", Level.FAIL, "the list of binlogs cannot be read", fix)
    oldest = next(iter(held.files))
    fix = f"the oldest binlog is {oldest}: take a new snapshot, or correct `meta` in the spec"
    if isinstance(start, StartAt):
        size = held.files.get(start.binlog_file)
        if size is None:
            return Finding("start position", Level.FAIL, f"{start.binlog_file} is not on the server", fix)
        if size < start.offset:
            message = f"{start.binlog_file} ends at {size}, before {start.offset}"
            return Finding("start position", Level.FAIL, message, fix)
        return Finding("start position", Level.PASS, f"{start.binlog_file}:{start.offset} is available")
    if isinstance(start, StartAfter):
        return _start_after(held, start, fix)
    if isinstance(start, RelayState):
        return _resume(held, start, fix)
    return Finding("start position", Level.PASS, f"{start.value}; the oldest binlog is {oldest}")


def _start_after(held: ServerLog, start: StartAfter, fix: str) -> Finding:
    if held.purged is None:
        return Finding("start position", Level.FAIL, "the server has no GTIDs", fix)
    purged = missing_from(held.purged, parse_gtid_set(start.gtid_set, held.flavor))
    if purged:
        return Finding("start position", Level.FAIL, f"the server has purged {purged}", fix)
    return Finding("start position", Level.PASS, "all transactions after the GTID set are available")


def _resume(held: ServerLog, relay: RelayState, fix: str) -> Finding:
    place = f"{relay.binlog_file}:{relay.offset}"
    plan = plan_connect(relay, held, relay.created)
    if not isinstance(plan, Lost):
        return Finding("start position", Level.PASS, f"the relay can resume at {place}")
    missing = f": {plan.missing}" if plan.missing else ""
    return Finding("start position", Level.FAIL, f"cannot resume at {place}: {plan.reason}{missing}", fix)
