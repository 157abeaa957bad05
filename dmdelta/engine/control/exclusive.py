"""Exclusive access to a task's silver tables for another process: the task is not running, or it is paused."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from dmdelta.config import TaskSpec
from dmdelta.engine.control.cancellation import ending_on_signals
from dmdelta.engine.control.client import change_state, withdraw_pause
from dmdelta.engine.control.state import Request
from dmdelta.engine.task.mapping import relay_task
from dmdelta.errors import DmdeltaError, Fenced
from dmdelta.logging import get_logger
from dmdelta.source.relay.relay_dir import locked, locked_for_command, locked_for_run

log = get_logger(__name__)


@contextmanager
def exclusive_access(spec: TaskSpec) -> Iterator[None]:
    """Exclude all runs of the task, and all other commands that exclude them, during the block.

    A running task is paused, and resumed at the end, also if the pause or the block fails or is interrupted: by Ctrl-C,
    SIGTERM or SIGHUP (`ending_on_signals`).

    Raises:
        StageFailed: a run does not pause. HeldByCommand: another command is working; it keeps its access.
        Fenced: another process holds a relay folder.
    """
    folders = [relay_task(spec, source, until_caught_up=True).folder for source in spec.sources]
    with ending_on_signals(), ExitStack() as held:
        for folder in folders:
            held.enter_context(locked_for_command(folder))
        try:
            held.enter_context(_locked(folders))
        except Fenced:
            log.info("task is running; requesting a pause", task=spec.name)
            held.enter_context(_paused(spec))
            held.enter_context(_locked(folders))
        yield


@contextmanager
def _locked(folders: Sequence[Path]) -> Iterator[None]:
    """Exclude runs, and relays that a killed run has left behind."""
    with ExitStack() as held:
        for folder in folders:
            held.enter_context(locked_for_run(folder))
            held.enter_context(locked(folder))
        yield


@contextmanager
def _paused(spec: TaskSpec) -> Iterator[None]:
    """Pause the running task during the block."""
    is_paused = False
    try:
        change_state(spec, Request.PAUSE)
        is_paused = True
        yield
    finally:
        # The request of a failed pause remains in effect otherwise, and the task pauses later.
        resume = partial(change_state, spec, Request.RESUME) if is_paused else partial(_withdraw, spec)
        # Another thread, because Ctrl-C interrupts only this one, and may have left an answer of Spark unread.
        with ThreadPoolExecutor(1, thread_name_prefix="resume") as pool:
            pool.submit(resume).result()


def _withdraw(spec: TaskSpec) -> None:
    try:
        withdraw_pause(spec)
    except DmdeltaError as error:  # the pause's own error is raised
        log.warning("pause not withdrawn; resume the task if it is paused", task=spec.name, why=error.message)
