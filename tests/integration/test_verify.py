"""`dmdelta verify` against real servers: the log comes from the server, from the relay's segments, or is missing."""

import json
import shutil

import pytest

from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.relaying import purged_to_the_newest, wait_until
from tests.support.servers import running
from tests.support.task import Task


def verify(task, capsys, *arguments, code=0):
    """The result of the check; for an error, its message."""
    capsys.readouterr()
    with task.environment():
        ended = execute(["verify", str(task.spec), "--json", *arguments])
    out, err = capsys.readouterr()
    assert ended == code, (out + err)[-4000:]
    return json.loads(out)[0] if code in (0, 6) else err


def write(server, database, *statements):
    """In one session."""
    server.execute(f"USE {database}", *statements)


def change(server, database):
    """All kinds of transactions, and a table that is not selected."""
    write(
        server,
        database,
        "CREATE TABLE t (id INT PRIMARY KEY, n DECIMAL(12,3), s VARCHAR(40), at DATETIME(6), b BLOB, u BIGINT UNSIGNED)",
        "CREATE TABLE k (a INT, j JSON)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "INSERT INTO t SELECT seq, seq / 7, CONCAT('é', seq), '2026-01-02 03:04:05.678901', X'00FF', 18446744073709551615 "
        "FROM (SELECT 1 AS seq UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5) AS numbers",
        "UPDATE t SET n = -n, s = NULL WHERE id < 4",
        "DELETE FROM t WHERE id = 5",
        "INSERT INTO k VALUES (1, '{\"a\": [1, 2.5, \"x\"]}'), (2, '[]'), (2, '[]')",
        "INSERT INTO other VALUES (1), (2)",
        "BEGIN",
        "INSERT INTO t (id) VALUES (100)",
        "ROLLBACK",
        "XA START 'one'",
        "INSERT INTO t (id, s) VALUES (6, 'prepared')",
        "XA END 'one'",
        "XA PREPARE 'one'",
        "XA COMMIT 'one'",
        "XA START 'two'",
        "INSERT INTO t (id, s) VALUES (7, 'never')",
        "XA END 'two'",
        "XA PREPARE 'two'",
        "XA ROLLBACK 'two'",
    )
    write(server, database, "SET SESSION binlog_row_image = MINIMAL", "UPDATE t SET s = 'minimal' WHERE id = 2")
    if server.flavor == "mysql":
        setup = "SET SESSION binlog_transaction_compression = ON"
        write(server, database, setup, "INSERT INTO t (id) VALUES (20), (21)", "INSERT INTO other VALUES (3)")


@pytest.mark.parametrize("name", ["mysql80", "mariadb"])
def test_the_log_comes_from_where_it_still_exists(name, spark, tmp_path, capsys):
    """From the server, from the segments once the server has purged its files; an error when neither has them."""
    with running(name) as server:
        task = Task(tmp_path / "task", server, server.fresh_database("verify"), tables=("t", "k"))
        task.start_here()
        change(server, task.database)
        task.catch_up()
        found = verify(task, capsys)
        assert found["differences"] == []
        (part,) = found["ranges"]
        assert part["read_from"] == "server"
        counts = {table["table"]: table for table in found["tables"]}
        t, k = counts[f"{task.database}.t"], counts[f"{task.database}.k"]
        assert (t["events"], t["rows"]) == (6, 12)
        assert (k["events"], k["rows"]) == (1, 3)
        missed = {one["reason"]: (one["events"], one["rows"]) for one in t["not_covered"] if one["rows"]}
        assert missed == ({"compressed transaction": (1, 2)} if name == "mysql80" else {})
        hidden = counts.get("", {"not_covered": []})["not_covered"]  # of a table that is not selected
        assert [(one["reason"], one["events"]) for one in hidden] == (
            [("compressed transaction", 1)] if name == "mysql80" else []
        )

        bronze = Lakehouse(root=str(task.root)).bronze
        spark.sql(f"ALTER TABLE {bronze} SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
        spark.sql(f"DELETE FROM {bronze} WHERE table_name = 't' AND op = 'update' AND row = 1")
        (lost,) = verify(task, capsys, code=6)["differences"]
        assert (lost["table"], lost["op"], lost["row"]) == (f"{task.database}.t", "update", 1)

        server.execute("FLUSH BINARY LOGS")
        wait_until(lambda: purged_to_the_newest(server))
        found = verify(task, capsys, code=6)
        assert {part["read_from"] for part in found["ranges"]} == {"relay"}
        assert found["differences"] == [lost]
        assert {table["table"]: table["values"] for table in found["tables"]}[k["table"]] == k["values"]
        segments = tmp_path / "segments"
        shutil.move(task.relay, segments)
        assert "is no longer available" in verify(task, capsys, code=3)
        shutil.move(segments, task.relay)
    found = verify(task, capsys, code=6)  # the server is gone
    assert {part["read_from"] for part in found["ranges"]} == {"relay"}
    assert found["differences"] == [lost]
