"""The sink's checkpoint in the target's dm_meta: the global point and the table points, with DM's column names.

An earlier release kept the global point alone, in `<task>_sink_checkpoint`. The first start moves its rows; the empty
table stays, because the sink's account needs no DROP in dm_meta. The sinks of several sources may do so at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pymysql

from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.position import Position
from dmdelta.sink.plan.checkpoint import AboutTo, Checkpoint
from dmdelta.sink.target.connection import ask, code_of, execute

if TYPE_CHECKING:
    from pymysql.connections import Connection

MISSING = (1049, 1146)
"""The database or the table does not exist."""
HIDDEN = (*MISSING, 1142)
"""The earlier table does not exist, or the account has privileges on other tables only."""
NAME = "VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"
"""The type of columns with names."""
_PLACES = ("", "exit_safe_", "about_to_")
_COLUMNS = (
    "cp_schema, cp_table, epoch, binlog_name, binlog_pos, binlog_gtid, exit_safe_epoch, exit_safe_binlog_name, "
    "exit_safe_binlog_pos, exit_safe_binlog_gtid, about_to_epoch, about_to_binlog_name, about_to_binlog_pos, "
    "about_to_part, reason"
)
_EARLIER = (
    "'', '', epoch, binlog_name, binlog_pos, NULL, exit_point_epoch, exit_point_binlog_name, exit_point_binlog_pos, "
    "NULL, about_to_epoch, about_to_binlog_name, about_to_binlog_pos, about_to_part, reason"
)
TABLES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class SourceTables:
    """The tables in which the sink of one source of a task keeps its state.

    Attributes:
        schema: the database that holds them.
    """

    schema: str
    task: str
    source_id: str
    run: str

    def named(self, suffix: str) -> str:
        """The quoted identifier of a table."""
        return quoted_name(self.schema, f"{self.task}_{suffix}")


class CheckpointTable(SourceTables):
    """The points of one source of a task. Raises PyMySQL's errors."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self.named("sink_points")

    @property
    def statements(self) -> str:
        """The fingerprints of the statements that checkpoints are about to execute."""
        return self.named("sink_statements")

    @property
    def earlier(self) -> str:
        return self.named("sink_checkpoint")

    def create(self, connection: "Connection[Any]") -> None:
        """Create the table if it does not exist, and take over an earlier release's points."""
        places = ", ".join(
            f"{prefix}epoch INT NULL, {prefix}binlog_name VARCHAR(255) NULL, {prefix}binlog_pos BIGINT NULL"
            for prefix in _PLACES
        )
        execute(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self.name} (id {NAME}, cp_schema {NAME}, cp_table {NAME}, run {NAME}, "
            f"{places}, binlog_gtid LONGTEXT NULL, exit_safe_binlog_gtid LONGTEXT NULL, about_to_part INT NULL, "
            "reason VARCHAR(16) NOT NULL, is_global BOOLEAN NOT NULL, "
            "create_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, "
            "update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, "
            "PRIMARY KEY (id, cp_schema, cp_table))",
        )
        # Not a column of the points, which an earlier release may have created: the account needs no ALTER in dm_meta.
        execute(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self.statements} (id {NAME} PRIMARY KEY, fingerprint VARCHAR(16) NULL)",
        )
        self._take_over_earlier(connection)

    def write(self, connection: "Connection[Any]", checkpoint: Checkpoint) -> None:
        """Replace all points; the caller commits."""
        places = (
            *_place(checkpoint.position),
            checkpoint.gtid_set,
            *_place(checkpoint.exit_point),
            checkpoint.exit_gtid_set,
        )
        about_to = checkpoint.about_to
        part = (*_place(about_to.position), about_to.part) if about_to is not None else (None,) * 4
        self._upsert(connection, [("", "", *places, *part, checkpoint.reason)])
        if about_to is not None:
            row = (self.source_id, about_to.fingerprint)
            execute(connection, f"REPLACE INTO {self.statements} (id, fingerprint) VALUES (%s, %s)", row)
        execute(connection, f"DELETE FROM {self.name} WHERE id = %s AND NOT is_global", (self.source_id,))
        nothing = (None,) * 9
        rows = [(*name, *_place(point), *nothing, checkpoint.reason) for name, point in checkpoint.tables.items()]
        for first in range(0, len(rows), TABLES_AT_ONCE):
            self._upsert(connection, rows[first : first + TABLES_AT_ONCE])

    def read(self, connection: "Connection[Any]") -> Checkpoint | None:
        """The newest checkpoint, also if only an earlier release's table exists."""
        for columns, table, missing in ((_COLUMNS, self.name, MISSING), (_EARLIER, self.earlier, HIDDEN)):
            try:
                rows = ask(connection, f"SELECT {columns} FROM {table} WHERE id = %s", (self.source_id,))
            except pymysql.err.MySQLError as error:
                if code_of(error) not in missing:
                    raise
                continue
            return _checkpoint({(row[0], row[1]): row for row in rows}, self._fingerprint(connection))
        return None

    def _fingerprint(self, connection: "Connection[Any]") -> str | None:
        """That of the newest statement; None: an earlier release has written the checkpoint."""
        try:
            rows = ask(connection, f"SELECT fingerprint FROM {self.statements} WHERE id = %s", (self.source_id,))
        except pymysql.err.MySQLError as error:
            if code_of(error) not in HIDDEN:
                raise
            return None
        return rows[0][0] if rows else None

    def _upsert(self, connection: "Connection[Any]", rows: list[tuple[Any, ...]]) -> None:
        width = len(_COLUMNS.split(","))
        listed = ", ".join([f"(%s, %s, %s, {', '.join(['%s'] * width)})"] * len(rows))
        values = [value for row in rows for value in (self.source_id, self.run, row[:2] == ("", ""), *row)]
        assigned = ", ".join(
            f"{column} = VALUES({column})" for column in ("run", *map(str.strip, _COLUMNS.split(",")[2:]))
        )
        execute(
            connection,
            f"INSERT INTO {self.name} (id, run, is_global, {_COLUMNS}) VALUES {listed} "
            f"ON DUPLICATE KEY UPDATE {assigned}",
            values,
        )

    def _take_over_earlier(self, connection: "Connection[Any]") -> None:
        select = f"SELECT id, run, TRUE, {_EARLIER} FROM {self.earlier}"
        try:
            execute(connection, f"INSERT IGNORE INTO {self.name} (id, run, is_global, {_COLUMNS}) {select}")
            execute(connection, f"DELETE FROM {self.earlier}")
        except pymysql.err.MySQLError as error:
            if code_of(error) not in HIDDEN:
                raise
        connection.commit()


def _place(position: Position | None) -> tuple[Any, Any, Any]:
    return (position.epoch, position.binlog_file, position.offset) if position is not None else (None, None, None)


def _position(epoch: int | None, file: str, offset: int) -> Position | None:
    return Position(epoch, file, offset) if epoch is not None else None


def _checkpoint(rows: Mapping[tuple[str, str], tuple[Any, ...]], fingerprint: str | None) -> Checkpoint | None:
    if ("", "") not in rows:
        return None
    row = rows["", ""]
    position, gtid, exit_point, exit_gtid = Position(*row[2:5]), row[5], _position(*row[6:9]), row[9]
    about_to, part, reason = _position(*row[10:13]), row[13], row[14]
    tables = {name: Position(*row[2:5]) for name, row in rows.items() if name != ("", "")}
    return Checkpoint(
        position,
        exit_point,
        tables=tables,
        gtid_set=gtid,
        exit_gtid_set=exit_gtid,
        about_to=AboutTo(about_to, part, fingerprint) if about_to is not None else None,
        reason=reason,
    )
