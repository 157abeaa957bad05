"""The event matrix: statements that make real servers log each kind of binlog event.

A scenario has two acts; between them the log is recorded, landed and applied: what the first act leaves open
(a prepared XA transaction) must not be visible yet. An act is a list of sessions, a session a list of statements.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dmdelta.binlog.events.header import EventType as Event
from tests.support.servers import Server

MYSQL80, MYSQL57, MARIADB, MYSQL97 = "mysql80", "mysql57", "mariadb", "mysql97"
ALL = frozenset({MYSQL80, MYSQL57, MARIADB, MYSQL97})
MYSQL = ALL - {MARIADB}
MYSQL8 = frozenset({MYSQL80, MYSQL97})

Session = tuple[str, ...]

_ROWS = frozenset({Event.WRITE_ROWS, Event.UPDATE_ROWS, Event.DELETE_ROWS})
_V1 = frozenset({Event.WRITE_ROWS_V1, Event.UPDATE_ROWS_V1, Event.DELETE_ROWS_V1})
_COMPRESSED_ROWS = frozenset(
    {
        Event.MARIADB_WRITE_ROWS_COMPRESSED_V1,
        Event.MARIADB_UPDATE_ROWS_COMPRESSED_V1,
        Event.MARIADB_DELETE_ROWS_COMPRESSED_V1,
    }
)


SHARED: Session = tuple(
    f"CREATE TABLE {name} (id INT PRIMARY KEY, a VARCHAR(30), b INT NOT NULL DEFAULT 7, c TEXT, d BLOB)"
    for name in ("changes", "changes_b", "prepared", "bulk", "bulk_b")
)
"""Tables that scenarios share, each with its own block of ids: a table costs seconds, a row costs nothing."""
BLOCK = 10_000


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to write to the log.

    Attributes:
        tables: the tables it writes; of shared ones only the ids of its block.
        block: the block's first id; None: the scenario has its own tables.
        kinds: event types that MySQL's recorded log must contain; `mariadb_kinds`: those of MariaDB's.
    """

    name: str
    first: tuple[Session, ...]
    second: tuple[Session, ...] = ()
    tables: tuple[str, ...] = ()
    block: int | None = None
    kinds: frozenset[Event] = frozenset()
    mariadb_kinds: frozenset[Event] = frozenset()
    servers: frozenset[str] = field(default=ALL)

    def kinds_on(self, server: Server) -> frozenset[Event]:
        return self.mariadb_kinds if server.flavor == "mariadb" else self.kinds

    def owns(self, table: str, key: tuple[object, ...] | None) -> bool:
        """Whether a difference in that row (None: in the whole table) belongs to this scenario."""
        if table not in self.tables:
            return False
        return self.block is None or key is None or int(str(key[0])) // BLOCK == self.block // BLOCK


def play(
    server: Server, database: str, act: tuple[Session, ...], after_each: Callable[[], None] = lambda: None
) -> None:
    """Run an act's sessions one after the other."""
    for session in act:
        server.execute(*session, database=database)
        after_each()


def _rows(table: str, first: int, count: int) -> str:
    rows = ", ".join(f"({number}, 'r{number}', {number * 3}, 'text', 0x00FF)" for number in range(first, first + count))
    return f"INSERT INTO {table} VALUES {rows}"


def _changes(table: str, base: int) -> Session:
    """Each kind of change of four rows, first in separate transactions, then in one."""
    return (
        _rows(table, base + 1, 4),
        f"UPDATE {table} SET a = 'changed é', b = b + 1 WHERE id IN ({base + 1}, {base + 2})",
        f"UPDATE {table} SET id = {base + 10} WHERE id = {base + 3}",
        f"DELETE FROM {table} WHERE id = {base + 4}",
        "BEGIN",
        _rows(table, base + 20, 3),
        f"UPDATE {table} SET c = NULL, d = 0x01 WHERE id BETWEEN {base + 20} AND {base + 29}",
        f"DELETE FROM {table} WHERE id = {base + 21}",
        "COMMIT",
    )


