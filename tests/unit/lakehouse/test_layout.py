"""The location of tables."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from py4j.protocol import Py4JNetworkError

from dmdelta.errors import ConfigError
from dmdelta.lakehouse.history import CommitTag
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.spark_errors import translate
from dmdelta.model.position import Position
from tests.support.lake import is_table


def test_root():
    """Under a root folder tables are paths, and any name has its own folder."""
    place = Lakehouse(root="s3://b/lake/")
    assert place.bronze == "delta.`s3://b/lake/bronze`"
    assert place.silver("my db", "a/b`c") == "delta.`s3://b/lake/silver/my~20db/a~2fb~60c`"
    assert place.silver("d", "_t").endswith("/~5ft`")
    assert place.metadata("x") == "delta.`s3://b/lake/dm_meta/x`"
    assert place.schema_of("d") is None


NAMES = st.text(st.one_of(st.sampled_from("/\\\\.~_ab01u,;—☃˻\0\n"), st.characters()), min_size=1, max_size=64)
"""Any name, and names similar to paths, to escapes and to each other."""


def folders_of(schema, table):
    """The path of a silver table below its root."""
    path = Lakehouse(root="/lake").silver(schema, table)
    assert path.startswith("delta.`/lake/silver/")
    assert path.endswith("`")
    return path.removeprefix("delta.`/lake/silver/")[:-1].replace("``", "`")


@pytest.mark.parametrize(("table", "folder"), [("t", "t"), ("sel`ect", "sel~60ect"), ("a b", "a~20b"), ("_t", "~5ft")])
def test_tests_find_a_table_in_its_folder(tmp_path, table, folder):
    """The folder of a table that the soak uses is where Spark writes it, for any name."""
    identifier = Lakehouse(root=str(tmp_path / "my`lake")).silver("d", table)
    assert not is_table(identifier)
    (tmp_path / "my`lake" / "silver" / "d" / folder / "_delta_log").mkdir(parents=True)
    assert is_table(identifier)


@given(NAMES, NAMES)
@example("..", "../../x")
@example(".", "/etc/passwd")
@example("a/b", "C:\\x")
@example("數" * 64, "☃" * 64)
@example("😀" * 64, "\ud800" * 64)
def test_no_name_leads_outside_of_its_folder(schema, table):
    """Every name is one folder, which neither Spark nor the file system interprets."""
    folders = folders_of(schema, table).split("/")
    assert len(folders) == 2
    for folder in folders:
        assert folder not in ("", ".", "..")
        assert folder[0] not in "._"
        assert len(folder.encode()) <= 255
        assert not set(folder) & set('\\:*?"<>|%{}[]\0\n')


@given(NAMES, NAMES)
@example("sales 14", "sales—")
@example("a/b", "a˻")
@example("a\tb", "a«")
@example("☃" * 64, "☃" * 63 + "—")
@example("數" * 64, "數" * 63 + "数")
@example("_t", "~5ft")
def test_two_tables_never_share_a_folder(one, other):
    """Also if the escape of one name looks like the other, or both are too long for a file system."""
    assert (folders_of("s", one) == folders_of("s", other)) is (one == other)


@given(NAMES)
def test_a_metadata_table_stays_in_its_folder(name):
    """Quarantine tables are named after their tables."""
    path = Lakehouse(root="/lake").metadata(f"t_quarantine__s__{name}")
    assert path.removeprefix("delta.`/lake/dm_meta/").count("/") == 0


def test_catalog():
    """In a catalog table identifiers have three parts."""
    place = Lakehouse(catalog="main", metadata_name="meta")
    assert place.bronze == "`main`.`bronze`.`events`"
    assert place.silver("d", "t`x") == "`main`.`d`.`t``x`"
    assert place.metadata("x") == "`main`.`meta`.`x`"
    assert place.schema_of("d") == "`main`.`d`"


@pytest.mark.parametrize("places", [{}, {"root": "/x", "catalog": "c"}])
def test_one_place(places):
    """A lakehouse is a root or a catalog, never both or neither."""
    with pytest.raises(ConfigError):
        Lakehouse(**places)


def test_tag_round_trip():
    """A commit's tag round-trips through the history; other tools' texts are not tags."""
    begin, end = Position(1, "b.000001", 4), Position(2, "b.000002", 99)
    tag = CommitTag(
        app="app", version=7, task="task", source="source", run="run", begin=begin, end=end, gtid_set="a-b:1-5"
    )
    assert CommitTag.from_json(tag.to_json()) == tag
    with_safe_until = replace(tag, safe_until=Position(2, "b.000003", 7))
    assert CommitTag.from_json(with_safe_until.to_json()) == with_safe_until
    assert CommitTag.from_json("nightly job") is None
    assert CommitTag.from_json('{"dmdelta": 2}') is None
    assert CommitTag.from_json(None) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("io.delta.exceptions.ConcurrentTransactionException: same", "Fenced"),
        ("[DELTA_CONCURRENT_APPEND] files were added", "CommitConflict"),
        ("io.delta.exceptions.MetadataChangedException", "CommitConflict"),
        ("java.io.IOException: Permission denied: /x", "LakehouseError"),
        ("Py4JJavaError: java.lang.OutOfMemoryError: Java heap space", "StageFailed"),
        ("[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory", "StageFailed"),
        ('dmdelta-error:{"kind": "CorruptBinlog", "message": "m", "hint": null, "context": {}}:end', "CorruptBinlog"),
    ],
)
def test_foreign_errors(text, kind):
    """Each of Delta's errors is converted to the dmdelta error with the right hint."""
    assert type(translate(RuntimeError(text), "delta.`/x`", "changing")).__name__ == kind


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "refused"), Py4JNetworkError("Answer is empty")])
def test_a_jvm_that_is_gone(error):
    """The error says that it ended, and how to give it more memory."""
    translated = translate(error, "delta.`/x`", "appending to")
    assert translated.message == "the JVM of Spark ended while appending to delta.`/x`"
    assert "SPARK_DRIVER_MEMORY=4g" in translated.hint


@pytest.mark.parametrize(
    ("raised", "shown"),
    [
        ("TypeError: secret value", "TypeError"),
        ("OSError: [Errno 28] No space left on device: '/secret'", "OSError: No space left on device"),
        ("PermissionError: [Errno 13] Permission denied: '/secret'", "PermissionError: Permission denied"),
        ("pymysql.err.DataError: (1406, 'secret [Errno 28]')", "pymysql.err.DataError"),
        ("TimeoutError", "TimeoutError"),
    ],
)
def test_a_worker_error_contains_no_values(raised, shown):
    """The exception's class, system error and location in the Python worker, not its message, which may quote a row."""
    text = (
        '[PYTHON_EXCEPTION] Traceback (most recent call last):\n  File "/x/dmdelta/engine/snapshot/chunk_reader.py", line 86, in f\n'
        f"    raise it\n{raised}\n\tat org.apache.spark.Task.run(Task.scala:1)"
    )

    class SparkError(Exception):
        def getCondition(self) -> str:  # noqa: N802 - Spark's name
            return "PYTHON_EXCEPTION"

    message = translate(SparkError(text), "delta.`/x`", "appending to").message
    assert message.endswith(f"failed: PYTHON_EXCEPTION {shown} in engine/snapshot/chunk_reader.py, line 86")
    assert translate(SparkError("no traceback"), "t", "reading").message.endswith("failed: PYTHON_EXCEPTION")
