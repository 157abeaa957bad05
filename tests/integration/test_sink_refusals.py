"""Permanent refusals of the target: the error names row, position and the next step. Without Spark."""

import time

import pytest

from dmdelta.errors import SinkError
from dmdelta.sink.change import Act, Change, Shape
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.transaction import ChangeWork
from dmdelta.sink.execute.worker import Batch
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


def inserted(bench, *rows):
    """Changes that insert rows, as Spark computes them."""
    shape = Shape(f"{bench.database}.narrow", "(id,v,n)", "v=VALUES(v), n=VALUES(n)", "id")
    return [
        (shape, Change(Act.INSERT, str(key), None, f"({key},{rest})", None, (f"{key}.n",), ((100 + key, 0),)))
        for key, rest in rows
    ]


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
    bench.worker.queue.put(Batch(1, 1, work, Style(), 100, 300, place))
    end = time.monotonic() + 30
    while not bench.failures:
        assert time.monotonic() < end, "the worker does not say so"
        time.sleep(0.02)
    (error,) = bench.failures
    assert isinstance(error, SinkError)
    assert error.message.startswith(f"{bench.database}.narrow refuses: ")
    assert (error.context["position"], error.context["row"]) == (str(place(100 + refused)), 0)
    assert [value for value in ("'b'", "'four'", "300") if value in str(error)] == []
    assert hint in (error.hint or "")
    assert bench.recorded() == 0
    if "DROP TABLE narrow" not in ahead:
        assert bench.server.query("SELECT id FROM narrow WHERE id > 1", bench.database) == ()
