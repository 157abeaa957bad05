"""DM's names for the effects of statements."""

import pytest

from dmdelta.ddl.parse.event_types import ddl_events
from dmdelta.model.events import EVENT_NAMES
from dmdelta.model.schema import Column, TableSchema

STATEMENTS = {
    "CREATE DATABASE d": {"create database"},
    "CREATE SCHEMA IF NOT EXISTS d": {"create database"},
    "ALTER DATABASE d CHARACTER SET utf8mb4": {"alter database"},
    "DROP SCHEMA d": {"drop database"},
    "CREATE TABLE t (i INT, KEY (i))": {"create table"},
    "CREATE TABLE `index` LIKE v": {"create table"},
    "CREATE OR REPLACE TABLE t (i INT)": {"create table"},
    "DROP TABLE IF EXISTS a, b": {"drop table"},
    "TRUNCATE t": {"truncate table"},
    "TRUNCATE TABLE t": {"truncate table"},
    "RENAME TABLE a TO b": {"rename table"},
    "RENAME USER a TO b": set(),
    "CREATE UNIQUE INDEX i ON t (c)": {"create index"},
    "CREATE SPATIAL INDEX i ON t (c)": {"create index"},
    "DROP INDEX i ON t": {"drop index"},
    "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`a`@`b` SQL SECURITY DEFINER VIEW v AS SELECT 1": {"create view"},
    "DROP VIEW v": {"drop view"},
    "CREATE DEFINER=`table`@`h` PROCEDURE p() DROP TABLE t": set(),
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1": set(),
    "BEGIN": set(),
    "": set(),
    "ALTER TABLE t ADD COLUMN a INT": {"add column"},
    "ALTER TABLE t ADD a INT FIRST": {"add column"},
    "ALTER TABLE t ADD `index` INT": {"add column"},
    "ALTER TABLE t ADD (a INT, b INT)": {"add column"},
    "ALTER TABLE t ADD INDEX (a)": {"modify constraint"},
    "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a)": {"modify constraint"},
    "ALTER TABLE t ADD CONSTRAINT CHECK (a > 1)": {"modify constraint"},
    "ALTER TABLE t ADD CONSTRAINT p PRIMARY KEY (a)": {"add primary key"},
    "ALTER TABLE t ADD CONSTRAINT FOREIGN KEY (a) REFERENCES u (a)": {"add foreign key"},
    "ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (5))": {"add table partition"},
    "ALTER TABLE t DROP a": {"drop column"},
    "ALTER TABLE t DROP COLUMN IF EXISTS a": {"drop column"},
    "ALTER TABLE t DROP INDEX a": {"drop index"},
    "ALTER TABLE t DROP INDEX `PRIMARY`": {"drop primary key"},
    "ALTER TABLE t DROP PRIMARY KEY": {"drop primary key"},
    "ALTER TABLE t DROP FOREIGN KEY f": {"drop foreign key"},
    "ALTER TABLE t DROP CONSTRAINT f": {"alter table"},
    "ALTER TABLE t DROP PARTITION p0, p1": {"drop table partition"},
    "ALTER TABLE t RENAME COLUMN a TO b": {"rename column"},
    "ALTER TABLE t RENAME INDEX a TO b": {"rename index"},
    "ALTER TABLE t RENAME TO u": {"rename table"},
    "ALTER TABLE t ALTER COLUMN a SET DEFAULT 5": {"modify default value"},
    "ALTER TABLE t ALTER a DROP DEFAULT": {"modify default value"},
    "ALTER TABLE t ALTER INDEX i INVISIBLE": {"alter index visibility"},
    "ALTER TABLE t ALTER COLUMN a SET INVISIBLE": {"alter table"},
    "ALTER TABLE t CONVERT TO CHARACTER SET latin1 COLLATE latin1_bin": {"modify charset"},
    "ALTER TABLE t DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin": {"modify charset"},
    "ALTER TABLE t COLLATE utf8mb4_bin": {"modify collation"},
    "ALTER TABLE t ENGINE=InnoDB COMMENT='CHARSET x'": {"modify storage engine", "modify table comment"},
    "ALTER TABLE t AUTO_INCREMENT = 5": {"rebase auto id"},
    "ALTER TABLE t ROW_FORMAT=DYNAMIC": {"alter table"},
    "ALTER TABLE t FORCE": {"alter table"},
    "ALTER TABLE t ORDER BY a, b": {"alter table"},
    "ALTER TABLE t PARTITION BY HASH (a) PARTITIONS 4": {"alter table partitioning"},
    "ALTER TABLE t ENGINE=InnoDB PARTITION BY HASH (a)": {"modify storage engine", "alter table partitioning"},
    "ALTER TABLE t REMOVE PARTITIONING": {"remove table partitioning"},
    "ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (5))": {"reorganize table partition"},
    "ALTER TABLE t REBUILD PARTITION ALL": {"rebuild table partition"},
    "ALTER TABLE t COALESCE PARTITION 2": {"coalesce table partition"},
    "ALTER TABLE t TRUNCATE PARTITION p": {"truncate table partition"},
    "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u": {"exchange table partition"},
    "ALTER TABLE t MODIFY a INT": {"modify column"},
    "ALTER TABLE t ADD a INT, DROP b, ALGORITHM=INPLACE, LOCK=NONE": {"add column", "drop column"},
    "ALTER ONLINE TABLE IF EXISTS t WAIT 5 ADD a INT": {"add column"},
    "SET STATEMENT max_statement_time=1 FOR ALTER TABLE t DROP a": {"drop column"},
    "ALTER TABLE t ADD SYSTEM VERSIONING": {"alter table"},
}


