"""The structures after each statement are compared with information_schema of real servers."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from pymysql.err import MySQLError

from dmdelta.binlog.rows.ddl_scan import scan_statements
from dmdelta.ddl.tracking.tracked_structures import Structures, TrackedTable
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.statement import LoggedStatement
from dmdelta.segments import list_segments
from dmdelta.source.catalog import read_schemas
from tests.support.recording import record
from tests.support.replay import decode
from tests.support.servers import Server

MYSQL = ("mysql80", "mysql57")
NEWER = ("mysql80", "mariadb")
MARIADB = ("mariadb",)
MYSQL80 = ("mysql80",)
EVERY = ("mysql80", "mysql57", "mariadb")

STATEMENTS = [
    (EVERY, "CREATE TABLE a (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20) DEFAULT 'x, y', n INT UNSIGNED)"),
    (EVERY, "CREATE TABLE IF NOT EXISTS a (other INT)"),
    (
        EVERY,
        "CREATE TABLE kinds (t TINYINT, s SMALLINT UNSIGNED, m MEDIUMINT ZEROFILL, i INTEGER, b BIGINT UNSIGNED, d DEC, e NUMERIC(7,3) UNSIGNED, f FLOAT, g FLOAT(30), h DOUBLE PRECISION, j REAL, k BIT, l BIT(64), y YEAR, dt DATE, tm TIME(3), dm DATETIME(6), c CHAR, c2 CHAR(5) CHARACTER SET latin1, nc NCHAR(3), nv NATIONAL VARCHAR(4), cv CHARACTER VARYING(9), bo BOOLEAN NOT NULL, bi BINARY(3), vb VARBINARY(9), tt TINYTEXT, tx TEXT, lt LONGTEXT, lo LONG, lv LONG VARBINARY, bl BLOB(70000), js JSON, en ENUM('a','b,c','d''e') NOT NULL, se SET('x','y'), po POINT, ge GEOMETRY NOT NULL, cb CHAR(4) BINARY, cc VARCHAR(4) CHARACTER SET binary, cy CHAR(2) BYTE)",
    ),
    (EVERY, "CREATE TABLE k2 (a INT, b VARCHAR(9), c INT, PRIMARY KEY (b(3), a), KEY (c), UNIQUE KEY u (c, a))"),
    (EVERY, "CREATE TABLE k3 (a INT NOT NULL UNIQUE, `primary` INT COMMENT 'PRIMARY KEY (a)', `key` INT KEY)"),
    (EVERY, "CREATE TABLE s (id INT SERIAL DEFAULT VALUE COMMENT 'no')"),
    (EVERY, "CREATE TABLE s2 (id SERIAL, v INT)"),
    (EVERY, "CREATE TABLE g (a INT, b INT AS (IF(a IS NOT NULL, a, 0)) VIRTUAL, c INT GENERATED ALWAYS AS (a + 1) STORED)"),
    (EVERY, "CREATE TABLE copy LIKE k2"),
    (EVERY, "CREATE TABLE copy2 (LIKE {db}.kinds)"),
    (EVERY, "CREATE TABLE p (id INT NOT NULL, v INT, PRIMARY KEY (id)) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN (99))"),
    (EVERY, "CREATE TABLE ref (id INT, a INT, CONSTRAINT fk FOREIGN KEY (a) REFERENCES a (id) ON DELETE SET NULL ON UPDATE CASCADE)"),
    (EVERY, "CREATE TEMPORARY TABLE a2 (x INT)"),
    (EVERY, "CREATE TABLE ts (a TIMESTAMP(3) NULL DEFAULT NULL, b TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)"),
    (EVERY, "ALTER TABLE a ADD x INT"),
    (EVERY, "ALTER TABLE a ADD COLUMN y INT FIRST, ADD COLUMN z INT AFTER y"),
    (EVERY, "ALTER TABLE a ADD COLUMN (p INT, q VARCHAR(3) NOT NULL, KEY (p))"),
    (EVERY, "ALTER TABLE a DROP x, DROP COLUMN z"),
    (EVERY, "ALTER TABLE a CHANGE v w VARCHAR(30) NOT NULL AFTER id"),
    (EVERY, "ALTER TABLE a CHANGE p q INT, CHANGE q p VARCHAR(3)"),
    (EVERY, "ALTER TABLE a ADD after_w INT AFTER w2, CHANGE w w2 TEXT"),
    (EVERY, "ALTER TABLE a MODIFY N BIGINT FIRST"),
    (EVERY, "ALTER TABLE a CHANGE n N BIGINT"),
    (EVERY, "ALTER TABLE a MODIFY y INT AFTER p, MODIFY p INT AFTER q, ADD o INT AFTER y"),
    (EVERY, "ALTER TABLE a DROP o, ADD o VARCHAR(5) FIRST"),
    (EVERY, "CREATE TABLE moved (a INT, b INT, c INT, d INT)"),
    (EVERY, "ALTER TABLE moved MODIFY d INT AFTER a, MODIFY b INT AFTER a"),
    (EVERY, "ALTER TABLE moved MODIFY d INT FIRST, MODIFY c INT FIRST"),
    (EVERY, "ALTER TABLE moved MODIFY b INT AFTER c, MODIFY a INT AFTER b"),
    (EVERY, "ALTER TABLE moved ADD x INT FIRST, MODIFY a INT FIRST"),
    (EVERY, "ALTER TABLE moved CHANGE b e INT FIRST, ADD y INT AFTER e, ADD z INT"),
    (EVERY, "ALTER TABLE moved CHANGE z a INT AFTER y, CHANGE a z INT AFTER e, MODIFY x INT AFTER a"),
    (EVERY, "ALTER TABLE a ALTER COLUMN y SET DEFAULT 5, ALTER p DROP DEFAULT"),
    (EVERY, "ALTER TABLE a ADD INDEX i (y), ADD UNIQUE KEY u (p, y), COMMENT 'DROP y', AUTO_INCREMENT = 100"),
    (EVERY, "ALTER TABLE a DROP INDEX i, DROP KEY u, ENGINE = InnoDB ROW_FORMAT=DYNAMIC"),
    (EVERY, "ALTER TABLE ref DROP FOREIGN KEY fk"),
    (EVERY, "ALTER TABLE ref DROP a"),
    (EVERY, "ALTER TABLE a MODIFY id INT NOT NULL"),
    (EVERY, "ALTER TABLE a DROP PRIMARY KEY"),
    (EVERY, "ALTER TABLE a ADD PRIMARY KEY (id, y DESC)"),
    (EVERY, "ALTER TABLE a DROP PRIMARY KEY, ADD CONSTRAINT pk PRIMARY KEY USING BTREE (Y)"),
    (EVERY, "ALTER TABLE a CHANGE y yy SMALLINT"),
    (EVERY, "ALTER TABLE a DROP PRIMARY KEY, MODIFY id BIGINT PRIMARY KEY"),
    (EVERY, "ALTER TABLE a DROP PRIMARY KEY, ADD auto INT AUTO_INCREMENT PRIMARY KEY FIRST"),
    (EVERY, "ALTER TABLE a DROP auto"),
    (MYSQL, "ALTER TABLE k2 DROP a"),
    (NEWER, "ALTER TABLE k3 DROP `key`, ADD `key` INT"),
    (EVERY, "ALTER TABLE copy DROP PRIMARY KEY, DROP INDEX u, DROP b, ADD b INT NULL"),
    (EVERY, "ALTER TABLE copy CONVERT TO CHARACTER SET latin1"),
    (EVERY, "ALTER TABLE kinds CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, ADD late VARCHAR(5)"),
    (EVERY, "ALTER TABLE copy2 DEFAULT CHARACTER SET = latin1, ORDER BY i, s DESC"),
    (EVERY, "ALTER TABLE copy2 DROP js, DROP COLUMN po, MODIFY en ENUM('a','b,c','d''e','f') AFTER t, CHANGE dm DM DATETIME"),
    (EVERY, "CREATE INDEX i ON copy2 (i)"),
    (EVERY, "CREATE UNIQUE INDEX ui ON copy2 (b)"),
    (EVERY, "DROP INDEX i ON copy2"),
    (EVERY, "ALTER TABLE p ADD PARTITION (PARTITION p2 VALUES LESS THAN (999))"),
    (EVERY, "ALTER TABLE p DROP PARTITION p0, p1"),
    (EVERY, "ALTER TABLE p REMOVE PARTITIONING"),
    (EVERY, "ALTER TABLE p ADD c INT PARTITION BY KEY (id) PARTITIONS 2"),
    (EVERY, "ALTER TABLE p COALESCE PARTITION 1"),
    (EVERY, "RENAME TABLE a TO tmp, k2 TO a, tmp TO k2"),
    (EVERY, "ALTER TABLE a RENAME TO b"),
    (EVERY, "ALTER TABLE b ADD extra INT, RENAME AS {other}.b"),
    (EVERY, "RENAME TABLE {other}.b TO a, copy TO {other}.copy"),
    (EVERY, "ALTER TABLE {other}.copy ADD CONSTRAINT CHECK (c > 0), ADD more INT DEFAULT 5 "),
    (EVERY, "TRUNCATE TABLE k2"),
    (EVERY, "/*!50000 ALTER TABLE k2 ADD versioned INT */ # and more"),
    (EVERY, "ALTER TABLE ts ADD c DATETIME(2) DEFAULT CURRENT_TIMESTAMP(2) ON UPDATE CURRENT_TIMESTAMP(2) AFTER a"),
    (EVERY, "ALTER TABLE g DROP b, ADD d VARCHAR(9) AS (CONCAT(a, ',', 'NOT NULL')) STORED COMMENT 'PRIMARY KEY' AFTER a"),
    (NEWER, "ALTER TABLE a RENAME COLUMN extra TO e2"),
    (NEWER, "ALTER TABLE p RENAME COLUMN v TO c, RENAME COLUMN c TO v"),
    (NEWER, "CREATE TABLE hidden (id INT PRIMARY KEY, h INT INVISIBLE, CHECK (id > 0), d CHAR(36) DEFAULT (UUID()))"),
    (NEWER, "ALTER TABLE hidden ADD CONSTRAINT ck CHECK (id < 99)"),
    (NEWER, "ALTER TABLE hidden DROP CONSTRAINT ck"),
    (MYSQL80, "ALTER TABLE hidden ALTER COLUMN h SET VISIBLE, ALTER COLUMN d SET INVISIBLE"),
    (MYSQL80, "ALTER TABLE hidden DROP CONSTRAINT `PRIMARY`, RENAME COLUMN h TO hh, ALGORITHM=COPY"),
    (MYSQL80, "ALTER TABLE hidden ADD j JSON NOT NULL, ADD KEY f ((CAST(j AS UNSIGNED)))"),
    (MYSQL80, "ALTER TABLE k3 ADD m POINT SRID 4326, ADD n VARCHAR(3) COLUMN_FORMAT DEFAULT STORAGE DISK, ALGORITHM=INSTANT"),
    (MYSQL80, "CREATE TABLE gipk (v INT, x INT DEFAULT (1 + 2) NOT NULL) ENGINE=InnoDB STATS_PERSISTENT=DEFAULT"),
    (MARIADB, "CREATE OR REPLACE TABLE hidden (u UUID PRIMARY KEY, i INET6, j INET4, js JSON, t TEXT COMPRESSED)"),
    (MARIADB, "ALTER ONLINE TABLE IF EXISTS hidden WAIT 5 ADD COLUMN IF NOT EXISTS u INT, ADD COLUMN IF NOT EXISTS v INT"),
    (MARIADB, "ALTER TABLE hidden DROP COLUMN IF EXISTS nope, MODIFY COLUMN IF EXISTS nope INT, CHANGE IF EXISTS v w BIGINT"),
    (MARIADB, "SET STATEMENT max_statement_time=60 FOR ALTER TABLE hidden NOWAIT DROP INDEX IF EXISTS nope, ADD late UUID"),
    (MARIADB, "ALTER IGNORE TABLE hidden ADD UNIQUE INDEX IF NOT EXISTS (w), ADD CHECK (w > 0)"),
    (MARIADB, "ALTER TABLE hidden DROP PRIMARY KEY, ADD PRIMARY KEY (late)"),
    (MARIADB, "CREATE OR REPLACE INDEX x ON hidden (w)"),
    (MARIADB, "RENAME TABLE IF EXISTS nope TO nowhere, hidden TO shown"),
    (MARIADB, "DROP INDEX IF EXISTS `PRIMARY` ON shown"),
    (EVERY, "CREATE TABLE t (id INT PRIMARY KEY, a INT)"),
    (EVERY, "CREATE TABLE t€ (id INT PRIMARY KEY, cafe\u0301 INT, caf\u00e9 INT, x\u00a0y INT, \u00a0z INT, f\uff0cg INT)"),
    (EVERY, "ALTER TABLE t€ DROP cafe\u0301, ADD €\u3000€ INT AFTER x\u00a0y, DROP PRIMARY KEY, ADD PRIMARY KEY (\u00a0z, id)"),
    (EVERY, "CREATE TABLE ลูกค้า LIKE t€"),
    (EVERY, "ALTER TABLE ลูกค้า CHANGE x\u00a0y ग्राहक VARCHAR(5) FIRST"),
    (EVERY, "ALTER TABLE ลูกค้า RENAME TO t\u3000u"),
    (EVERY, "RENAME TABLE t\u3000u TO {other}.t\u0085u"),
    (EVERY, "ALTER TABLE t ADD \u0131ndex INT, ADD \u017fet INT AFTER \u0131ndex, ADD \ufb01rst INT --\x01 it's\n, ADD b INT --\r\n"),
    (MYSQL, "CREATE TABLE t\U0001f600 (id INT, c\U0001f600 INT)"),
    (MYSQL, "ALTER TABLE `t\U0001f600` CHANGE c\U0001f600 `d\U0001f600` INT FIRST, ADD c INT"),
    (MYSQL, "DROP TABLE t\U0001f600"),
    (EVERY, "CREATE TABLE national (a NCHAR VARCHAR(9), b NCHAR VARCHARACTER(9), c NCHAR VARYING(9), d NATIONAL CHAR VARYING(9), e NATIONAL CHARACTER VARYING(9), f NATIONAL VARCHARACTER(9), g NVARCHAR(9) BINARY, h NATIONAL CHARACTER(9), i NCHAR)"),
    (EVERY, "CREATE TABLE longs (a LONG CHAR VARYING, b LONG CHARACTER VARYING NOT NULL, c LONG VARCHARACTER, d LONG CHARACTER SET latin1, e LONG CHAR SET latin1, f LONG CHAR VARYING CHARACTER SET latin1, g LONG BYTE, h LONG VARCHAR BYTE, i LONG BINARY)"),
    (EVERY, "ALTER TABLE longs MODIFY a NCHAR VARCHAR(9) FIRST, CHANGE b bb LONG CHAR VARYING AFTER c, ADD j NATIONAL CHAR VARYING(5) NOT NULL"),
    (MARIADB, "ALTER TABLE longs ADD k NCHAR VARYING(9) COMPRESSED, ADD l LONG CHARACTER VARYING COMPRESSED"),
    (EVERY, "DROP TABLE t€, {other}.t\u0085u"),
    (EVERY, "ALTER DATABASE {db} CHARACTER SET latin1"),
    (EVERY, "CREATE TABLE l (id INT PRIMARY KEY, v VARCHAR(10), t TEXT, e ENUM('a'))"),
    (EVERY, "ALTER TABLE l ADD w VARCHAR(5), MODIFY e ENUM('a','b')"),
    (EVERY, "ALTER TABLE l DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"),
    (EVERY, "ALTER TABLE l ADD x CHAR(3)"),
    (EVERY, "CREATE TABLE l2 LIKE l"),
    (EVERY, "RENAME TABLE l2 TO {other}.l3"),
    (EVERY, "ALTER TABLE {other}.l3 ADD y VARCHAR(7), MODIFY w CHAR(9)"),
    (EVERY, "CREATE TABLE {other}.l4 (v VARCHAR(10))"),
    (EVERY, "ALTER TABLE l COLLATE latin2_bin, ADD z VARCHAR(2)"),
    (EVERY, "ALTER TABLE l CONVERT TO CHARACTER SET utf8"),
    (EVERY, "ALTER TABLE l ADD zz VARCHAR(2)"),
    (EVERY, "ALTER TABLE l CONVERT TO CHARACTER SET DEFAULT, ADD yy VARCHAR(2)"),
    (EVERY, "ALTER TABLE l ADD xx VARCHAR(2)"),
    (EVERY, "CREATE TABLE l5 (v VARCHAR(10)) COLLATE = utf8mb4_bin"),
    (EVERY, "ALTER TABLE l5 ADD w VARCHAR(70) FIRST"),
    (EVERY, "ALTER DATABASE {db} COLLATE utf8mb4_bin"),
    (EVERY, "CREATE TABLE l6 (v VARCHAR(10))"),
    (EVERY, "DROP TABLE l, l5, l6, {other}.l3, {other}.l4"),
    (EVERY, "DROP TABLE IF EXISTS nope, {other}.copy, copy2"),
    (EVERY, "DROP DATABASE {other}"),
    (EVERY, "DROP TABLE kinds, s RESTRICT"),
]  # fmt: skip
UNKNOWN_NULL = ("timestamp",)
"""A setting decides whether a TIMESTAMP may be NULL."""


def _seen(column: Column) -> Column:
    nullable = column.type in UNKNOWN_NULL or column.nullable
    return replace(column, nullable=nullable, collation=None)


def _tables(server: Server, databases: tuple[str, str], found: list[TableSchema]):
    """Columns and primary key of each table; a unique index is no key."""
    keys = defaultdict(tuple)
    for schema, table, column in server.query(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS"
        f" WHERE INDEX_NAME = 'PRIMARY' AND TABLE_SCHEMA IN {databases} ORDER BY SEQ_IN_INDEX"
    ):
        keys[schema, table] += (column,)
    return {schema.name: ([_seen(column) for column in schema.columns], keys[schema.name]) for schema in found}


@pytest.mark.parametrize("kind", EVERY)
def test_statements(kind: str, request: pytest.FixtureRequest) -> None:
    """After every statement the tracked structures equal the server's."""
    server: Server = request.getfixturevalue(kind)
    databases = server.fresh_database("tracked"), server.fresh_database("other")
    tracker, ran, wrong = Structures(charsets=dict.fromkeys(databases, "utf8mb4")), 0, list[str]()
    mariadb = server.flavor == "mariadb"
    with server.connect(database=databases[0]) as connection, connection.cursor() as cursor:
        for servers, template in STATEMENTS:
            if kind not in servers:
                continue
            sql = template.replace("{db}", databases[0]).replace("{other}", databases[1])
            try:
                cursor.execute(sql)
            except MySQLError as error:
                wrong.append(f"{sql}\n  refused {error}")
                continue
            logged = LoggedStatement(Position(1, "binlog.000001", ran), databases[0], sql, "utf8mb4")
            tracker, ran = tracker.after(logged, mariadb=mariadb), ran + 1
            found = read_schemas(connection, lambda schema, _: schema in databases)
            told = _tables(server, databases, found)
            followed = {
                name: ([_seen(column) for column in tracked.schema.columns], tracked.schema.primary_key)
                for name, tracked in tracker.tables.items()
            }
            if told != followed:
                names = [name for name in {**told, **followed} if told.get(name) != followed.get(name)]
                wrong += [f"{sql}\n  server  {told.get(name)}\n  tracker {followed.get(name)}" for name in names]
                tables = {
                    schema.name: TrackedTable(
                        replace(schema, primary_key=told[schema.name][1]), tracker.charset_of(*schema.name)
                    )
                    for schema in found
                }
                tracker = replace(tracker, tables=tables)
    assert not wrong, "\n".join(wrong)
    assert ran >= 60


