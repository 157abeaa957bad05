"""The statements that the shards of all sources execute."""

import random
from dataclasses import dataclass, field


@dataclass
class ShardChanges:
    """The statements that all shards execute, by phase: the same for every source."""

    seed: int
    added: list[str] = field(default_factory=list)

    def of(self, phase: int) -> list[str]:
        """Called for each phase in order: an ALTER TABLE in two phases of five."""
        rng = random.Random(f"{self.seed}/shards/{phase}")
        if rng.random() > 0.4:
            return []
        if self.added and rng.random() < 0.3:
            return [f"ALTER TABLE t DROP {self.added.pop(rng.randrange(len(self.added)))}"]
        if rng.random() < 0.2:
            return [f"ALTER TABLE t MODIFY w VARCHAR({40 + phase})"]
        self.added.append(f"c{phase}")
        return [f"ALTER TABLE t ADD c{phase} INT DEFAULT {phase}"]