@pytest.mark.parametrize("sql", STATEMENTS)
def test_every_action_has_a_name(sql):
    """One name for each action, all of them valid in `filters`."""
    assert ddl_events(sql) == STATEMENTS[sql]
    assert ddl_events(sql) <= EVENT_NAMES


BEFORE = TableSchema(
    "d",
    "t",
    (
        Column("i", "int"),
        Column("m", "mediumint"),
        Column("d", "decimal", precision=7, scale=2),
        Column("c", "char", length=40, charset="utf8mb4"),
        Column("v", "varchar", length=40, charset="utf8mb4"),
        Column("x", "text", charset="utf8mb4"),
        Column("b", "binary", length=4),
        Column("e", "enum", members=("a", "b"), charset="utf8mb4"),
        Column("t", "datetime", precision=3),
        Column("f", "float"),
        Column("y", "bit", length=8),
    ),
)
MODIFIED = {
    "MODIFY m SMALLINT(6)": "value range decrease",
    "MODIFY m BIGINT": "alter table",
    "MODIFY m BIGINT UNSIGNED": "value range decrease",
    "MODIFY m MEDIUMINT UNSIGNED": "precision decrease",
    "MODIFY m VARCHAR(10)": "modify column",
    "MODIFY d DECIMAL(7,1)": "precision decrease",
    "MODIFY d NUMERIC(7,2) NOT NULL": "alter table",
    "MODIFY c CHAR(10)": "alter table",
    "MODIFY c CHAR(9)": "value range decrease",
    "MODIFY c VARCHAR(10)": "modify column",
    "MODIFY v VARCHAR(11)": "alter table",
    "MODIFY v VARCHAR(9)": "value range decrease",
    "MODIFY v TEXT": "alter table",
    "MODIFY x VARCHAR(20)": "modify column",
    "MODIFY x LONGTEXT": "alter table",
    "MODIFY x TINYTEXT": "modify column",
    "MODIFY d DECIMAL(8,2)": "precision decrease",
    "MODIFY d DECIMAL(7,2) UNSIGNED": "precision decrease",
    "MODIFY b BINARY(5)": "precision decrease",
    "MODIFY b BINARY(3)": "precision decrease",
    "MODIFY b BINARY(4) NOT NULL": "alter table",
    "MODIFY y BIT(7)": "value range decrease",
    "MODIFY y BIT(8) NOT NULL": "alter table",
    "MODIFY y BIT(9)": "alter table",
    "MODIFY e ENUM('a','b','c')": "alter table",
    "MODIFY e ENUM('b','a')": "value range decrease",
    "MODIFY t DATETIME": "value range decrease",
    "MODIFY t DATETIME(6)": "alter table",
    "MODIFY f DOUBLE": "modify column",
    "MODIFY f FLOAT UNSIGNED": "value range decrease",
    "MODIFY c CHAR(40) CHARACTER SET latin1": "modify charset",
    "MODIFY c CHAR(10) CHARSET utf8mb4": "alter table",
    "MODIFY c CHAR(10) COLLATE utf8mb4_bin": "modify collation",
    "MODIFY i INT AFTER m": "modify columns order",
    "MODIFY i INTEGER FIRST": "modify columns order",
    "CHANGE i j INT": "rename column",
    "CHANGE COLUMN i I INT": "alter table",
    "CHANGE i j BIGINT UNSIGNED": "value range decrease",
    "MODIFY unknown INT": "modify column",
    "MODIFY c NATIONAL CHARACTER(14)": "modify charset",
    "MODIFY x TEXT(10)": "modify column",
}


@pytest.mark.parametrize("action", MODIFIED)
def test_a_modified_column_is_named_by_its_effect_on_values(action):
    """With the structure before, the events of MODIFY and CHANGE are distinguished as in DM."""
    assert ddl_events(f"ALTER TABLE d.t {action}", BEFORE) == {MODIFIED[action]}
