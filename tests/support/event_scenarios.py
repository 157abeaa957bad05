"""The event matrix: what real servers are made to do so that each kind of binlog event occurs.

A scenario has two acts; between them the log is recorded, landed and applied, so that what the first act leaves open
(a prepared XA transaction) must not be seen yet. Each act is a list of sessions, each a list of statements.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from dmdelta.binlog.events import EventType as Event
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


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way of writing; its tables are named after it (`tables`, in the order of creation).

    Attributes:
        kinds: event types that the recorded log must hold, where it is a MySQL; `mariadb_kinds` where a MariaDB.
    """

    name: str
    first: tuple[Session, ...]
    second: tuple[Session, ...] = ()
    tables: tuple[str, ...] = ()
    kinds: frozenset[Event] = frozenset()
    mariadb_kinds: frozenset[Event] = frozenset()
    servers: frozenset[str] = field(default=ALL)

    def kinds_on(self, server: Server) -> frozenset[Event]:
        return self.mariadb_kinds if server.flavor == "mariadb" else self.kinds


def play(server: Server, database: str, act: tuple[Session, ...]) -> None:
    """Run an act's sessions one after the other."""
    for session in act:
        server.execute(*session, database=database)


def _table(name: str, more: str = "") -> str:
    return f"CREATE TABLE {name} (id INT PRIMARY KEY, a VARCHAR(30), b INT NOT NULL DEFAULT 7, c TEXT, d BLOB) {more}"


def _rows(name: str, first: int, count: int, text: str = "'text'") -> str:
    rows = ", ".join(f"({number}, 'r{number}', {number * 3}, {text}, 0x00FF)" for number in range(first, first + count))
    return f"INSERT INTO {name} VALUES {rows}"


def _changes(name: str) -> Session:
    """Each kind of change of four rows, once in its own transaction and once within one."""
    return (
        _rows(name, 1, 4),
        f"UPDATE {name} SET a = 'changed é', b = b + 1 WHERE id IN (1, 2)",
        f"UPDATE {name} SET id = 10 WHERE id = 3",
        f"DELETE FROM {name} WHERE id = 4",
        "BEGIN",
        _rows(name, 20, 3),
        f"UPDATE {name} SET c = NULL, d = 0x01 WHERE id > 19",
        f"DELETE FROM {name} WHERE id = 21",
        "COMMIT",
    )


def _more(name: str) -> Session:
    return (
        f"UPDATE {name} SET a = 'second act' WHERE id < 11",
        f"DELETE FROM {name} WHERE id = 20",
        _rows(name, 30, 2),
    )


def _changing(name: str, *settings: str, reset: Session = (), **fields) -> Scenario:
    """All kinds of changes in sessions that begin with `settings` and end with `reset`."""
    first = ((_table(name),), (*settings, *_changes(name), *reset))
    return Scenario(name, first, ((*settings, *_more(name), *reset),), (name,), **fields)


def _xa(name: str, end: str) -> Session:
    return (
        f"XA START 'gtrid','bqual{name}',7",
        _rows(name, 50, 2),
        f"UPDATE {name} SET b = 0 WHERE id = 1",
        f"XA END 'gtrid','bqual{name}',7",
        f"XA {end}",
    )


def _prepared(name: str, then: str, act: str) -> Scenario:
    prepare = _xa(name, f"PREPARE 'gtrid','bqual{name}',7")
    finish = (f"XA {then} 'gtrid','bqual{name}',7",)
    begin = ((_table(name), _rows(name, 1, 2)), prepare)
    kinds = frozenset({Event.XA_PREPARE, Event.QUERY})
    first, second = ((*begin, finish), ()) if act == "same" else (begin, (finish, (_rows(name, 70, 1),)))
    return Scenario(name, first, second, (name,), kinds=kinds, mariadb_kinds=kinds)


_SEVERAL = "SELECT t.n + 10 * u.n + 100 * v.n, 'x', 1, REPEAT('y', 200), NULL FROM {0} t, {0} u, {0} v".format(
    "(SELECT 0 n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"
)
_DOCUMENT = """'{"name": "Zoë", "tags": ["a", "b", {"c": 1}], "n": 1, "deep": {"x": {"y": [1, 2, 3]}}, "long": "0123456789012345678901234567890123456789"}'"""

