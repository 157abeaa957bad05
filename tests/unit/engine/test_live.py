"""Settings that a running task takes over, as text between versions."""

from dataclasses import fields, replace
from datetime import timedelta

from dmdelta.engine.live import LiveSettings

HERE = LiveSettings(flush_interval=timedelta(seconds=30))


def test_settings_come_back_as_they_were() -> None:
    """Whatever the present ones are, to the millisecond."""
    wanted = LiveSettings(flush_interval=timedelta(milliseconds=1500))
    assert HERE.changed_by(wanted.to_json()) == wanted
    assert all(getattr(wanted, field.name) != getattr(HERE, field.name) for field in fields(wanted))


def test_what_is_not_named_stays() -> None:
    """A text of another version may name less or more."""
    assert HERE.changed_by("{}") == HERE
    assert HERE.changed_by('{"worker-count": 3, "checkpoint-flush-interval": 5}') == replace(
        HERE, flush_interval=timedelta(seconds=5)
    )
