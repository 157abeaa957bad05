"""DM's names for row events and DDL statements, as used by `filters` in the spec and the rules that match them.

Source: pingcap/tiflow, pkg/binlog-filter. An action of an ALTER TABLE has one name: the most specific one. Actions that
DM's own parser does not name (`add column`) are also matched by rules for `alter table`, as in DM.
"""

from typing import Literal

RowEvent = Literal["insert", "update", "delete"]

ROW_EVENTS: tuple[RowEvent, ...] = ("insert", "update", "delete")

PLAIN_DDL_EVENTS = (
    "create database",
    "alter database",
    "create table",
    "alter table",
    "create index",
    "create view",
    "drop view",
)
"""Statements that are not incompatible: they remove nothing from a replicated table."""

INCOMPATIBLE_DDL_EVENTS = (
    "value range decrease",
    "precision decrease",
    "modify column",
    "rename column",
    "rename index",
    "drop column",
    "drop index",
    "drop primary key",
    "drop unique key",
    "modify default value",
    "modify constraint",
    "modify columns order",
    "modify charset",
    "modify collation",
    "remove auto increment",
    "modify storage engine",
    "reorganize table partition",
    "rebuild table partition",
    "coalesce table partition",
    "split table partition",
    "exchange table partition",
    "drop table partition",
    "truncate table partition",
    "drop database",
    "drop table",
    "rename table",
    "truncate table",
)
"""The members of `incompatible ddl changes`."""

ALTER_EVENTS = (
    "add column",
    "set default value",
    "rebase auto id",
    "add primary key",
    "add foreign key",
    "drop foreign key",
    "add table partition",
    "alter index visibility",
    "alter ttl info",
    "alter ttl remove",
    "alter table partitioning",
    "remove table partitioning",
    "modify table comment",
    "modify table charset and collate",
    "modify schema charset and collate",
    "recover table",
    "multi schema change",
)
"""More specific names than those of DM's parser."""

COLUMN_EVENTS = (
    "create table",
    "alter table",
    "value range decrease",
    "precision decrease",
    "modify column",
    "rename column",
    "modify default value",
    "modify constraint",
    "modify columns order",
    "modify charset",
    "modify collation",
    "remove auto increment",
    "rename table",
    "add column",
    "modify table charset and collate",
    "multi schema change",
)
"""Statements that may give a table a column, or a column another name or type."""

INCOMPATIBLE_DDL = "incompatible ddl changes"
GROUPS = ("all", "all dml", "all ddl", "none", "none dml", "none ddl", INCOMPATIBLE_DDL)

ALIASES = {
    "create schema": "create database",
    "alter schema": "alter database",
    "drop schema": "drop database",
    "modify constraints": "modify constraint",
    **{
        f"{verb} partition": f"{verb} table partition"
        for verb in ("reorganize", "rebuild", "coalesce", "split", "exchange", "drop", "truncate", "add")
    },
}
"""Alternative names of events."""

EVENT_NAMES = frozenset(
    (*ROW_EVENTS, *PLAIN_DDL_EVENTS, *INCOMPATIBLE_DDL_EVENTS, *ALTER_EVENTS, *GROUPS),
)
"""Every name that a rule may use, without aliases."""


_OTHER_WIDER = {
    "add primary key": "modify constraint",
    "add foreign key": "modify constraint",
    "modify schema charset and collate": "alter database",
}


def wider_event(event: str) -> str | None:
    """The name that DM's parser gives an event that has a more specific one here; None if there is no such name."""
    return _OTHER_WIDER.get(event, "alter table") if event in ALTER_EVENTS else None
