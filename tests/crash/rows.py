"""The fault matrix' rows: every point where something can fail, and the statements that make a task pass it."""

from dataclasses import dataclass

from dmdelta.failpoint import CrashPoint as Point

RUN = ("run", "--until-caught-up")
MAINTAIN = ("maintain",)
SAFELY = (*RUN, "--safe-mode")
MINIMAL = "SET SESSION binlog_row_image = 'MINIMAL'"
TABLES = (
    "CREATE TABLE keyed (id INT PRIMARY KEY, v INT, w VARCHAR(40))",
    "CREATE TABLE pairs (a INT, b VARCHAR(10), v INT, PRIMARY KEY (a, b))",
    "CREATE TABLE plain (a INT, b VARCHAR(10))",
    "CREATE TABLE digits (d INT PRIMARY KEY)",
    "INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
)
SHARDS = ("part_1", "part_2")
MERGED = "parts"
OF_SHARDS = tuple(f"CREATE TABLE {shard} (id INT PRIMARY KEY, v INT)" for shard in SHARDS)
INSERT = "INSERT INTO keyed (id, v, w) VALUES ({n}, 1, 'a'), ({n} + 1, 2, 'b'), ({n} + 2, 3, NULL), ({n} + 3, 4, '')"
UPDATE = "UPDATE keyed SET v = v + 1 WHERE id % 3 = 0"
TO_DELETE = "INSERT INTO keyed (id, v) VALUES ({n} - 99, 0)"
DELETE = "DELETE FROM keyed WHERE id = {n} - 99"
MOVE = ("UPDATE keyed SET id = id + 50 WHERE id = {n}", "INSERT INTO keyed (id, v) VALUES ({n}, 9)")
"""One worker of the sink executes both, because they concern the same key."""
BESIDE = ("INSERT INTO pairs VALUES ({n}, 'x', 0)", "UPDATE pairs SET v = {n}", "INSERT INTO plain VALUES ({n}, 'y')")
"""Changes of the other tables at the same time."""
MEANWHILE = ("UPDATE keyed SET v = v + 100", "DELETE FROM keyed WHERE id = {n} + 1")
"""Changes that a second runner reads and the first one has not read."""
AFTERWARDS = (
    "INSERT INTO keyed (id, v) SELECT MAX(id) + 1, 7 FROM keyed",
    "UPDATE keyed SET v = v + 1 WHERE id % 2 = 0",
)
"""Changes that land after a fault: the range applied again is longer than the one that was applied."""
ADD = "ALTER TABLE keyed ADD c{n} INT DEFAULT 7"
IN_TURN = (
    "ALTER TABLE part_1 ADD c{n} INT DEFAULT 7",
    "INSERT INTO part_1 (id, v) VALUES ({n}, 1)",
    "ALTER TABLE part_2 ADD c{n} INT DEFAULT 7",
    "INSERT INTO part_2 (id, v) VALUES ({n} + 5, 2)",
)
"""Two shards of a merged table make the same change, one after the other."""
INSERT_TWO = "INSERT INTO keyed (id, v) VALUES ({n} + 50, 5), ({n} + 51, 6)"
CREATE = "CREATE TABLE new{n} LIKE pairs"
UNLOGGED = ("SET SESSION sql_log_bin = 0", CREATE, "SET SESSION sql_log_bin = 1")
"""The sink's target gets the table with the first row, not with the statement."""
INTO_NEW = "INSERT INTO new{n} VALUES (1, 'a', 1), (2, 'b', 2)"
OWN_INDEX = ("SET SESSION sql_log_bin = 0", "ALTER TABLE keyed ADD INDEX i{n} (v)", "SET SESSION sql_log_bin = 1")
"""The sink's target lacks it, and refuses a statement that drops it together with other actions."""
WITHOUT_INDEX = "ALTER TABLE keyed DROP INDEX i{n}, ADD c{n} INT DEFAULT 7, ADD INDEX (c{n}), MODIFY w VARCHAR(50)"
MANY = (
    "INSERT INTO keyed (id, v) SELECT {n} * 100000 + a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d, 0 "
    "FROM digits a, digits b, digits c, digits d, (SELECT 0 AS d UNION SELECT 1) e WHERE e.d = 0 OR a.d + b.d = 0"
)
"""10,100 rows: more keys than one commit replaces by literals."""


