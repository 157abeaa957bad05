"""Cutting a range: at transactions, at statements, in bounded memory."""

from dmdelta.model.position import Position
from dmdelta.sink.slices import Cut, Rows, Slice, Statement, Survey, plan_slices

T, U = ("d", "t"), ("d", "u")


def at(offset):
    return Position(1, "binlog.000001", offset)


def rows(name, first, last, *ops):
    return Rows(name, 7, frozenset(ops or ("insert",)), first=at(first).seq, last=at(last).seq)


def test_nothing_to_cut():
    """A small range is one slice."""
    survey = Survey(at(4), at(100), [rows(T, 10, 90)], [], [])
    assert plan_slices(survey) == [Slice(at(4), at(100), True, (rows(T, 10, 90),))]


def test_cuts_and_what_is_between():
    """A slice ends where a transaction begins, or in the middle of one that is too long; it names its tables only."""
    survey = Survey(at(4), at(300), [rows(T, 10, 90), rows(U, 120, 290)], [Cut(at(100), True), Cut(at(200), False)], [])
    assert [(s.begin.offset, s.end.offset, s.boundary, [r.name for r in s.rows]) for s in plan_slices(survey)] == [
        (4, 100, True, [T]),
        (100, 200, False, [U]),
        (200, 300, True, [U]),
    ]


def test_statements_end_slices():
    """A statement stands alone behind what is before it; one at the very begin has nothing before it."""
    first, second = (Statement(at(offset), "d", (T,), "ALTER") for offset in (4, 50))
    survey = Survey(at(4), at(100), [rows(T, 10, 40)], [], [first, second])
    assert [(s.begin.offset, s.end.offset, s.then, len(s.rows)) for s in plan_slices(survey)] == [
        (4, 4, first, 0),
        (4, 50, second, 1),
        (50, 100, None, 0),
    ]


def test_rows_of_one_structure_are_joined():
    """Parts of a slice are one: kinds and bounds are added up."""
    survey = Survey(at(4), at(100), [rows(T, 10, 20, "insert"), rows(T, 30, 40, "delete")], [], [])
    (joined,) = plan_slices(survey)[0].rows
    assert joined == rows(T, 10, 40, "insert", "delete")


def test_empty_range():
    """A range without anything is one empty slice: its end still counts."""
    assert plan_slices(Survey(at(4), at(100), [], [], [])) == [Slice(at(4), at(100), True, ())]
