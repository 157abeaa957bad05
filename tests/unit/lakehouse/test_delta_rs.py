"""Tables of a local root without Spark: commits, transactions, conditions, and which tables qualify."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from multiprocessing import get_context
from pathlib import Path

import deltalake
import pytest

from dmdelta.errors import Fenced, LakehouseError, UnsupportedTable
from dmdelta.lakehouse.access.commit_log import newest_commits, newest_own_commit, own_commits
from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit
from dmdelta.lakehouse.access.commit_times import commit_file
from dmdelta.lakehouse.access.delta_rs.local_reads import _PLAIN
from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable
from dmdelta.lakehouse.access.interface import NewestBy, below, is_not_null, is_null, none_of, one_of
from dmdelta.lakehouse.access.local_root import local_folder, local_table
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.commit_tags import tag

SCHEMA = """{"type":"struct","fields":[
 {"name":"id","type":"string","nullable":true,"metadata":{}},
 {"name":"n","type":"long","nullable":true,"metadata":{}},
 {"name":"at","type":"timestamp","nullable":true,"metadata":{}},
 {"name":"texts","type":{"type":"array","elementType":"string","containsNull":true},"nullable":true,"metadata":{}}]}"""
BY = NewestBy(("id",), "n")
NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    """An empty table in a folder whose name has to be escaped in a URL."""
    place = Lakehouse(root=str(tmp_path / "a `lake` of 100%")).metadata("task_state")
    made = local_table(None, place)
    assert made.create(SCHEMA, {"dmdelta.task": "task", "delta.checkpointInterval": "50"})
    return made


def test_a_table_that_does_not_exist_has_nothing(tmp_path):
    absent = LocalTable("absent", tmp_path / "absent")
    assert (absent.commits(None), absent.newest(BY), absent.rows(), absent.properties()) == ([], [], [], None)
    assert newest_commits(absent.commits, "app") == (None, None)
    assert not (tmp_path / "absent").exists()
    with pytest.raises(LakehouseError, match="absent does not exist"):
        absent.append([{"id": "a"}], None)


def test_a_tagged_append_is_made_once(table):
    """Repeated by the same run it is skipped, also by a later one of the history; another run is fenced."""
    first = table.append([{"id": "a", "n": 1}], tag(1))
    assert table.append([{"id": "a", "n": 1}], tag(1)) == first == newest_own_commit(table.commits, "app")
    table.append([{"id": "b", "n": 2}], tag(1, app="other"))
    second = table.append([{"id": "a", "n": 2}], tag(2))
    assert [commit.tag.version for commit in own_commits(table.commits, "app")] == [2, 1]
    assert newest_commits(table.commits, "other")[0] == second.version == 3
    for version in (1, 2):
        with pytest.raises(Fenced, match="another runner"):
            table.append([{"id": "lost"}], tag(version, "two"))
    assert sorted((row["id"], row["n"]) for row in table.rows()) == [("a", 1), ("a", 2), ("b", 2)]


def test_a_commit_that_another_run_makes_meanwhile_fences_this_one(table, monkeypatch):
    """The look-up of the transaction and the commit are atomic, although other writers come between them."""
    ours, theirs = tag(1, "ours"), tag(1, "theirs")
    opened = LocalTable._existing

    def slow(self):
        at = opened(self)
        monkeypatch.setattr(LocalTable, "_existing", opened)
        table.append([{"id": "theirs"}], theirs)
        return at

    monkeypatch.setattr(LocalTable, "_existing", slow)
    with pytest.raises(Fenced, match="another runner"):
        table.append([{"id": "ours"}], ours)
    assert [row["id"] for row in table.rows()] == ["theirs"]


def test_a_lower_version_than_the_committed_one_is_refused(table):
    """As with a wrong version passed to delta-rs: nothing is written after the newest commit."""
    table.append([{"id": "a"}], tag(5))
    with pytest.raises(Fenced):
        table.append([{"id": "b"}], tag(4))
    assert deltalake.DeltaTable(str(table.folder)).transaction_version("app") == 5
    assert len(table.rows()) == 1


def test_the_newest_row_of_each_key(table, monkeypatch):
    """Like Spark's max_by: rows without an order are ignored, NULL is a key, and parts of the table are combined."""
    monkeypatch.setattr("dmdelta.lakehouse.access.arrow_rows.PART_ROWS", 2)
    table.append([{"id": "a", "n": 3, "at": NOON, "texts": ["x", None]}, {"id": "a", "n": 1}, {"id": "b"}], None)
    table.append([{"n": 1}, {"n": 2}, {"id": "a", "n": 2}, {"id": "c", "n": 7}], None)
    newest = {row["id"]: row["n"] for row in table.newest(BY)}
    assert newest == {"a": 3, None: 2, "c": 7}
    assert table.newest(BY, [one_of("id", "a", "z")]) == [{"id": "a", "n": 3, "at": NOON, "texts": ["x", None]}]
    assert table.newest(BY, [one_of("id", "a"), is_null("at")])[0]["n"] == 2
    assert [row["n"] for row in table.newest(NewestBy((), "n"))] == [7]
    assert table.newest(NewestBy((), "n"), [one_of("id", "z")]) == []