@dataclass(frozen=True)
class Row:
    """A point, and the statements after which a task passes it.

    Attributes:
        statements: `{n}` is a number that grows with each cell by more than the rows of one.
        before: statements that are in silver before the fault.
        error: the error that the store, the source or the target raises there once: one of dmdelta's by name.
        nth: the number of the passing that is meant.
        sinks: the task has a sink.
        loads: tables are loaded first: every cell has a task of its own.
        relay: the point is in the relay's process, which the run restarts by itself.
        executors: the point is passed on Spark's executors: the task is a process of its own, which arms its workers.
        forgets: before the restart silver's history is removed, as by Delta's log retention.
        shards: the mode in which `part_1` and `part_2` are merged; '' if they are not.
    """

    name: str
    point: Point
    statements: tuple[str, ...]
    before: tuple[str, ...] = ()
    error: str = "LakehouseError"
    nth: int = 1
    arguments: tuple[str, ...] = RUN
    sinks: bool = False
    loads: bool = False
    relay: bool = False
    executors: bool = False
    forgets: bool = False
    shards: str = ""


def _relay(name: str, point: Point, *statements: str, nth: int = 1) -> Row:
    return Row(f"relay, {name}", point, statements or (INSERT, *BESIDE), error="SourceUnavailable", nth=nth, relay=True)


def _silver(name: str, *statements: str, point: Point = Point.SILVER_BEFORE_COMMIT, **more) -> Row:
    return Row(f"silver, {name}", point, statements, error="CommitConflict", **more)


def _sink(point: Point, *statements: str, nth: int = 1, shards: str = "", before: tuple[str, ...] = ()) -> Row:
    name = point.value.removeprefix("sink-").replace("-", " ")
    return Row(
        f"sink, {'shards, ' if shards else ''}{name}",
        point,
        statements or (INSERT, UPDATE, *BESIDE),
        before,
        error="TargetUnavailable",
        nth=nth,
        sinks=True,
        shards=shards,
    )


