"""Further slice ends: at operator overrides, and where a full load has read a table at one exact position."""

from dmdelta.model.position import FAR, Position
from dmdelta.sink.read.slices import Rows, Slice, Statement, cut, epochs

T, U = ("d", "t"), ("d", "u")


def at(offset, epoch=2):
    return Position(epoch, "binlog.000001", offset)


def rows(*names):
    return tuple(Rows(name, 7, frozenset(("insert",))) for name in names)


def ends(slices):
    return [(one.end.offset, [each.name for each in one.rows], one.then.text if one.then else None) for one in slices]


def test_an_operator_override():
    """A slice ends at an override of row changes; a statement already ends a slice and is executed once."""
    altered = Statement(at(50), "d", (T,), "ALTER")
    slices = [Slice(at(4), at(50), True, rows(T), altered), Slice(at(50), at(100), True, rows(T))]
    assert ends(cut(slices, [at(50), at(70), at(300)], {})) == [(50, [T], "ALTER"), (70, [T], ""), (100, [T], None)]


def test_what_a_full_load_has_read():
    """Changes of a table before the position at which it was read are skipped, those of others are not."""
    assert ends(cut([Slice(at(4), at(100), True, rows(T, U))], [], {T: at(50), U: at(4)})) == [
        (50, [U], None),
        (100, [T, U], None),
    ]
    read = Slice(Position.of_chunk(1, 1), Position.of_chunk(1, 9), True, rows(T))
    assert cut([read], [], {T: at(50)}) == [read]


def test_statements_before_the_position_of_a_read():
    """The rows that were read include their effect; a statement that is also on other tables is executed."""
    emptied, both = Statement(at(20), "d", (T,), "TRUNCATE"), Statement(at(30), "d", (T, U), "DROP")
    slices = [Slice(at(4), at(20), True, (), emptied), Slice(at(20), at(30), True, (), both)]
    assert [then for _, _, then in ends(cut(slices, [], {T: at(40)}))] == [None, "DROP"]


def test_parts_of_one_epoch():
    """A range over several epochs is read epoch by epoch."""
    assert list(epochs(at(4, 1), at(9, 2))) == [
        (at(4, 1), Position(1, FAR, 0)),
        (Position(2, "binlog.000000", 0), at(9, 2)),
    ]
