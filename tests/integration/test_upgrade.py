"""A task whose tables and relay folder were written by an earlier release continues with the current code."""

import json
from pathlib import Path

import pytest

from dmdelta import __version__
from dmdelta.cli.main import execute
from dmdelta.lakehouse.history import CommitTag
from tests.support.state import FAILED_BY, FIXTURES, SECOND, lay_down

STATES = sorted(FIXTURES.glob("state-*.tar.gz"))


def asked(capfd, *arguments):
    """A command's JSON answer."""
    capfd.readouterr()
    assert execute([*arguments, "--json"]) == 0
    return json.loads(capfd.readouterr().out)


def commits(spark, state, table):
    """The numbers of a silver table's own commits, oldest first: landing batch and step."""
    rows = spark.sql(f"DESCRIBE HISTORY {state.lakehouse.silver('shop', table)}").orderBy("version").collect()
    return [tag.version for row in rows if (tag := CommitTag.from_json(row["userMetadata"])) is not None]


@pytest.mark.parametrize("archive", STATES, ids=lambda path: path.name)
def test_a_recorded_state_continues(archive: Path, spark, tmp_path, capfd):
    """Silver becomes as expected; nothing is landed or applied twice; dm_meta is read."""
    state, expected = lay_down(archive, tmp_path)
    before = state.changes(spark)
    status = asked(capfd, "status", state.spec)
    assert (status["state"], status["error"]) == ("failed", FAILED_BY)
    (there,) = status["sources"]
    assert there["landed_to"] == there["applied_to"]
    points = asked(capfd, "checkpoint", "show", state.spec)
    assert {point["cp_table"] for point in points} == {"", *expected}
    assert {f"1/{point['binlog_name']}:{point['binlog_pos']}" for point in points} == {there["landed_to"]}
    (decision,) = asked(capfd, "binlog", "list", state.spec)
    assert decision["operator"] == "skip"
    committed = {table: commits(spark, state, table) for table in expected}
    state.log_has_grown_to(1)
    for _ in range(2):  # the second one has nothing to do
        assert execute(["run", state.spec, "--until-caught-up"]) == 0
    assert state.silver(spark) == expected
    after = state.changes(spark)
    places = [tuple(json.loads(row)[name] for name in ("epoch", "seq", "row")) for row in after]
    assert len(places) == len(set(places))
    assert set(before) <= set(after)
    for table, known in committed.items():
        now = commits(spark, state, table)
        assert now[: len(known)] == known
        assert now == sorted(set(now))
        assert len(now) > len(known)
    (there,) = asked(capfd, "status", state.spec)["sources"]
    assert SECOND in there["landed_to"]


def test_the_state_of_this_version_is_recorded():
    """A new version needs its own, for later versions."""
    assert FIXTURES / f"state-{__version__}.tar.gz" in STATES, "python -m tests.support.record_state"