ROWS = (
    _relay("mid transaction", Point.RELAY_MID_TRANSACTION, nth=3),
    _relay("at rotation", Point.RELAY_ROTATED, INSERT, "FLUSH BINARY LOGS", UPDATE),
    _relay("before rename", Point.RELAY_BEFORE_RENAME),
    _relay("after rename", Point.RELAY_AFTER_RENAME),
    Row("landing", Point.LAND_BEFORE_COMMIT, (INSERT, *BESIDE)),
    Row("bronze commit", Point.LAND_AFTER_COMMIT, (INSERT, *BESIDE)),
    _silver("append", INSERT),
    _silver("append, behind", INSERT, point=Point.SILVER_AFTER_COMMIT),
    _silver("new table", CREATE, INTO_NEW),
    _silver(
        "new table, compacted",
        CREATE,
        INTO_NEW,
        "UPDATE new{n} SET v = 9",
    ),
    _silver("replace", UPDATE, before=(INSERT,)),
    _silver("delete", DELETE, before=(TO_DELETE,)),
    _silver("replace by literals", INSERT, DELETE, UPDATE, before=(TO_DELETE,)),
    _silver(
        "merge by a key with text",
        "UPDATE pairs SET v = v + 1",
        "DELETE FROM pairs WHERE a = {n} - 99",
        "INSERT INTO pairs VALUES ({n}, 'k', 0)",
        before=("INSERT INTO pairs VALUES ({n} - 99, 'k', 0)",),
    ),
    _silver("merge of many keys", MANY, DELETE, UPDATE, before=(TO_DELETE,)),
    _silver("delete by merge", "DELETE FROM keyed WHERE id >= {n} * 100000", before=(MANY,)),
    _silver("merge", INSERT, UPDATE, DELETE, arguments=SAFELY),
    _silver(
        "merge of a part of the columns",
        MINIMAL,
        UPDATE,
        "UPDATE keyed SET w = 'z' WHERE id % 5 = 0",
        before=(INSERT,),
    ),
    _silver(
        "merge of moved keys", MINIMAL, "UPDATE keyed SET id = id + 1000000 WHERE id = {n}", UPDATE, before=(INSERT,)
    ),
    _silver(
        "merge of moved keys, between",
        MINIMAL,
        "UPDATE keyed SET id = id + 1000000 WHERE id = {n}",
        UPDATE,
        before=(INSERT,),
        point=Point.SILVER_BETWEEN_COMMITS,
    ),
    _silver("append without a key", "INSERT INTO plain VALUES ({n}, 'p'), ({n}, 'p')"),
    _silver(
        "merge without a key",
        "DELETE FROM plain WHERE a = {n} LIMIT 1",
        "UPDATE plain SET b = 'q' WHERE a = {n} LIMIT 1",
        before=("INSERT INTO plain VALUES ({n}, 'p'), ({n}, 'p'), ({n}, 'p')",),
    ),
    _silver("evolution, before", ADD, point=Point.SILVER_BEFORE_CHANGE),
    _silver("evolution, behind", ADD, INSERT_TWO, point=Point.SILVER_AFTER_CHANGE),
    _silver("append, history forgotten", INSERT, point=Point.SILVER_AFTER_COMMIT, forgets=True),
    _silver(
        "replace by literals, history forgotten",
        INSERT,
        DELETE,
        UPDATE,
        before=(TO_DELETE,),
        point=Point.SILVER_AFTER_COMMIT,
        forgets=True,
    ),
    _silver("lock of shards, before", *IN_TURN, point=Point.SILVER_BEFORE_CHANGE, shards="pessimistic"),
    _silver("lock of shards, behind", *IN_TURN, point=Point.SILVER_AFTER_CHANGE, shards="pessimistic"),
    _silver("shards, optimistic, before", *IN_TURN, point=Point.SILVER_BEFORE_CHANGE, shards="optimistic"),
    Row("checkpoint flush", Point.CHECKPOINT_MID_FLUSH, (INSERT, *BESIDE)),
    Row("snapshot, chunk low", Point.SNAPSHOT_CHUNK_LOW, (INSERT, *BESIDE), loads=True, executors=True),
    Row("snapshot, chunk read", Point.SNAPSHOT_CHUNK_READ, (INSERT, *BESIDE), loads=True, executors=True),
    Row("snapshot, between batches", Point.SNAPSHOT_BETWEEN_BATCHES, (INSERT, *BESIDE), loads=True),
    Row("snapshot, end", Point.SNAPSHOT_END, (INSERT, *BESIDE), loads=True),
    Row("maintenance, before compaction", Point.MAINTENANCE_BEFORE_COMPACTION, (INSERT, *BESIDE), arguments=MAINTAIN),
    Row("maintenance, before vacuum", Point.MAINTENANCE_BEFORE_VACUUM, (INSERT, *BESIDE), arguments=MAINTAIN),
    Row("maintenance, end", Point.MAINTENANCE_END, (INSERT, *BESIDE), arguments=MAINTAIN),
    _sink(Point.SINK_BEFORE_TAKEOVER),
    _sink(Point.SINK_AFTER_TAKEOVER),
    _sink(Point.SINK_BEFORE_CREATE, *UNLOGGED, INTO_NEW),
    _sink(Point.SINK_AFTER_CREATE, *UNLOGGED, INTO_NEW),
    _sink(Point.SINK_BEFORE_TRANSACTION),
    _sink(Point.SINK_MID_TRANSACTION, *MOVE, before=(INSERT,)),
    _sink(Point.SINK_BEFORE_RECORD),
    _sink(Point.SINK_BEFORE_COMMIT),
    _sink(Point.SINK_AFTER_COMMIT),
    _sink(Point.SINK_DRAINED, ADD, INSERT_TWO),
    _sink(Point.SINK_BEFORE_STATEMENT, ADD, INSERT_TWO),
    _sink(Point.SINK_AFTER_STATEMENT, ADD, INSERT_TWO),
    _sink(Point.SINK_BETWEEN_ACTIONS, *OWN_INDEX, WITHOUT_INDEX, INSERT_TWO, nth=3),
    _sink(Point.SINK_BEFORE_FLUSH),
    _sink(Point.SINK_MID_FLUSH),
    _sink(Point.SINK_AFTER_FLUSH),
    *(
        _sink(point, *IN_TURN, shards="pessimistic")
        for point in (
            *(Point.SINK_BEFORE_STATEMENT, Point.SINK_AFTER_STATEMENT, Point.SINK_AFTER_FLUSH),
            *(Point.SINK_AFTER_COMMIT, Point.SINK_RESYNCED),
        )
    ),
)
