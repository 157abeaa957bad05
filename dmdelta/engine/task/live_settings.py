"""Settings that a running task can apply from its edited spec."""

import json
from dataclasses import dataclass
from datetime import timedelta

from dmdelta.config import TaskSpec


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of `dmdelta update`: a new one is a new field, and an entry in `of`, `to_json` and `changed_by`.

    Attributes:
        flush_interval: `syncer.checkpoint-flush-interval`.
    """

    flush_interval: timedelta

    @classmethod
    def of(cls, spec: TaskSpec) -> "RunSettings":
        """The settings of a spec."""
        return cls(spec.syncer.checkpoint_flush_interval)

    def to_json(self) -> str:
        """By the spec's keys; durations in seconds."""
        return json.dumps({"checkpoint-flush-interval": self.flush_interval.total_seconds()})

    def changed_by(self, text: str) -> "RunSettings":
        """These settings, replaced by those in `text`, a `to_json` of any version; the others are unchanged."""
        named = json.loads(text)
        seconds = named.get("checkpoint-flush-interval", self.flush_interval.total_seconds())
        return RunSettings(timedelta(seconds=seconds))


@dataclass(slots=True)
class LiveSettings:
    """The live settings of a run: an update replaces them, the stages read them."""

    settings: RunSettings
