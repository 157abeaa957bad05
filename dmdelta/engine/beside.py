"""What goes on beside the pipeline: it is tried again when a failure passes, and any other stops it alone."""

import time
from collections.abc import Callable

from dmdelta.engine.stop import StopRequest
from dmdelta.model.retry import Retry

AGAIN = Retry(first=1.0, longest=60.0)
WELL_SECONDS = 600.0
"""What went well for so long before it failed is tried again at once."""


def run_beside(follow: Callable[[], None], goes_on: Callable[[Exception], bool], stop: StopRequest) -> None:
    """Run `follow` until it is done or the stop comes, again after each failure for which `goes_on` says so."""
    failures = 0
    while not stop.requested:
        began = time.monotonic()
        try:
            follow()
        except Exception as error:  # noqa: BLE001 - it is told, and the pipeline goes on
            if not goes_on(error):
                return
            failures = 1 if time.monotonic() - began > WELL_SECONDS else failures + 1
            stop.wait(AGAIN.delay(failures))
        else:
            return
