"""Live reads of a table whose structure changes in the tail."""

from dataclasses import replace

import pytest

from dmdelta.ddl.types.silver_types import silver_columns
from dmdelta.errors import NotReadable
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.commits import overwrite
from dmdelta.lakehouse.history import newest_own_commit
from dmdelta.lakehouse.session import takes_arrow
from dmdelta.model.schema import Column
from dmdelta.silver.apply.request import LAST_STEP, STEP_BITS
from dmdelta.silver.rows.strategy import Mode
from tests.support.changelog import ITEMS, START
from tests.support.live import InterpretedLog, shown


class AlteredItems:
    """The table with the integer key: rows that change, and columns that are added."""

    def __init__(self, spark, lakehouse):
        self.log = InterpretedLog(spark, lakehouse)
        self.begin = self.log.position
        self.log.create(ITEMS)
        self.schema = ITEMS

    @property
    def _rows(self):
        return self.log.tables[ITEMS.name].rows

    def insert(self, key):
        self.log.insert({"id": key, "v": f"v{key}", **{c.name: key for c in self.schema.columns[2:]}})

    def update(self, key, **values):
        old = next(dict(row) for row in self._rows if row["id"] == key)
        self.log.update(old, {**old, **values})

    def delete(self, key):
        self.log.delete(next(dict(row) for row in self._rows if row["id"] == key))

    def add_column(self, name, default):
        """ALTER TABLE … ADD COLUMN, and the structure after it."""
        self.schema = replace(self.schema, columns=(*self.schema.columns, Column(name, "int")))
        table = self.log.tables[ITEMS.name]
        table.columns, table.rows = [*table.columns, name], [{**row, name: default} for row in table.rows]
        self.log.ddl(f"ALTER TABLE items ADD COLUMN {name} INT DEFAULT {default}")
        self.log.tell(self.schema)

    def reload(self, read_from, schema):
        """Silver has the source's current rows in the columns of `schema`, and its log resumes at `read_from`."""
        spark, target = self.log.spark, self.log.live().source.context.table(ITEMS.name)
        self.log.batch += 1
        version = self.log.batch << STEP_BITS | LAST_STEP
        newest = newest_own_commit(spark, target.place, target.app)
        until = self.log.position
        tag = replace(newest.tag, version=version, begin=read_from, end=read_from, safe_until=until)
        names = [column.name for column in schema.columns]
        columns = ", ".join(f"{name} {kind}" for name, kind in silver_columns(schema).items())
        rows = [(*(row[name] for name in names), (-1, 0, 0), START) for row in self._rows]
        overwrite(spark, spark.createDataFrame(rows, columns), target.place, tag, columns_too=True)
        self.log.results.clear()


def removals(state):
    """How often the query removes keys: with a bitmap or a join."""
    plan = state.rows._jdf.queryExecution().optimizedPlan().toString()
    return plan.count("getbit(") + plan.count("Join ")


def test_statements_between_changes_remove_keys_once(spark, lakehouse):
    """Changes in memory are compacted over all statements, and the query removes the changed keys once."""
    items = AlteredItems(spark, lakehouse)
    for key in range(1, 6):
        items.insert(key)
    items.log.apply(items.begin)
    for number in range(5):
        items.update(1, v=f"w{number}")
        items.update(2, id=20 + number) if number == 2 else items.update(3, v=f"x{number}")
        items.add_column(f"c{number}", number)
        items.insert(10 + number)
        if number == 3:
            items.delete(4)
    items.delete(10)
    live = items.log.live()
    live.prepare([ITEMS.name])
    state = live.state(ITEMS.name)
    source = items.log.at(items.log.position)[ITEMS.name]
    assert shown(state) == source.shown
    assert state.rows.columns[:-2] == source.columns
    if local_table(spark, lakehouse.bronze) is not None and takes_arrow(spark):
        assert removals(state) == 1


def test_a_statement_that_a_snapshot_overlaps(spark, lakehouse):
    """The snapshot planned to read the columns before it. A live read equals what silver becomes."""
    items = AlteredItems(spark, lakehouse)
    for key in range(1, 5):
        items.insert(key)
    read_from = items.log.position
    items.log.apply(items.begin)
    items.update(1, v="before")
    items.add_column("c", 7)
    items.update(2, c=None)
    items.insert(5)
    items.reload(read_from, ITEMS)
    until = items.log.position
    items.update(3, v="after", c=30)
    items.delete(4)
    live = items.log.live()
    live.prepare([ITEMS.name])
    found = shown(live.state(ITEMS.name))
    assert found == items.log.at(items.log.position)[ITEMS.name].shown
    items.log.apply(read_from, mode=Mode.SAFE, safe_until=until)
    assert found == items.log.silver()


def test_a_statement_that_silver_may_contain_already(spark, lakehouse):
    """Silver has its column, and the log has the structure before it: the table is readable up to the statement."""
    items = AlteredItems(spark, lakehouse)
    items.insert(1)
    read_from = items.log.position
    items.log.apply(items.begin)
    items.add_column("c", 7)
    items.insert(2)
    items.reload(read_from, items.schema)
    with pytest.raises(NotReadable, match="unknown whether silver contains"):
        items.log.live().state(ITEMS.name)


def test_a_position_that_a_snapshot_overlaps_is_refused(spark, lakehouse):
    """The error names the position from which the table can be read."""
    items = AlteredItems(spark, lakehouse)
    items.insert(1)
    read_from = items.log.position
    items.update(1, v="x")
    inside = items.log.position
    items.update(1, v="y")
    items.log.apply(items.begin)
    items.reload(read_from, ITEMS)
    with pytest.raises(NotReadable, match="a snapshot read it until") as refused:
        items.log.live(inside).state(ITEMS.name)
    assert f"--at {items.log.position}" in refused.value.hint