def _more(table: str, base: int) -> Session:
    return (
        f"UPDATE {table} SET a = 'second act' WHERE id BETWEEN {base} AND {base + 12}",
        f"UPDATE {table} SET id = {base + 40}, c = 'moved' WHERE id = {base + 22}",
        f"DELETE FROM {table} WHERE id = {base + 20}",
        _rows(table, base + 30, 2),
    )


_BLOCKS = iter(range(0, 1000 * BLOCK, BLOCK))


def _changing(name: str, *settings: str, reset: Session = (), **fields) -> Scenario:
    """All kinds of changes in sessions that begin with `settings` and end with `reset`."""
    base = next(_BLOCKS)
    if "MINIMAL" not in " ".join(settings):
        # A MINIMAL image of an insert omits columns with their default: the log does not contain the value.
        settings = (
            *settings,
            f"INSERT INTO changes (id, a) VALUES ({base + 15}, 'with defaults') ON DUPLICATE KEY UPDATE b = 8",
        )
    first = (*settings, *_changes("changes", base), *reset)
    second = (*settings, *_more("changes", base), *reset)
    return Scenario(name, (first,), (second,), ("changes",), base, **fields)


def _xa(xid: str, base: int, end: str) -> Session:
    change = f"UPDATE prepared SET b = 0, a = '{xid}' WHERE id = {base + 1}"
    name = f"'gtrid','{xid}',7"
    return (f"XA START {name}", _rows("prepared", base + 50, 2), change, f"XA END {name}", f"XA {end}")


def _prepared(name: str, verdict: str, *, later: bool) -> Scenario:
    base = next(_BLOCKS)
    xid = f"'gtrid','{name}',7"
    begin = ((_rows("prepared", base + 1, 2),), _xa(name, base, f"PREPARE {xid}"))
    finish = (f"XA {verdict} {xid}",)
    kinds = frozenset({Event.XA_PREPARE, Event.QUERY})
    first, second = (begin, (finish, (_rows("prepared", base + 70, 1),))) if later else ((*begin, finish), ())
    return Scenario(name, first, second, ("prepared",), base, kinds=kinds, mariadb_kinds=kinds)


def _one_phase() -> Scenario:
    base = next(_BLOCKS)
    act = ((_rows("prepared", base + 1, 2),), _xa("one", base, "COMMIT 'gtrid','one',7 ONE PHASE"))
    return Scenario("xa_one_phase", act, (), ("prepared",), base, kinds=frozenset({Event.XA_PREPARE}))


def _xa_of_two_tables() -> Scenario:
    base = next(_BLOCKS)
    change = (f"DELETE FROM prepared WHERE id = {base + 2}", _rows("changes_b", base + 1, 2))
    first = (
        (_rows("prepared", base + 1, 3),),
        ("XA START 'two'", *change, "XA END 'two'", "XA PREPARE 'two'"),
        ("FLUSH BINARY LOGS", _rows("changes_b", base + 8, 1)),
    )
    tables = ("prepared", "changes_b")
    return Scenario("xa_of_two_tables", first, (("XA COMMIT 'two'",),), tables, base, frozenset({Event.XA_PREPARE}))


_DIGITS = "(" + " UNION ".join(f"SELECT {digit} n" for digit in range(10)) + ")"


def _thousand(table: str, base: int) -> str:
    number = f"{base} + t.n + 10 * u.n + 100 * v.n"
    return f"INSERT INTO {table} SELECT {number}, 'x', 1, REPEAT('y', 200), NULL FROM {_DIGITS} t, {_DIGITS} u, {_DIGITS} v"


def _compressed_bulk() -> Scenario:
    base = next(_BLOCKS)
    session = (
        "SET binlog_transaction_compression = ON",
        "BEGIN",
        _thousand("bulk", base),
        _thousand("bulk_b", base),
        f"UPDATE bulk SET b = id WHERE id >= {base} AND id % 3 = 0",
        f"DELETE FROM bulk_b WHERE id >= {base} AND id % 2 = 0",
        "COMMIT",
    )
    kinds = frozenset({Event.TRANSACTION_PAYLOAD})
    return Scenario("compressed_bulk", (session,), (), ("bulk", "bulk_b"), base, kinds, servers=MYSQL8)


