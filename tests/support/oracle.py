"""The contents of the server's own binlog, read by third-party code: an independent check of bronze.

`SHOW BINLOG EVENTS` (the server itself) returns every row event and its place; mysql-replication, as `dmdelta verify`
uses it, counts the rows of each event, except in compressed transactions and compressed row events.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.model.change import ROW_OPS
from dmdelta.model.segment import Segment
from dmdelta.verification.decoder import Decoder
from dmdelta.verification.raw_events import server_events
from tests.support.servers import Server

Place = tuple[str, int]
"""(binlog file, byte offset of an event's start)."""

_SETS = frozenset({"Previous_gtids", "Gtid_list"})
_BEGINNINGS = frozenset({"Gtid", "Anonymous_Gtid", "Gtid_tagged_log", "Rotate", "Stop", "Previous_gtids"})
"""Events that start outside of a transaction in MySQL's log."""
_OPS = {"Write_rows": "insert", "Update_rows": "update", "Delete_rows": "delete"}


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One row event of the log; `rows` is None if only dmdelta can count them."""

    place: Place
    op: str
    table: str
    gtid: str
    rows: int | None


def bronze_vs_binlog(
    server: Server,
    bronze: DataFrame,
    databases: Collection[str],
    since: Place = ("", 0),
    tables: Collection[str] = (),
    *,
    counted: bool = True,
) -> list[str]:
    """Missing, duplicate and unexpected rows of bronze compared with the server's binlog from `since` on; empty: none.

    Args:
        databases: the replicated databases.
        tables: the replicated tables of these databases; all if empty.
        counted: also compare the number of each event's rows, which reads the whole log from the server.

    The comparison is per event, hence per transaction: position, table, op, number of rows and GTID.
    """
    rows = bronze.where(F.col("op").isin([op.value for op in ROW_OPS]))
    lines = [
        f"{found['binlog_file']}:{found['binlog_pos']} row {found['row']}: {found['count']} times in bronze"
        for found in rows.groupBy("epoch", "seq", "row", "binlog_file", "binlog_pos")
        .count()
        .where("count > 1")
        .collect()
    ]
    landed: dict[tuple[Place, str, str], tuple[int, str | None]] = {}
    by_event = rows.groupBy("binlog_file", "binlog_pos", "schema_name", "table_name", "op").agg(
        F.count("*").alias("n"), F.max("gtid").alias("gtid")
    )
    for event in by_event.collect():
        key = (
            (event["binlog_file"], event["binlog_pos"]),
            f"{event['schema_name']}.{event['table_name']}",
            event["op"],
        )
        landed[key] = (event["n"], event["gtid"])
    events = logged_events(server, since[0], counted=counted)
    logged = (event for event in events if _takes_part(event.table, databases, tables))
    wanted = _by_key(event for event in logged if event.place >= since)
    for key, events in wanted.items():
        lines += _compare(key, events, landed.get(key))
    return lines + [
        f"{place[0]}:{place[1]} {op} {table}: in bronze, not in the binlog"
        for place, table, op in landed.keys() - wanted.keys()
    ]


def bronze_vs_transactions(
    server: Server, bronze: DataFrame, databases: Collection[str], tables: Collection[str] = ()
) -> list[str]:
    """Missing and duplicate rows of bronze compared with a log that has all transactions; empty: none.

    For a history that continues on another server: compares by GTID, in whatever file and epoch a transaction landed.
    """
    rows = bronze.where(F.col("op").isin([op.value for op in ROW_OPS]))
    found = rows.groupBy("gtid", F.concat_ws(".", "schema_name", "table_name").alias("table"), "op").agg(
        F.count("*").alias("n"), F.collect_set("epoch").alias("epochs")
    )
    landed = {(row["gtid"], row["table"], row["op"]): (row["n"], row["epochs"]) for row in found.collect()}
    logged: dict[tuple[str, str, str], list[int | None]] = defaultdict(list)
    for event in logged_events(server):
        if _takes_part(event.table, databases, tables):
            logged[event.gtid, event.table, event.op].append(event.rows)
    lines = [f"{key} in epochs {sorted(epochs)}" for key, (_, epochs) in landed.items() if len(epochs) > 1]
    lines += [f"{key}: in bronze, not in the log" for key in landed.keys() - logged.keys()]
    lines += [f"{key}: in the log, not in bronze" for key in logged.keys() - landed.keys()]
    for key in logged.keys() & landed.keys():
        known = [rows for rows in logged[key] if rows is not None]
        if len(known) == len(logged[key]) and sum(known) != landed[key][0]:
            lines.append(f"{key}: {landed[key][0]} rows in bronze, {sum(known)} in the log")
    return lines


def cut_within_transactions(server: Server, segments: Sequence[Segment]) -> list[Place]:
    """Ends of segments that are not transaction boundaries."""
    found: list[Place] = []
    for file in dict.fromkeys(segment.binlog_file for segment in segments):
        kinds = {int(offset): str(kind) for _, offset, kind, *_ in server.query(f"SHOW BINLOG EVENTS IN '{file}'")}
        ends = [segment.end for segment in segments if segment.binlog_file == file]
        found += [(file, end) for end in ends if kinds.get(end, "Stop") not in _BEGINNINGS]
    return found


def _takes_part(name: str, databases: Collection[str], tables: Collection[str]) -> bool:
    database, _, table = name.partition(".")
    return database in databases and (not tables or table in tables)


def logged_events(server: Server, since_file: str = "", *, counted: bool = True) -> Iterator[LoggedEvent]:
    """Every row event of the server's binlog from a file on, in order; without row counts if not `counted`."""
    files = [str(file) for file, *_ in server.query("SHOW BINARY LOGS") if str(file) >= since_file]
    counts = _row_counts(server, files) if counted else {}
    for file in files:
        gtid, tables, payload = "", {}, None
        for _, offset, kind, _, _, info in server.query(f"SHOW BINLOG EVENTS IN '{file}'"):
            place = (str(file), int(offset))
            if _is_gtid(str(kind)):
                gtid, payload = _gtid(str(info)), None
            elif kind == "Transaction_payload":
                payload = place
            elif kind == "Table_map":
                number, _, name = str(info).removeprefix("table_id: ").partition(" (")
                tables[number] = name.rpartition(")")[0]  # a name may contain spaces and parentheses
            elif (op := _op(str(kind))) is not None:
                number = str(info).removeprefix("table_id: ").split(" ")[0]
                yield LoggedEvent(payload or place, op, tables[number], gtid, None if payload else counts.get(place))
            elif kind == "Xid":
                payload = None


def logged_gtids(server: Server, file: str) -> dict[int, str]:
    """The GTIDs of a binlog file by the offset where their transaction begins, in order."""
    events = server.query(f"SHOW BINLOG EVENTS IN '{file}'")
    return {int(offset): _gtid(str(info)) for _, offset, kind, _, _, info in events if _is_gtid(str(kind))}


def _is_gtid(kind: str) -> bool:
    return "gtid" in kind.lower() and kind not in _SETS


def _op(kind: str) -> str | None:
    return next((op for prefix, op in _OPS.items() if kind.startswith(prefix)), None)


def _gtid(info: str) -> str:
    """`SET @@SESSION.GTID_NEXT= 'uuid:1'`, and MariaDB's `BEGIN GTID 0-1-3` or `XA START X'…',X'',1 GTID 0-1-3`."""
    return info.split("'")[1] if "GTID_NEXT" in info else info.split("GTID ")[1].split(" ", maxsplit=1)[0]


def _row_counts(server: Server, files: Sequence[str]) -> dict[Place, int]:
    decoder = Decoder(mariadb=server.flavor == "mariadb")
    found: dict[Place, int] = {}
    for file in files:
        connection = server.connect()
        try:
            for raw in server_events(connection, file):
                if raw.file != file:
                    break
                event = decoder.feed(raw)
                if event is not None and event.rows is not None:
                    found[event.place] = len(event.rows)
        finally:
            connection._force_close()  # the server is sending and does not read COM_QUIT
    return found


def _by_key(events: Iterator[LoggedEvent]) -> dict[tuple[Place, str, str], list[LoggedEvent]]:
    found: dict[tuple[Place, str, str], list[LoggedEvent]] = defaultdict(list)
    for event in events:
        found[(event.place, event.table, event.op)].append(event)
    return found


def _compare(
    key: tuple[Place, str, str], events: list[LoggedEvent], landed: tuple[int, str | None] | None
) -> list[str]:
    place, table, op = key
    what = f"{place[0]}:{place[1]} {op} {table} ({events[0].gtid})"
    if landed is None:
        return [f"{what}: not in bronze"]
    count, gtid = landed
    lines = []
    known = [event.rows for event in events if event.rows is not None]
    if len(known) == len(events) and sum(known) != count:
        lines.append(f"{what}: {count} rows in bronze, {sum(known)} in the binlog")
    if (gtid or "ANONYMOUS") != events[0].gtid:
        lines.append(f"{what}: GTID {gtid} in bronze")
    return lines
