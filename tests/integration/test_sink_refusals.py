"""Permanent refusals of the target: the error names row, position and the next step. Without Spark."""

import time

import pytest

from dmdelta.errors import SinkError
from dmdelta.sink.change import Act, Change, Shape
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.transaction import ChangeWork
from dmdelta.sink.execute.worker import Batch
from dmdelta.sink.read.literals import NAMELESS
from tests.integration.test_sink_retries import Bench, place

TABLE = (
    "CREATE TABLE narrow (id INT PRIMARY KEY, v VARCHAR(3) NOT NULL, n TINYINT, own INT NULL)",
    "INSERT INTO narrow VALUES (1, 'a', 1, NULL)",
)


@pytest.fixture(
    params=[
        "mysql80_too",
        pytest.param("mariadb", marks=pytest.mark.long),
        pytest.param("tidb", marks=pytest.mark.tidb),
    ]
)
def bench(request):
    made = Bench(request.getfixturevalue(request.param))
    made.server.execute(*TABLE, database=made.database)
    yield made
    assert made.dispatcher.end(10.0)


def inserted(bench, *rows, table="narrow", columns=("v", "n")):
    """Changes that insert rows, as Spark computes them."""
    assigned = ", ".join(f"{column}=VALUES({column})" for column in columns)
    shape = Shape(f"{bench.database}.{table}", f"(id,{','.join(columns)})", assigned, "id")
    return [
        (shape, Change(Act.INSERT, str(key), None, f"({key},{rest})", None, (f"{key}.n",), ((100 + key, 0),)))
        for key, rest in rows
    ]


def failure(bench, work, style):
    """Why a worker does not execute a batch."""
    bench.worker.queue.put(Batch(1, 1, work, style, 100, 300, place))
    end = time.monotonic() + 30
    while not bench.failures:
        assert time.monotonic() < end, "the worker does not say so"
        time.sleep(0.02)
    (error,) = bench.failures
    assert isinstance(error, SinkError)
    return error


@pytest.mark.parametrize(
    ("row", "ahead", "refused", "hint"),
    [
        ((1, "'b',2"), (), 1, "a row with this key already exists"),
        ((7, "'four',2"), (), 7, "widen the target's column"),
        ((7, "NULL,2"), (), 7, "make the target's column nullable"),
        ((7, "'b',300"), (), 7, "give it the source's type"),
        ((7, "'b',2"), ("TRUNCATE narrow", "ALTER TABLE narrow MODIFY own INT NOT NULL"), 5, "own column a default"),
        ((7, "'b',2"), ("DROP TABLE narrow",), 5, "create it again"),
    ],
    ids=["key", "long", "null", "range", "default", "missing"],
)
def test_a_refused_row(bench, row, ahead, refused, hint):
    """One of three rows of a transaction: none is written, and the error is about the first refused row."""
    bench.server.execute(*ahead, database=bench.database)
    work = ChangeWork(inserted(bench, (5, "'a',1"), row, (9, "'c',3")))
    error = failure(bench, work, Style())
    assert error.message.startswith(f"{bench.database}.narrow refuses: ")
    assert (error.context["position"], error.context["row"]) == (str(place(100 + refused)), 0)
    assert [value for value in ("'b'", "'four'", "300") if value in str(error)] == []
    assert hint in (error.hint or "")
    assert bench.recorded() == 0
    if "DROP TABLE narrow" not in ahead:
        assert bench.server.query("SELECT id FROM narrow WHERE id > 1", bench.database) == ()


@pytest.mark.parametrize("multiple_rows", [True, False])
def test_a_refused_row_after_an_enum_without_a_name(bench, multiple_rows):
    """The ENUM's value of index 0 is valid, although a strict server refuses it: the error is about the row after it."""
    bench.server.execute(
        "CREATE TABLE named (id INT PRIMARY KEY, e ENUM('a', 'b'), v VARCHAR(3))", database=bench.database
    )
    rows = ((5, f"{NAMELESS},'a'"), (7, "'b','four'"), (9, f"{NAMELESS},'c'"))
    work = ChangeWork(inserted(bench, *rows, table="named", columns=("e", "v")))
    error = failure(bench, work, Style(multiple_rows=multiple_rows))
    assert error.message.startswith(f"{bench.database}.named refuses: ")
    assert (error.context["position"], error.context["row"]) == (str(place(107)), 0)
    assert "widen the target's column" in error.hint
    assert bench.recorded() == 0
    assert bench.server.query("SELECT id FROM named", bench.database) == ()
