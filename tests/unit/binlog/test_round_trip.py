"""The codec decodes what the tests' own writer encodes, for every type, NULL pattern and image."""

import struct
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dmdelta.binlog.events.header import EventType
from dmdelta.model.change import Op
from tests.support.changes import Log, rows_body, rows_of
from tests.support.row_writer import FAMILIES, Family, Value, bitmap, described, image

Row = list[Value | None]
KINDS = {Op.INSERT: EventType.WRITE_ROWS, Op.UPDATE: EventType.UPDATE_ROWS, Op.DELETE: EventType.DELETE_ROWS}


def shown(columns: list[Family], row: Row, present: list[bool]) -> dict[str, Any]:
    """A row in VARIANT's form, by column name, with the columns in its image."""
    return {
        f"c{number}": None if value is None else value[1]
        for number, (column, value) in enumerate(zip(columns, row, strict=True))
        if present[number] and not (value is None and column.is_json)
    }


def same(found: Any, wanted: Any) -> bool:
    """Equal, and of the same type, except that numbers may be wider."""
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict) and found.keys() == wanted.keys() and all(same(found[k], wanted[k]) for k in wanted)
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, float):
        return struct.pack("<d", found) == struct.pack("<d", wanted)
    if isinstance(wanted, (int, Decimal)) and not isinstance(wanted, bool):
        return isinstance(found, (int, Decimal)) and not isinstance(found, bool) and found == wanted
    return type(found) is type(wanted) and bool(found == wanted)


def written(row: Row, present: list[bool]) -> bytes:
    """The image of a row's columns that are present."""
    return image([value for value, there in zip(row, present, strict=True) if there])


@settings(max_examples=150)
@given(draw=st.data())
def test_written_rows_are_read_back(draw: st.DataObject) -> None:
    """Any columns (more than eight: bitmaps of several bytes), any rows, full and partial images."""
    columns = draw.draw(st.lists(st.sampled_from(FAMILIES), min_size=1, max_size=20))
    values = st.tuples(*(st.none() | column.values for column in columns)).map(list)
    some = st.lists(st.booleans(), min_size=len(columns), max_size=len(columns)).filter(any)
    first, second = (draw.draw(st.just([True] * len(columns)) | some) for _ in range(2))
    op = draw.draw(st.sampled_from(list(KINDS)))
    rows = draw.draw(st.lists(st.tuples(values, values), min_size=1, max_size=4))
    update = op is Op.UPDATE
    images = b"".join(written(one, first) + (written(two, second) if update else b"") for one, two in rows)
    present = bitmap(first) + (bitmap(second) if update else b"")
    names = [f"c{number}" for number in range(len(columns))]
    wire = [(column.code, column.metadata) for column in columns]
    event = (KINDS[op], rows_body(images, len(columns), present=present))
    found = rows_of(Log().transaction(wire, described(columns, names), event).changes())
    assert [change.op for change in found] == [op] * len(rows)
    for change, (one, two) in zip(found, rows, strict=True):
        before = shown(columns, one, first)
        if op is not Op.INSERT:
            assert same(change.before, before)
        if update:
            kept = {name: value for name, value in before.items() if not second[int(name[1:])]}
            assert same(change.after, kept | shown(columns, two, second))
        elif op is Op.INSERT:
            assert same(change.after, before)


def test_every_type_family_round_trips() -> None:
    """Each column type separately, so that none is missed by chance."""
    for number, column in enumerate(FAMILIES):
        check_family(number, column)


def check_family(number: int, column: Family) -> None:
    @settings(max_examples=15, database=None)
    @given(st.lists(st.none() | column.values, min_size=1, max_size=5))
    def holds(values: Row) -> None:
        body = rows_body(b"".join(image([value]) for value in values), 1)
        log = Log().transaction([(column.code, column.metadata)], described([column], ["c0"]), (30, body))
        wanted = [shown([column], [value], [True]) for value in values]
        found = [change.after for change in rows_of(log.changes())]
        assert same(found, wanted), f"family {number}: {found} is not {wanted}"

    holds()
