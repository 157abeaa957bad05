"""The live view of `dmdelta run` on a terminal: the status, refreshed every second, below warnings and errors."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.live import Live
from rich.text import Text

from dmdelta.cli.status_view import WIDTH, status_view
from dmdelta.cli.stderr_lines import stderr_lines
from dmdelta.engine.control.background import in_background
from dmdelta.engine.control.cancellation import SECOND_SIGNAL, StopRequest
from dmdelta.engine.control.state import State
from dmdelta.engine.telemetry.task_status import TaskStatus
from dmdelta.logging import configure, fields_of, get_logger, parse_line, readable, send_to

log = get_logger(__name__)
REFRESH_SECONDS = 1.0
STOP_SECONDS = 0.1
"""How soon the view shows a requested stop."""
ReadStatus = Callable[[], TaskStatus]
_OPENING = (State.STARTING.value, State.RUNNING.value)
_STYLES = {"WARNING": "yellow", "ERROR": "bold red", "CRITICAL": "bold red"}


def run_frame(status: TaskStatus | None, stopping: str | None = None) -> RenderableType:
    """What the view shows.

    Args:
        status: None before the task has one.
        stopping: how a requested stop proceeds; None if none was requested.
    """
    parts: list[RenderableType] = [Text(stopping, "yellow")] if stopping is not None else []
    parts += [status_view(status, all_tables=False)] if status is not None else []
    if status is None or (status.state in _OPENING and not status.sources):
        parts.append(Text("starting Spark and opening the sources …", "dim"))
    return Constrain(Group(*parts), WIDTH)


def plan_stopping(stop: StopRequest) -> str | None:
    """What the view says about a requested stop; None without one, and for a pause."""
    if not stop.requested or stop.is_pause:
        return None
    return "stopping at a transaction boundary" + (f"; {SECOND_SIGNAL}" if stop.signalled else "")


class RunView:
    """Draws the status of a run in place."""

    def __init__(self, live: Live, stop: StopRequest) -> None:
        self._live = live
        self._stop = stop
        self._read: ReadStatus | None = None
        self._failure = ""

    def follow(self, read: ReadStatus) -> None:
        """Show this status from now on."""
        self._read = read

    def refresh(self, over: threading.Event) -> None:
        """Refresh the view until `over` is set."""
        while not over.is_set():
            stopping = plan_stopping(self._stop)
            self._live.update(run_frame(self._status(), stopping), refresh=True)
            due = time.monotonic() + REFRESH_SECONDS
            while time.monotonic() < due and plan_stopping(self._stop) == stopping:
                if over.wait(STOP_SECONDS):
                    break

    def _status(self) -> TaskStatus | None:
        if self._read is None:
            return None
        try:
            status = self._read()
        except Exception as error:  # noqa: BLE001 - the run continues without its view
            if type(error).__name__ != self._failure:
                self._failure = type(error).__name__
                log.warning("status cannot be shown", why=self._failure)
            return None
        self._failure = ""
        return status


@contextmanager
def live_view(stop: StopRequest, level: int) -> Iterator[RunView]:
    """Show a run on the terminal until the block ends. The log from `level` on is shown above, as readable lines.

    If stderr is not the terminal, it gets the log as JSON lines, like that of a run in a pipe.
    """
    with ExitStack() as opened:
        console = Console(file=opened.enter_context(_own_stdout()), highlight=False)
        live = Live(
            console=console, auto_refresh=False, transient=True, vertical_overflow="crop", redirect_stderr=False
        )
        if sys.stderr.isatty():
            opened.callback(configure, level=level)
            opened.enter_context(stderr_lines(lambda line: print_line(console, line, level)))
            send_to(_Above(console), level)
        else:
            configure()
        opened.enter_context(live)
        console.show_cursor(True)  # a second signal ends the process without an end of this block
        view = RunView(live, stop)
        opened.enter_context(in_background(view.refresh, "view"))
        yield view


class _Above(logging.Handler):
    """Prints log records above the view."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        try:
            _print(self._console, readable(fields_of(record)), record.levelname)
        except Exception:  # noqa: BLE001 - as every handler of logging
            self.handleError(record)


def print_line(console: Console, line: str, level: int) -> None:
    """Print a line of a child process above the view: a log line if it is of `level`, any other as it is."""
    known = parse_line(line)
    if known is None:
        console.print(Text.from_ansi(line), soft_wrap=True)
    elif logging.getLevelName(known["level"]) >= level:
        _print(console, readable(known), known["level"])


def _print(console: Console, text: str, level: str) -> None:
    console.print(Text(text, _STYLES.get(level, "")), soft_wrap=True)


@contextmanager
def _own_stdout() -> Iterator[IO[str]]:
    """Stdout by a file descriptor of its own: while a JVM starts, the process's stdout leads elsewhere."""
    try:
        number = os.dup(sys.stdout.fileno())
    except OSError:  # it is no file
        yield sys.stdout
        return
    with os.fdopen(number, "w", encoding=sys.stdout.encoding, errors="replace") as file:
        yield file
