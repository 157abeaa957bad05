"""The read-only HTTP server of a running task: status page, `/status.json`, `/healthz`, `/readyz` and `/metrics`."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from dmdelta.config.metrics import MetricsConfig
from dmdelta.engine.control.state import State
from dmdelta.engine.telemetry.task_status import TaskStatus
from dmdelta.errors import ConfigError
from dmdelta.logging import get_logger

log = get_logger(__name__)
IDLE_SECONDS = 30.0
"""A connection on which no request arrives for this long is closed: each has a thread."""
READY_FACTOR = 3.0
"""A task is ready while its lag is below this multiple of the target freshness."""
MIN_READY_SECONDS = 3.0
"""The least limit: for a target freshness of 0, a task that applies at once still needs some seconds."""
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Content-Security-Policy", _POLICY),
)
_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
Start = Callable[[str, list[tuple[str, str]]], Any]


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a task serves fresh data; if not, the reasons."""

    reasons: tuple[str, ...] = ()

    @property
    def is_ready(self) -> bool:
        return not self.reasons


def plan_readiness(status: TaskStatus, freshness: float) -> Readiness:
    """Decide whether a task is ready: it runs, every relay streams, and every source's lag is below three times the
    target freshness. The lag behind a server that does not answer is not known.

    Args:
        freshness: the target freshness, in seconds.
    """
    if status.state != State.RUNNING.value:
        return Readiness((f"the task is {status.state}",))
    if not status.sources:
        return Readiness(("the sources are being opened",))
    silent = [
        f"{source.source_id}: the relay is {source.relay or 'not started'}"
        for source in status.sources
        if source.relay not in ("streaming", "caught up")
    ]
    limit = max(MIN_READY_SECONDS, READY_FACTOR * freshness)
    late = [
        f"{source.source_id}: lag {source.lag_seconds:.0f} s, limit {limit:.0f} s"
        for source in status.sources
        if source.lag_seconds is not None and source.lag_seconds >= limit
    ]
    return Readiness((*silent, *late))


@dataclass(frozen=True, slots=True)
class StatusSite:
    """What the server shows.

    Attributes:
        status: returns the current status.
        history: returns the lag and rate of the last hour, by source.
        freshness: the target freshness, in seconds.
        registry: the metrics.
    """

    status: Callable[[], TaskStatus]
    history: Callable[[], Mapping[str, Any]]
    freshness: float
    registry: CollectorRegistry

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        """Answer a request: a WSGI application."""
        path = environ.get("PATH_INFO", "/")
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return _answer(start, 405, "text/plain", "read-only\n")
        if path == "/metrics":
            answered: Iterable[bytes] = make_wsgi_app(self.registry)(environ, start)
            return answered
        pages: dict[str, Callable[[Start], Iterable[bytes]]] = {
            "/": lambda start: _answer(start, 200, "text/html", page()),
            "/status.json": lambda start: _answer(start, 200, "application/json", self.status().model_dump_json()),
            "/history.json": lambda start: _answer(start, 200, "application/json", json.dumps(self.history())),
            "/healthz": lambda start: _answer(start, 200, "text/plain", "ok\n"),
            "/readyz": self._readiness,
        }
        answer = pages.get(path)
        return answer(start) if answer is not None else _answer(start, 404, "text/plain", "not found\n")

    def _readiness(self, start: Start) -> Iterable[bytes]:
        found = plan_readiness(self.status(), self.freshness)
        text = "".join(f"{reason}\n" for reason in found.reasons) or "ready\n"
        return _answer(start, 200 if found.is_ready else 503, "text/plain", text)


def page() -> str:
    """The status page: one HTML document without external resources."""
    return files("dmdelta.engine.telemetry").joinpath("status_page.html").read_text(encoding="utf-8")


def _answer(start: Start, code: int, kind: str, text: str) -> Iterable[bytes]:
    body = text.encode()
    headers = [("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(body))), *_HEADERS]
    start(f"{code} {_REASONS[code]}", headers)
    return [body]


class _Server(ThreadingMixIn, WSGIServer):
    """One thread per request."""

    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    """Logs no requests. Closes a connection on which none arrives."""

    timeout = IDLE_SECONDS

    def handle(self) -> None:
        with suppress(TimeoutError):  # the server would print a traceback
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Nothing."""


@contextmanager
def serving_site(config: MetricsConfig, site: StatusSite) -> Iterator[None]:
    """Serve a site until the block ends.

    Raises:
        ConfigError: the address is in use, or not one of this machine's.
    """
    try:
        server = make_server(config.host, config.port, site, server_class=_Server, handler_class=_Quiet)
    except OSError as error:
        raise ConfigError(
            f"the status page and /metrics cannot be served at {config.host}:{config.port}: {error.strerror}",
            hint="correct metrics in the spec",
        ) from error
    log.info("serving metrics", url=f"http://{config.host}:{server.server_port}/metrics")
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="http", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
