"""The structures of all tables from one query are those of a query for each table."""

from dataclasses import replace

from dmdelta.bronze.retention import expire
from dmdelta.changelog.context import SourceContext
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column
from dmdelta.rules import SourceRules
from dmdelta.silver.schema import earlier as earlier_structures
from dmdelta.silver.schema.earlier import EarlierStructures
from dmdelta.silver.schema.lookup import structure_at
from dmdelta.silver.schema.range_profile import structure_before
from tests.support.changelog import ITEMS, LOG, SOURCE, TASK, Changelog

OTHER = replace(ITEMS, schema="e", table="other")
UNTOLD = ("d", "untold")
WIDER = replace(ITEMS, columns=(*ITEMS.columns, Column("w", "int")))


def assert_queried(monkeypatch, spark, source, end):
    """Spark finds the same where bronze is not read without it."""
    landed, queried = EarlierStructures(spark, source, end), EarlierStructures(spark, source, end)
    landed.versions()
    with monkeypatch.context() as patch:
        patch.setattr(earlier_structures, "landed_structures", lambda *_: None)
        assert (queried.versions(), queried.ahead()) == (landed.versions(), landed.ahead())
    for name in (ITEMS.name, LOG.name, OTHER.name, UNTOLD):
        assert queried.before(name) == landed.before(name)


def test_all_tables_at_any_position(spark, lakehouse, monkeypatch):
    """Statements on a table, on its database, and none; structures at or after the position are excluded."""
    changelog = Changelog(spark, lakehouse)
    source = SourceContext(lakehouse, TASK, SOURCE, "run", "mysql", SourceRules(SOURCE))
    places = [changelog.position]

    def step(write, *arguments, **more):
        write(*arguments, **more)
        changelog.offset += 10
        places.append(changelog.position)

    step(changelog.tell, ITEMS)
    step(changelog.insert, {"id": 1, "v": "a"})
    step(changelog.tell, OTHER)
    step(changelog.tell, ITEMS)  # as an older dmdelta repeated it
    step(changelog.ddl, "ALTER TABLE items ADD w INT")
    step(changelog.ddl, "CREATE TABLE untold (a INT)", UNTOLD)
    step(changelog.tell, WIDER)
    step(changelog.ddl, "ALTER DATABASE d COLLATE utf8mb4_bin", ("d", None))
    step(changelog.tell, LOG)
    step(changelog.ddl, "TRUNCATE TABLE items", op=Op.TRUNCATE)
    changelog.land()
    ends = []
    for place in places:
        earlier = EarlierStructures(spark, source, place)
        for name in (ITEMS.name, LOG.name, OTHER.name, UNTOLD):
            assert earlier.before(name) == structure_before(spark, lakehouse, SOURCE, name, place), (name, place)
        ends.append(earlier.versions())
    items, other, wider, log = (schema.version for schema in (ITEMS, OTHER, WIDER, LOG))
    assert ends[:6] == [
        {},
        {ITEMS.name: items},
        {ITEMS.name: items},
        {ITEMS.name: items, OTHER.name: other},
        {ITEMS.name: items, OTHER.name: other},
        {OTHER.name: other},
    ]
    assert ends[7] == {OTHER.name: other, ITEMS.name: wider}
    assert ends[8] == {OTHER.name: other}  # after a statement on the database
    assert ends[10] == {OTHER.name: other, LOG.name: log}
    assert_queried(monkeypatch, spark, source, places[4])
    assert EarlierStructures(spark, source, places[4]).ahead().keys() == {ITEMS.name, LOG.name}
    assert EarlierStructures(spark, source, Position(2, "binlog.000001", 4)).versions() == {}
    assert EarlierStructures(spark, source, None).before(ITEMS.name) == ()

    # Row changes expire, structures do not.
    changelog.insert({"id": 2, "v": "b", "w": 1})
    changelog.landed_on = changelog.landed_on.replace(day=5)
    changelog.insert({"id": 3, "v": "c", "w": 2})
    end = changelog.land()
    assert expire(spark, lakehouse.bronze, changelog.landed_on) is not None
    assert structure_at(spark, source, ITEMS.name, end) == WIDER
    assert EarlierStructures(spark, source, end).before(OTHER.name) == structure_before(
        spark, lakehouse, SOURCE, OTHER.name, end
    )
