"""Shards that are renamed: no other shard waits for one that is gone, and the merged table keeps its rows."""

from types import SimpleNamespace

import pytest

from dmdelta.config.routes import RouteRule
from dmdelta.ddl.tracking.effects import Renamed
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.errors import SchemaError
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import BlockAllowList, Routes, SourceRules
from dmdelta.sharding import Coordination, Mode
from dmdelta.sink.plan.shard_columns import holds_all
from dmdelta.sink.read.slices import Statement
from dmdelta.sink.shards import Outcome, ShardEffects, ShardLog, SinkShards

COLUMNS = (Column("id", "int", nullable=False), Column("v", "int"))
ROUTE = RouteRule(schema_pattern="d", table_pattern="t?", target_schema="all", target_table="t")


class Merged:
    """The shards t1 and t2, and a target's table without a server: it lists what it executes."""

    def __init__(self, mode):
        rules = SourceRules("s1", BlockAllowList(do_dbs=("d",)), Routes.from_config({"r": ROUTE}))
        self.structures = {("d", name): TableSchema("d", name, COLUMNS, ("id",)) for name in ("t1", "t2")}
        self.executed, self.offset, self.columns = [], 100, ["id", "v"]
        log = ShardLog(lambda name, _: self.structures.get(name), self.effects)
        self.shards = SinkShards("s1", rules, Coordination(mode, holds_all), 1, log, {})
        self.shards.open(list(self.structures), Position(1, "binlog.000001", 4), {})
        self.tables = SimpleNamespace(
            has=lambda _: True,
            columns=lambda _: self.columns,
            change=self.change,
            change_columns=lambda *_: None,
            forget=lambda: None,
        )

    def change(self, sql, *, in_doubt):
        self.executed.append(sql)
        self.columns = ["id", "v", "c"]

    def effects(self, name, statement):
        effects = statement_effects(statement.text, "d", self.structures.get)
        last = effects[-1]
        return ShardEffects(effects, None if isinstance(last, Renamed) else last.after)

    def follow(self, shard, sql):
        self.offset += 100
        statement = Statement(Position(1, "binlog.000001", self.offset), "d", (("d", shard),), sql)
        return self.shards.follow(("d", shard), statement, ["ALTER TABLE `all`.`t` ADD c INT"], self.tables)


def test_no_shard_waits_for_a_renamed_one():
    """It is as a dropped one, whether the statement also changes columns or not."""
    for renamed in ("ALTER TABLE t1 RENAME TO bak", "RENAME TABLE t1 TO bak"):
        merged = Merged(Mode.PESSIMISTIC)
        assert merged.follow("t2", "ALTER TABLE t2 ADD c INT") is Outcome.WAITS
        assert merged.follow("t1", renamed) is Outcome.OWN
        assert merged.shards.released({("d", "t2"): Position(1, "binlog.000001", 200)}) == [("d", "t2")]
        assert merged.follow("t2", "ALTER TABLE t2 ADD c INT") is Outcome.DONE
    merged = Merged(Mode.PESSIMISTIC)
    assert merged.follow("t1", "ALTER TABLE t1 ADD c INT, RENAME TO bak") is Outcome.WAITS
    assert merged.follow("t2", "ALTER TABLE t2 ADD c INT") is Outcome.DONE
    assert merged.follow("t1", "ALTER TABLE t1 ADD c INT, RENAME TO bak") is Outcome.DONE
    assert merged.executed == ["ALTER TABLE `all`.`t` ADD c INT"]
    assert merged.follow("t2", "ALTER TABLE t2 DROP v") is Outcome.DONE


def test_a_shard_is_altered_and_becomes_another_one():
    """The rows of the other one would have the columns while the statement waits: the sink stops before it."""
    merged = Merged(Mode.OPTIMISTIC)
    with pytest.raises(SchemaError, match=r"changes columns of the shard d\.t1 and renames it to d\.t3") as stopped:
        merged.follow("t1", "ALTER TABLE t1 ADD c INT, RENAME TO t3")
    assert "dmdelta binlog replace" in stopped.value.hint
    assert merged.follow("t1", "ALTER TABLE t1 RENAME TO t3") is Outcome.OWN
    assert merged.executed == []
