"""The type matrix: every type of every server, value by value, through codec, bronze and silver."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.charset_families import CHARSETS
from tests.support.once import Once
from tests.support.pipeline import Pipeline
from tests.support.type_matrix import MatrixRun, family_names, run_type_matrix, silver_families


def _cases(names: Callable[[str], list[str]]) -> list[object]:
    marks = {"mysql97": [pytest.mark.mysql97], "mysql57": [pytest.mark.long]}
    return [
        pytest.param(server, family, id=f"{server}-{family}", marks=marks.get(server, []))
        for server in CHARSETS
        for family in names(server)
    ]


_CASES = _cases(family_names)
_SILVER_CASES = _cases(silver_families)

RunOf = Callable[[str], MatrixRun]


@pytest.fixture(scope="module")
def run_of(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> RunOf:
    """The matrix of a server, run on first use."""
    folder: Path = tmp_path_factory.mktemp("types")
    pipeline = Pipeline(spark, folder / "lake")
    return Once(lambda server: run_type_matrix(request.getfixturevalue(server), pipeline, folder))


@pytest.mark.parametrize(("server", "family"), _SILVER_CASES)
def test_silver_equals_the_source_after_inserts(server: str, family: str, run_of: RunOf) -> None:
    """Inserted values are in silver as a client SELECTs them; dates that no calendar has are NULL there."""
    run = run_of(server)
    assert run.of_family(run.inserted, family) == []


@pytest.mark.parametrize(("server", "family"), _SILVER_CASES)
def test_silver_equals_the_source_after_updates_and_deletes(server: str, family: str, run_of: RunOf) -> None:
    """Every row is updated to the next value, every second one deleted: silver still equals the source."""
    run = run_of(server)
    assert run.of_family(run.changed, family) == []


@pytest.mark.parametrize(("server", "family"), _CASES)
def test_bronze_keeps_every_value_as_it_was(server: str, family: str, run_of: RunOf) -> None:
    """The decoded images replay to the source's rows, invalid dates as text; each before image is the previous row."""
    run = run_of(server)
    assert run.of_family(run.decoded, family) == []
    assert [fault for fault in run.faults if f".{family}__" in fault] == []


@pytest.mark.parametrize(("server", "family"), _CASES)
def test_a_snapshot_reads_the_values_of_the_log(server: str, family: str, run_of: RunOf) -> None:
    """Each value read by a snapshot equals the log's value, in the same VARIANT type."""
    run = run_of(server)
    assert run.of_family(run.read, family) == []
