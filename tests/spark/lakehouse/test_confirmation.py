"""How a write is confirmed: by the version in the session where that is certain, else by the table's history."""

import pytest

from dmdelta.errors import Fenced
from dmdelta.lakehouse import commits
from dmdelta.lakehouse.commits import append, assert_alone, delete, merge, replace_using, replace_where
from dmdelta.lakehouse.history import newest_own_commit
from dmdelta.lakehouse.session import clone_session
from tests.spark.lakehouse.test_commits import tag


@pytest.fixture
def table(spark, lakehouse):
    name = lakehouse.silver("d", "t")
    properties = "'delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true'"
    spark.sql(f"CREATE TABLE {name} (k INT, v STRING) USING delta TBLPROPERTIES ({properties})")
    append(spark, rows(spark, 1, 2, 3, 4, 5), name, tag(1))
    return name


@pytest.fixture
def looked_up(monkeypatch):
    """The tables whose history was read."""
    read = []

    def own_commits(spark, table, *args, **more):
        read.append(table)
        return newest_of(spark, table, *args, **more)

    newest_of = commits.own_commits
    monkeypatch.setattr(commits, "own_commits", own_commits)
    return read


def rows(spark, *keys, value="a"):
    return spark.sql(f"SELECT explode(array({', '.join(map(str, keys))})) AS k, '{value}' AS v")


def upsert(spark, table, tag, **more):
    rows(spark, 1, 9, value="m").createOrReplaceTempView("changed")
    statement = f"MERGE INTO {table} t USING changed s ON t.k = s.k WHEN MATCHED THEN UPDATE SET * "
    return merge(spark, statement + "WHEN NOT MATCHED THEN INSERT *", table, tag, **more)


WRITES = {
    "append": lambda spark, *to, **more: append(spark, rows(spark, 7), *to, **more),
    "replace where": lambda spark, table, tag, **more: replace_where(
        spark, rows(spark, 2, value="w"), table, "k IN (2, 3)", tag, **more
    ),
    "replace on": lambda spark, table, tag, **more: replace_using(
        spark, rows(spark, 2, value="o"), table, "_dm_target.k = _dm_source.k", tag, **more
    ),
    "merge": upsert,
    "merge of nothing": lambda spark, table, tag, **more: merge(
        spark,
        f"MERGE INTO {table} t USING (SELECT 77 AS k) s ON t.k = s.k WHEN MATCHED THEN DELETE",
        table,
        tag,
        **more,
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
def test_the_session_confirms_a_commit(spark, table, looked_up, write):
    """The version after the previous own commit is ours: the history has the same commit, and is not read for it."""
    before = newest_own_commit(spark, table, "app")
    looked_up.clear()
    done = write(spark, table, tag(2), after=before.version)
    assert looked_up == []
    found = newest_own_commit(spark, table, "app")
    assert (found.version, found.tag) == (done.version, done.tag) == (before.version + 1, tag(2))
    # Skipped, because the table has it: the session has no version, although the history's is the one expected.
    state = sorted(map(tuple, spark.table(table).collect()))
    again = write(spark, table, tag(2), after=before.version)
    assert looked_up == [table]
    assert (again.version, again.tag) == (found.version, found.tag)
    assert sorted(map(tuple, spark.table(table).collect())) == state


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
def test_a_second_runner_is_fenced(spark, table, looked_up, write):
    """Its commit in between is found, whether it makes Delta skip ours, or precedes ours with an older version."""
    other = clone_session(spark)
    after = newest_own_commit(spark, table, "app").version
    append(other, rows(other, 100), table, tag(3, "two"))
    with pytest.raises(Fenced, match="another runner"):
        write(spark, table, tag(3), after=after)
    with pytest.raises(Fenced, match="another runner"):
        write(spark, table, tag(2), after=after)
    with pytest.raises(Fenced, match="another runner"):
        write(spark, table, tag(4), after=after)
    assert spark.table(table).where("k = 100").count() == 1


def test_another_run_is_found_before_rows_are_appended(spark, table):
    """Its commit may have an older version: it has joined ranges differently. Commits of other tools do not matter."""
    after = newest_own_commit(spark, table, "app").version
    spark.sql(f"OPTIMIZE {table}")
    assert_alone(spark, table, tag(4), after)
    append(clone_session(spark), rows(spark, 100), table, tag(2, "two"))
    spark.sql(f"OPTIMIZE {table}")
    with pytest.raises(Fenced, match="another runner"):
        assert_alone(spark, table, tag(4), after)


def test_foreign_commits_in_between_are_passed_over(spark, table, looked_up):
    """Commits of other tools and of other applications change the number only: the history confirms ours."""
    after = newest_own_commit(spark, table, "app").version
    spark.sql(f"INSERT INTO {table} VALUES (50, 'f')")
    spark.sql(f"OPTIMIZE {table}")
    looked_up.clear()
    done = append(spark, rows(spark, 7), table, tag(2), after=after)
    assert looked_up == [table]
    assert (done.tag, done.version) == (tag(2), after + 3)
    # As known from the commit itself, the next one needs no history.
    assert append(spark, rows(spark, 8), table, tag(3), after=done.version).version == done.version + 1
    assert looked_up == [table]


def test_a_version_of_another_table_or_write_confirms_nothing(spark, lakehouse, table, looked_up):
    """The session's version is removed before each write: one that happens to be the expected number is not ours."""
    after = newest_own_commit(spark, table, "app").version
    append(spark, rows(spark, 7), table, tag(2), after=after)
    assert commits._committed_version(spark) == after + 1
    looked_up.clear()
    assert append(spark, rows(spark, 7), table, tag(2), after=after).version == after + 1
    assert looked_up == [table]
    assert delete(spark, table, "k = 12345", tag(3)) is None


def test_a_session_that_rejects_the_conf(spark, table, looked_up):
    """If the version cannot be removed, or not be read, the history confirms."""

    class Confs:
        def __init__(self, rejected):
            self.rejected = rejected

        def __getattr__(self, name):
            if name == self.rejected:
                raise RuntimeError("not allowed")
            return getattr(spark.conf, name)

    class Session:
        def __init__(self, rejected):
            self.conf = Confs(rejected)

        def __getattr__(self, name):
            return getattr(spark, name)

    after = newest_own_commit(spark, table, "app").version
    for number, rejected in enumerate(("unset", "get"), 2):
        looked_up.clear()
        done = append(Session(rejected), rows(spark, 7), table, tag(number), after=after)
        assert looked_up == [table]
        assert done.version == after + 1
        after = done.version
