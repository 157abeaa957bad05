"""What a run has to apply when it starts. Bronze is replaced."""

from types import SimpleNamespace

import pytest

from dmdelta.bronze.progress import LandedRange
from dmdelta.engine.run import source_start
from dmdelta.errors import QualityError
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position

SOURCE = SimpleNamespace(source_id="s1")


def at(offset, epoch=1):
    return Position(epoch, "binlog.000001", offset)


def unapplied(monkeypatch, applied, expired):
    """The begins of the ranges between `applied` and 500, of two batches, after expiry up to `expired`."""
    batches = [LandedRange(n, begin, end, parse_gtid_set("", "mysql")) for n, begin, end in BATCHES]
    monkeypatch.setattr(
        source_start, "ranges_after", lambda *_: [one for one in batches if applied is None or one.end > applied]
    )
    monkeypatch.setattr(source_start, "expired_to", lambda *_: expired)
    stored = SimpleNamespace(global_point=SimpleNamespace(position=applied)) if applied is not None else None
    return [one.begin for one in source_start._unapplied(None, SOURCE, batches[-1], stored)]


BATCHES = [(1, at(4), at(300)), (2, at(300), at(500))]


@pytest.mark.parametrize("expired", [None, at(250)])
def test_ranges_after_what_has_expired_are_applied(monkeypatch, expired):
    """From the batch of the checkpoint on."""
    assert unapplied(monkeypatch, at(300), expired) == [at(300)]
    assert unapplied(monkeypatch, at(260), expired) == [at(4), at(300)]
    assert unapplied(monkeypatch, at(500), expired) == []


@pytest.mark.parametrize("applied", [None, at(100), at(250)])
def test_ranges_whose_rows_have_expired_stop_the_run(monkeypatch, applied):
    """A source that was not in the spec while they expired: the rest of their rows is not applied alone."""
    with pytest.raises(QualityError, match=r"s1 is applied up to .* have expired from bronze") as caught:
        unapplied(monkeypatch, applied, at(250))
    assert "--remove-meta" in caught.value.hint


def test_a_source_that_had_applied_everything_continues(monkeypatch):
    """However much has expired."""
    assert unapplied(monkeypatch, at(500), at(499)) == []
