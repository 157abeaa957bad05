"""Single values of unusual size: JSON of 16 MB, text of 64 MB, one that is too large, and a heap that is too small."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.support.check import assert_tables_equal_source
from tests.support.memory import catch_up_watched
from tests.support.servers import Server, running
from tests.support.task import Task

MB = 1 << 20
AS_USERS = ""
"""Java options of a task that generates code, as a user's task does."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that accepts such values."""
    with running("mysql80", max_allowed_packet="256M", innodb_redo_log_capacity="2G") as running_server:
        yield running_server


def documents(size: int) -> dict[int, str]:
    """Documents of about `size` bytes by key: an object with many members, an array with many elements, a long text."""
    members = {f"member {n:06d}": {"n": n, "é": "x" * (n % 97), "list": [n, None, n / 8]} for n in range(size // 120)}
    elements = [n if n % 3 else {"n": str(n), "deep": [[n]]} for n in range(size // 20)]
    contents = (members, elements, {"text": "äöü€" * (size // 9), "n": 1})
    return {key: json.dumps(content, ensure_ascii=False) for key, content in enumerate(contents, 1)}


def changes(turn: int) -> tuple[str, ...]:
    """Updates that replace, insert and remove parts of the documents."""
    member = f'$."member {turn:06d}"'
    return (
        f"UPDATE docs SET doc = JSON_SET(doc, '{member}.n', {turn + 1}, '{member}.list[1]', 'new') WHERE id = 1",
        f"UPDATE docs SET doc = JSON_REMOVE(JSON_SET(doc, '$[5]', '{turn}', '$[last]', CAST('[]' AS JSON)), '$[3]') WHERE id = 2",
        f"UPDATE docs SET doc = JSON_SET(doc, '$.n', {turn}, '$.more', 'behind') WHERE id = 3",
        f"UPDATE docs SET doc = JSON_REPLACE(doc, '$.text', 'short {turn}') WHERE id = 4",
        f"UPDATE docs SET note = 'changed {turn}'",
    )


@pytest.mark.parametrize(
    "size", [pytest.param(MB, id="1 MB"), pytest.param(16 * MB, id="16 MB", marks=pytest.mark.long)]
)
def test_json_documents_of_a_size(server, spark, tmp_path, size):
    """Documents are inserted whole and updated in place, logged whole and as partial updates."""
    task = Task(tmp_path, server, server.fresh_database("docs"), tables=("docs",), jvm_options=AS_USERS)
    task.start_here()
    server.execute("CREATE TABLE docs (id INT NOT NULL PRIMARY KEY, doc JSON, note TEXT)", database=task.database)
    with server.connect(database=task.database) as connection, connection.cursor() as cursor:
        for key, text in documents(size).items():
            cursor.execute("INSERT INTO docs VALUES (%s, %s, NULL)", (key, text))
        cursor.execute("INSERT INTO docs SELECT 4, doc, 'a copy' FROM docs WHERE id = 3")
    for turn, options in ((101, ""), (102, "PARTIAL_JSON")):
        server.execute(f"SET SESSION binlog_row_value_options = '{options}'", *changes(turn), database=task.database)
        (Task.catch_up if size == MB else catch_up_watched)(task)
        assert_tables_equal_source(spark, task, ["docs"])
    kinds = {row[2] for row in server.query(f"SHOW BINLOG EVENTS IN '{server.position()[0]}'")}
    assert "Update_rows_partial" in kinds


@pytest.mark.long
def test_a_text_of_64_mb(server, spark, tmp_path):
    """It is inserted, updated and deleted; both images of the update are in one event."""
    task = Task(tmp_path, server, server.fresh_database("text"), tables=("texts",), jvm_options=AS_USERS)
    task.start_here()
    server.execute(
        "CREATE TABLE texts (id INT NOT NULL PRIMARY KEY, body LONGTEXT, n INT)",
        f"INSERT INTO texts SELECT 1, REPEAT('0123456789abcdéf', {4 * MB - 4 * MB // 17}), 1",
        "INSERT INTO texts VALUES (2, 'short', 1)",
        "INSERT INTO texts SELECT 3, body, 3 FROM texts WHERE id = 1",
        database=task.database,
    )
    assert server.query("SELECT LENGTH(body) FROM texts WHERE id = 1", task.database)[0][0] > 63 * MB
    catch_up_watched(task)
    assert_tables_equal_source(spark, task, ["texts"])
    server.execute(
        "UPDATE texts SET body = CONCAT('x', SUBSTRING(body, 2)) WHERE id = 1",
        "UPDATE texts SET body = (SELECT body FROM (SELECT body FROM texts WHERE id = 3) AS found), n = 4 WHERE id = 2",
        "DELETE FROM texts WHERE id = 3",
        database=task.database,
    )
    catch_up_watched(task)
    assert_tables_equal_source(spark, task, ["texts"])


@pytest.mark.long
def test_a_heap_that_is_too_small_stops_the_task(server, spark, tmp_path, monkeypatch):
    """The error names the table and the variable that gives Java more memory, which works."""
    task = Task(tmp_path, server, server.fresh_database("heap"), tables=("texts",), jvm_options=AS_USERS)
    task.start_here()
    server.execute(
        "CREATE TABLE texts (id INT NOT NULL PRIMARY KEY, body LONGTEXT)",
        f"INSERT INTO texts VALUES (1, REPEAT('0123456789abcdef', {4 * MB - 1}))",
        database=task.database,
    )
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "512m")
    with task.process("--until-caught-up") as process:
        assert process.wait(300) == 1, process.log()
        error, hint = process.log().splitlines()[-2:]
    assert re.match(
        rf"error: (Spark ran out of memory|the JVM of Spark ended) while [\w ]+ delta\.`{task.root}/", error
    )
    assert "SPARK_DRIVER_MEMORY=4g" in hint
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "4g")
    task.catch_up()
    assert_tables_equal_source(spark, task, ["texts"])


@pytest.mark.long
@pytest.mark.parametrize("mode", ["incremental", "all"])
def test_a_row_beyond_the_limit_of_a_variant_stops_the_task(server, spark, tmp_path, mode):
    """The error names table, position, size and the next step, which works: nothing else is lost."""
    task = Task(tmp_path, server, server.fresh_database("beyond"), tables=("texts", "other"), mode=mode)
    if mode == "incremental":
        task.start_here()
    server.execute(
        "CREATE TABLE texts (id INT NOT NULL PRIMARY KEY, body LONGTEXT)",
        "CREATE TABLE other (id INT NOT NULL PRIMARY KEY, v VARCHAR(10))",
        "INSERT INTO other VALUES (1, 'before')",
        f"INSERT INTO texts SELECT 2, REPEAT('0123456789abcdef', {8 * MB + 1})",
        "INSERT INTO other VALUES (2, 'behind')",
        database=task.database,
    )
    with task.process("--until-caught-up") as process:
        assert process.wait(300) == 3, process.log()
        said = process.log()
    assert f"a row of {task.database}.texts has 1342177" in said
    assert "more than a VARIANT's limit of 134217728" in said
    assert "exclude the table" in said
    if mode == "incremental":
        assert server.position()[0] in said
    task.tables = ("other",)
    task.catch_up(*["--remove-meta"] if mode == "all" else [])
    assert_tables_equal_source(spark, task, ["other"])
