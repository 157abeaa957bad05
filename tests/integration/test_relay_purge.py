"""The relay folder stays small: landed segments are purged, by the spec or by command, and nothing is lost."""

import json
from pathlib import Path

from dmdelta.cli.main import execute
from dmdelta.errors import CorruptBinlog
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.task import Task


def test_landed_segments_are_purged_and_the_log_continues(mysql80, spark, tmp_path, capsys):
    """By age during a run, by command between runs: silver follows, but the log no longer suffices to land it again."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("purge"))
    task.start_here()
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", database=task.database)
    task.catch_up()
    (kept,) = relay(task, capsys, "status")
    assert (kept["segments"], kept["state"]) == (1, "caught up")
    assert kept["begins"] == "1/{binlog-name}:{binlog-pos}".format(**task.settings["meta"])
    assert kept["ends"] == kept["landed_to"]
    assert kept["bytes"] > 0 == kept["landed_bytes"], "the newest segment stays"

    for number in range(2, 5):
        mysql80.execute(f"INSERT INTO t VALUES ({number})", "FLUSH BINARY LOGS", database=task.database)
    task.catch_up()
    (kept,) = relay(task, capsys, "status")
    before = segments(task)
    assert kept["segments"] == len(before) >= 4
    assert relay(task, capsys, "purge", "--older-than", "1h") == [{"source_id": "s1", "segments": 0, "bytes": 0}]
    (purged,) = relay(task, capsys, "purge")
    assert (purged["segments"], purged["bytes"]) == (len(before) - 1, kept["landed_bytes"])
    assert segments(task) == before[-1:]

    mysql80.execute("INSERT INTO t VALUES (5)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (6)", database=task.database)
    task.purge = {"expires": "0s", "remain-space": 0}
    task.catch_up()
    assert ids(spark, task) == [1, 2, 3, 4, 5, 6]
    mysql80.execute("INSERT INTO t VALUES (7)", database=task.database)
    task.catch_up()
    assert ids(spark, task) == [1, 2, 3, 4, 5, 6, 7]
    assert len(segments(task)) < 4, "the run itself has purged"

    # Without bronze the purged log is missing: the run fails and does not land only the rest.
    (task.root / "bronze").rename(tmp_path / "gone")
    (task.root / "dm_meta").rename(tmp_path / "gone-too")
    capsys.readouterr()
    with task.environment():
        assert execute(["run", str(task.spec), "--until-caught-up"]) == CorruptBinlog.exit_code
    assert "purged after they had landed" in capsys.readouterr().err


def relay(task, capsys, *arguments):
    capsys.readouterr()
    with task.environment():
        assert execute(["relay", arguments[0], str(task.spec), *arguments[1:], "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def segments(task):
    return sorted(Path(task.relay).rglob("*.binlog"))


def ids(spark, task):
    silver = Lakehouse(root=str(task.root)).silver(task.database, "t")
    return sorted(row.id for row in spark.table(silver).collect())
