"""Rows in columnar form: the same result as the compactor and the merger."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from dmdelta.changelog.variant_arrays import TEXT
from dmdelta.sink.change import ACTS, Act, Shape
from dmdelta.sink.execute.columnar_compactor import net_rows
from dmdelta.sink.execute.compactor import compact
from dmdelta.sink.execute.merger import Style, merged
from dmdelta.sink.execute.transaction import RowWork
from dmdelta.sink.execution_log import decode
from dmdelta.sink.read.change_reader import changes_of
from dmdelta.sink.read.columns import Columns

T = Shape("t", "(a,b)", "a=VALUES(a), b=VALUES(b)", "a")


def columns_of(changes, *, unique=None):
    """Changes (act, key, value) of a table; `unique` gives each row's unique value before and after."""
    acts, keys, values = zip(*changes, strict=True)
    count = len(changes)

    def text(found):
        return pa.array(found, TEXT)

    new, old = [text([f"{key}.a.t" for key in keys])], []
    if unique:
        new.append(text([None if after is None else f"{after}.u.t" for _, after in unique]))
        old = [pa.nulls(count, TEXT), text([None if was is None else f"{was}.u.t" for was, _ in unique])]
    return Columns(
        acts=np.array([ACTS.index(act) for act in acts], np.int8),
        seq=np.arange(count, dtype=np.int64) + 100,
        own=np.arange(count, dtype=np.int64) + 100,
        row=np.zeros(count, np.int64),
        identity=text([str(key) for key in keys]),
        was=pa.nulls(count, TEXT),
        values=text(
            [
                None if act is Act.DELETE else f"({key},'{value}')"
                for act, key, value in zip(acts, keys, values, strict=True)
            ]
        ),
        sets=None,
        new=tuple(new),
        old=tuple(old),
    )


def random_changes(seed, count=300):
    """A possible log of a table with a key."""
    rng, there, found = random.Random(seed), set(), []
    for at in range(count):
        key = rng.randrange(60)
        act = rng.choice((Act.UPDATE, Act.DELETE)) if key in there else Act.INSERT
        (there.discard if act is Act.DELETE else there.add)(key)
        found.append((act, key, f"é{at}"))
    return found


def work_of(rows, order):
    listed = rows.listed(order)
    _, ends, data = listed.buffers()
    return RowWork(T, rows, order, memoryview(data), np.frombuffer(ends, np.int64)[: len(order) + 1])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("safe", [False, True])
def test_columnar_rows_equal_single_changes(seed, safe):
    """The same statements and events, except for the order of independent rows."""
    columns = columns_of(random_changes(seed))
    rows = net_rows(columns)
    work = work_of(rows, np.lexsort((rows.last, rows.acts)))
    one_by_one = compact(change for _, change in changes_of(columns))
    assert one_by_one.groups == []
    assert {key: ACTS[act] for key, act in zip(identities(rows), rows.acts, strict=True)} == {
        change.identity: change.act for change in one_by_one.rows
    }
    expected = sorted(one_by_one.rows, key=lambda change: (ACTS.index(change.act), change.events[-1]))
    style = Style(safe=safe)
    assert list(work.statements(style)) == list(merged([(T, change) for change in expected], style))
    assert list(decode(work.record())) == sorted(event for change in expected for event in change.events)
    some = work_of(rows, np.arange(0, len(rows), 2))
    assert Counter(decode(some.record())) <= Counter(decode(work.record()))


def identities(rows):
    return rows.columns.identity.take(pa.array(rows.last)).to_pylist()


def test_insert_delete_insert_is_an_insert():
    """The row did not exist before: an UPDATE would change nothing."""
    changes = [(Act.INSERT, 1, "a"), (Act.DELETE, 1, ""), (Act.INSERT, 1, "b"), (Act.UPDATE, 1, "c")]
    rows = net_rows(columns_of(changes))
    assert list(work_of(rows, np.array([0])).statements(Style())) == ["INSERT INTO t (a,b) VALUES (1,'c')"]


def test_unique_value_of_two_rows_is_not_columnar():
    """If a value moves from one row to another, their changes must stay in order."""
    swap = [(Act.UPDATE, 1, "x"), (Act.UPDATE, 2, "y")]
    assert net_rows(columns_of(swap, unique=[("p", "q"), ("r", "p")])) is None
    apart = net_rows(columns_of(swap, unique=[("p", "q"), ("r", None)]))
    assert [sorted(keys) for keys in apart.keys] == [["1.a.t", "p.u.t", "q.u.t"], ["2.a.t", "r.u.t"]]


def test_single_statements_name_the_row():
    """A failing row is identified by its place in the log."""
    rows = net_rows(columns_of([(Act.INSERT, 7, "x"), (Act.DELETE, 8, "")]))
    work = work_of(rows, np.array([1, 0]))
    assert [(one.seq, one.row, one.statement) for one in work.singly(Style())] == [
        (101, 0, "DELETE FROM t WHERE a IN (8)"),
        (100, 0, "INSERT INTO t (a,b) VALUES (7,'x')"),
    ]


def test_long_statements_are_split():
    """Rows go into another statement when one gets long: servers limit the packet size."""
    columns = columns_of([(Act.INSERT, key, "x" * 400_000) for key in range(5)])
    rows = net_rows(columns)
    found = list(work_of(rows, np.arange(5)).statements(Style()))
    assert [statement.count("(") - 1 for statement in found] == [2, 2, 1]
