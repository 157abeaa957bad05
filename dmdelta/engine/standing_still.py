"""Having a task stand still while another process writes to its silver tables: nobody runs it, or it is paused."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dmdelta.config import TaskSpec
from dmdelta.engine.asking import ask_task
from dmdelta.engine.control_table import Request
from dmdelta.engine.relaying import relay_task
from dmdelta.errors import Fenced
from dmdelta.logging import get_logger
from dmdelta.source.folder import locked

log = get_logger(__name__)


@contextmanager
def standing_still(spec: TaskSpec) -> Iterator[None]:
    """Nobody applies anything inside the block: the relay folders are held, which a run needs.

    A run that is under way is asked to pause, and to go on at the end.

    Raises:
        StageFailed: a run does not pause. Fenced: somebody else holds a folder.
    """
    folders = [relay_task(spec, source, until_caught_up=True).folder for source in spec.sources]
    with ExitStack() as held:
        try:
            _hold(held, folders)
        except Fenced:
            held.close()
            log.info("the task runs: it is asked to pause", task=spec.name)
            ask_task(spec, Request.PAUSE)
            held.callback(ask_task, spec, Request.RESUME)
            _hold(held, folders)
        yield


def _hold(held: ExitStack, folders: list[Path]) -> None:
    for folder in folders:
        held.enter_context(locked(folder))
