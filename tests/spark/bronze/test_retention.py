"""Old row changes expire from bronze, and bronze records from where on it is complete."""

from datetime import date
from threading import Thread
from time import sleep

import pytest

from dmdelta.bronze.retention import (
    EXPIRED_TO,
    KEPT_SINCE,
    Expired,
    assert_kept,
    expire,
    expired_to,
    first_day_needed,
    is_forgotten,
)
from dmdelta.changelog.context import SourceContext
from dmdelta.errors import QualityError
from dmdelta.lakehouse.commits import append
from dmdelta.lakehouse.session import clone_session
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.rules import SourceRules
from tests.spark.lakehouse.test_commits import tag
from tests.support.changelog import ITEMS, SOURCE, TASK, Changelog

FIRST, SECOND, THIRD = date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)


@pytest.fixture
def changelog(spark, lakehouse):
    """Three days of a log, with XA transactions that end on their day, later, and never."""
    log = Changelog(spark, lakehouse)
    log.tell(ITEMS)
    log.insert({"id": 1, "v": "a"})
    log.insert({"id": 2, "v": "ends at once"}, xid="at once")
    log.xa_end(Op.XA_COMMIT, "at once")
    log.insert({"id": 3, "v": "ends later"}, xid="later")
    log.insert({"id": 4, "v": "never ends"}, xid="never")
    log.first_ends = log.position
    log.ddl("CREATE TABLE other (id INT)")
    log.land()
    log.landed_on = SECOND
    log.second = log.position
    log.update({"id": 1, "v": "a"}, {"id": 1, "v": "b"})
    log.xa_end(Op.XA_COMMIT, "later")
    log.land()
    log.landed_on = THIRD
    log.third = log.position
    log.insert({"id": 5, "v": "c"})
    log.land()
    return log


def source_of(changelog):
    return SourceContext(changelog.lakehouse, TASK, SOURCE, "run", "mysql", SourceRules(SOURCE))


def left(spark, bronze):
    rows = spark.table(bronze).selectExpr("op", "coalesce(int(after:id), 0) AS id", "landed_on").collect()
    return sorted((row.op, row.id, row.landed_on.day) for row in rows)


def properties(spark, bronze):
    return dict(spark.sql(f"SHOW TBLPROPERTIES {bronze}").collect())


def test_row_changes_expire_by_whole_days(spark, changelog):
    """Structures, statements and the rows of an unfinished XA transaction are kept; the next day, the rest is removed."""
    bronze, source = changelog.lakehouse.bronze, source_of(changelog)
    assert expired_to(spark, source) is None
    assert expire(spark, bronze, FIRST) is None
    assert KEPT_SINCE not in properties(spark, bronze)
    assert expire(spark, bronze, SECOND) == Expired(SECOND, 2)
    stays = [("ddl", 0, 1), ("insert", 3, 1), ("insert", 4, 1), ("schema", 0, 1), ("xa_commit", 0, 1)]
    later = [("update", 1, 2), ("xa_commit", 0, 2)]
    newest = [("insert", 5, 3)]
    assert left(spark, bronze) == sorted([*stays, *later, *newest])
    assert properties(spark, bronze)["delta.appendOnly"] == "true"
    assert properties(spark, bronze)[KEPT_SINCE] == str(SECOND)
    assert expired_to(spark, source) == changelog.first_ends
    assert expire(spark, bronze, SECOND) is None
    assert expire(spark, bronze, THIRD) == Expired(THIRD, 2)
    assert left(spark, bronze) == sorted([*stays[:1], *stays[2:], later[1], *newest])
    assert changelog.second < expired_to(spark, source) < changelog.third


def test_a_longer_retention_keeps_the_marks(spark, changelog):
    """Rows up to the earlier marks may be gone, also if older ones are still there and expire."""
    bronze, source = changelog.lakehouse.bronze, source_of(changelog)
    marks = f"'{KEPT_SINCE}' = '{THIRD}', '{EXPIRED_TO}{SOURCE}' = '{changelog.second}'"
    spark.sql(f"ALTER TABLE {bronze} SET TBLPROPERTIES ({marks})")
    assert expire(spark, bronze, SECOND) == Expired(SECOND, 2)
    assert (properties(spark, bronze)[KEPT_SINCE], expired_to(spark, source)) == (str(THIRD), changelog.second)
    with pytest.raises(QualityError, match=f"up to {changelog.second} have expired"):
        assert_kept(spark, source, changelog.second)


def test_reading_expired_rows_is_an_error(spark, changelog):
    """Ranges that start earlier, and epochs whose rows may have been removed."""
    source = source_of(changelog)
    assert_kept(spark, source, Position(1, "binlog.000001", 4))
    assert not is_forgotten(spark, source, 1)
    expire(spark, source.bronze, SECOND)
    assert_kept(spark, source, changelog.second)
    with pytest.raises(QualityError, match=f"up to {changelog.first_ends} have expired"):
        assert_kept(spark, source, changelog.first_ends)
    assert is_forgotten(spark, source, 1)
    assert not is_forgotten(spark, source, 2)


def test_the_days_that_readers_still_need(spark, changelog):
    """By the first row that a reader has not read; one that has read all of it needs nothing."""
    bronze = changelog.lakehouse.bronze
    assert first_day_needed(spark, bronze, SOURCE, Position(1, "binlog.000001", 4)) == FIRST
    assert first_day_needed(spark, bronze, SOURCE, changelog.third) == THIRD
    assert first_day_needed(spark, bronze, SOURCE, changelog.position) is None


def test_a_killed_expiry_is_completed(spark, changelog):
    """Before the removal, or after it: the next run completes the rest."""
    bronze = changelog.lakehouse.bronze
    spark.sql(f"ALTER TABLE {bronze} SET TBLPROPERTIES ('delta.appendOnly' = 'false', '{KEPT_SINCE}' = '{SECOND}')")
    assert expire(spark, bronze, SECOND) == Expired(SECOND, 2)
    spark.sql(f"ALTER TABLE {bronze} SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    assert expire(spark, bronze, SECOND) is None
    assert properties(spark, bronze)["delta.appendOnly"] == "true"


def test_landing_continues_during_expiry(spark, lakehouse):
    """An append that conflicts with a change of the table's properties is retried, once."""
    table = lakehouse.silver("d", "busy")
    spark.sql(f"CREATE TABLE {table} (v STRING) USING delta")
    slow = spark.sql("SELECT coalesce(string(reflect('java.lang.Thread', 'sleep', 3000L)), 'slept') AS v")
    other = clone_session(spark)

    def change():
        sleep(1)
        other.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")

    changing = Thread(target=change)
    changing.start()
    commit = append(spark, slow, table, tag(1))
    changing.join()
    history = spark.sql(f"DESCRIBE HISTORY {table}").collect()
    assert [row.operation for row in history][:2] == ["WRITE", "SET TBLPROPERTIES"]
    assert commit.version == history[0].version
    assert spark.table(table).count() == 1
