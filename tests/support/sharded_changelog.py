"""Source tables of a changelog that are routed to one merged table."""

from dmdelta.config import RouteRule
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import Routes, SourceRules
from dmdelta.sharding import Coordination, Mode
from dmdelta.silver.rows import strategy
from tests.support.changelog import SOURCE, Changelog

COLUMNS = (Column("id", "bigint"), Column("v", "varchar", length=80))
ONE, TWO = ("d1", "items_1"), ("d2", "items_2")
MERGED = ("shop", "items")
ROUTE = {"schema-pattern": "d*", "table-pattern": "items_*", "target-schema": "shop", "target-table": "items"}
EXTRACT = {
    "extract-table": {"table-regexp": "items_(.*)", "target-column": "number"},
    "extract-source": {"source-regexp": "(.*)", "target-column": "server"},
}


def rules(route=ROUTE, **more):
    return SourceRules(SOURCE, routes=Routes.from_config({"r": RouteRule.model_validate(route)}), **more)


class Shards:
    """A changelog with routed tables."""

    def __init__(self, spark, lakehouse, *tables, key=("id",), columns=COLUMNS, **options):
        self.log = Changelog(spark, lakehouse)
        self.options = {"rules": rules(**options), "shards": Coordination(Mode.PESSIMISTIC)}
        self.begins = dict.fromkeys(tables, Position(1, "binlog.000001", 4))
        for table in tables:
            self.log.tell(TableSchema(*table, columns, key))

    def apply(self, mode=strategy.Mode.NORMAL):
        """Apply everything since the last call, table by table; returns the results."""
        end = self.log.land()
        found = [self.log.apply(begin, end, mode, name, **self.options) for name, begin in self.begins.items()]
        self.begins = dict.fromkeys(self.begins, end)
        return found

    def silver(self, *columns):
        rows = self.log.silver(MERGED)
        names = [
            name for name in self.log.spark.table(self.log.lakehouse.silver(*MERGED)).columns if name[:4] != "_dm_"
        ]
        names.append("_dm_shard")
        return sorted(tuple(row[names.index(column)] for column in columns) for row in rows)


SHARD_1, SHARD_2 = f"{SOURCE}-`d1`.`items_1`", f"{SOURCE}-`d2`.`items_2`"
