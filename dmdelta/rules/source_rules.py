"""The rules of the spec that apply to one source."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from dmdelta.model.events import COLUMN_EVENTS, RowEvent
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.rules.block_allow_list import BlockAllowList
from dmdelta.rules.filters import Action, EventFilter
from dmdelta.rules.online_ddl import OnlineDdl
from dmdelta.rules.operators import Operator
from dmdelta.rules.routes import Route, Routes

if TYPE_CHECKING:
    from dmdelta.config.expression_filter import ExpressionFilterRule
    from dmdelta.config.source import SourceConfig
    from dmdelta.config.task import TaskSpec


@dataclass(frozen=True, slots=True)
class SourceRules:
    """The rules of one source.

    Attributes:
        source_id: the source that they apply to.
        routes: the targets of its tables.
        events: which row events and statements are replicated.
        expressions: which row changes are filtered out by value.
        operators: operator overrides for single statements.
        shard_key_clash: how a key in several shards is handled: `warn`, `error` or `ignore`.
        only_source: the task has no other source, whose tables may be in the same databases.
    """

    source_id: str = ""
    allow_list: BlockAllowList = field(default_factory=BlockAllowList)
    routes: Routes = field(default_factory=Routes)
    online: OnlineDdl = field(default_factory=OnlineDdl)
    events: EventFilter = field(default_factory=EventFilter)
    expressions: "tuple[ExpressionFilterRule, ...]" = ()
    operators: Mapping[Position, Operator] = field(default_factory=dict)
    shard_key_clash: str = "warn"
    only_source: bool = True

    @classmethod
    def from_spec(cls, spec: "TaskSpec", source: "SourceConfig") -> "SourceRules":
        """The rules that apply to a source."""
        others = [rule for other in spec.sources if other is not source for rule in spec.routes_of(other).values()]
        return cls(
            source.source_id,
            BlockAllowList.from_config(spec.block_allow_list, case_sensitive=spec.case_sensitive),
            Routes.from_config(spec.routes_of(source), of_others=others, case_sensitive=spec.case_sensitive),
            OnlineDdl.from_config(spec),
            EventFilter.from_config(spec.filters_of(source), case_sensitive=spec.case_sensitive),
            tuple(spec.expression_filters_of(source).values()),
            shard_key_clash=spec.shard_key_clash,
            only_source=len(spec.sources) == 1,
        )

    def wanted(self, schema: str, table: str) -> bool:
        """Whether a table's rows are replicated."""
        return self.online.rows_wanted(self.allow_list.wanted, schema, table)

    def statements_wanted(self, schema: str, table: str | None) -> bool:
        """Whether statements on a table, or (None) on a database, are replicated; a shadow's are if the real table's
        are.
        """
        return self.online.wanted(self.allow_list.wanted, schema, table)

    def route(self, schema: str, table: str) -> Route:
        """The target of a table's rows.

        Raises:
            ConfigError: two routes match it.
        """
        return self.routes.route(self.source_id, schema, table)

    def shares_database(self, schema: str) -> bool:
        """Whether a schema has no database of its own at the target, which a DROP DATABASE could drop."""
        if not self.only_source or self.routes.shares_database(schema):
            return True
        target = self.route(schema, "").schema
        is_another = target.lower() != schema.lower() and self.allow_list.wanted(target, None)
        return is_another and self.route(target, "").schema == target

    def row_events(self, schema: str, table: str) -> Mapping[RowEvent, Action]:
        """The actions for the row events of a table."""
        decide = partial(self.events.decide_row, schema, table)
        return {"insert": decide("insert"), "update": decide("update"), "delete": decide("delete")}

    def decide(self, table: TableName, events: Collection[str], sql: str) -> Action:
        """The action for a statement on a table, given the names of its events."""
        return self.events.decide_ddl(*table, events, sql) if self.events.rules else Action.DO

    @property
    def leave_statements_out(self) -> bool:
        """Whether some statements may not reach silver, so that it can differ from the source."""
        return bool(self.events.rules or self.operators)

    def ignores_columns(self, table: TableName) -> bool:
        """Whether a filter may ignore a statement that gives a table a column, or a column another name or type."""
        return self.events.may_ignore(*table, COLUMN_EVENTS)

    def leaves_columns_out(self, table: TableName) -> bool:
        """Whether silver can lack columns of a table because of a filter, or of an override, of whichever table."""
        return bool(self.operators) or self.ignores_columns(table)


NO_RULES = SourceRules()
"""The rules of a spec without any."""
