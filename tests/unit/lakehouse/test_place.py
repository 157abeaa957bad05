"""Where tables are."""

from dataclasses import replace

import pytest

from dmdelta.errors import ConfigError
from dmdelta.lakehouse.foreign import translate
from dmdelta.lakehouse.history import CommitTag
from dmdelta.lakehouse.place import Lakehouse
from dmdelta.model.position import Position


def test_root():
    """Under a root folder tables are paths, and any name has a folder of its own."""
    place = Lakehouse(root="s3://b/lake/")
    assert place.bronze == "delta.`s3://b/lake/bronze`"
    assert place.silver("my db", "a/b`c") == "delta.`s3://b/lake/silver/my~20db/a~2fb~60c`"
    assert place.silver("d", "_t").endswith("/~5ft`")
    assert place.metadata("x") == "delta.`s3://b/lake/dm_meta/x`"
    assert place.schema_of("d") is None


def test_catalog():
    """In a catalog tables have three names."""
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
    """A commit's tag survives its way through the history; other tools' texts are none."""
    begin, end = Position(1, "b.000001", 4), Position(2, "b.000002", 99)
    tag = CommitTag("app", 7, "task", "source", "run", begin, end, "a-b:1-5")
    assert CommitTag.from_json(tag.to_json()) == tag
    anew = replace(tag, safe_until=Position(2, "b.000003", 7))
    assert CommitTag.from_json(anew.to_json()) == anew
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
        ('dmdelta-error:{"kind": "CorruptBinlog", "message": "m", "hint": null, "context": {}}:end', "CorruptBinlog"),
    ],
)
def test_foreign_errors(text, kind):
    """Each of Delta's errors becomes the one of ours that says what to do."""
    assert type(translate(RuntimeError(text), "delta.`/x`", "changing")).__name__ == kind


def test_a_broken_worker_is_named_without_the_values_it_met():
    """What a Python worker raised and where, not its message: that may quote a row."""
    text = (
        '[PYTHON_EXCEPTION] Traceback (most recent call last):\n  File "/x/dmdelta/engine/row_reading.py", line 86, in f\n'
        "    raise it\nTypeError: secret value\n\tat org.apache.spark.Task.run(Task.scala:1)"
    )

    class SparkError(Exception):
        def getCondition(self) -> str:  # noqa: N802 - Spark's name
            return "PYTHON_EXCEPTION"

    message = translate(SparkError(text), "delta.`/x`", "appending to").message
    assert message.endswith("failed: PYTHON_EXCEPTION TypeError in engine/row_reading.py, line 86")
    assert translate(SparkError("no traceback"), "t", "reading").message.endswith("failed: PYTHON_EXCEPTION")
