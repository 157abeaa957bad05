"""The statements of gh-ost and pt-online-schema-change, with writes in between.

They change the table that TABLE creates.
"""

TABLE = (
    "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT)",
    "INSERT INTO t VALUES (1,'x',10),(2,NULL,20),(3,'z',NULL)",
)
GH_OST = """
CREATE TABLE `{db}`.`_t_ghc` (id BIGINT UNSIGNED AUTO_INCREMENT, last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint VARCHAR(64) CHARSET ascii NOT NULL, value VARCHAR(4096) CHARSET ascii NOT NULL, PRIMARY KEY (id), UNIQUE KEY hint_uidx (hint)) AUTO_INCREMENT=256
CREATE TABLE `{db}`.`_t_gho` LIKE `{db}`.`t`
ALTER TABLE `{db}`.`_t_gho` ADD COLUMN c INT NOT NULL DEFAULT 7 AFTER id, DROP COLUMN b
INSERT INTO _t_ghc (id, hint, value) VALUES (NULLIF(1, 0), 'state', 'GhostTableMigrated') ON DUPLICATE KEY UPDATE value = VALUES(value)
UPDATE t SET a = 'during' WHERE id = 1
INSERT IGNORE INTO `{db}`.`_t_gho` (id, a) (SELECT id, a FROM t FORCE INDEX (PRIMARY) WHERE id >= 1 AND id <= 3 LOCK IN SHARE MODE)
INSERT INTO t VALUES (4, 'while it is copied', 40)
REPLACE INTO `{db}`.`_t_gho` (id, a) VALUES (4, 'while it is copied')
DELETE FROM t WHERE id = 2
DELETE FROM `{db}`.`_t_gho` WHERE id = 2
CREATE TABLE `{db}`.`_t_del` (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB COMMENT='ghost-cut-over-sentry'
DROP TABLE IF EXISTS `{db}`.`_t_del`
RENAME TABLE `{db}`.`t` TO `{db}`.`_t_del`, `{db}`.`_t_gho` TO `{db}`.`t`
INSERT INTO t VALUES (5, 50, 'behind')
DROP TABLE IF EXISTS `{db}`.`_t_ghc`
DROP TABLE IF EXISTS `{db}`.`_t_del`
UPDATE t SET c = c + 1 WHERE id = 4
"""
_LINES = GH_OST.splitlines(keepends=True)
_SENTRY = next(number for number, line in enumerate(_LINES) if "ghost-cut-over-sentry" in line)
GH_OST_TWO_STEP = "".join(
    [
        *_LINES[:_SENTRY],
        "alter /* gh-ost */ table `{db}`.`t` rename `_t_del`\n",
        "alter /* gh-ost */ table `{db}`.`_t_gho` rename `t`\n",
        *_LINES[_SENTRY + 3 :],
    ]
)
"""With --cut-over=two-step, no table is t for a moment."""
PT_OSC = """
CREATE TABLE `{db}`.`_t_new` (`id` int NOT NULL, `a` varchar(20) DEFAULT NULL, `b` int DEFAULT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
ALTER TABLE `{db}`.`_t_new` CHANGE a title VARCHAR(40), MODIFY b BIGINT
CREATE TRIGGER `pt_osc_t_del` AFTER DELETE ON `{db}`.`t` FOR EACH ROW DELETE IGNORE FROM `{db}`.`_t_new` WHERE `{db}`.`_t_new`.`id` <=> OLD.`id`
CREATE TRIGGER `pt_osc_t_ins` AFTER INSERT ON `{db}`.`t` FOR EACH ROW REPLACE INTO `{db}`.`_t_new` (`id`, `title`, `b`) VALUES (NEW.`id`, NEW.`a`, NEW.`b`)
INSERT INTO t VALUES (4, 'seen by a trigger', 40)
INSERT LOW_PRIORITY IGNORE INTO `{db}`.`_t_new` (`id`, `title`, `b`) SELECT `id`, `a`, `b` FROM `{db}`.`t` LOCK IN SHARE MODE
DELETE FROM t WHERE id = 3
ANALYZE TABLE `{db}`.`_t_new`
RENAME TABLE `{db}`.`t` TO `{db}`.`_t_old`, `{db}`.`_t_new` TO `{db}`.`t`
DROP TABLE IF EXISTS `{db}`.`_t_old`
DROP TRIGGER IF EXISTS `{db}`.`pt_osc_t_del`
DROP TRIGGER IF EXISTS `{db}`.`pt_osc_t_ins`
INSERT INTO t VALUES (5, 'behind', 5000000000)
"""
ROUNDING = """
ALTER TABLE `{db}`.`t` ADD price DECIMAL(10,4) NOT NULL DEFAULT 9.8765
CREATE TABLE `{db}`.`_t_gho` LIKE `{db}`.`t`
ALTER TABLE `{db}`.`_t_gho` MODIFY price FLOAT(7,2)
INSERT IGNORE INTO `{db}`.`_t_gho` (SELECT * FROM t)
RENAME TABLE `{db}`.`t` TO `{db}`.`_t_del`, `{db}`.`_t_gho` TO `{db}`.`t`
DROP TABLE IF EXISTS `{db}`.`_t_del`
"""
"""The server rounds values that no event contains."""
UNIQUE = """
INSERT INTO t VALUES (4, 'x', 40)
CREATE TABLE `{db}`.`_t_gho` LIKE `{db}`.`t`
ALTER TABLE `{db}`.`_t_gho` ADD UNIQUE KEY (a)
INSERT IGNORE INTO `{db}`.`_t_gho` (SELECT * FROM t)
RENAME TABLE `{db}`.`t` TO `{db}`.`_t_del`, `{db}`.`_t_gho` TO `{db}`.`t`
DROP TABLE IF EXISTS `{db}`.`_t_del`
"""
"""A row violates the new index, and is not copied."""
