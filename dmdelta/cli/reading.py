"""The frame of a command that queries the lakehouse: Spark starts while the command's code is imported."""

from collections.abc import Iterator
from contextlib import contextmanager

from dmdelta.cli.render import Working, working
from dmdelta.config import TaskSpec


@contextmanager
def reading(task: TaskSpec) -> Iterator[Working]:
    """Start Spark, and show what the command does until the block ends. Yields as soon as the start is under way.

    The block imports the engine and opens the task.
    """
    with working("starting Spark") as shown:
        from dmdelta.lakehouse.session import SessionSettings, begin_session

        begin_session(f"dmdelta {task.name}", SessionSettings(beside_run=True))
        yield shown
