"""Exclusive access to a task's silver tables for another process: the task is not running, or it is paused."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dmdelta.config import TaskSpec
from dmdelta.engine.control.client import change_state
from dmdelta.engine.control.state import Request
from dmdelta.engine.task.mapping import relay_task
from dmdelta.errors import Fenced
from dmdelta.logging import get_logger
from dmdelta.source.relay.relay_dir import locked

log = get_logger(__name__)


@contextmanager
def exclusive_access(spec: TaskSpec) -> Iterator[None]:
    """Exclude all runs of the task during the block, by holding its relay folders.

    A running task is paused, and resumed at the end.

    Raises:
        StageFailed: a run does not pause. Fenced: another process holds a folder.
    """
    folders = [relay_task(spec, source, until_caught_up=True).folder for source in spec.sources]
    with ExitStack() as held:
        try:
            _hold(held, folders)
        except Fenced:
            held.close()
            log.info("task is running; requesting a pause", task=spec.name)
            change_state(spec, Request.PAUSE)
            held.callback(change_state, spec, Request.RESUME)
            _hold(held, folders)
        yield


def _hold(held: ExitStack, folders: list[Path]) -> None:
    for folder in folders:
        held.enter_context(locked(folder))