SCENARIOS: tuple[Scenario, ...] = (
    _changing(
        "plain",
        kinds=_ROWS | {Event.TABLE_MAP, Event.XID, Event.QUERY, Event.GTID},
        mariadb_kinds=_V1
        | {
            Event.FORMAT_DESCRIPTION,
            Event.TABLE_MAP,
            Event.XID,
            Event.QUERY,
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
    Scenario(
        "compressed_bulk",
        (
            (_table("compressed_bulk"), _table("compressed_bulk_b")),
            (
                "SET binlog_transaction_compression = ON",
                "BEGIN",
                f"INSERT INTO compressed_bulk {_SEVERAL}",
                f"INSERT INTO compressed_bulk_b {_SEVERAL}",
                "UPDATE compressed_bulk SET b = id WHERE id % 3 = 0",
                "DELETE FROM compressed_bulk_b WHERE id % 2 = 0",
                "COMMIT",
            ),
        ),
        tables=("compressed_bulk", "compressed_bulk_b"),
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
    _prepared("xa_commit", "COMMIT", "same"),
    _prepared("xa_rollback", "ROLLBACK", "same"),
    _prepared("xa_commit_later", "COMMIT", "later"),
    _prepared("xa_rollback_later", "ROLLBACK", "later"),
    Scenario(
        "xa_one_phase",
        (
            (_table("xa_one_phase"), _rows("xa_one_phase", 1, 2)),
            _xa("xa_one_phase", "COMMIT 'gtrid','bqualxa_one_phase',7 ONE PHASE"),
        ),
        tables=("xa_one_phase",),
        kinds=frozenset({Event.XA_PREPARE}),
    ),
    Scenario(
        "xa_of_two_tables",
        (
            (_table("xa_of_two_tables"), _table("xa_of_two_tables_b"), _rows("xa_of_two_tables", 1, 3)),
            (
                "XA START 'two'",
                "DELETE FROM xa_of_two_tables WHERE id = 2",
                _rows("xa_of_two_tables_b", 1, 2),
                "XA END 'two'",
                "XA PREPARE 'two'",
            ),
            ("FLUSH BINARY LOGS", _rows("xa_of_two_tables_b", 8, 1)),
        ),
        (("XA COMMIT 'two'",),),
        tables=("xa_of_two_tables", "xa_of_two_tables_b"),
        kinds=frozenset({Event.XA_PREPARE}),
    ),
    Scenario(
        "myisam",
        ((_table("myisam", "ENGINE=MyISAM"),), _changes("myisam")),
        (_more("myisam"),),
        ("myisam",),
        kinds=_ROWS,
        mariadb_kinds=_V1,
    ),
    Scenario(
        "multi_table",
        (
            (_table("multi_table"), _table("multi_table_b"), _rows("multi_table", 1, 5), _rows("multi_table_b", 1, 5)),
            (
                "UPDATE multi_table x JOIN multi_table_b y ON x.id = y.id SET x.a = 'left', y.a = 'right', x.b = y.b + 1 WHERE x.id < 4",
            ),
            ("DELETE x, y FROM multi_table x JOIN multi_table_b y ON x.id = y.id WHERE x.id = 2",),
        ),
        tables=("multi_table", "multi_table_b"),
    ),
    Scenario(
        "several_row_events",
        (
            (
                _table("several_row_events"),
                f"INSERT INTO several_row_events {_SEVERAL}",
                "UPDATE several_row_events SET b = b + id, c = REPEAT('z', 300)",
            ),
        ),
        (("DELETE FROM several_row_events WHERE id % 3 = 1",),),
        tables=("several_row_events",),
    ),
    Scenario(
        "savepoints",
        (
            (
                _table("savepoints"),
                "BEGIN",
                _rows("savepoints", 1, 2),
                "SAVEPOINT s",
                _rows("savepoints", 5, 2),
                "ROLLBACK TO s",
                _rows("savepoints", 8, 1),
                "COMMIT",
            ),
        ),
        tables=("savepoints",),
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
            (
                _table("added_column"),
                _rows("added_column", 1, 2),
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
        "rotated",
        (
            (
                _table("rotated"),
                _rows("rotated", 1, 2),
                "FLUSH BINARY LOGS",
                "UPDATE rotated SET b = 5",
                "FLUSH BINARY LOGS",
                _rows("rotated", 5, 1),
            ),
        ),
        tables=("rotated",),
        kinds=frozenset({Event.ROTATE, Event.PREVIOUS_GTIDS}),
        mariadb_kinds=frozenset({Event.ROTATE, Event.MARIADB_GTID_LIST}),
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
