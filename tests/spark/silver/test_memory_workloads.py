"""Random workloads in random batches: silver applied from memory equals silver applied from bronze."""

import random
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from dmdelta.bronze.arrow import LANDED_ARROW_SCHEMA
from dmdelta.changelog import batch_memory
from dmdelta.changelog.batch_memory import MEMORY_BYTES, BatchMemory
from dmdelta.lakehouse.session import is_provided
from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.apply.apply import apply_table
from dmdelta.silver.apply.request import RowsPath
from dmdelta.silver.rows.strategy import Mode
from tests.support.changelog import ITEMS, Changelog
from tests.support.paths import assert_same_rows, exact_rows, plain_rows

pytestmark = pytest.mark.skipif(is_provided(), reason="with a provided Spark, batches do not stay in memory")

TEXT_KEY = TableSchema("d", "texts", (Column("id", "varchar", length=20), Column("v", "varchar", length=80)), ("id",))
PAIR = TableSchema("d", "pairs", (Column("id", "int"), Column("b", "int"), Column("v", "varchar")), ("id", "b"))
BAG = TableSchema("d", "bag", (Column("id", "int"), Column("v", "varchar", length=80)))
PARTIAL = TableSchema(
    "d", "part", (Column("id", "int"), Column("v", "varchar", length=80), Column("w", "int")), ("id",)
)
TABLES = (ITEMS, TEXT_KEY, PAIR, BAG, PARTIAL)


class Changer:
    """Random changes of tables, consistent with the rows that each table has."""

    def __init__(self, changelog: Changelog, seed: int) -> None:
        self.changelog = changelog
        self.random = random.Random(seed)
        self.schemas = {schema.name: schema for schema in TABLES}
        self.rows = {schema.name: {} for schema in TABLES}
        self.added = 0
        for schema in TABLES:
            changelog.tell(schema)

    def work(self, changes: int) -> None:
        for _ in range(changes):
            self._change(self.random.choice(TABLES).name)

    def add_column(self) -> None:
        """A statement and the structure after it, in the middle of a batch."""
        self.added += 1
        schema, name = self.schemas[ITEMS.name], f"c{self.added}"
        self.changelog.ddl(f"ALTER TABLE items ADD COLUMN {name} INT DEFAULT {self.added}")
        self.schemas[ITEMS.name] = wider = replace(schema, columns=(*schema.columns, Column(name, "int")))
        self.changelog.tell(wider)
        self.rows[ITEMS.name] = {key: {**row, name: self.added} for key, row in self.rows[ITEMS.name].items()}

    def _change(self, name) -> None:
        rows, schema = self.rows[name], self.schemas[name]
        row = self._row(schema)
        key = self._key(schema, row)
        old = rows.get(key)
        if old is None:
            rows[key] = row
            self.changelog.insert(row, name)
        elif self.random.random() < 0.4:
            del rows[key]
            self.changelog.delete(old, name)
            if self.random.random() < 0.5:  # and again, in the same batch
                rows[key] = row
                self.changelog.insert(row, name)
        elif schema is PARTIAL and self.random.random() < 0.7:
            rows[key] = {**old, "v": row["v"]}
            self.changelog.update({"id": old["id"]}, {"id": old["id"], "v": row["v"]}, name, image=["id", "v"])
        else:
            self._update(name, key, self._row(schema))

    def _update(self, name, key, row) -> None:
        """An update, of a key if the new one is free."""
        rows, schema = self.rows[name], self.schemas[name]
        old = rows.pop(key)
        if self._key(schema, row) in rows:
            row = {**row, **{column: old[column] for column in schema.primary_key or old}}
        rows[self._key(schema, row)] = row
        self.changelog.update(old, row, name)

    def _row(self, schema) -> dict:
        values = {"v": f"v{self.random.randrange(1000)}", "w": self.random.randrange(9), "b": self.random.randrange(2)}
        number = self.random.randrange(12)
        values["id"] = f"key {number}" if schema is TEXT_KEY else number
        names = [column.name for column in schema.columns]
        return {name: values[name] if name in values else self.random.randrange(99) for name in names}

    def _key(self, schema, row):
        return tuple(row[name] for name in schema.primary_key) or (row["id"], row["v"])


def keep(spark, changelog, memory, begin, end) -> None:
    """Keep in memory what a landing keeps there, read from bronze."""
    inside = f"seq >= {begin.seq} AND seq < {end.seq}"
    rows = plain_rows(spark.table(changelog.lakehouse.bronze).where(inside).orderBy("epoch", "seq", "row"))
    memory.add(begin, end, pa.Table.from_pylist(rows, schema=LANDED_ARROW_SCHEMA))


def play(spark, lakehouse, seed, batches, tables=TABLES) -> None:
    """Apply a workload along both paths, each to silver tables of its own, and compare these after each batch."""
    changelog = Changelog(spark, lakehouse)
    other = replace(lakehouse, silver_name="from_bronze")
    memory, changer = BatchMemory(MEMORY_BYTES), Changer(changelog, seed)
    begin = changelog.position
    for number in range(batches):
        changer.work(changer.random.choice((5, 60)))
        if number % 2:
            changer.add_column()
            changer.work(20)
        end = changelog.land()
        keep(spark, changelog, memory, begin, end)
        for schema in tables:
            mode = Mode.SAFE if number and changer.random.random() < 0.2 else Mode.NORMAL
            request = changelog.request(begin, end, mode, schema.name)
            kept = replace(request, context=replace(request.context, memory=memory))
            plain = replace(request, context=replace(request.context, lakehouse=other))
            assert apply_table(spark, kept).path in (RowsPath.MEMORY, None)
            assert apply_table(spark, plain).path in (RowsPath.BRONZE, None)
        begin = end
    for schema in tables:
        frames = [spark.table(each.silver(*schema.name)) for each in (lakehouse, other)]
        assert frames[0].schema == frames[1].schema
        rows = [exact_rows(frame) for frame in frames]
        assert_same_rows(*rows, schema.table)
        wanted = changer.rows[schema.name]
        own = sorted(repr(tuple(row.values())[: len(changer.schemas[schema.name].columns)]) for row in rows[0])
        assert own == sorted(repr(tuple(row.values())) for row in wanted.values()), (
            f"{schema.table} is not as the source"
        )


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_silver_is_the_same(spark, lakehouse, seed):
    """Deletes, key changes, reused keys, no key, keys of several types, partial images, new columns."""
    play(spark, lakehouse, seed, batches=2 if seed == 1 else 6)


def test_a_wrong_slice_is_detected(spark, lakehouse, monkeypatch):
    """Sabotage: without the last rows of a range, silver differs."""
    right = batch_memory._Part.slices

    def sabotaged(*arguments):
        return [part.slice(0, max(1, len(part) - 2)) for part in right(*arguments)]

    monkeypatch.setattr(batch_memory._Part, "slices", sabotaged)
    # Without its only rows, silver lacks the table altogether.
    with pytest.raises((AssertionError, AnalysisException), match=r"rows|and \{|PATH_NOT_FOUND"):
        play(spark, lakehouse, 1, batches=1, tables=(ITEMS,))
