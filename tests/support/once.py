"""Runs that many tests share: each runs once, and a failed one is not retried for every test."""

from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Once(Generic[Result]):
    """Results of `work` by name; a failure is cached and raised at each call."""

    def __init__(self, work: Callable[[str], Result]) -> None:
        self._work = work
        self._done: dict[str, Result | Exception] = {}

    def __call__(self, name: str) -> Result:
        if name not in self._done:
            try:
                self._done[name] = self._work(name)
            except Exception as error:  # noqa: BLE001 - raised below, for each test
                self._done[name] = error
        found = self._done[name]
        if isinstance(found, Exception):
            raise RuntimeError(f"the run of {name} failed: {found}") from found.with_traceback(None)  # noqa: TRY004 - a failure, not a type
        return found
