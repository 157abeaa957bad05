"""A source that an interpreter follows event by event, to compare live reads with its tables at each position."""

import random
from bisect import bisect_right
from copy import deepcopy
from dataclasses import dataclass, replace

from dmdelta.changelog.context import SourceContext
from dmdelta.config import TaskSpec
from dmdelta.engine.live.known_log import KnownLog
from dmdelta.engine.live.source import LiveSource
from dmdelta.engine.task.live_settings import LiveSettings, RunSettings
from dmdelta.engine.task.source import TaskSource
from dmdelta.engine.task.task import Task
from dmdelta.lakehouse.session import query_session
from dmdelta.model.change import Op
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import NO_RULES
from dmdelta.silver.apply.silver_context import SilverContext
from tests.support.changelog import ITEMS, SOURCE, TASK, Changelog

PAIR = TableSchema(
    "d", "pairs", (Column("id", "int"), Column("b", "varchar", length=5), Column("v", "int")), ("id", "b")
)
BAG = TableSchema("d", "bag", (Column("id", "int"), Column("v", "varchar", length=80)))
PARTIAL = TableSchema(
    "d", "part", (Column("id", "int"), Column("v", "varchar", length=80), Column("w", "int")), ("id",)
)
TABLES = (ITEMS, PAIR, BAG, PARTIAL)


@dataclass
class Interpreted:
    """A table of the source: the names of its columns, those of its key, and its rows."""

    columns: list
    key: tuple
    rows: list

    def apply(self, op, before, after):
        """One row change."""
        if op is Op.INSERT:
            self.rows.append(dict(after))
            return
        names = self.key or self.columns
        index = next(i for i, row in enumerate(self.rows) if all(row[name] == before[name] for name in names))
        if op is Op.DELETE:
            del self.rows[index]
        else:
            self.rows[index] = {**self.rows[index], **after}

    @property
    def shown(self):
        """The rows as sorted tuples."""
        return sorted((tuple(row[name] for name in self.columns) for row in self.rows), key=repr)


class InterpretedLog(Changelog):
    """A changelog whose events an interpreter applies one by one, immediately or when their XA transaction commits.

    Attributes:
        tables: the current tables of the source.
        moments: the position after each event, and the tables at it.
        known: the log as its live reads know it; without memory, they read all rows with Spark.
        reader: the session of the live reads.
    """

    def __init__(self, spark, lakehouse):
        super().__init__(spark, lakehouse)
        self.tables = {}
        self.prepared = {}
        self.moments = []
        self.known = KnownLog()
        self.reader = query_session(spark)

    def create(self, schema):
        """Log a statement that creates a table, and its structure."""
        kinds = ", ".join(f"{c.name} {c.type}{f'({c.length})' if c.type == 'varchar' else ''}" for c in schema.columns)
        key = f", PRIMARY KEY ({', '.join(schema.primary_key)})" if schema.primary_key else ""
        self.tables[schema.name] = Interpreted([column.name for column in schema.columns], schema.primary_key, [])
        self.ddl(f"CREATE TABLE {schema.table} ({kinds}{key})", schema.name)
        self.tell(schema)

    def change(self, op, before, after, name=("d", "items"), *, xid=None, image=None):
        if xid is None:
            self.tables[name].apply(op, before, after)
        else:
            self.prepared.setdefault(xid, []).append((op, before, after, name))
        super().change(op, before, after, name, xid=xid, image=image)
        self._look()

    def xa_end(self, op, xid):
        for change_op, before, after, name in self.prepared.pop(xid, []) if op is Op.XA_COMMIT else []:
            self.tables[name].apply(change_op, before, after)
        self.prepared.pop(xid, None)
        super().xa_end(op, xid)
        self._look()

    def ddl(self, sql, name=("d", "items"), op=Op.DDL):
        super().ddl(sql, name, op)
        self._look()

    def _look(self):
        self.moments.append((self.position, deepcopy(self.tables)))

    def at(self, position):
        """The tables as of a position."""
        found = bisect_right(self.moments, position, key=lambda moment: moment[0]) - 1
        return self.moments[found][1]

    def live(self, at=None, **own):
        """The source for live reads."""
        self.land()
        spec = TaskSpec.model_validate(
            {
                "name": TASK,
                "task-mode": "incremental",
                "sources": [
                    {
                        "source-id": SOURCE,
                        "host": "nowhere",
                        "user": "u",
                        "password": "p",
                        "flavor": "mysql",
                        "relay": {"dir": "/nowhere"},
                    }
                ],
                "lakehouse": {"root": self.lakehouse.root, "catalog": self.lakehouse.catalog},
            }
        )
        task = Task(spec, self.reader, self.lakehouse, "live", LiveSettings(RunSettings.of(spec)))
        facts = {"lakehouse": self.lakehouse, "task": TASK, "source_id": SOURCE, "run": "live", "flavor": "mysql"}
        context = SilverContext(**facts, **{"rules": NO_RULES, "memory": self.known.memory, **own})
        landing = SourceContext(**facts, rules=context.rules)
        return LiveSource(TaskSource(task, spec.sources[0], landing, context), at or self.position, self.known)


