"""The kinds of faults of a phase, and the phases that test each guard."""

from dataclasses import dataclass
from enum import Enum

from tests.soak.sources import Load
from tests.support.sabotage import Guard


class Scene(Enum):
    QUIET = "quiet"
    """Nothing."""
    FAULTS = "faults"
    """One to three faults, one or two commands of operators, perhaps a server crash."""
    TAKEOVER = "takeover"
    """A second runner does the work while the first one's machine is suspended right before a commit."""
    FORGOTTEN = "forgotten"
    """The runner dies after a commit, and the history of the tables is removed before its restart."""


@dataclass(frozen=True)
class Sabotage:
    """A phase that passes with a guard, and not without it.

    Attributes:
        besides: the guards that are off in both cases, because one of two suffices.
        safe_mode: the task is always in safe mode.
    """

    scene: Scene
    only: Load
    besides: tuple[Guard, ...] = ()
    safe_mode: bool = False


SABOTAGE = {
    Guard.VERSION: Sabotage(Scene.TAKEOVER, Load.UPDATES, (Guard.COMMITS,), safe_mode=True),
    Guard.COMMITS: Sabotage(Scene.TAKEOVER, Load.INSERTS),
    Guard.EXIT_POINT: Sabotage(Scene.FORGOTTEN, Load.INSERTS, (Guard.COMMITS,)),
    Guard.BOUNDARY: Sabotage(Scene.QUIET, Load.BURSTS),
}