def test_an_alter_in_two_phases_counts_once(mariadb: Server, tmp_path: Path) -> None:
    """MariaDB logs the statement when it starts and when it ends: it takes effect at the end, and never if it fails."""
    database, two_phases = mariadb.fresh_database("phases"), "SET binlog_alter_two_phase = ON"
    mariadb.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
        "INSERT INTO t VALUES (1, 1), (2, 1)",
        two_phases,
        "ALTER TABLE t ADD b INT DEFAULT 5",
        "CREATE INDEX i ON t (b)",
        database=database,
    )
    with pytest.raises(MySQLError, match="Duplicate"):
        mariadb.execute(two_phases, "ALTER TABLE t ADD c INT, ADD UNIQUE KEY (a), ALGORITHM=COPY", database=database)
    record(mariadb, tmp_path)
    changes = decode(tmp_path, lambda schema, _: schema == database)
    decoded = [(change.ddl or "").split("(")[0] for change in changes if change.op is Op.DDL and change.table]
    scanned = []
    for segment in list_segments(tmp_path, "test"):
        with open(segment.path, "rb") as stream:
            scanned += [one.sql.split("(")[0] for one in scan_statements(stream, segment) if one.schema == database]
    assert scanned[0].startswith("CREATE DATABASE")
    assert decoded == scanned[1:] == ["CREATE TABLE t ", "ALTER TABLE t ADD b INT DEFAULT 5", "CREATE INDEX i ON t "]
