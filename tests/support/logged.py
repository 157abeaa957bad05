"""Records log lines of dmdelta, also if another test has configured the log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.told: list[tuple[str, str, dict[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append((record.levelname, record.getMessage(), record.__dict__["context"]))


@contextmanager
def logged(name: str) -> Iterator[list[tuple[str, str, dict[str, Any]]]]:
    """Level, message and fields of the lines that the logger `name` and its children write in the block."""
    logger, records = logging.getLogger(name), _Records()
    level = logger.level
    logger.addHandler(records)
    logger.setLevel(logging.DEBUG)
    try:
        yield records.told
    finally:
        logger.setLevel(level)
        logger.removeHandler(records)