def shown(state):
    """The rows of a live read as `Interpreted.shown`."""
    rows = state.rows.drop("_dm_version", "_dm_committed_at")
    return sorted((tuple(row) for row in rows.collect()), key=repr)


class Workload:
    """Random changes: key changes, reused keys, no key, partial images, XA, statements."""

    def __init__(self, log: InterpretedLog, seed: int, tables=TABLES) -> None:
        self.log = log
        self.random = random.Random(seed)
        self.schemas = {schema.name: schema for schema in tables}
        self.number = 0
        self.partial_moves = 0
        for schema in tables:
            log.create(schema)

    def work(self, changes: int) -> None:
        for _ in range(changes):
            self._change(self.random.choice(list(self.schemas)))

    def transaction(self, changes: int) -> None:
        """An XA transaction with inserts; other changes are between its PREPARE and its end."""
        self.number += 1
        xid, keys = f"x{self.number}", range(1000 * self.number, 1000 * self.number + changes)
        for key in keys:
            self.log.insert({"id": key, "v": xid, **self._more(ITEMS)}, ITEMS.name, xid=xid)
        self.work(changes)
        self.log.xa_end(self.random.choice((Op.XA_COMMIT, Op.XA_COMMIT, Op.XA_ROLLBACK)), xid)

    def statement(self) -> None:
        """A statement on the table with the integer key, or one that empties the table without a key."""
        self.number += 1
        if self.number % 3 == 0 and BAG.name in self.schemas:
            self.log.tables[BAG.name].rows.clear()
            self.log.ddl("TRUNCATE TABLE bag", BAG.name, Op.TRUNCATE)
            return
        schema, name = self.schemas[ITEMS.name], f"c{self.number}"
        wider = replace(schema, columns=(*schema.columns, Column(name, "int")))
        table = self.log.tables[ITEMS.name]
        table.columns = [*table.columns, name]
        table.rows = [{**row, name: self.number} for row in table.rows]
        self.schemas[ITEMS.name] = wider
        self.log.ddl(f"ALTER TABLE items ADD COLUMN {name} INT DEFAULT {self.number}")
        self.log.tell(wider)

    def _more(self, schema) -> dict:
        names = [column.name for column in self.schemas[schema.name].columns[2:]]
        return {name: self.random.randrange(99) for name in names}

    def _row(self, schema) -> dict:
        values = {"id": self.random.randrange(8), "b": self.random.choice("xy")}
        values["v"] = self.random.randrange(99) if schema is PAIR else f"v{self.random.randrange(1000)}"
        names = [column.name for column in schema.columns]
        return {name: values[name] if name in values else self.random.randrange(99) for name in names}

    def _change(self, name) -> None:
        schema, rows = self.schemas[name], self.log.tables[name].rows
        row, roll = self._row(schema), self.random.random()
        same = [one for one in rows if self._key(schema, one) == self._key(schema, row)]
        if not same:
            if rows and roll < 0.4 and self._may_move(schema):  # an update that changes the key
                old = self.random.choice(rows)
                self._update(schema, dict(old), row)
            else:
                self.log.insert(row, name)
        elif roll < 0.4:
            self.log.delete(dict(same[0]), name)
        elif roll < 0.5:
            self.log.delete(dict(same[0]), name)
            self.log.insert(row, name)
        else:
            self._update(schema, dict(same[0]), row)

    def _may_move(self, schema) -> bool:
        """A table with partial images cannot be read live after many key changes."""
        self.partial_moves += schema.name == PARTIAL.name
        return schema.name != PARTIAL.name or self.partial_moves <= 3

    def _update(self, schema, old, row) -> None:
        if schema.name != PARTIAL.name or self.random.random() < 0.3:
            self.log.update(old, row, schema.name)
            return
        self.log.update({"id": old["id"]}, {"id": row["id"], "v": row["v"]}, schema.name, image=["id", "v"])

    def _key(self, schema, row):
        return tuple(row[name] for name in schema.primary_key) or tuple(row.values())
