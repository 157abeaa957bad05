"""Idempotent commits and their history."""

from pathlib import Path

import pytest

from dmdelta.changelog.context import SourceContext
from dmdelta.errors import Fenced, ForeignTable, LakehouseError
from dmdelta.lakehouse.commits import CommitTag, append, delete, replace_using, replace_where
from dmdelta.lakehouse.history import newest_own_commit
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.tables import table_state
from dmdelta.model.position import Position
from dmdelta.rules import NO_RULES, Route
from dmdelta.silver.table.table import Condition, create_silver, silver_condition
from dmdelta.silver.table.target import Target
from tests.support.changelog import ITEMS, SOURCE, TASK
from tests.support.forgetting import forget_history


def target(lakehouse, task=TASK):
    return Target(SourceContext(lakehouse, task, SOURCE, "run", "mysql", NO_RULES), ITEMS.name, Route(*ITEMS.name))


def tag(version, run="one"):
    return CommitTag(
        app="app",
        version=version,
        task=TASK,
        source=SOURCE,
        run=run,
        begin=Position(1, "b.000001", 4),
        end=Position(1, "b.000001", version * 100),
    )


def test_commits_are_idempotent_and_fenced(spark, lakehouse):
    """A repeated commit changes nothing; another run's commit with the same version is detected; an OPTIMIZE is
    skipped.
    """
    table = lakehouse.silver("odd name", "a`b,c")
    spark.sql(
        f"CREATE TABLE {table} (`k,x` INT, v STRING) USING delta TBLPROPERTIES ('delta.columnMapping.mode'='name')"
    )
    rows = spark.sql("SELECT 1 AS `k,x`, 'a' AS v UNION ALL SELECT 2, 'b'")
    assert newest_own_commit(spark, table, "app") is None
    first = append(spark, rows, table, tag(1))
    assert append(spark, rows, table, tag(1)) == first
    with pytest.raises(Fenced, match="another runner"):
        append(spark, rows, table, tag(1, "two"))
    upserts = spark.sql("SELECT 2 AS `k,x`, 'c' AS v UNION ALL SELECT 3, 'd'")
    replace_using(spark, upserts, table, "_dm_target.`k,x` = _dm_source.`k,x`", tag(2))
    assert delete(spark, table, "`k,x` = 99", tag(3)) is None
    spark.sql(f"OPTIMIZE {table}")
    assert newest_own_commit(spark, table, "app").tag == tag(2)
    assert delete(spark, table, "`k,x` = 1", tag(4)).tag.version == 4
    assert sorted(map(tuple, spark.table(table).collect())) == [(2, "c"), (3, "d")]
    with pytest.raises(Fenced):
        append(spark, rows, table, tag(3))


def test_rows_are_replaced_by_literal_keys(spark, lakehouse):
    """Also with keys of any name, and without any rows: the commit still records the table's position."""
    table = lakehouse.silver("d", "t")
    spark.sql(
        f"CREATE TABLE {table} (`k,x` INT, `s'p` STRING, v VARIANT) USING delta TBLPROPERTIES "
        "('delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true')"
    )
    rows = "SELECT 1 AS `k,x`, 'a' AS `s'p`, parse_json('1') AS v UNION ALL SELECT 2, 'b', parse_json('2')"
    append(spark, spark.sql(rows), table, tag(1))
    again = spark.sql("SELECT 2 AS `k,x`, 'b' AS `s'p`, parse_json('3') AS v")
    condition = "(`k,x`, `s'p`) IN ((1, 'a'), (2, 'b'), (9, 'c'))"
    done = replace_where(spark, again, table, condition, tag(2))
    assert replace_where(spark, again, table, condition, tag(2)) == done
    assert [(row[0], row[1], str(row[2])) for row in spark.table(table).collect()] == [(2, "b", "3")]
    nothing = again.where("false")
    assert replace_where(spark, nothing, table, "(`k,x`, `s'p`) IN ((7, 'z'))", tag(3)).tag == tag(3)
    assert spark.table(table).count() == 1
    with pytest.raises(LakehouseError):
        replace_where(spark, again, table, "(`k,x`, `s'p`) IN ((1, 'a'))", tag(4))


def test_a_commit_missing_in_the_history_is_not_repeated(spark, lakehouse):
    """The log retention removes the commits' metadata; Delta still knows their versions, and skips them."""
    table = lakehouse.silver("d", "t")
    spark.sql(f"CREATE TABLE {table} (k INT) USING delta")
    append(spark, spark.range(1).selectExpr("1 AS k"), table, tag(7))
    forget_history(spark, Path(table.split("`")[1]))
    assert newest_own_commit(spark, table, "app") is None
    again = append(spark, spark.range(1).selectExpr("1 AS k"), table, tag(7, "two"))
    assert (again.tag, again.version) == (tag(7, "two"), 2)
    assert spark.table(table).count() == 1
    row, same = spark.range(1).selectExpr("2 AS k"), "_dm_target.k = _dm_source.k"
    assert replace_using(spark, row, table, same, tag(8, "two")).version == 3
    assert sorted(row.k for row in spark.table(table).collect()) == [1, 2]
    with pytest.raises(Fenced, match="another runner"):
        append(spark, spark.range(1).selectExpr("1 AS k"), table, tag(7))


def test_foreign_tables_are_refused(spark, lakehouse, tmp_path):
    """A foreign Delta table, one of another task, and other files at the path are errors, not targets."""
    table = lakehouse.silver("d", "items")
    spark.sql(f"CREATE TABLE {table} (id BIGINT) USING delta")
    with pytest.raises(ForeignTable, match="dmdelta did not create"):
        silver_condition(spark, target(lakehouse))
    other = Lakehouse(root=str(tmp_path / "other"))
    create_silver(spark, target(other), ITEMS)
    assert silver_condition(spark, target(other)) is Condition.PRESENT
    with pytest.raises(ForeignTable, match="task 'task' created"):
        silver_condition(spark, target(other, "another"))
    folder = tmp_path / "third" / "silver" / "d" / "items"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ForeignTable, match="not a Delta table"):
        create_silver(spark, target(Lakehouse(root=str(tmp_path / "third"))), ITEMS)


def test_unreachable_lakehouse(spark, tmp_path):
    """A root that cannot be written is an error with the table's path and what to check."""
    (tmp_path / "file").write_text("not a folder")
    lakehouse = Lakehouse(root=str(tmp_path / "file" / "root"))
    assert table_state(spark, lakehouse.bronze) is None
    with pytest.raises(LakehouseError, match="file/root/silver/d/items") as caught:
        create_silver(spark, target(lakehouse), ITEMS)
    assert "reachable" in caught.value.hint
