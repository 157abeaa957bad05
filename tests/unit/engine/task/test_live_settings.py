"""Settings that a running task applies, as text between versions."""

from dataclasses import fields, replace
from datetime import timedelta

from dmdelta.engine.task.live_settings import RunSettings

HERE = RunSettings(flush_interval=timedelta(seconds=30))


def test_settings_round_trip() -> None:
    """Regardless of the current ones, to the millisecond."""
    wanted = RunSettings(flush_interval=timedelta(milliseconds=1500))
    assert HERE.changed_by(wanted.to_json()) == wanted
    assert all(getattr(wanted, field.name) != getattr(HERE, field.name) for field in fields(wanted))


def test_missing_settings_are_unchanged() -> None:
    """A text of another version may contain fewer or more settings."""
    assert HERE.changed_by("{}") == HERE
    assert HERE.changed_by('{"worker-count": 3, "checkpoint-flush-interval": 5}') == replace(
        HERE, flush_interval=timedelta(seconds=5)
    )
