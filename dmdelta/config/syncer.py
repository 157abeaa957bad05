"""Section `syncer`: how changes are applied."""

from datetime import timedelta

from pydantic import model_validator

from dmdelta.config.section import Duration, Section


class SyncerConfig(Section):
    """How often changes are taken over, checkpoints and safe mode."""

    checkpoint_flush_interval: Duration = timedelta(seconds=30)
    """How often the checkpoint is written, if anything changed. `dmdelta update` changes it in a running task."""

    target_freshness: Duration = timedelta(seconds=10)
    """How old a change may be when it is in silver. Changes are gathered as long as that allows, by what landing and
    applying have lately taken, because every batch costs commits and small files; a backlog is not waited for. `0s`:
    whatever is there is landed at once."""

    safe_mode: bool = False
    """Apply everything as if it may have been applied before: slower, and replaces rows silently."""

    safe_mode_duration: Duration | None = None
    """How long safe mode lasts after a start that cannot know where the last run ended; by default two flush
    intervals, as the spec has them when a run begins: an update of a running task does not change it."""

    @property
    def safe_window(self) -> timedelta:
        """`safe-mode-duration`, or its default."""
        return 2 * self.checkpoint_flush_interval if self.safe_mode_duration is None else self.safe_mode_duration

    @model_validator(mode="after")
    def _interval_is_positive(self) -> "SyncerConfig":
        if self.checkpoint_flush_interval <= timedelta(0):
            raise ValueError("checkpoint-flush-interval must be longer than 0s")
        return self
