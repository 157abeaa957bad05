"""Settings that a running task can take over from its edited spec."""

import json
from dataclasses import dataclass
from datetime import timedelta

from dmdelta.config import TaskSpec


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """What `dmdelta update` asks for: one more such setting is one more field, in `of`, `to_json` and `from_json` too.

    Attributes:
        flush_interval: `syncer.checkpoint-flush-interval`.
    """

    flush_interval: timedelta

    @classmethod
    def of(cls, spec: TaskSpec) -> "LiveSettings":
        """Those of a spec."""
        return cls(spec.syncer.checkpoint_flush_interval)

    def to_json(self) -> str:
        """By the spec's keys; spans in seconds."""
        return json.dumps({"checkpoint-flush-interval": self.flush_interval.total_seconds()})

    def changed_by(self, text: str) -> "LiveSettings":
        """These settings with those that `text`, a `to_json` of any version, names: others stay as they are."""
        named = json.loads(text)
        seconds = named.get("checkpoint-flush-interval", self.flush_interval.total_seconds())
        return LiveSettings(timedelta(seconds=seconds))


@dataclass(slots=True)
class InForce:
    """The live settings of a run: whoever is asked puts new ones in their place, the stages look."""

    settings: LiveSettings