def _several_row_events() -> Scenario:
    base = next(_BLOCKS)
    ours = f"id BETWEEN {base} AND {base + 999}"
    first = (_thousand("bulk", base), f"UPDATE bulk SET b = b + id, c = REPEAT('z', 300) WHERE {ours}")
    return Scenario(
        "several_row_events", (first,), ((f"DELETE FROM bulk WHERE {ours} AND id % 3 = 1",),), ("bulk",), base
    )


def _multi_table() -> Scenario:
    base = next(_BLOCKS)
    joined = "changes x JOIN changes_b y ON x.id = y.id"
    session = (
        _rows("changes", base + 1, 5),
        _rows("changes_b", base + 1, 5),
        f"UPDATE {joined} SET x.a = 'left', y.a = 'right', x.b = y.b + 1 WHERE x.id BETWEEN {base + 1} AND {base + 3}",
        f"DELETE x, y FROM {joined} WHERE x.id = {base + 2}",
    )
    return Scenario("multi_table", (session,), (), ("changes", "changes_b"), base)


def _savepoints() -> Scenario:
    base = next(_BLOCKS)
    inner = ("SAVEPOINT s", _rows("changes", base + 5, 2), "ROLLBACK TO s", _rows("changes", base + 8, 1))
    return Scenario("savepoints", (("BEGIN", _rows("changes", base + 1, 2), *inner, "COMMIT"),), (), ("changes",), base)


def _rotated() -> Scenario:
    base = next(_BLOCKS)
    change = f"UPDATE changes SET b = 5 WHERE id = {base + 1}"
    session = (
        _rows("changes", base + 1, 2),
        "FLUSH BINARY LOGS",
        change,
        "FLUSH BINARY LOGS",
        _rows("changes", base + 5, 1),
    )
    mysql = frozenset({Event.ROTATE, Event.PREVIOUS_GTIDS})
    mariadb = frozenset({Event.ROTATE, Event.MARIADB_GTID_LIST})
    return Scenario("rotated", (session,), (), ("changes",), base, mysql, mariadb)


def _table(name: str, more: str = "") -> str:
    return f"CREATE TABLE {name} (id INT PRIMARY KEY, a VARCHAR(30), b INT NOT NULL DEFAULT 7, c TEXT, d BLOB) {more}"


_DOCUMENT = """'{"name": "Zoë", "tags": ["a", "b", {"c": 1}], "n": 1, "deep": {"x": {"y": [1, 2, 3]}}, "long": "0123456789012345678901234567890123456789"}'"""

