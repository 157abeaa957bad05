"""Which row events and DDL statements are replicated: DM's binlog event filter.

Source: pingcap/tiflow, pkg/binlog-filter. DM evaluates its rules in no fixed order and uses the first that ignores the
event or stops; here `Ignore` of any rule takes precedence over `Error` of any other, as DM's comments promise.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dmdelta.model.events import INCOMPATIBLE_DDL, INCOMPATIBLE_DDL_EVENTS, ROW_EVENTS, RowEvent, wider_event
from dmdelta.rules.patterns import regular_expression, rules_for

if TYPE_CHECKING:  # executors decide without the spec, and need not load pydantic
    from dmdelta.config.filters import FilterRule


class Action(Enum):
    """What happens to an event."""

    DO = "Do"
    IGNORE = "Ignore"
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of `filters`.

    Attributes:
        table_pattern: None for a rule for every table of the schema and the schema itself.
        events: names of events and groups, as in `model.events`.
        sql_pattern: regular expressions matched against a statement's text.
    """

    name: str
    schema_pattern: str
    table_pattern: str | None
    events: tuple[str, ...]
    sql_pattern: tuple[str, ...]
    action: Action

    def verdict(self, event: str | None, sql: str) -> Action:
        """The rule's action for an event (None: a statement without an event name) and its statement ('' for none)."""
        if event is not None and (action := self._action(_matches_event(self.events, event))):
            return action
        if sql and self.sql_pattern and (action := self._action(_matches_sql(self.sql_pattern, sql))):
            return action
        return Action.DO

    def may_ignore(self, events: Collection[str]) -> bool:
        """Whether the rule ignores statements with one of these events, for some text of the statement."""
        if self.action is Action.ERROR:
            return False
        return bool(self.sql_pattern) or any(self.verdict(event, "") is Action.IGNORE for event in events)

    def _action(self, matched: bool) -> Action | None:  # noqa: FBT001
        if self.action is Action.DO:
            return None if matched else Action.IGNORE
        return self.action if matched else None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Decides for every event."""

    rules: tuple[Rule, ...] = ()
    case_sensitive: bool = False

    @classmethod
    def from_config(cls, rules: Mapping[str, "FilterRule"], *, case_sensitive: bool = False) -> "EventFilter":
        converted = tuple(
            Rule(name, rule.schema_pattern, rule.table_pattern, rule.events, rule.sql_pattern, Action(rule.action))
            for name, rule in rules.items()
        )
        return cls(converted, case_sensitive)

    def decide_row(self, schema: str, table: str, event: RowEvent) -> Action:
        """The action for a kind of row event of a table."""
        return _strongest([rule.verdict(event, "") for rule in self._of(schema, table)])

    def decide_ddl(self, schema: str, table: str | None, events: Collection[str], sql: str) -> Action:
        """The action for a statement on a table, or (`table` None) on a schema.

        Args:
            events: the names of its events (`ddl.parse.event_types`), one for each action of an ALTER TABLE.

        A statement with several events of which only some are ignored cannot be executed partially: an error. An ALTER
        TABLE can be split (`ddl.parse.splitting`) to decide on each of its actions separately.
        """
        rules = self._of(schema, table or "")
        named: Collection[str | None] = events or (None,)
        decided = {_strongest([rule.verdict(event, sql) for rule in rules]) for event in named}
        return decided.pop() if len(decided) == 1 else Action.ERROR

    def may_ignore(self, schema: str, table: str, events: Collection[str]) -> bool:
        """Whether a rule ignores statements on a table with one of these events, for some text of the statement."""
        return any(rule.may_ignore(events) for rule in self._of(schema, table))

    def _of(self, schema: str, table: str) -> list[Rule]:
        return rules_for((schema, table), self.rules, case_sensitive=self.case_sensitive)


def _strongest(actions: Collection[Action]) -> Action:
    return next((action for action in (Action.IGNORE, Action.ERROR) if action in actions), Action.DO)


def _matches_event(names: Collection[str], event: str) -> bool:
    """Whether a rule's names match an event: the first name that covers the event decides."""
    kind = "dml" if event in ROW_EVENTS else "ddl"
    called = {event, wider_event(event)}
    for name in names:
        if name in ("none", f"none {kind}"):
            return False
        if name in ("all", f"all {kind}") or name in called:
            return True
        if name == INCOMPATIBLE_DDL and not called.isdisjoint(INCOMPATIBLE_DDL_EVENTS):
            return True
    return False


def _matches_sql(patterns: Collection[str], sql: str) -> bool:
    return any(regular_expression(pattern, re.IGNORECASE).search(sql) for pattern in patterns)