def test_conditions_treat_null_as_sql_does(table):
    table.append([{"id": "a", "n": 1}, {"id": None, "n": 2}, {"id": "b", "n": 3}], None)
    found = {
        condition: sorted(row["n"] for row in table.rows([condition], ["n"]))
        for condition in (one_of("id", "a"), none_of("id", "a"), is_null("id"), is_not_null("id"), below("n", 2))
    }
    assert list(found.values()) == [[1], [3], [2], [1, 3], [1]]
    assert table.rows([is_null("absent")], ["n"]) == table.rows((), ["n"])
    assert table.rows([one_of("absent", "a")]) == table.rows([none_of("absent", "a")]) == []


def test_rows_are_deleted_by_quoted_text(table):
    odd = 'it\'s \\ {x} `y` -- "z"'
    table.append([{"id": odd, "n": 1}, {"id": "b", "n": 2}], None)
    table.delete(lambda literal: f"id = {literal(odd)} AND n < 5")
    assert [row["id"] for row in table.rows()] == ["b"]
    assert [row["n"] for row in table.rows([one_of("id", "b")], ["n"])] == [2]  # in a file that was rewritten


def test_columns_are_added_to_an_older_table(table):
    table.append([{"id": "old", "n": 1}], None)
    with pytest.raises(LakehouseError, match="lacks the columns more"):
        table.append([{"id": "new", "more": "x"}], None)
    more = '{"name":"more","type":"string","nullable":true,"metadata":{}}'
    wider = SCHEMA.replace('{"name":"n"', more + ',{"name":"n"')
    table.add_columns(wider)
    version = table.commits(1)[0].version
    table.add_columns(wider)
    assert table.commits(1)[0].version == version
    table.append([{"id": "new", "more": "x"}], None)
    assert {row["id"]: row["more"] for row in table.rows()} == {"old": None, "new": "x"}


def test_a_compacted_table_has_the_same_rows_and_commits(table):
    for number in range(1, 8):
        table.append([{"id": "a", "n": number}], tag(number))
    before = sorted(row["n"] for row in table.rows())
    table.compact()
    assert sorted(row["n"] for row in table.rows()) == before
    assert len(deltalake.DeltaTable(str(table.folder)).file_uris()) == 1
    assert newest_own_commit(table.commits, "app").tag.version == 7


def test_a_long_history_is_read_in_pages(table):
    """This also works after checkpoints and log retention have shortened it."""
    for number in range(1, 61):
        table.append([{"id": "a", "n": number}], tag(number, app="often" if number > 2 else "seldom"))
    assert newest_own_commit(table.commits, "seldom").tag.version == 2
    assert [commit.version for commit in table.commits(3)] == [60, 59, 58]
    assert len(table.commits(None)) == 61
    for version in range(45):
        (table.folder / "_delta_log" / f"{version:020d}.json").unlink()
    assert [commit.version for commit in table.commits(None)] == list(range(60, 44, -1))
    assert newest_own_commit(table.commits, "seldom") is None
    skipped = table.append([{"id": "lost"}], tag(2, app="seldom"))
    assert (skipped.tag.version, len(table.rows())) == (2, 60)
    times = [commit.at for commit in table.commits(None)]
    assert times == sorted(times, reverse=True)
    assert datetime.now(timezone.utc) - times[0] < timedelta(minutes=10)


