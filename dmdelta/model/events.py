"""DM's names for what a row event or a DDL statement does, as `filters` in the spec and the rules that match them use.

Source: pingcap/tiflow, pkg/binlog-filter. An action of an ALTER TABLE has one name: the most exact one there is. Those
that DM's own parser never gives (`add column`) are matched by rules that say `alter table`, too, as DM would have it.
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
"""Statements that take nothing from a table that follows."""

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
"""Finer names than DM's parser gives."""

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
"""Other words for the same event."""

EVENT_NAMES = frozenset(
    (*ROW_EVENTS, *PLAIN_DDL_EVENTS, *INCOMPATIBLE_DDL_EVENTS, *ALTER_EVENTS, *GROUPS),
)
"""Every name that a rule may say, aliases apart."""


_OTHER_WIDER = {
    "add primary key": "modify constraint",
    "add foreign key": "modify constraint",
    "modify schema charset and collate": "alter database",
}


def wider_event(event: str) -> str | None:
    """The name that DM's parser gives an event that has a finer one here; None if it has none."""
    return _OTHER_WIDER.get(event, "alter table") if event in ALTER_EVENTS else None
