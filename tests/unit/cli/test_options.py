"""Options shared by several commands."""

from datetime import datetime, timedelta, timezone

import pytest
import typer

from dmdelta.cli.options import moment


def test_a_time_without_a_zone_is_utc():
    """A given zone is used."""
    assert moment("2026-11-21T10:00:00") == datetime(2026, 11, 21, 10, tzinfo=timezone.utc)
    assert moment("2026-11-21T10:00:00+01:00") == datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
    assert moment("2026-11-21T10:00:00Z") == moment("2026-11-21T10:00:00")
    assert moment("2026-11-21 10:00:00.5").utcoffset() == timedelta(0)


def test_an_invalid_time_is_rejected():
    """The error shows the expected format."""
    with pytest.raises(typer.BadParameter, match="2026-11-21T10:00:00"):
        moment("yesterday")
