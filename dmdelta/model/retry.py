"""How often and with which delays a transient failure is retried."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential back-off with jitter.

    Attributes:
        attempts: maximum number of attempts, including the first.
        first: seconds before the second attempt.
        longest: maximum seconds between two attempts.
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 30.0

    def delay(self, failures: int) -> float:
        """Seconds to wait after this many consecutive failures (1, 2, …)."""
        return random.uniform(0.5, 1.0) * min(self.longest, self.first * 2.0 ** (failures - 1))
