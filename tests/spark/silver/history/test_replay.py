"""Ranges of history applied to a table of their own, and the repair of a live table from it."""

from dataclasses import replace

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.engine.replay.repair import whole_at
from dmdelta.engine.validation.fix import plan_tag
from dmdelta.errors import ForeignTable, QualityError, UnsupportedSchemaChange
from dmdelta.lakehouse.changes import Change, Verb
from dmdelta.lakehouse.commits import make_change
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules.routes import Route
from dmdelta.silver.apply.quarantine import Quarantine
from dmdelta.silver.apply.request import tag_of
from dmdelta.silver.apply.row_checks import OnFailure, RowCheck
from dmdelta.silver.history import repair
from dmdelta.silver.history.deletions import deleted_keys, removed_keys
from dmdelta.silver.history.lineage import ReplayRange
from dmdelta.silver.history.repair import (
    FOUND,
    GONE,
    Damage,
    count_damage,
    damaged_rows,
    repair_rows,
    repair_tag,
    rows_at,
    table_version,
    table_version_at,
)
from dmdelta.silver.history.replay import discard, replay_ranges, replay_request
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.table.state import silver_position
from tests.support.changelog import ITEMS, TASK, Changelog

THEN = ("then", "items")
BEGIN = Position(1, "binlog.000001", 1000)


class Killed(Exception):
    """Represents the end of a process."""


def write_history(changelog):
    """Write the history; the position at which it is split, and its end."""
    changelog.tell(ITEMS)
    for key in range(6):
        changelog.insert({"id": key, "v": f"a{key}"})
    changelog.delete({"id": 5, "v": "a5"})
    middle = changelog.position
    changelog.update({"id": 1, "v": "a1"}, {"id": 1, "v": "b1"})
    changelog.update({"id": 2, "v": "a2"}, {"id": 12, "v": "a2"})
    changelog.delete({"id": 3, "v": "a3"})
    changelog.insert({"id": 5, "v": "c5"})
    return middle, changelog.land()


def replay_of(changelog, end, run="first"):
    request = changelog.request(BEGIN, end)
    return replay_request(replace(request, context=replace(request.context, run=run)), Route(*THEN))


def test_a_killed_replay_resumes_after_its_last_range(spark, lakehouse):
    """Applied ranges are not applied again, a complete replay does nothing, another replay needs another name."""
    changelog = Changelog(spark, lakehouse)
    middle, end = write_history(changelog)
    changelog.apply(BEGIN, end)
    stretches, request = (ReplayRange(BEGIN, middle), ReplayRange(middle, end)), replay_of(changelog, end)
    told = []

    def killing(stretch, result):
        raise Killed

    with pytest.raises(Killed):
        replay_ranges(spark, request, stretches, killing, discard_previous=False)
    rows = replay_ranges(spark, request, stretches, lambda *one: told.append(one), discard_previous=False)
    assert rows == 4
    assert [result is None for _, result in told] == [True, False]
    assert changelog.silver(THEN) == changelog.silver()
    assert replay_ranges(spark, request, stretches, lambda *_: None, discard_previous=False) == 0
    with pytest.raises(QualityError, match="after"):
        replay_ranges(spark, request, stretches[:1], lambda *_: None, discard_previous=False)
    other = replay_of(changelog, end, run="other")
    with pytest.raises(ForeignTable, match="another replay"):
        replay_ranges(spark, other, stretches, lambda *_: None, discard_previous=False)
    replay_ranges(spark, other, stretches[:1], lambda *_: None, discard_previous=True)
    assert [row[0] for row in changelog.silver(THEN)] == [0, 1, 2, 3, 4]
    discard(spark, other)
    assert changelog.silver(THEN) == []


