"""Splitting a range: at transactions and statements, in bounded memory."""

from dmdelta.model.position import FAR, Position
from dmdelta.sink.read.slices import Cut, Rows, Slice, Statement, Survey, plan_slices, plan_windows

T, U = ("d", "t"), ("d", "u")


def at(offset):
    return Position(1, "binlog.000001", offset)


def rows(name, first, last, *ops):
    return Rows(name, 7, frozenset(ops or ("insert",)), first=at(first).seq, last=at(last).seq)


def test_nothing_to_split():
    """A small range is one slice."""
    survey = Survey(at(4), at(100), [rows(T, 10, 90)], [], [])
    assert plan_slices(survey) == [Slice(at(4), at(100), True, (rows(T, 10, 90),))]


def test_cuts_and_the_tables_between_them():
    """A slice ends where a transaction starts, or inside a long one; it lists only its own tables."""
    survey = Survey(at(4), at(300), [rows(T, 10, 90), rows(U, 120, 290)], [Cut(at(100), True), Cut(at(200), False)], [])
    assert [(s.begin.offset, s.end.offset, s.boundary, [r.name for r in s.rows]) for s in plan_slices(survey)] == [
        (4, 100, True, [T]),
        (100, 200, False, [U]),
        (200, 300, True, [U]),
    ]


def test_statements_end_slices():
    """A statement follows the slice before it, where a transaction ends; one at the start follows an empty slice."""
    first, second = (Statement(at(offset), "d", (T,), "ALTER") for offset in (4, 50))
    survey = Survey(at(4), at(100), [rows(T, 10, 40)], [], [first, second])
    assert [(s.begin.offset, s.end.offset, s.boundary, s.then, len(s.rows)) for s in plan_slices(survey)] == [
        (4, 4, True, first, 0),
        (4, 50, True, second, 1),
        (50, 100, True, None, 0),
    ]


def test_rows_of_one_structure_are_joined():
    """Parts of a slice are merged: operations are joined, counts are added, bounds are widened."""
    survey = Survey(at(4), at(100), [rows(T, 10, 20, "insert"), rows(T, 30, 40, "delete")], [], [])
    (joined,) = plan_slices(survey)[0].rows
    assert joined == rows(T, 10, 40, "insert", "delete")


def test_empty_range():
    """An empty range is one empty slice: its end still counts."""
    assert plan_slices(Survey(at(4), at(100), [], [], [])) == [Slice(at(4), at(100), True, ())]


def test_a_long_range_is_surveyed_in_windows():
    """A window has about as many rows as are allowed, at least one part, and the windows cover the range."""
    counts = {at(4).seq: 3, at(100).seq: 2, at(200).seq: 9, at(300).seq: 1}
    windows = plan_windows(at(4), at(400), counts, 5)
    assert [(begin.offset, end.offset) for begin, end in windows] == [(4, 200), (200, 300), (300, 400)]
    assert plan_windows(at(4), at(400), {}, 5) == [(at(4), at(400))]


def test_the_windows_of_a_snapshot_begin_with_its_chunks():
    """The survey of a chunk's begin also has the tables without rows."""
    first, third = Position.of_chunk(-2, 1), Position.of_chunk(-2, 3)
    counts = {Position.of_chunk(-2, number).seq: 4 for number in (1, 2, 3)}
    (_, end), (begin, last) = plan_windows(first, Position(-2, FAR, 0), counts, 8)
    assert (end, begin, begin.chunk, last.binlog_file) == (third, third, 3, FAR)
