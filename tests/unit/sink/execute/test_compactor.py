"""The compactor: DM's algebra, and rows that exchange keys."""

import random

import pytest

from dmdelta.sink.change import Act, Change
from dmdelta.sink.execute.compactor import compact

INSERT, UPDATE, DELETE = Act.INSERT, Act.UPDATE, Act.DELETE


def change(act, key, at, *, was=None, unique=(), value=None):
    keys = (f"{key}.id", *unique, *((f"{was}.id",) if was is not None else ()))
    identity_was = None if was is None else str(was)
    values = None if act is DELETE else f"({key},{value if value is not None else at})"
    return Change(act, str(key), identity_was, values, None, keys, ((at, 0),))


@pytest.mark.parametrize(
    ("first", "second", "net"),
    [
        (INSERT, UPDATE, INSERT),
        (INSERT, DELETE, DELETE),
        (UPDATE, UPDATE, UPDATE),
        (UPDATE, DELETE, DELETE),
        (DELETE, INSERT, UPDATE),
    ],
)
def test_algebra_of_dm(first, second, net):
    """Two changes of a row become one, with the last image and the events of both."""
    found = compact([change(first, 1, 10), change(second, 1, 20)])
    assert found.groups == []
    assert [(one.act, one.values, one.events) for one in found.rows] == [
        (net, None if net is DELETE else "(1,20)", ((10, 0), (20, 0)))
    ]


def test_insert_delete_insert_is_an_insert():
    """The row did not exist before: an UPDATE would change nothing."""
    found = compact([change(act, 1, at) for at, act in enumerate((INSERT, DELETE, INSERT, UPDATE))])
    assert [(one.act, one.values) for one in found.rows] == [(INSERT, "(1,3)")]


def test_deletes_come_first():
    """The remaining changes are sorted by act, so that adjacent ones can be merged."""
    found = compact([change(INSERT, 1, 1), change(UPDATE, 2, 2), change(DELETE, 3, 3), change(INSERT, 4, 4)])
    assert [one.act for one in found.rows] == [DELETE, UPDATE, INSERT, INSERT]


def test_key_change_is_not_compacted():
    """A primary key that moves forms a group of both rows, in log order; other rows are compacted."""
    moved = [change(UPDATE, 1, 1), change(UPDATE, 2, 2, was=1), change(UPDATE, 2, 3)]
    found = compact([moved[0], change(INSERT, 9, 1), moved[1], change(DELETE, 9, 2), moved[2]])
    assert found.groups == [moved]
    assert [(one.identity, one.act) for one in found.rows] == [("9", DELETE)]


def test_unique_value_that_moves():
    """Two rows that swap a unique value through a third are one group; a value that only one row has is not."""
    swap = [
        change(UPDATE, 1, 1, unique=("a.u", "x.u")),
        change(UPDATE, 2, 2, unique=("b.u", "a.u")),
        change(UPDATE, 1, 3, unique=("x.u", "b.u")),
    ]
    alone = [change(UPDATE, 3, 4, unique=("c.u", "d.u")), change(UPDATE, 3, 5, unique=("d.u", "e.u"))]
    found = compact([*swap, *alone])
    assert found.groups == [swap]
    assert [(one.identity, one.keys) for one in found.rows] == [("3", ("3.id", "c.u", "d.u", "e.u"))]


def test_rows_that_a_collation_treats_as_equal():
    """Two identities with one key (`a` and `A`) form a group, though nothing else changes."""
    rows = [
        Change(DELETE, "'a'", None, None, None, ("A.name",), ((1, 0),)),
        Change(INSERT, "'A'", None, "('A')", None, ("A.name",), ((2, 0),)),
    ]
    assert compact(rows).groups == [rows]


@pytest.mark.parametrize("seed", range(20))
def test_any_history_leads_to_the_same_rows(seed):
    """For any history of rows with a unique value, compacted and single changes have the same result."""
    source = random.Random(seed)
    rows: dict[int, str] = {}
    begin, log = {}, []
    for at in range(200):
        if at == 60:
            begin, log = dict(rows), []
        key, value = source.randrange(8), f"u{source.randrange(8)}"
        taken = value in rows.values()
        if key not in rows and not taken:
            log.append(change(INSERT, key, at, unique=(value,), value=value))
            rows[key] = value
        elif key in rows and source.random() < 0.4:
            log.append(change(DELETE, key, at, unique=(rows.pop(key),)))
        elif key in rows and not taken:
            log.append(change(UPDATE, key, at, unique=(value, rows[key]), value=value))
            rows[key] = value
    found = compact(log)
    order = [[one] for one in found.rows] + found.groups
    source.shuffle(order)
    for one in (one for group in order for one in group):
        if one.act is DELETE:
            begin.pop(int(one.identity), None)
        else:
            value = one.values.split(",")[1].rstrip(")")
            others = [held for key, held in begin.items() if key != int(one.identity)]
            assert value not in others, "a unique value is there twice"
            begin[int(one.identity)] = value
    assert begin == rows
    events = [event for group in order for one in group for event in one.events]
    assert sorted(events) == [one.events[0] for one in log]
