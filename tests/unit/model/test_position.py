"""Positions are totally ordered, and round-trip through text and dictionaries."""

from hypothesis import given
from hypothesis import strategies as st

from dmdelta.model.position import FILE_SHIFT, Position, file_number, seq_of

NAMES = st.sampled_from(["binlog", "mysql-bin", "a.b", "log.000007", "snapshot", "ü /:x"])
FILES = st.builds(lambda name, number: f"{name}.{number:06d}", NAMES, st.integers(0, 2_000_000))
OFFSETS = st.integers(0, (1 << FILE_SHIFT) - 1)
POSITIONS = st.builds(Position, st.integers(-5, 1 << 31), FILES, OFFSETS)
OF_ONE_LOG = st.builds(
    Position, st.integers(1, 3), st.sampled_from(["binlog.000009", "binlog.000010", "binlog.1000000"]), OFFSETS
)


@given(POSITIONS)
def test_a_position_round_trips_through_text_and_dict(position: Position) -> None:
    """For any file name."""
    assert Position.parse(str(position)) == position
    assert Position.from_dict(position.to_dict()) == position


@given(OF_ONE_LOG, OF_ONE_LOG, OF_ONE_LOG)
def test_positions_are_totally_ordered(one: Position, two: Position, three: Position) -> None:
    """By epoch, file number (not file name) and offset: exactly one of <, =, > holds, and < is transitive."""
    plain = [(at.epoch, file_number(at.binlog_file), at.offset) for at in (one, two)]
    assert (one < two, one == two, one > two) == (plain[0] < plain[1], plain[0] == plain[1], plain[0] > plain[1])
    first, second, third = sorted((one, two, three))
    assert first <= second <= third
    assert first <= third
    assert (one <= two) == (not one > two)


@given(FILES, OFFSETS)
def test_a_seq_preserves_file_and_offset(file: str, offset: int) -> None:
    """The number that orders bronze preserves file and offset, as long as a file is smaller than a terabyte."""
    assert divmod(seq_of(file, offset), 1 << FILE_SHIFT) == (file_number(file), offset)


@given(st.integers(0, 10**7), st.integers(-3, 3))
def test_chunks_of_a_snapshot_are_in_order(number: int, epoch: int) -> None:
    """A chunk's position returns its number; a log event's position does not, even if a server uses the same file name."""
    chunk = Position.of_chunk(epoch, number)
    assert chunk.chunk == number
    assert chunk < Position.of_chunk(epoch, number + 1)
    assert Position(epoch, chunk.binlog_file, 4).chunk is None
