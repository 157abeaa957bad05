"""Supervises a loop beside the pipeline: retries it after transient failures; any other failure stops it alone."""

import time
from collections.abc import Callable

from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.model.retry import Retry

AGAIN = Retry(first=1.0, longest=60.0)
WELL_SECONDS = 600.0
"""A loop that ran this long before it failed is retried immediately."""


def supervise(follow: Callable[[], None], retry_if: Callable[[Exception], bool], stop: StopRequest) -> None:
    """Run `follow` until it is done or the stop is requested; retry after each failure for which `retry_if` is true."""
    failures = 0
    while not stop.requested:
        began = time.monotonic()
        try:
            follow()
        except Exception as error:  # noqa: BLE001 - it is reported, and the pipeline continues
            if not retry_if(error):
                return
            failures = 1 if time.monotonic() - began > WELL_SECONDS else failures + 1
            stop.wait(AGAIN.delay(failures))
        else:
            return
