"""Any split of a log into segments: wherever it is cut, the result is the same changes, GTIDs and statements."""

import io
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmdelta.binlog.events.boundary import scan_gtids
from dmdelta.binlog.events.header import HEADER
from dmdelta.binlog.rows.ddl_scan import scan_statements
from dmdelta.errors import CorruptBinlog
from dmdelta.model.position import Position
from dmdelta.model.segment import FIRST_OFFSET, Segment
from dmdelta.segments import list_segments, open_segment
from dmdelta.source.relay.event_stream import Piece
from dmdelta.source.relay.segmenter import Cutter
from tests.support.changes import decode_bytes, rows_of
from tests.support.golden import GOLDEN, boundaries, cut_at, recording
from tests.support.gtids import spelled
from tests.support.sabotage import Guard, switch_off

FILES = sorted(GOLDEN.glob("*/binlog.0*"))
EPOCH = "archive.000001"


def read(data: bytes, segment: Segment, server: str) -> list[list[object]]:
    """Everything that is read from a segment: changes with their positions, GTIDs, statements."""
    options = recording(server).options()
    return [
        rows_of(decode_bytes(data, segment, options)),
        spelled(scan_gtids(io.BytesIO(data), segment)),
        scan_statements(io.BytesIO(data), segment),
    ]


@cache
def whole(place: Path) -> tuple[bytes, Segment, list[list[object]]]:
    """A recorded file as one segment, and everything that is read from it."""
    data = place.read_bytes()
    segment = Segment(str(place), "golden", 1, place.name, FIRST_OFFSET, len(data))
    return data, segment, read(data, segment, place.parent.name)


def joined(parts: list[list[list[object]]]) -> list[list[object]]:
    """The concatenated results of several segments."""
    return [[one for part in found for one in part] for found in zip(*parts, strict=True)]


@settings(max_examples=25)
@given(place=st.sampled_from(FILES), draw=st.data())
def test_any_boundaries(place: Path, draw: st.DataObject) -> None:
    """Cut between any transactions; position by position the same as the whole file."""
    data, segment, expected = whole(place)
    *ends, last = boundaries(data, segment)
    chosen = sorted(draw.draw(st.sets(st.sampled_from(ends)) if ends else st.just(set())))
    pieces = cut_at(data, segment, [*chosen, last])
    assert joined([read(content, piece, place.parent.name) for piece, content in pieces]) == expected


@settings(max_examples=25)
@given(place=st.sampled_from(FILES), draw=st.data())
def test_any_remainder_of_a_segment(place: Path, draw: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The part after any transaction within a segment, wherever that was cut: the segments [b, c), [a, c) and [4, c)."""
    data, segment, _ = whole(place)
    places = [FIRST_OFFSET, *boundaries(data, segment)]
    first, middle = sorted(draw.draw(st.lists(st.sampled_from(places[:-1]), min_size=2, max_size=2)))
    expected = list(cut_at(data, segment, [*{middle} - {FIRST_OFFSET}, len(data)]))[-1]
    (piece, content) = list(cut_at(data, segment, [*{first} - {FIRST_OFFSET}, len(data)]))[-1]
    file = tmp_path_factory.mktemp("segment") / "piece.binlog"
    file.write_bytes(content)
    rest = replace(piece, path=str(file)).behind(Position(1, place.name, middle))
    with open_segment(rest) as stream:
        found = stream.read()
    assert read(found, rest, place.parent.name) == read(expected[1], expected[0], place.parent.name)


@settings(max_examples=15)
@given(place=st.sampled_from(FILES), draw=st.data())
def test_any_cuts_of_the_relay(place: Path, draw: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whenever the relay's own cutter cuts."""
    assert_any_cuts(place, draw.draw(st.sets(st.integers(0, 80))), tmp_path_factory.mktemp("relay"))


def assert_any_cuts(place: Path, due: Collection[int], folder: Path) -> None:
    """
    Args:
        due: of every 80 events, those after which a segment is due.

    Raises:
        AssertionError: the cutter's segments have something else than the whole file.
    """
    data, _, expected = whole(place)
    cutter, at = Cutter(folder / EPOCH, place.name, FIRST_OFFSET, b""), FIRST_OFFSET
    number = 0
    while at < len(data):
        header = HEADER.unpack_from(data, at)
        cutter._since = float("-inf" if number % 80 in due else "inf")
        cutter.take(Piece(header, memoryview(data)[at : at + header[3]], True, True))
        at, number = at + header[3], number + 1
    cutter.close()
    segments = list(list_segments(folder, "golden"))
    assert [one.end for one in segments[:-1]] == [one.start for one in segments[1:]]
    parts = [read(Path(one.path).read_bytes(), one, place.parent.name) for one in segments]
    assert joined(parts) == expected


def test_cuts_within_a_transaction_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: each event ends a transaction."""
    place = FILES[0]
    assert_any_cuts(place, range(80), tmp_path / "whole")
    switch_off([Guard.BOUNDARY], monkeypatch.setattr)
    with pytest.raises(CorruptBinlog, match="inside a transaction"):
        assert_any_cuts(place, range(80), tmp_path / "cut")
