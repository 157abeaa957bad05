"""A bronze table built by a test: row changes as Python dictionaries."""

import json
from datetime import date, datetime, timedelta, timezone

from dmdelta.bronze.schema import BRONZE_SCHEMA
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import NO_RULES
from dmdelta.silver.apply.apply import apply_table
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.strategy import Mode

SOURCE = "shop"
TASK = "task"
ITEMS = TableSchema("d", "items", (Column("id", "bigint"), Column("v", "varchar", length=80)), ("id",))
LOG = TableSchema("d", "log", (Column("a", "int"), Column("b", "varchar", length=80)))
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
COLUMNS = (
    "source_id STRING, epoch INT, seq BIGINT, row INT, binlog_file STRING, binlog_pos BIGINT, gtid STRING, "
    "committed_at TIMESTAMP, schema_name STRING, table_name STRING, op STRING, xid STRING, image ARRAY<STRING>, "
    "key_changed BOOLEAN, ddl STRING, schema_version BIGINT, before STRING, after STRING, landed_at TIMESTAMP, landed_on DATE"
)


class Changelog:
    """Collects events; `land` appends them to bronze. Each event is 10 bytes further in the log."""

    def __init__(self, spark, lakehouse, *, run="run-1"):
        self.spark = spark
        self.lakehouse = lakehouse
        self.run = run
        self.epoch = 1
        self.offset = 1000
        self.gtid = None
        self.batch = 0
        self.rows = []
        self.results = {}
        self.keys = {}
        self.landed_on = date(2026, 1, 1)
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {lakehouse.bronze} ({BRONZE_SCHEMA}) USING delta PARTITIONED BY (landed_on)"
        )

    @property
    def position(self):
        """The position of the next event."""
        return Position(self.epoch, "binlog.000001", self.offset)

    def restart(self, at):
        """The log is read again from a position on, in a new epoch."""
        self.epoch, self.offset = self.epoch + 1, at.offset

    def tell(self, schema):
        self.keys[schema.schema, schema.table] = schema.primary_key
        self._row(Op.SCHEMA, (schema.schema, schema.table), -1, ddl=schema.to_json())

    def ddl(self, sql, name=("d", "items"), op=Op.DDL):
        self._row(op, name, 0, ddl=sql)
        self.offset += 10

    def xa_end(self, op, xid):
        self._row(op, (None, None), 0, xid=xid)
        self.offset += 10

    def change(self, op, before, after, name=("d", "items"), *, xid=None, image=None):
        self._row(op, name, 0, before=before, after=after, xid=xid, image=image)
        self.offset += 10

    def insert(self, after, name=("d", "items"), **more):
        self.change(Op.INSERT, None, after, name, **more)

    def update(self, before, after, name=("d", "items"), **more):
        self.change(Op.UPDATE, before, after, name, **more)

    def delete(self, before, name=("d", "items"), **more):
        self.change(Op.DELETE, before, None, name, **more)

    def _row(self, op, name, row, *, before=None, after=None, ddl=None, xid=None, image=None):
        at = START + timedelta(milliseconds=self.offset)
        texts = [None if side is None else json.dumps(side) for side in (before, after)]
        keys = [key for key in self.keys.get(name, ("id",)) if op is Op.UPDATE and key in before]
        moved = any(before[key] != after.get(key, before[key]) for key in keys)
        position = (self.epoch, self.position.seq, row, "binlog.000001", self.offset)
        rest = (self.gtid, at, *name, op.value, xid, image, moved, ddl, None, *texts, at, self.landed_on)
        self.rows.append((SOURCE, *position, *rest))

    def land(self):
        """Append the collected events; returns the end of the log."""
        if self.rows:
            frame = self.spark.createDataFrame(self.rows, COLUMNS)
            frame = frame.selectExpr(
                *(f"parse_json({name}) AS {name}" if name in ("before", "after") else name for name in frame.columns)
            )
            frame.write.format("delta").mode("append").saveAsTable(self.lakehouse.bronze)
        self.rows = []
        return self.position

    def request(self, begin, end, mode=Mode.NORMAL, name=("d", "items"), **more):
        self.batch += 1
        own = {key: more.pop(key) for key in ("rules", "shards", "checks", "flavor") if key in more}
        facts = {"run": self.run, "flavor": "mysql", "rules": NO_RULES, **own}
        if "run" in more:
            facts["run"] = more.pop("run")
        context = SilverContext(lakehouse=self.lakehouse, task=TASK, source_id=SOURCE, **facts)
        fields = {"batch": self.batch, "mode": mode, **more}
        return ApplyRequest(context=context, schema=name[0], table=name[1], begin=begin, end=end, **fields)

    def apply(self, begin, end=None, mode=Mode.NORMAL, name=("d", "items"), **more):
        """Land and apply [begin, end)."""
        landed = self.land()
        # As in the engine: the next range knows what the previous one reported.
        earlier = self.results.get(name)
        if earlier is not None and earlier.commit is not None and earlier.end == begin:
            version = earlier.commit.tag.version
            more = {"known": earlier.structure, "applied": version, "after": earlier.delta_version, **more}
        result = apply_table(self.spark, self.request(begin, end or landed, mode, name, **more))
        if result.commit is not None and mode is Mode.NORMAL:
            self.results[name] = result
        return result

    def silver(self, name=("d", "items")):
        """The rows of a silver table without silver's own columns, sorted."""
        frame = self.spark.table(self.lakehouse.silver(*name)).drop("_dm_version", "_dm_committed_at")
        return sorted((tuple(row) for row in frame.collect()), key=repr)