SCENARIOS: tuple[Scenario, ...] = (
    _changing(
        "plain",
        kinds=_ROWS | {Event.TABLE_MAP, Event.XID, Event.QUERY, Event.GTID},
        mariadb_kinds=_V1
        | {
            Event.TABLE_MAP,
            Event.XID,
            Event.MARIADB_GTID,
            Event.MARIADB_ANNOTATE_ROWS,
        },
    ),
    _changing(
        "rows_v1",
        "SET GLOBAL log_bin_use_v1_row_events = ON",
        reset=("SET GLOBAL log_bin_use_v1_row_events = OFF",),
        kinds=_V1,
        servers=frozenset({MYSQL80, MYSQL57}),
    ),
    _changing(
        "rows_query", "SET binlog_rows_query_log_events = ON", kinds=frozenset({Event.ROWS_QUERY}), servers=MYSQL
    ),
    _changing(
        "compressed_transaction",
        "SET binlog_transaction_compression = ON",
        kinds=frozenset({Event.TRANSACTION_PAYLOAD}),
        servers=MYSQL8,
    ),
    _changing(
        "compressed_events",
        "SET GLOBAL log_bin_compress_min_len = 10",
        "SET GLOBAL log_bin_compress = ON",
        "CREATE TABLE compressed_events_b (id INT PRIMARY KEY, v VARCHAR(20)) COMMENT 'logged as a compressed query event'",
        "INSERT INTO compressed_events_b VALUES (1, 'x')",
        "DROP TABLE compressed_events_b",
        reset=("SET GLOBAL log_bin_compress = OFF",),
        mariadb_kinds=_COMPRESSED_ROWS | {Event.MARIADB_QUERY_COMPRESSED},
        servers=frozenset({MARIADB}),
    ),
    Scenario(
        "partial_json",
        (
            (
                "CREATE TABLE partial_json (id INT PRIMARY KEY, j JSON, k JSON, n INT)",
                f"INSERT INTO partial_json VALUES (1, {_DOCUMENT}, NULL, 1), (2, {_DOCUMENT}, {_DOCUMENT}, 2), (3, '[1, 2, 3]', '{{}}', 3)",
            ),
            (
                "SET binlog_row_value_options = PARTIAL_JSON",
                "UPDATE partial_json SET j = JSON_SET(j, '$.n', 2) WHERE id = 1",
                "UPDATE partial_json SET j = JSON_REPLACE(j, '$.tags[1]', 'β'), k = JSON_REMOVE(k, '$.deep.x'), n = n + 1 WHERE id = 2",
                "UPDATE partial_json SET j = JSON_SET(j, '$[2]', JSON_OBJECT('four', 4)) WHERE id = 3",
                "UPDATE partial_json SET j = JSON_REMOVE(JSON_SET(j, '$.deep.x.y[0]', 'new', '$.extra', CAST('[1.5, null]' AS JSON)), '$.tags[0]') WHERE id IN (1, 2)",
                "UPDATE partial_json SET id = 4, j = JSON_SET(j, '$.n', NULL) WHERE id = 1",
                'UPDATE partial_json SET j = \'{"whole": "document"}\' WHERE id = 2',
                "SET binlog_row_value_options = ''",
            ),
        ),
        (
            (
                "SET binlog_row_value_options = PARTIAL_JSON",
                "UPDATE partial_json SET j = JSON_SET(j, '$.n', 99) WHERE id = 4",
            ),
        ),
        tables=("partial_json",),
        kinds=frozenset({Event.PARTIAL_UPDATE_ROWS}),
        servers=MYSQL8,
    ),
    Scenario(
        "partial_json_compressed",
        (
            (
                "CREATE TABLE partial_json_compressed (id INT PRIMARY KEY, j JSON)",
                f"INSERT INTO partial_json_compressed VALUES (1, {_DOCUMENT})",
            ),
            (
                "SET binlog_row_value_options = PARTIAL_JSON",
                "SET binlog_transaction_compression = ON",
                "UPDATE partial_json_compressed SET j = JSON_SET(j, '$.n', 2)",
            ),
        ),
        tables=("partial_json_compressed",),
        kinds=frozenset({Event.TRANSACTION_PAYLOAD}),
        servers=MYSQL8,
    ),
    _changing("minimal_image", "SET binlog_row_image = MINIMAL", kinds=_ROWS, mariadb_kinds=_V1),
    _changing("noblob_image", "SET binlog_row_image = NOBLOB", kinds=_ROWS, mariadb_kinds=_V1),
    Scenario(
        "minimal_keyless",
        (
            (
                "CREATE TABLE minimal_keyless (a INT, b VARCHAR(10), c TEXT)",
                "SET binlog_row_image = MINIMAL",
                "INSERT INTO minimal_keyless VALUES (1,'x','t'), (1,'x','t'), (2,NULL,NULL)",
                "UPDATE minimal_keyless SET b = 'y' WHERE a = 2",
            ),
        ),
        (("DELETE FROM minimal_keyless LIMIT 1",),),
        tables=("minimal_keyless",),
    ),
    _changing(
        "checksum_none",
        "SET GLOBAL binlog_checksum = NONE",
        reset=("SET GLOBAL binlog_checksum = CRC32",),
        kinds=_ROWS,
        mariadb_kinds=_V1,
    ),
    _changing(
        "anonymous_gtid",
        "SET GLOBAL gtid_mode = ON_PERMISSIVE",
        "SET GLOBAL gtid_mode = OFF_PERMISSIVE",
        reset=("SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = ON"),
        kinds=frozenset({Event.ANONYMOUS_GTID}),
        servers=MYSQL,
    ),
    _changing(
        "tagged_gtid",
        "SET gtid_next = 'AUTOMATIC:demo'",
        kinds=frozenset({Event.GTID_TAGGED}),
        servers=frozenset({MYSQL97}),
    ),
    _prepared("xa_commit", "COMMIT", later=False),
    _prepared("xa_rollback", "ROLLBACK", later=False),
    _prepared("xa_commit_later", "COMMIT", later=True),
    _prepared("xa_rollback_later", "ROLLBACK", later=True),
    _one_phase(),
    _xa_of_two_tables(),
    _compressed_bulk(),
    _several_row_events(),
    _multi_table(),
    _savepoints(),
    _rotated(),
    Scenario(
        "myisam",
        ((_table("myisam", "ENGINE=MyISAM"),), _changes("myisam", 0)),
        (_more("myisam", 0),),
        ("myisam",),
        kinds=_ROWS,
        mariadb_kinds=_V1,
    ),
    Scenario(
        "create_select",
        (
            (
                _table("create_select_from"),
                _rows("create_select_from", 1, 3),
                "CREATE TABLE create_select (PRIMARY KEY (id)) SELECT id, a, b FROM create_select_from",
            ),
        ),
        (("UPDATE create_select SET a = 'later'",),),
        tables=("create_select", "create_select_from"),
        servers=ALL - {MYSQL57},
    ),
    Scenario(
        "truncated",
        ((_table("truncated"), _rows("truncated", 1, 5), "TRUNCATE TABLE truncated", _rows("truncated", 2, 2)),),
        (("TRUNCATE truncated", _rows("truncated", 9, 1)),),
        tables=("truncated",),
    ),
    Scenario(
        "keyless",
        (
            ("CREATE TABLE keyless (a INT, b VARCHAR(10), f DOUBLE, j JSON)",),
            (
                "INSERT INTO keyless VALUES (1,'x',1.5,'{}'), (1,'x',1.5,'{}'), (1,'x',1.5,'{}'), (NULL,NULL,NULL,NULL), (NULL,NULL,NULL,NULL)",
                "UPDATE keyless SET b = 'y' WHERE a = 1 LIMIT 1",
                "DELETE FROM keyless WHERE a IS NULL LIMIT 1",
            ),
        ),
        (
            (
                "DELETE FROM keyless WHERE b = 'x' LIMIT 1",
                "UPDATE keyless SET j = '[2]' WHERE a IS NULL",
                "INSERT INTO keyless VALUES (1,'x',1.5,'{}')",
            ),
        ),
        tables=("keyless",),
    ),
    Scenario(
        "key_changes",
        (
            (
                "CREATE TABLE key_changes (k VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n DECIMAL(9,3), u INT UNIQUE)",
            ),
            (
                "INSERT INTO key_changes VALUES ('a',1,1),('b',2,2),('c',3,3),('d',4,4),('e',5,5)",
                "UPDATE key_changes SET k = 'A' WHERE k = 'a'",
                "BEGIN",
                "UPDATE key_changes SET k = 'tmp' WHERE k = 'b'",
                "UPDATE key_changes SET k = 'b' WHERE k = 'c'",
                "UPDATE key_changes SET k = 'c' WHERE k = 'tmp'",
                "COMMIT",
                "DELETE FROM key_changes WHERE k = 'd'",
                "INSERT INTO key_changes VALUES ('D', 44.5, 4)",
                "REPLACE INTO key_changes VALUES ('f', 6, 5)",
                "INSERT INTO key_changes VALUES ('f', 7, 7) ON DUPLICATE KEY UPDATE n = 77, k = 'é'",
            ),
        ),
        (
            (
                "UPDATE key_changes SET k = CONCAT(k, '2')",
                "DELETE FROM key_changes WHERE k = 'b2'",
                "INSERT INTO key_changes VALUES ('b2', 0, 99)",
            ),
        ),
        tables=("key_changes",),
    ),
    Scenario(
        "key_types",
        (
            (
                "CREATE TABLE key_types (t VARCHAR(20), n DECIMAL(20,4), w DATETIME(6), u BIGINT UNSIGNED, b VARBINARY(8), e ENUM('x','y'), d DATE, v INT, PRIMARY KEY (t, n, w, u, b, e, d))",
                "INSERT INTO key_types VALUES ('é',1.5,'2024-01-02 03:04:05.678901',18446744073709551615,0x00ff,'y','2024-02-29',1), ('',-0.0001,'1000-01-01',0,'','x','1000-01-01',2), ('z',0,'9999-12-31 23:59:59.999999',1,'b','x','9999-12-31',3)",
            ),
        ),
        (
            (
                "UPDATE key_types SET v = v + 10",
                "UPDATE key_types SET n = n + 1, b = CONCAT(b, 0x00) WHERE v > 11",
                "DELETE FROM key_types WHERE u = 0",
            ),
        ),
        tables=("key_types",),
    ),
    Scenario(
        "added_column",
        (
            (_table("added_column"), _rows("added_column", 1, 2)),
            (
                "ALTER TABLE added_column ADD COLUMN e DECIMAL(6,2)",
                "UPDATE added_column SET e = 1.25 WHERE id = 1",
                "INSERT INTO added_column VALUES (3, 'x', 1, 'y', NULL, -9.99)",
            ),
        ),
        (
            (
                "ALTER TABLE added_column ADD COLUMN f JSON, ADD COLUMN g TIMESTAMP(3) NULL AFTER a",
                "INSERT INTO added_column (id, f, g) VALUES (4, '[1]', '2024-01-01 00:00:00.5')",
            ),
        ),
        tables=("added_column",),
    ),
    Scenario(
        "harmless_ddl",
        (
            (
                _table("harmless_ddl"),
                _rows("harmless_ddl", 1, 2),
                "CREATE INDEX by_a ON harmless_ddl (a)",
                "CREATE VIEW harmless_view AS SELECT id FROM harmless_ddl",
                "ANALYZE TABLE harmless_ddl",
                "CREATE USER 'somebody'@'localhost' IDENTIFIED BY 'Secret-1'",
                "GRANT SELECT ON *.* TO 'somebody'@'localhost'",
                "CREATE PROCEDURE harmless_procedure() DELETE FROM harmless_ddl WHERE id = 1",
                "CALL harmless_procedure()",
                "CREATE TABLE harmless_copy LIKE harmless_ddl",
                "DROP TABLE harmless_copy",
                "DROP VIEW harmless_view",
                "DROP INDEX by_a ON harmless_ddl",
            ),
        ),
        (("OPTIMIZE TABLE harmless_ddl", _rows("harmless_ddl", 7, 1)),),
        tables=("harmless_ddl",),
    ),
    Scenario(
        "triggers",
        (
            (
                _table("triggers"),
                "CREATE TABLE triggers_log (n INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(40))",
                "CREATE TRIGGER on_insert AFTER INSERT ON triggers FOR EACH ROW INSERT INTO triggers_log (what) VALUES (CONCAT('new ', NEW.id))",
                _rows("triggers", 1, 3),
                "REPLACE INTO triggers VALUES (2, 'replaced', 1, NULL, NULL)",
            ),
        ),
        tables=("triggers", "triggers_log"),
    ),
    Scenario(
        "odd_names",
        (
            (
                "CREATE TABLE `odd_names täble ``x``` (`the id` INT PRIMARY KEY, `a.b` VARCHAR(10), `c,d` INT, `e``f` JSON, `数` DATE, `SELECT` INT)",
                "INSERT INTO `odd_names täble ``x``` VALUES (1, 'x', 2, '{}', '2024-02-29', 5), (2, NULL, NULL, NULL, NULL, NULL)",
            ),
        ),
        (("UPDATE `odd_names täble ``x``` SET `a.b` = 'ü', `the id` = 3 WHERE `the id` = 2",),),
        tables=("odd_names täble `x`",),
    ),
)


def scenarios_of(name: str) -> Iterator[Scenario]:
    """The scenarios of a server."""
    return (scenario for scenario in SCENARIOS if name in scenario.servers)
