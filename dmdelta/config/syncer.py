"""Section `syncer`: how changes are applied."""

from datetime import timedelta

from pydantic import model_validator

from dmdelta.config.section import Duration, Section


class SyncerConfig(Section):
    """Intervals and modes of applying changes: freshness, checkpoints and safe mode."""

    checkpoint_flush_interval: Duration = timedelta(seconds=30)
    """How often the checkpoint is written if anything changed. `dmdelta update` changes it in a running task."""

    target_freshness: Duration = timedelta(seconds=10)
    """Target age of a change when it reaches silver. Batches of changes land an eighth of it apart, or further if
    landing would take more than a quarter of the time, because every batch costs commits and small files; a backlog is
    processed without waiting. `0s`: land whatever is available at once."""

    safe_mode: bool = False
    """Apply every change as if it may have been applied before: slower, and replaces rows silently."""

    safe_mode_duration: Duration | None = None
    """How long safe mode lasts after a start that cannot determine where the last run ended. The default is two flush
    intervals as set in the spec when a run starts: an update of a running task does not change it."""

    @property
    def safe_window(self) -> timedelta:
        """`safe-mode-duration`, or its default."""
        return 2 * self.checkpoint_flush_interval if self.safe_mode_duration is None else self.safe_mode_duration

    @model_validator(mode="after")
    def _interval_is_positive(self) -> "SyncerConfig":
        if self.checkpoint_flush_interval <= timedelta(0):
            raise ValueError("checkpoint-flush-interval must be longer than 0s")
        return self
