"""GTID sets in binary form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.errors import CorruptBinlog
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.source.relay.gtid_wire import decode_gtid_set, encode_gtid_set

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
names = st.sampled_from([A, f"{A}:tag", f"{A}:a_b_c", "4e11fa47-71ca-11e1-9e33-c80aa9429562"])
texts = st.dictionaries(names, st.lists(st.integers(1, 2**62), min_size=1, max_size=5)).map(
    lambda found: ",".join(f"{name}:{':'.join(map(str, numbers))}" for name, numbers in found.items())
)


@given(texts)
def test_a_set_round_trips_through_its_binary_form(text: str) -> None:
    """With and without tags."""
    gtids = parse_gtid_set(text, "mysql")
    assert decode_gtid_set(encode_gtid_set(gtids)) == gtids


def test_a_set_without_tags_is_written_as_old_servers_read_it() -> None:
    """Count, uuid, count of intervals, intervals with an exclusive end: all 8 bytes, little endian."""
    data = encode_gtid_set(parse_gtid_set(f"{A}:1-3", "mysql"))
    assert (
        data.hex()
        == "0100000000000000" + A.replace("-", "") + "0100000000000000" + "0100000000000000" + "04" + "0" * 14
    )


def test_a_truncated_set_is_corrupt() -> None:
    """Every prefix is refused."""
    data = encode_gtid_set(parse_gtid_set(f"{A}:tag:1-3:9", "mysql"))
    for size in range(len(data)):
        with pytest.raises(CorruptBinlog):
            decode_gtid_set(data[:size])
