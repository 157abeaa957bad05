"""Runs that many tests ask for: each is done once, and one that failed is not tried again for every test."""

from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Once(Generic[Result]):
    """Results of `work` by name; a failure is remembered and raised for each asking."""

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