def test_versions_belong_to_their_commits(table, monkeypatch):
    """delta-rs numbers them from the version at which the table was opened, whatever has been committed since then."""
    for number in range(1, 6):
        table.append([{"id": "a", "n": number}], tag(number))
    opened = LocalTable._open

    def late(self):
        at = opened(self)
        monkeypatch.setattr(LocalTable, "_open", opened)
        table.append([{"id": "a", "n": 6}], tag(6))
        return at

    monkeypatch.setattr(LocalTable, "_open", late)
    tags = [(commit.version, CommitTag.from_json(commit.user_metadata).version) for commit in table.commits(3)]
    assert tags == [(6, 6), (5, 5), (4, 4)]
    deltalake.DeltaTable(str(table.folder)).create_checkpoint()
    (table.folder / "_delta_log" / f"{0:020d}.json").unlink()
    assert [commit.version for commit in table.commits(None)] == [6, 5, 4, 3, 2, 1]
    silent = table.folder / "_delta_log" / f"{5:020d}.json"
    silent.write_text("\n".join(line for line in silent.read_text().splitlines() if "commitInfo" not in line))
    assert table.commits(1)[0].version == 6
    with pytest.raises(UnsupportedTable, match="lacks information"):
        table.commits(3)


def test_processes_that_append_at_the_same_time_lose_nothing(table):
    """Transactions are also kept: one application per process, and one that all processes share."""
    with get_context("spawn").Pool(2) as pool:
        made = pool.starmap(append_some, [(table, name) for name in ("x", "y")])
    assert len(table.rows()) == 2 * 20
    listed = sorted(own_commits(table.commits, None), key=lambda one: one.version)
    told = sorted((one for some in made for one in some), key=lambda one: one.version)
    assert [(one.version, one.tag) for one in told] == [(one.version, one.tag) for one in listed]
    # Of commits in the same millisecond, the history lists each one a millisecond after the one before.
    later = [one.at - other.at for one, other in zip(listed, told, strict=True)]
    assert all(timedelta(0) <= difference < timedelta(milliseconds=40) for difference in later)
    assert {name: newest_own_commit(table.commits, name).tag.version for name in ("x", "y")} == {"x": 19, "y": 19}
    assert [commit.version for commit in table.commits(None)] == list(range(40, -1, -1))


def append_some(table: LocalTable, name: str) -> list[OwnCommit | None]:
    return [table.append([{"id": name, "n": number}], tag(number, app=name)) for number in range(20)]


def test_expired_files_of_the_log_are_removed_every_fifty_appends(tmp_path):
    """A search after each append would take longer as the log grows."""
    table = local_table(None, Lakehouse(root=str(tmp_path)).metadata("task_state"))
    table.create(SCHEMA, {"delta.checkpointInterval": "10", "delta.logRetentionDuration": "interval 1 hours"})
    log, left = table.folder / "_delta_log", {}
    for number in range(1, 52):
        table.append([{"id": "a", "n": number}], tag(number))
        for file in log.iterdir():
            os.utime(file, (NOON.timestamp(), NOON.timestamp()))
        left[number] = len(list(log.glob("*.json")))
    assert left[49] == 50
    assert left[50] <= 11
    assert len(table.rows()) == 51
    assert newest_own_commit(table.commits, "app").tag.version == 51


def test_errors_of_a_table_are_reported_without_rows(table):
    with pytest.raises(LakehouseError) as caught:
        table.append([{"id": "a", "n": "secret text"}], None)
    assert "secret" not in str(caught.value)
    assert "appending to" in str(caught.value)
    log = next((table.folder / "_delta_log").glob("*.json"))
    log.write_text("not JSON, but a secret")
    with pytest.raises(LakehouseError, match="reading") as caught:
        table.rows()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("feature", ["unknownFeature", "deletionVectors", "typeWidening"])
