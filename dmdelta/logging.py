"""Structured logs in the format of `pyspark.logger`, so that Spark's logs and dmdelta's can be read as one table.

A message is constant text; facts are fields: `log.info("batch landed", batch=7, rows=1200)`. Only the CLI calls
`configure`. Secrets and row values are never fields, and of an exception that is not dmdelta's only its class and its
traceback are logged: its message may quote a row.
"""

import json
import logging
import sys
import traceback
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TextIO

from dmdelta.errors import loggable


class FieldLogger:
    """A stdlib logger whose keyword arguments become the record's fields."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, message: str, **fields: Any) -> None:
        self._log(logging.DEBUG, message, fields)

    def info(self, message: str, **fields: Any) -> None:
        self._log(logging.INFO, message, fields)

    def warning(self, message: str, *, exc: BaseException | None = None, **fields: Any) -> None:
        self._log(logging.WARNING, message, fields, exc)

    def error(self, message: str, *, exc: BaseException | None = None, **fields: Any) -> None:
        self._log(logging.ERROR, message, fields, exc)

    def _log(self, level: int, message: str, fields: dict[str, Any], exc: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, message, extra={"context": fields}, exc_info=exc)


def get_logger(name: str) -> FieldLogger:
    """The logger of a module, by its `__name__`."""
    return FieldLogger(name)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """A record with PySpark's keys: ts, level, logger, msg, context, exception."""
    line: dict[str, Any] = {
        "ts": datetime.fromtimestamp(record.created, tz=timezone.utc).isoformat(timespec="milliseconds"),
        "level": record.levelname,
        "logger": record.name,
        "msg": record.getMessage(),
        "context": record.__dict__.get("context", {}),
    }
    if record.exc_info and record.exc_info[1] is not None:
        kind, error, trace = record.exc_info
        line["exception"] = {
            "class": kind.__name__ if kind else "",
            "msg": loggable(error),
            "stacktrace": traceback.format_tb(trace),  # without the messages of the exception and its causes
        }
    return line


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(fields_of(record), default=str, ensure_ascii=False)


def parse_line(text: str) -> dict[str, Any] | None:
    """The fields of a line that `JsonFormatter` wrote; None for any other text."""
    if not text.startswith('{"ts": '):
        return None
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and {"ts", "level", "msg", "context"} <= line.keys() else None


def readable(line: Mapping[str, Any]) -> str:
    """The fields of a record as text for a terminal: time, level, message and facts, then hint and exception."""
    facts = dict(line["context"])
    why, hint = facts.pop("why", None), facts.pop("hint", None)
    at = datetime.fromisoformat(line["ts"]).astimezone().strftime("%H:%M:%S")
    text = f"{at} {line['level'].lower()}: {line['msg']}" + (f": {why}" if why else "")
    shown = ", ".join(f"{key}={_plain(value)}" for key, value in facts.items() if value is not None)
    lines = [f"{text} ({shown})" if shown else text, *([f"  hint: {hint}"] if hint else [])]
    failure = line.get("exception")
    if failure is not None:
        frames = [part.rstrip() for part in failure["stacktrace"]]
        lines += [*frames, f"  {failure['class']}" + (f": {failure['msg']}" if failure["msg"] else "")]
    return "\n".join(lines)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def configure(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Write dmdelta's logs to `stream` (default: stderr) as JSON lines."""
    output = logging.StreamHandler(stream or sys.stderr)
    output.setFormatter(JsonFormatter())
    send_to(output, level)


def send_to(handler: logging.Handler, level: int) -> None:
    """Send dmdelta's logs to a handler only."""
    root = logging.getLogger("dmdelta")
    root.handlers[:] = [handler]
    root.setLevel(level)
    root.propagate = False
