"""What a snapshot reads and from where the log is applied: chunks of tables, and the position before the first one."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from dmdelta.errors import SourceError
from dmdelta.logging import get_logger
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.schema import SYSTEM_SCHEMAS, TableSchema
from dmdelta.source.catalog import read_schemas
from dmdelta.source.connection import open_connection, query, unless_refused
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.dump import DumpRequest, Replica
from dmdelta.source.relay.gtid_lookup import locate_after
from dmdelta.source.server import ServerIdentity, ServerPosition, gtid_mode, server_identity, server_position
from dmdelta.source.snapshot.chunk import Chunk
from dmdelta.source.snapshot.key_ranges import key_ranges

if TYPE_CHECKING:
    from pymysql.connections import Connection

log = get_logger(__name__)
SETTLE_SECONDS = 1.0
"""How long a commit may be in the log before readers see it, on a server that cannot report this."""
STILL_TRIES = 5
_TABLES = """
SELECT table_schema, table_name, table_rows, engine FROM information_schema.tables
WHERE table_type = 'BASE TABLE' AND table_schema NOT IN %s
"""
_WITHOUT_SNAPSHOTS = frozenset({"myisam", "aria", "memory", "csv", "archive", "merge", "mrg_myisam"})


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """What is read, and where the log is applied from: every change that a reader may miss is after `begin`."""

    server: ServerIdentity
    begin: ServerPosition
    chunks: tuple[Chunk, ...]


def plan_snapshot(endpoint: Endpoint, wanted: Callable[[str, str], bool]) -> SnapshotPlan:
    """Plan the snapshot of the selected tables.

    Raises:
        SourceUnavailable, SourceError: the server does not answer, or the tables' structures keep changing.
    """
    with closing(open_connection(endpoint)) as connection:
        server = server_identity(connection)
        begin, tables = _consistent_structures(connection, endpoint, server, wanted)
        _warn_of_prepared(connection)
        return SnapshotPlan(server, begin, tuple(_chunks(connection, tables)))


def snapshot_end(endpoint: Endpoint) -> ServerPosition:
    """The current end of the log: no row that was read is newer.

    Raises:
        SourceUnavailable, SourceError: the server does not answer.
    """
    with closing(open_connection(endpoint)) as connection:
        return server_position(connection)


def _consistent_structures(
    connection: "Connection[Any]", endpoint: Endpoint, server: ServerIdentity, wanted: Callable[[str, str], bool]
) -> tuple[ServerPosition, list[TableSchema]]:
    """A position and the structures at it: read before and after the position until both reads are equal."""
    tables = read_schemas(connection, wanted)
    for _ in range(STILL_TRIES):
        begin = _begin(connection, endpoint, server)
        reread = read_schemas(connection, wanted)
        if reread == tables:
            return begin, tables
        tables = reread
    raise SourceError("table structures keep changing", hint="run again when the migration is finished")


def _begin(connection: "Connection[Any]", endpoint: Endpoint, server: ServerIdentity) -> ServerPosition:
    """A position before which every change is visible to whoever reads from now on.

    A transaction is in the binlog before readers see it, so the end of the binlog would be too late.
    """
    if server.flavor == "mariadb" and (visible := _visible_to_snapshots(connection, server)) is not None:
        return visible
    here = server_position(connection, server)
    if server.flavor == "mysql" and here.gtid_set is not None and gtid_mode(connection) == "ON":
        # @@gtid_executed holds what is committed in the engine.
        request = DumpRequest(endpoint, server, Replica.random(endpoint.server_id), after=here.gtid_set)
        return ServerPosition(server.uuid, *locate_after(request), here.gtid_set)
    time.sleep(SETTLE_SECONDS)
    return here


def _visible_to_snapshots(connection: "Connection[Any]", server: ServerIdentity) -> ServerPosition | None:
    """The position of a consistent snapshot, which MariaDB reports; None if this server does not."""
    query(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    status = {name.lower(): value for name, value in query(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'")}
    query(connection, "ROLLBACK")
    name, offset = status.get("binlog_snapshot_file"), status.get("binlog_snapshot_position")
    if not name or offset is None:
        return None
    gtids = query(connection, "SELECT BINLOG_GTID_POS(%s, %s)", (name, int(offset)))[0][0]
    return ServerPosition(server.uuid, name, int(offset), parse_gtid_set(gtids or "", "mariadb"))


def _warn_of_prepared(connection: "Connection[Any]") -> None:
    prepared = unless_refused(lambda: query(connection, "XA RECOVER")) or []
    if prepared:
        log.warning(
            "prepared XA transactions found",
            count=len(prepared),
            caveat="if one commits after its table was read, its rows are missing: then snapshot the table again",
        )


def _chunks(connection: "Connection[Any]", tables: Sequence[TableSchema]) -> Iterator[Chunk]:
    query(connection, "SET SESSION sql_mode = ''")
    numbers = count(1)
    rows = {
        (str(schema), str(table)): fields for schema, table, *fields in query(connection, _TABLES, (SYSTEM_SCHEMAS,))
    }
    for table in tables:
        estimate, engine = rows.get((table.schema, table.table), (None, None))
        conditions = key_ranges(connection, table, int(estimate or 0))
        transactional = not without_snapshots(str(engine or ""))
        share = max(1, int(estimate or 0) // len(conditions))
        for condition in conditions:
            yield Chunk(next(numbers), table, condition, transactional, share)


def without_snapshots(engine: str) -> bool:
    """Whether tables of a storage engine do not support consistent reads."""
    return engine.lower() in _WITHOUT_SNAPSHOTS