def test_a_table_with_a_feature_that_delta_rs_lacks_is_not_plain(table, feature):
    """For example a feature of a later Delta version: the error names the solution."""
    assert table.is_plain()
    _PLAIN.clear()
    (log,) = (table.folder / "_delta_log").glob("*.json")
    features = {"readerFeatures": [feature], "writerFeatures": [feature]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    lines = [line for line in log.read_text().splitlines() if "protocol" not in json.loads(line)]
    log.write_text("\n".join([*lines, json.dumps(protocol)]))
    assert not table.is_plain()
    if feature == "unknownFeature":
        with pytest.raises(UnsupportedTable, match="does not support") as caught:
            table.commits(1)
        assert "Spark" in caught.value.hint
    else:
        assert [commit.version for commit in table.commits(1)] == [0]


def test_foreign_files_are_left_to_spark(tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    assert not LocalTable("taken", tmp_path / "taken").create(SCHEMA, {})
    assert [file.name for file in (tmp_path / "taken").iterdir()] == ["notes.txt"]


PLACES: Mapping[str, str | None] = {
    "delta.`/lake/dm_meta/x`": "/lake/dm_meta/x",
    "delta.`/a``b%20c/größe~20`": "/a`b%20c/größe~20",
    "delta.`file:/lake/x`": "/lake/x",
    "delta.`file:///lake/x`": "/lake/x",
    "delta.`file://host/lake/x`": None,
    "delta.`s3a://bucket/x`": None,
    "delta.`dbfs:/x`": None,
    "delta.`lake/x`": None,
    "delta.`/what?/x`": None,
    "delta.`/a#b/x`": None,
    "`main`.`dm_meta`.`x`": None,
}


@pytest.mark.parametrize("table", PLACES)
def test_only_folders_of_this_machine_qualify(table, monkeypatch):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    expected = PLACES[table]
    assert local_folder(table) == (None if expected is None else Path(expected))


def test_other_kinds_of_sessions_use_spark(monkeypatch):
    """A path without a scheme may be in HDFS, and a server's files on another machine."""
    table = "delta.`/lake/x`"
    assert local_table(None, table) is not None
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert local_table(None, table) is None
    assert local_table(None, "delta.`file:/lake/x`") is not None
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    assert local_table(None, "delta.`file:/lake/x`") is None


def test_reading_imports_neither_spark_nor_pandas(table):
    """They take most of the time of a command that only reads dm_meta."""
    table.append([{"id": "a", "n": 1, "at": NOON, "texts": ["x"]}], None)
    code = f"""if True:
        import sys
        from pathlib import Path
        from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable
        from dmdelta.lakehouse.access.interface import NewestBy, one_of
        table = LocalTable("t", Path({str(table.folder)!r}))
        assert table.newest(NewestBy(("id",), "at")) == table.rows([one_of("id", "a")]) != []
        sys.exit(", ".join({{"pyspark", "pandas"}} & sys.modules.keys()) or 0)"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_newest_version_is_that_of_the_last_commit(table):
    """None, if there is no table."""
    before = table.version()
    table.append([{"id": "a"}], None)
    assert table.version() == before + 1 == table.commits(1)[0].version
    assert LocalTable("t", table.folder / "absent").version() is None


@pytest.mark.parametrize("wrong", [-1, 1])
def test_a_wrong_version_passed_to_delta_rs_is_detected(table, monkeypatch, wrong):
    """The tests of idempotence fail if the transaction in the log is not the tag's."""
    monkeypatch.setattr(
        "dmdelta.lakehouse.access.delta_rs.local_table.Transaction",
        lambda app, version: deltalake.Transaction(app, version + wrong),
    )
    with pytest.raises((AssertionError, Fenced)):
        test_a_tagged_append_is_made_once(table)


def test_the_highest_value_that_a_commit_added(table):
    """It is read from the statistics of its files; a commit without files, or an expired one, has none."""
    table.append([{"id": "a", "n": 7, "at": NOON}, {"id": "b", "n": 3, "at": NOON - timedelta(hours=1)}], None)
    assert table.newest_in(1, "n") == 7
    assert datetime.fromisoformat(table.newest_in(1, "at").replace("Z", "+00:00")) == NOON
    assert table.newest_in(0, "n") is None
    assert table.newest_in(99, "n") is None
    with pytest.raises(UnsupportedTable, match="no statistics of texts"):
        table.newest_in(1, "texts")


def test_separators_of_lines_in_values_do_not_separate_actions(table):
    """Only a newline does: JSON has the other separators of Unicode as they are."""
    text = "a\u2028b\u2029c\x85d"
    table.append([{"id": text, "n": 7}], None)
    opened = deltalake.DeltaTable(str(table.folder))
    rows = opened.to_pyarrow_table()
    properties = deltalake.CommitProperties(custom_metadata={"userMetadata": text})
    deltalake.write_deltalake(opened, rows, mode="append", commit_properties=properties)
    newest = table.commits(1)[0]
    assert text in commit_file(table.log, newest.version).read_text("utf-8")
    assert newest.user_metadata == text
    assert table.newest_in(newest.version, "n") == 7
