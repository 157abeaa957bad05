"""How often and how patiently a failure that passes is repeated."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential back-off with jitter.

    Attributes:
        attempts: how often at most, the first time included.
        first: seconds before the second attempt.
        longest: seconds at most between two.
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 30.0

    def delay(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row (1, 2, …)."""
        return random.uniform(0.5, 1.0) * min(self.longest, self.first * 2.0 ** (failures - 1))