def test_a_reused_replay_table_takes_any_structure(spark, lakehouse):
    """The next replay of a table may be at a time when it had other columns."""
    changelog = Changelog(spark, lakehouse)
    _, end = write_history(changelog)
    changelog.ddl("ALTER TABLE items ADD COLUMN n INT NOT NULL DEFAULT 3")
    grown = TableSchema("d", "items", (*ITEMS.columns, Column("n", "int", nullable=False)), ("id",))
    changelog.tell(grown)
    changelog.insert({"id": 40, "v": "d", "n": 4})
    last = changelog.land()
    replay_ranges(
        spark, replay_of(changelog, last), (ReplayRange(BEGIN, last),), lambda *_: None, discard_previous=True
    )
    assert changelog.silver(THEN)[-1] == (5, "c5", 3)
    assert (40, "d", 4) in changelog.silver(THEN)
    replay_ranges(
        spark, replay_of(changelog, end, "other"), (ReplayRange(BEGIN, end),), lambda *_: None, discard_previous=True
    )
    assert changelog.silver(THEN)[-1] == (5, "c5")


def test_a_repair_keeps_the_position_of_the_task(spark, lakehouse):
    """Damaged rows of a range are repaired by commits that record the position that the table had."""
    changelog = Changelog(spark, lakehouse)
    _, end = write_history(changelog)
    result = changelog.apply(BEGIN, end)
    before = spark.table(lakehouse.silver("d", "items")).collect()
    target = changelog.request(BEGIN, end).target
    request = replay_of(changelog, end)
    replay_ranges(spark, request, (ReplayRange(BEGIN, end),), lambda *_: None, discard_previous=True)
    place = lakehouse.silver("d", "items")
    spark.sql(f"DELETE FROM {place} WHERE id = 1")
    spark.sql(f"UPDATE {place} SET v = 'wrong' WHERE id IN (0, 12)")
    spark.sql(
        f"INSERT INTO {place} SELECT 3, v, named_struct('epoch', 1, 'seq', 5L, 'row', 0), _dm_committed_at FROM {place} WHERE id = 4"
    )
    at = table_version(spark, target)
    live = rows_at(spark, target, at.version)
    gone = deleted_keys(spark, replace(request, begin=BEGIN, end=end), ITEMS, live)
    wrong = damaged_rows(live, spark.table(lakehouse.silver(*THEN)), gone, target.silver_schema(ITEMS))
    assert count_damage(wrong) == Damage(missing=1, different=2, extra=1)
    repair_rows(spark, place, wrong, target.silver_schema(ITEMS), lambda: repair_tag(spark, target, "repair-run"))
    assert sorted(map(str, spark.table(place).collect())) == sorted(map(str, before))
    assert silver_position(spark, target) == result.commit
    assert table_version(spark, target).position == at.position == end
    later = changelog.position
    changelog.update({"id": 0, "v": "a0"}, {"id": 0, "v": "b0"})
    changelog.apply(later)
    assert changelog.silver()[0] == (0, "b0")


def test_deletes_under_another_key_are_not_those_of_silver(spark, lakehouse):
    """The values of the former key are refused, not compared with the new one; rows that a TRUNCATE deleted do not count."""
    numbered = TableSchema("d", "items", (*ITEMS.columns, Column("n", "bigint", nullable=False)), ("id",))
    rekeyed = replace(numbered, primary_key=("n",))
    changelog = Changelog(spark, lakehouse)
    changelog.tell(numbered)
    changelog.insert({"id": 1, "v": "a", "n": 2})
    changelog.insert({"id": 2, "v": "b", "n": 1})
    changelog.delete({"id": 1, "v": "a", "n": 2})
    deleted = changelog.position
    changelog.ddl("ALTER TABLE items DROP PRIMARY KEY, ADD PRIMARY KEY (n)")
    changelog.tell(rekeyed)
    altered = changelog.position
    changelog.apply(BEGIN)
    live = spark.table(lakehouse.silver("d", "items"))
    for end in (deleted, altered):
        request = changelog.request(BEGIN, end)
        with pytest.raises(UnsupportedSchemaChange, match="within the range or after it"):
            deleted_keys(spark, request, rekeyed, live)
        assert removed_keys(spark, request, rekeyed) is None
    changelog.ddl("TRUNCATE TABLE items", op=Op.TRUNCATE)
    end = changelog.land()
    assert [row["n"] for row in deleted_keys(spark, changelog.request(BEGIN, end), rekeyed, live).collect()] == [1]


