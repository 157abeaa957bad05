"""Transactions that are left out of a segment by their GTIDs."""

import pytest

from dmdelta.binlog.rows.decode import decode_segment
from tests.support.changes import changes_of, rows_of
from tests.support.golden import SERVERS, recording
from tests.support.gtids import half_of


def decoded(recorded, **settings):
    changes = []
    for segment in recorded.segments():
        with open(segment.path, "rb") as stream:
            for batch in decode_segment(stream, segment, recorded.options(**settings)):
                changes += changes_of(batch)
    return rows_of(changes)


@pytest.mark.parametrize("server", SERVERS)
def test_the_other_transactions_are_decoded_as_before(server):
    """Neither rows nor statements of the left-out transactions remain, compressed and XA transactions included."""
    recorded = recording(server)
    everything = decoded(recorded)
    skipped = half_of(change.gtid for change in everything)
    left = [change for change in everything if change.gtid is None or change.gtid not in skipped]
    assert decoded(recorded, skipped=lambda _segment: skipped) == left
    assert 0 < len(left) < len(everything)
