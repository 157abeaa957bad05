"""Work that runs in a thread while a block runs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dmdelta.engine.control import background


@contextmanager
def in_background(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run `work` in a thread during the block, until its event is set. Its error is raised at the end of the block."""
    failures = list[BaseException]()

    def run(over: threading.Event) -> None:
        try:
            work(over)
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    with background.in_background(run, "work"):
        yield
    if failures:
        raise failures[0]