def test_a_repair_from_the_source_leaves_a_table_whole(spark, lakehouse, monkeypatch):
    """After each of its two commits, and although changes have landed that silver does not have: they follow."""
    monkeypatch.setattr(repair, "PART_SECONDS", 0.0)
    changelog = Changelog(spark, lakehouse)
    _, end = write_history(changelog)
    changelog.apply(BEGIN, end)
    target, place = changelog.request(BEGIN, end).target, lakehouse.silver("d", "items")
    expected, version = changelog.silver(), table_version(spark, target).version
    spark.sql(f"DELETE FROM {place} WHERE id = 1")
    spark.sql(f"UPDATE {place} SET v = 'wrong' WHERE id = 0")
    spark.sql(f"INSERT INTO {place} SELECT 3, v, _dm_version, _dm_committed_at FROM {place} WHERE id = 4")
    changelog.insert({"id": 7, "v": "a7"})
    until = changelog.land()
    read = rows_at(spark, target, version).where("id IN (0, 1)")
    read = read.selectExpr("*", f"false AS {GONE}", f"id = 0 AS {FOUND}")
    extra = spark.table(place).where("id = 3").selectExpr("*", f"true AS {GONE}", f"true AS {FOUND}")

    def next_tag():
        return plan_tag(table_version(spark, target).commit.tag, "fixer", until)

    repair_rows(spark, place, read.unionAll(extra), target.silver_schema(ITEMS), next_tag)
    assert changelog.silver() == expected
    at = table_version(spark, target)
    assert (at.position, at.commit.tag.safe_until) == (end, until)
    assert at.version == version + 5
    changelog.apply(end, mode=Mode.SAFE, known=None, applied=None, after=None)
    assert changelog.silver() == sorted([*expected, (7, "a7")], key=repr)
    assert table_version_at(spark, target, end).version == at.version


def test_the_quarantine_is_read_as_of_the_version_of_the_table(spark, lakehouse):
    """Rows that a later batch quarantines, or that leave the quarantine then, are where they were."""
    changelog = Changelog(spark, lakehouse)
    check = RowCheck("v is not bad", F.coalesce(F.col("v") == "bad", F.lit(False)), OnFailure.QUARANTINE)
    checks = {"checks": lambda *_: [check], "known": None, "applied": None, "after": None}
    changelog.tell(ITEMS)
    for key, v in enumerate(("good", "bad", "good")):
        changelog.insert({"id": key, "v": v})
    end = changelog.land()
    changelog.apply(BEGIN, end, **checks)
    target = changelog.request(BEGIN, end).target
    at = table_version(spark, target)
    changelog.update({"id": 0, "v": "good"}, {"id": 0, "v": "bad"})
    changelog.update({"id": 1, "v": "bad"}, {"id": 1, "v": "good"})
    changelog.apply(end, **checks)
    assert quarantined(spark, lakehouse) == ['{"id":0}']
    for version, rows in ((at, ["good", "bad", "good"]), (table_version(spark, target), ["bad", "good", "good"])):
        _, live = whole_at(spark, target, version, ITEMS)
        assert [(row["id"], row["v"]) for row in live.orderBy("id").collect()] == list(enumerate(rows))


def quarantined(spark, lakehouse):
    return [row["row_key"] for row in spark.table(Quarantine.place_of(lakehouse, TASK, ITEMS.name)).collect()]


def test_between_two_commits_of_a_range_a_table_has_no_position(spark, lakehouse, monkeypatch):
    """A commit that records only the begin of a range is incomplete: reading waits for the last one, then fails."""
    monkeypatch.setattr(repair, "PART_SECONDS", 0.0)
    changelog = Changelog(spark, lakehouse)
    _, end = write_history(changelog)
    changelog.apply(BEGIN, end)
    request = changelog.request(end, end)
    part = Change(Verb.DELETE, "id = 0")
    make_change(spark, request.target.place, part, tag_of(request, 0, end, end))
    assert table_version(spark, request.target).position == end
    changelog.delete({"id": 0, "v": "a0"})
    changelog.land()
    with pytest.raises(QualityError, match="incompletely applied range"):
        table_version(spark, request.target)
