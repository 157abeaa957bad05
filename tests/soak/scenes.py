"""The kinds of faults of a phase, which one has its turn, and the phases that test each guard."""

import random
from dataclasses import dataclass
from enum import Enum

from tests.soak.sources import Load
from tests.support.sabotage import Guard


class Scene(Enum):
    """The value is the name under which `Faults` counts what happened."""

    QUIET = "quiet"
    """Nothing."""
    FAULTS = "faults"
    """One to three faults, and operators' commands."""
    SERVER_KILLED = "server killed"
    """The same, and then a server crashes while its writer is idle."""
    TAKEOVER = "taken over by a second runner"
    """A second runner does the work while the first one's machine is suspended right before a commit."""
    FORGOTTEN = "killed, history forgotten"
    """The runner dies after a commit, and the history of the tables is removed before its restart."""


def special_scenes(*, sinks: bool) -> tuple[Scene, ...]:
    """The scenes of which a whole soak has each. A suspended sink locks rows of the target, also for a second runner."""
    return (Scene.SERVER_KILLED, Scene.FORGOTTEN, *(() if sinks else (Scene.TAKEOVER,)))


def plan_scene(seed: int, number: int, *, sinks: bool) -> Scene:
    """The scene of a phase: in every second one a special scene has its turn, in an order that the seed decides.

    The first phase loads the tables. Six phases have each special scene.
    """
    if number % 2:
        return Scene.FAULTS
    special = special_scenes(sinks=sinks)
    order = random.Random(f"{seed}/scenes").sample(special, len(special))
    return order[(number // 2 - 1) % len(order)]


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
